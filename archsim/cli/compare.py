"""`archsim compare`: compare saved results."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from archsim.cli.comparison_tables import print_figures, print_layers, value_text
from archsim.cli.options import Force, Wide
from archsim.cli.output import output_console, shown
from archsim.comparison.results import MOVERS, ComparedLayer, ResultComparison, compare_results
from archsim.errors import InputError, require
from archsim.files import require_new, write_new
from archsim.saved import load_result

ALL = "all"

FIGURES = (".svg", ".png", ".pdf")
"""Endings of what `--plot` writes."""


def _layer_count(text: str) -> int | None:
    """How many layers to print; None for all."""
    if text == ALL:
        return None
    try:
        count = int(text)
    except ValueError:
        raise InputError(f"--layers must be a whole number or {ALL}, not {text!r}") from None
    require(count >= 0, f"--layers must not be negative, not {count}")
    return count


def _heading(comparison: ResultComparison) -> Iterator[str]:
    """Which result is which, and what was changed from one design to the next."""
    for label, one in zip(comparison.labels, comparison.results, strict=True):
        baseline = " (baseline)" if label == comparison.labels[0] else ""
        yield shown(f"{label}{baseline}: {one.path}: {one.network} on {one.design_name}")
    order = " -> ".join(comparison.labels)
    if comparison.design_changes:
        yield f"the designs differ in ({order}):"
    else:
        yield "the designs are equal"
    for change in comparison.design_changes:
        yield f"  {change.key}: {' -> '.join(map(value_text, change.values))}"


def _speedups(comparison: ResultComparison) -> Iterator[str]:
    base = comparison.labels[0]
    for label, speedup in zip(comparison.labels[1:], comparison.speedups[1:], strict=True):
        if speedup is not None:
            yield (
                f"speedup of {label} over {base}: {speedup:.4g} "
                f"(seconds of {base} / seconds of {label}; above 1, {label} is faster)"
            )


def _layers_only_in_some(comparison: ResultComparison) -> Iterator[str]:
    """Names of the layers that not every result has, by the results that have them."""
    by_owners: dict[str, list[str]] = {}
    for layer in comparison.layers:
        if not layer.in_all:
            has = zip(comparison.labels, layer.layers, strict=True)
            owners = ", ".join(label for label, one in has if one is not None)
            by_owners.setdefault(owners, []).append(layer.name)
    for owners, names in by_owners.items():
        yield f"only in {owners}: {', '.join(names)}"


def _chosen_layers(
    comparison: ResultComparison, count: int | None
) -> tuple[str, Sequence[ComparedLayer]]:
    """A title, and the layers to print: all that take cycles, or those that moved most."""
    if count is None:
        timed = [layer for layer in comparison.layers if any(layer.cycles.values)]
        return "layers, in the order of the network", timed
    movers = comparison.largest_movers(count)
    moved = len(comparison.largest_movers(None))
    return f"layers whose cycles differ most ({len(movers)} of {moved} that differ)", movers


def print_comparison(
    comparison: ResultComparison, console: Console, count: int | None = MOVERS
) -> None:
    """Results, changes, totals and their parts, layers, notes."""
    for line in _heading(comparison):
        console.print(line, markup=False)
    print_figures(comparison, console)
    base, other, *_ = comparison.labels
    console.print(f"{other}/{base}: {other}'s figure over {base}'s", markup=False, style="dim")
    for line in _speedups(comparison):
        console.print(line, markup=False, style="bold")
    title, layers = _chosen_layers(comparison, count)
    if layers:
        console.print(title, markup=False, style="bold")
        print_layers(comparison, layers, console)
    elif count != 0:
        console.print("no layer's cycles differ", markup=False)
    for line in _layers_only_in_some(comparison):
        console.print(line, markup=False)
    for note in comparison.notes:
        console.print(f"note: {note}", markup=False, style="bold")


def _figure(comparison: ResultComparison, ending: str) -> bytes:
    """The overview as a file of that kind; nothing of the day is in it."""
    import io

    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    pyplot: Any = plt
    dates = {".svg": "Date", ".png": None, ".pdf": "CreationDate"}
    left_out = dates[ending]
    settings: Any = {"svg.hashsalt": "archsim", "svg.fonttype": "path"}
    with pyplot.rc_context(settings):
        figure: Any = comparison.plot.overview()
        file = io.BytesIO()
        metadata = {left_out: None} if left_out else {}
        figure.savefig(file, format=ending[1:], dpi=150, metadata=metadata)
        pyplot.close(figure)
    return file.getvalue()


def compare(  # noqa: PLR0913
    results: Annotated[
        list[Path],
        typer.Argument(
            metavar="A B [C …]",
            help="Files of `archsim run --json` or folders of `archsim run -o`; A is the baseline.",
        ),
    ],
    layers: Annotated[
        str,
        typer.Option(
            metavar="N|all", help="How many layers to print, those that differ most first; or all."
        ),
    ] = str(MOVERS),
    as_json: Annotated[bool, typer.Option("--json", help="The comparison as JSON.")] = False,
    csv: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="A new file of every figure, of the networks and of each layer."
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A new figure of the designs side by side (.svg, .png or .pdf): cycles, energy, "
            "area, in all and for each MAC.",
        ),
    ] = None,
    force: Force = False,
    wide: Wide = False,
) -> None:
    """Compare saved results: figures and their ratios to A's, what changed, which layers moved.

    Examples:

    \b
      archsim run edge-16 alexnet --timing-only --json > a.json
      archsim run edge-16 alexnet --timing-only --json --set rows=32 > b.json
      archsim compare a.json b.json --layers all
      archsim compare a.json b.json --plot compared.svg
    """
    count = _layer_count(layers)
    for path in (csv, plot):
        if path is not None:
            require_new(path)
    if plot is not None:
        ending = plot.suffix.lower()
        require(ending in FIGURES, f"--plot must end in {', '.join(FIGURES)}, not {plot.name!r}")
    comparison = compare_results([load_result(path) for path in results])
    if csv is not None:
        write_new({csv: comparison.to_csv()})
    if plot is not None:
        write_new({plot: _figure(comparison, plot.suffix.lower())})
    if as_json:
        print(json.dumps(comparison.record(), indent=2, ensure_ascii=False))
    else:
        print_comparison(comparison, output_console(wide=wide), count)


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("compare")(compare)
