"""`archsim paper`: a published table, ours beside it."""

from __future__ import annotations

import json
from itertools import groupby
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from archsim.cli.output import progress_bar
from archsim.papers import Comparison, Row, compare, papers

_WIDTH = 120
"""Columns of the table where the output is not a terminal."""

_MARKS = {True: "✓", False: "✗", None: ""}


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
        _MARKS[row.within],
        row.reason,
    )


def paper_table(comparison: Comparison) -> Table:
    """The rows, in the groups of the paper."""
    table = Table(title=comparison.title, caption="✓ ours is within ± tolerance of the paper's")
    table.add_column("figure", ratio=3)
    for name in ("paper", "ours"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("unit", no_wrap=True)
    for name in ("diff", "±", ""):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("reason or remark", ratio=6)
    for group, rows in groupby(comparison.rows, key=lambda row: row.published.group):
        table.add_section()
        table.add_row(group, style="bold")
        for row in rows:
            table.add_row(*_cells(row))
    return table


def _closing_line(comparison: Comparison) -> str:
    judged = [row.within for row in comparison.rows if row.within is not None]
    return f"{sum(judged)} of {len(judged)} figures within the tolerance"


def paper(
    name: Annotated[
        str | None, typer.Argument(help="A paper's short name; without it, the list.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Print a published table with ours beside it: which figures we reproduce, and why not.

    Example:

    \b
      archsim paper tpu
    """
    console = Console(width=None if Console().is_terminal else _WIDTH, highlight=False)
    if name is None:
        known = [{"name": key, "title": title} for key, title in papers().items()]
        if as_json:
            print(json.dumps(known, indent=2, ensure_ascii=False))
            return
        for entry in known:
            console.print(f"{entry['name']:8} {entry['title']}", soft_wrap=True, markup=False)
        return
    with progress_bar("comparing", quiet=as_json) as bar:
        comparison = compare(
            name, lambda what: bar.update(bar.task_ids[0], description=f"measuring {what}")
        )
    if as_json:
        print(json.dumps(comparison.record(), indent=2, ensure_ascii=False))
        return
    console.print(paper_table(comparison))
    for note in comparison.notes:
        console.print(note, markup=False)
    console.print(_closing_line(comparison), markup=False)


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("paper", short_help="Print a published table with ours beside it.")(paper)
