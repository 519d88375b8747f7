"""Tables that fit a terminal: no name and no figure is cut; columns without room are named."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

from archsim.cli.output import PIPE_COLUMNS

Build = Callable[[Sequence[str]], Table]
"""Makes a table of the columns named."""

SHORTEST_NAME = 16
"""Letters that a column of names has at least before its names go on in the next line."""


def fitting(build: Build, ranked: Sequence[str], console: Console) -> list[str]:
    """The columns that there is room for, from the most to the least wanted."""
    wide = Console(width=PIPE_COLUMNS, markup=False)  # where a table shows its natural width
    kept: list[str] = []
    for name in ranked:
        wider = build([*kept, name])
        if Measurement.get(wide, wide.options, wider).maximum <= console.width:
            kept.append(name)
    return kept


def left_out(columns: Sequence[str], kept: Sequence[str], elsewhere: str) -> list[str]:
    """A line that names the columns without room, and where they are; none where all have it."""
    missing = [name for name in columns if name not in kept]
    return [f"no room for: {', '.join(missing)} (--wide, {elsewhere} have them)"] if missing else []


def names_column(table: Table, heading: str, console: Console) -> None:
    """A column of names, which go on in the next line where they would take most of the room."""
    most = console.width if not console.is_terminal else max(SHORTEST_NAME, 3 * console.width // 8)
    table.add_column(heading, overflow="fold", max_width=most)


def text_column(table: Table, heading: str, share: int | None = None) -> None:
    """A column of sentences, which go on in the next line."""
    table.add_column(heading, overflow="fold", ratio=share)
