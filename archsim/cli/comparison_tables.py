"""The tables that `archsim compare` prints, in the columns that there is room for."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from archsim.cli.fitting import Build, fitting, left_out, names_column
from archsim.comparison import ComparedLayer, ResultComparison
from archsim.comparison.figures import TOTAL, ComparedFigure

ABSENT = "–"

SCALES = {
    "s": (1e3, "ms"),
    "share": (100.0, "%"),
    "pJ": (1e-6, "µJ"),
    "pJ·s": (1e-12, "J·s"),
    "µm²": (1e-6, "mm²"),
}
"""Units of the figures that are read better in another one."""


def value_text(value: Any) -> str:
    """A parameter of a design as TOML has it, whole floats without their point."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def _figure_text(value: float | None, unit: str) -> str:
    """Counts in full, everything else to four digits."""
    if value is None:
        return ABSENT
    if isinstance(value, int):
        return f"{value:,}"
    scaled = value * SCALES.get(unit, (1.0, unit))[0]
    return f"{scaled:,.0f}" if scaled >= 1e4 else f"{scaled:.4g}"


def _ratio_text(ratio: float | None) -> str:
    """Three decimals, or two digits where that would be nothing."""
    if ratio is None:
        return ABSENT
    return f"{ratio:,.3f}" if ratio >= 1e-3 or ratio == 0 else f"{ratio:.1e}"


def _headings(comparison: ResultComparison) -> tuple[list[str], list[str]]:
    """Headings in the order in which they stand, and from the most to the least wanted."""
    base, *others = comparison.labels
    ratios = [f"{label}/{base}" for label in others]
    return [base, *others, *ratios], [base, *ratios, *others]


def _cells(comparison: ResultComparison, figure: ComparedFigure) -> dict[str, str]:
    base, *others = comparison.labels
    values = (_figure_text(value, figure.unit) for value in figure.values)
    ratios = (_ratio_text(one) for one in figure.ratios[1:])
    return {
        **dict(zip(comparison.labels, values, strict=True)),
        **{f"{label}/{base}": text for label, text in zip(others, ratios, strict=True)},
    }


def _new_table(first: str, shown: Sequence[str], console: Console) -> Table:
    table = Table(box=box.SIMPLE_HEAD, collapse_padding=True, pad_edge=False)
    names_column(table, first, console)
    for name in shown:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _with_unit(name: str, unit: str) -> str:
    """The name, and the unit that its figures are printed in unless the name says it."""
    printed = SCALES.get(unit, (1.0, unit))[1]
    return name if printed in name else f"{name} ({printed})"


def figure_table(comparison: ResultComparison, shown: Sequence[str], console: Console) -> Table:
    """The totals, then their parts by group; parts that are zero in every result are left out."""
    table = _new_table("figure", shown, console)
    for (group, unit), figures in groupby(comparison.figures, key=_section):
        if group != TOTAL:
            table.add_section()
            table.add_row(_with_unit(group, unit), style="bold")
        for figure in figures:
            if group == TOTAL or any(figure.values):
                cells = _cells(comparison, figure)
                name = _with_unit(figure.name, figure.unit) if group == TOTAL else figure.name
                table.add_row(name, *(cells[column] for column in shown))
    return table


def _section(figure: ComparedFigure) -> tuple[str, str]:
    """The totals are one section; parts have one for each group and unit."""
    return figure.group, "" if figure.group == TOTAL else figure.unit


def layer_table(
    comparison: ResultComparison,
    shown: Sequence[str],
    layers: Sequence[ComparedLayer],
    console: Console,
) -> Table:
    """Cycles of the layers, and their ratios."""
    table = _new_table("layer (cycles)", shown, console)
    for layer in layers:
        cells = _cells(comparison, layer.cycles)
        table.add_row(layer.name, *(cells[column] for column in shown))
    return table


def print_figures(comparison: ResultComparison, console: Console) -> None:
    """The table of figures."""
    _print_table(lambda shown: figure_table(comparison, shown, console), comparison, console)


def print_layers(
    comparison: ResultComparison, layers: Sequence[ComparedLayer], console: Console
) -> None:
    """The table of layers."""
    _print_table(lambda shown: layer_table(comparison, shown, layers, console), comparison, console)


def _print_table(build: Build, comparison: ResultComparison, console: Console) -> None:
    """Print the table with as many columns as there is room for, and say which have none."""
    columns, ranked = _headings(comparison)
    kept = fitting(build, ranked, console)
    console.print(build([name for name in columns if name in kept]), markup=False)
    for line in left_out(columns, kept, "a pipe, --json and --csv"):
        console.print(line, style="dim", markup=False)
