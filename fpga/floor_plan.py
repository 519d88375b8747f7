"""A picture of a placed design: every cell where it lies on the chip, coloured by its module."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["floor_plan", "save_floor_plan"]

MODULES = 10
"""That have a colour of their own; the rest are grey."""


def _short(module: str) -> str:
    """Without the board's top and the core's name, two levels."""
    parts = [part for part in module.split(".") if part not in ("top", "core")]
    return ".".join(parts[:2]) or "top"


def floor_plan(places: dict[str, Any]) -> Figure:
    """The figure of what `fpga.places.places_of` gives."""
    from matplotlib.figure import Figure

    groups: dict[str, list[tuple[int, int]]] = {}
    for module, _, x, y in places["cells"]:
        groups.setdefault(_short(module), []).append((x, y))
    largest = [name for name, _ in Counter({n: len(c) for n, c in groups.items()}).most_common()]
    figure = Figure(figsize=(9, 6), layout="compressed")
    axes: Any = figure.subplots()
    rest = [cell for name in largest[MODULES:] for cell in groups[name]]
    shown = [(name, groups[name], f"C{at}") for at, name in enumerate(largest[:MODULES])]
    for name, cells, colour in [("others", rest, "0.75"), *shown]:
        if cells:
            columns, rows = zip(*cells, strict=True)
            axes.scatter(columns, rows, s=2.5, marker="s", color=colour, label=name, linewidths=0)
    axes.set(
        xlim=(0, places["columns"]), ylim=(places["rows"], 0), xlabel="column", ylabel="row",
        title=f"{len(places['cells']):,} cells where they lie", aspect="equal",
    )  # fmt: skip
    figure.legend(loc="outside right upper", markerscale=4, frameon=False, title="module")
    return figure


def save_floor_plan(places: Path, file: Path) -> None:
    """Draw the file `places` into `file`, whose name ends in a format that matplotlib writes."""
    floor_plan(json.loads(places.read_text(encoding="utf-8"))).savefig(file)
