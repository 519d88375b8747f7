"""Tables, progress, and files that appear whole or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from archsim.errors import InputError
from archsim.result import LayerResult, NetworkResult


@contextmanager
def progress_bar(description: str, *, quiet: bool = False) -> Iterator[Progress]:
    """A progress bar on stderr; silent when stderr is not a terminal."""
    console = Console(stderr=True)
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        disable=quiet or not console.is_terminal,
        transient=True,
    ) as progress:
        progress.add_task(description, total=None)
        yield progress


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """A folder that appears under its name only when everything in it is written."""
    if path.exists():
        raise InputError(f"{path} exists; give a folder that does not")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(prefix=f".{path.name}-", dir=path.parent))
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}") from error
    try:
        yield work
        work.chmod(0o755)
        work.rename(path)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}") from error
    finally:
        shutil.rmtree(work, ignore_errors=True)


def write_new(path: Path, text: str) -> None:
    """Write a file that must not exist yet, whole or not at all."""
    if path.exists():
        raise InputError(f"{path} exists; give a file that does not")
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_text(text, encoding="utf-8")
        temporary.rename(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise InputError(f"{path} cannot be written: {error.strerror}") from error


STALLS = {
    "fill": ("filling",),
    "drain": ("draining",),
    "ifmap": ("wait_ifmap",),
    "weight": ("wait_weight",),
    "output": ("wait_output",),
    "memory": ("memory",),
    "other": ("control",),
}
"""Columns of the table: the cycles in which no moving word entered the array, by cause."""


def layer_table(result: NetworkResult) -> Table:
    """The layers, where their cycles went, and what they moved."""
    table = Table(
        title=f"{result.network} on {result.design_name}",
        caption="cycles without work by cause; utilisation = useful MACs / possible MACs",
    )
    table.add_column("layer", no_wrap=True, overflow="ellipsis", max_width=30)
    for name in ("MMAC", "cycles", "util %", *STALLS, "serial", "kB moved", "tiles"):
        table.add_column(name, justify="right")
    for layer in result.layers:
        table.add_row(*_cells(layer))
    where, moved = result.where, sum(result.bytes_moved.values())
    table.add_section()
    table.add_row(
        "total",
        f"{result.macs / 1e6:,.1f}",
        f"{result.cycles:,}",
        f"{100 * result.utilization:.1f}",
        *(f"{sum(where[cause] for cause in causes):,}" for causes in STALLS.values()),
        f"{result.serial_cycles:,}",
        f"{moved / 1e3:,.0f}",
        f"{sum(layer.tiles for layer in result.layers):,}",
        style="bold",
    )
    return table


def _cells(layer: LayerResult) -> list[str]:
    if not layer.cycles:
        work = f"{layer.vector_operations:,} vector operations"
        return [f"{layer.name} ({layer.kind})", "", work, *[""] * (len(STALLS) + 4)]
    stalls = (sum(layer.where[cause] for cause in causes) for causes in STALLS.values())
    return [
        layer.name,
        f"{layer.macs / 1e6:,.1f}",
        f"{layer.cycles:,}",
        f"{100 * layer.utilization:.1f}",
        *(f"{count:,}" for count in stalls),
        f"{layer.serial_cycles:,}",
        f"{layer.total_bytes / 1e3:,.0f}",
        f"{layer.tiles:,}",
    ]


def closing_lines(result: NetworkResult) -> str:
    """The figures a user looks for first, and the actions."""
    actions = ", ".join(f"{name} {count:,}" for name, count in result.actions.items())
    vector = sum(layer.vector_operations for layer in result.layers)
    lines = [
        f"{result.cycles:,} cycles = {1e3 * result.seconds:,.3f} ms at "
        f"{result.clock_hz / 1e6:,.0f} MHz; utilisation {100 * result.utilization:.1f} %; "
        f"{result.macs / 1e6:,.1f} M MACs; {vector:,} vector operations beside the array",
        f"actions: {actions}",
    ]
    schemes = {layer.operands for layer in result.layers if layer.operands != "none"}
    lines += [f"operands: {scheme}" for scheme in sorted(schemes)]
    if result.skipped:
        lines.append(f"skipped as asked: {', '.join(result.skipped)}")
    return "\n".join(lines)
