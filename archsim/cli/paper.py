"""`archsim paper`: print a published table with ours beside it."""

from __future__ import annotations

import json
from itertools import groupby
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from archsim.cli.fitting import text_column
from archsim.cli.options import Wide
from archsim.cli.output import output_console, progress_bar
from archsim.papers import Comparison, Row, compare, papers

_WIDTH = 120
"""Columns of the table where the output is not a terminal."""

_ROOM_FOR_REMARKS = 110
"""Columns of a terminal from which remarks stand in their rows, not below the table."""

_CAPTION = (
    "reproduced: ours is within ± tolerance; explained: it is not, and what is measured shows why "
    "(nearer: how much of the gap a cause closes); not modelled: it is not, and what is missing in "
    "our model, or not published, is said"
)


def _number(value: float | None, *, signed: bool = False) -> str:
    """Three or so significant digits, whole numbers whole."""
    if value is None:
        return "–"
    sign = "+" if signed else ""
    if value == round(value) or abs(value) >= 1000:
        return f"{value:{sign},.0f}"
    return f"{value:{sign},.{1 if abs(value) >= 10 else 2}f}"


def _cells(row: Row) -> tuple[str, ...]:
    figure = row.published
    return (
        figure.figure,
        _number(figure.value),
        _number(row.ours),
        figure.unit,
        _number(row.difference, signed=True),
        _number(figure.tolerance),
        row.state or "",
    )


def paper_table(comparison: Comparison, *, remarks: bool = True) -> Table:
    """The rows, in the groups of the paper; without `remarks`, rows bear the numbers of theirs."""
    table = Table(title=comparison.title, caption=_CAPTION)
    text_column(table, "figure", 3)
    for name in ("paper", "ours"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("unit", no_wrap=True)
    for name in ("diff", "±"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("state", no_wrap=True)
    if remarks:
        text_column(table, "remark, and what was measured", 6)
    else:
        table.add_column("see", justify="right", no_wrap=True)
    numbers = {id(row): str(number) for number, row in enumerate(_remarked(comparison), 1)}
    for group, rows in groupby(comparison.rows, key=lambda row: row.published.group):
        table.add_section()
        table.add_row(Text(group), style="bold")
        for row in rows:
            last = row.text if remarks else numbers.get(id(row), "")
            table.add_row(*map(Text, (*_cells(row), last)))
    return table


def _remarked(comparison: Comparison) -> list[Row]:
    return [row for row in comparison.rows if row.text]


def _print(comparison: Comparison, console: Console) -> None:
    """The table; where the terminal is narrow, the remarks stand below it."""
    remarks = console.width >= _ROOM_FOR_REMARKS
    console.print(paper_table(comparison, remarks=remarks))
    if not remarks:
        for number, row in enumerate(_remarked(comparison), 1):
            console.print(f"{number}: {row.text}", markup=False)
    for note in comparison.notes:
        console.print(note, markup=False)
    console.print(_closing_line(comparison), markup=False)


def _closing_line(comparison: Comparison) -> str:
    counts = comparison.states
    listed = ", ".join(f"{number} {state}" for state, number in counts.items())
    return f"{listed}, of {sum(counts.values())} published figures"


def paper(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="A paper's short name; without it, the list."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
    wide: Wide = False,
    images: Annotated[
        int | None, typer.Option(metavar="N", help="Of randbet: test pictures of each error.")
    ] = None,
    chips: Annotated[
        int | None, typer.Option(metavar="N", help="Of randbet: chips of each error.")
    ] = None,
) -> None:
    """Print a published table with ours beside it: which figures we reproduce, and why not.

    Examples:

    \b
      archsim paper tpu
      archsim paper randbet --images 10000 --chips 50
    """
    beside = Console().is_terminal and not wide
    console = Console(width=None if beside else _WIDTH, highlight=False)
    if name is None:
        known = [{"name": key, "title": title} for key, title in papers().items()]
        if as_json:
            print(json.dumps(known, indent=2, ensure_ascii=False))
            return
        names = Table(box=None, show_header=False, pad_edge=False)
        names.add_column("name", no_wrap=True)
        names.add_column("title")
        for entry in known:
            names.add_row(entry["name"], entry["title"])
        output_console(wide=wide).print(names)
        return
    with progress_bar("comparing", quiet=as_json) as bar:
        comparison = compare(
            name,
            lambda what: bar.update(bar.task_ids[0], description=f"measuring {what}"),
            images=images,
            chips=chips,
        )
    if as_json:
        print(json.dumps(comparison.record(), indent=2, ensure_ascii=False))
        return
    _print(comparison, console)


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("paper")(paper)
