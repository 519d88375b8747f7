"""The table of layers that `archsim run` prints, in the columns that there is room for."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table

from archsim.cli.fitting import fitting, left_out, names_column
from archsim.energy_account import EnergyAccount
from archsim.operand_notes import operand_notes
from archsim.result import LayerResult, NetworkResult
from archsim.training_traffic import TrainingTraffic

CAUSES = {
    "fill": "filling",
    "drain": "draining",
    "ifmap": "wait_ifmap",
    "weight": "wait_weight",
    "output": "wait_output",
    "memory": "memory",
    "conflict": "conflict",
    "barrier": "barrier",
    "control": "control",
}
"""Columns of the stalls' causes: the array fills, drains, waits for operands, for the output stage,
for the memory side, for the sequencer; PEs of a sparse machine wait for banks, for each other."""

HEADINGS = (
    "M ops",
    "cycles",
    "util %",
    "stalls",
    *CAUSES,
    "serial",
    "kB moved",
    "tiles",
    "groups",
    "differ",
)
FIRST = ("cycles", "util %", "stalls", "kB moved", "M ops")
LAST = ("serial", "tiles")
BLOCKS = "groups"
"""The column of how many groups lie side by side, where any do."""

LEGEND = {
    "M ops": "millions of MACs; of vector operations where there are no cycles, not in the total",
    "util %": "useful MACs (of a sparse machine, products) over those the array could have done",
    "stalls": "cycles in which no moving word entered the array{causes}",
    "serial": "cycles if no fold overlapped another",
    "groups": "of the layer that lie side by side on the array",
    "differ": "integers of the file's ofmap that the core's rule makes otherwise; - for its sums",
}

Row = dict[str, str]


def _short(count: float) -> str:
    """In millions, with three significant digits at least."""
    millions = count / 1e6
    return f"{millions:,.1f}" if millions >= 100 else f"{millions:.3g}"


def _figures(result: LayerResult | NetworkResult, moved: int, tiles: int) -> Row:
    return {
        "M ops": _short(result.macs),
        "cycles": f"{result.cycles:,}",
        "util %": f"{100 * result.utilization:.1f}",
        "stalls": f"{result.cycles - result.where['computing']:,}",
        **{name: f"{result.where[cause]:,}" for name, cause in CAUSES.items()},
        "serial": f"{result.serial_cycles:,}",
        "kB moved": f"{moved / 1e3:,.0f}",
        "tiles": f"{tiles:,}",
        "groups": _together(result),
        "differ": _differing(result),
    }


def _together(result: LayerResult | NetworkResult) -> str:
    """Groups side by side, where it is more than one."""
    count = result.groups_side_by_side if isinstance(result, LayerResult) else 1
    return f"{count:,}" if count > 1 else ""


def _differing(result: LayerResult | NetworkResult) -> str:
    layers = result.layers if isinstance(result, NetworkResult) else (result,)
    every = (layer.as_file.differing for layer in layers if layer.as_file)
    counts = [one for one in every if one is not None]
    return f"{sum(counts):,}" if counts else "-"


def _layer_row(layer: LayerResult) -> Row:
    if not layer.cycles:
        return {"M ops": _short(layer.vector_operations)}
    return _figures(layer, layer.total_bytes, layer.tiles)


def _total_row(result: NetworkResult) -> Row:
    tiles = sum(layer.tiles for layer in result.layers)
    return _figures(result, sum(result.bytes_moved.values()), tiles)


def _name(layer: LayerResult) -> str:
    return layer.name if layer.cycles else f"{layer.name} ({layer.kind})"


def _by_rank(result: NetworkResult) -> list[str]:
    """Headings from the most to the least wanted; causes by their cycles, without those of none."""
    where = result.where
    causes = sorted(CAUSES, key=lambda name: -where[CAUSES[name]])
    of_file = ["differ"] if any(layer.as_file for layer in result.layers) else []
    blocks = any(layer.groups_side_by_side > 1 for layer in result.layers)
    last = (*LAST, BLOCKS) if blocks else LAST
    return [*FIRST, *of_file, *(name for name in causes if where[CAUSES[name]]), *last]


Line = tuple[str, Row, str | None]
"""A row of the table: name, figures by heading, style."""


def _lines(result: NetworkResult) -> list[Line]:
    """All layers, and last the total."""
    layers: list[Line] = [
        (_name(layer), _layer_row(layer), None if layer.cycles else "dim")
        for layer in result.layers
    ]
    return [*layers, ("total", _total_row(result), "bold")]


def _widest(lines: list[Line]) -> Line:
    """One line that takes as much room as all of them."""
    figures = {
        name: max((row.get(name, "") for _, row, _ in lines), key=cell_len) for name in HEADINGS
    }
    return max((name for name, _, _ in lines), key=cell_len), figures, None


def _table(
    result: NetworkResult, shown: Sequence[str], lines: list[Line], console: Console
) -> Table:
    title = f"{result.network} on {result.design_name}"
    table = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        collapse_padding=True,
        pad_edge=False,
    )
    names_column(table, "layer", console)
    columns = [name for name in HEADINGS if name in shown]
    for name in columns:
        table.add_column(name, justify="right", no_wrap=True)
    for at, (name, row, style) in enumerate(lines, 1):
        cells = (row.get(heading, "") for heading in columns)
        table.add_row(name, *cells, style=style, end_section=at == len(lines) - 1)
    return table


def layer_table(result: NetworkResult, console: Console) -> tuple[Table, list[str]]:
    """The table, and a legend: what the columns say, and which have no room."""
    lines = _lines(result)
    widest, ranked = [_widest(lines)], _by_rank(result)
    shown = fitting(lambda names: _table(result, names, widest, console), ranked, console)
    causes = [name for name in CAUSES if name in shown]
    by_cause = f", by cause: {', '.join(causes)}" if causes else ""
    legend = [
        f"{name}: {text.format(causes=by_cause)}" for name, text in LEGEND.items() if name in shown
    ]
    legend += left_out(ranked, shown, "a pipe, --json and -o")
    return _table(result, shown, lines, console), legend


def _training_lines(training: TrainingTraffic) -> list[str]:
    """Each pass, and what is kept off the chip."""
    lines = [
        f"{name}: {one.cycles:,} cycles; {one.macs / 1e6:,.1f} M MACs"
        + (f", of them {one.products / 1e6:,.1f} M made" if one.products != one.macs else "")
        + f"; {one.moved_bytes / 1e3:,.0f} kB moved; {one.vector_operations:,} vector operations"
        for name, one in training.passes.items()
    ]
    lines.append(
        f"kept off the chip: {training.footprint_bytes:,} bytes: weights "
        f"{training.weight_bytes:,}, gradients {training.gradient_bytes:,}, optimiser "
        f"{training.optimiser_bytes:,}, of the forward pass {training.kept_bytes:,}"
    )
    return lines


def closing_lines(result: NetworkResult) -> list[str]:
    """The figures a user looks for first, and the actions."""
    actions = "; ".join(f"{name} {count:,}" for name, count in result.actions.items())
    vector = sum(layer.vector_operations for layer in result.layers)
    lines = [
        f"{result.cycles:,} cycles = {1e3 * result.seconds:,.3f} ms at "
        f"{result.clock_hz / 1e6:,.0f} MHz; utilisation {100 * result.utilization:.1f} %; "
        f"{result.macs / 1e6:,.1f} M MACs; {vector:,} vector operations beside the array",
        f"actions: {actions}",
    ]
    if result.kv_cache:
        kept = result.kv_cache
        lines.append(
            f"KV cache: {kept.footprint_bytes:,} bytes kept off the chip; "
            f"{kept.read_bytes:,} read, {kept.appended_bytes:,} appended"
        )
    if result.training:
        lines += _training_lines(result.training)
    lines += [f"operands: {note}" for note in operand_notes(result)]
    if result.skipped:
        lines.append(f"skipped as asked: {', '.join(result.skipped)}")
    return lines


def energy_lines(energy: EnergyAccount) -> list[str]:
    """Energy, where it goes (every group, priced or not), area, and in which technology."""
    total = si(energy.total * 1e-12, "J") if energy.unit == "pJ" else f"{energy.total:.3g} MACs"
    macs = sum(energy.macs)
    shares = sorted(energy.by_group.items(), key=lambda item: -item[1])
    spread = ", ".join(f"{name} {100 * part / energy.total:.0f} %" for name, part in shares)
    power = f"; {si(energy.power_w, 'W')} on average" if energy.power_w is not None else ""
    each = f"; {energy.total / macs:.3g} {energy.unit}/MAC" if macs else ""
    lines = [f"energy: {total}{power}{each}: {spread}"]
    area = energy.area_um2
    if area is not None:
        largest = sorted((energy.area_by_component or {}).items(), key=lambda item: -item[1])
        parts = ", ".join(f"{name} {100 * part / area:.0f} %" for name, part in largest[:4])
        lines.append(f"area: {area / 1e6:.3g} mm², without wires: {parts}")
    chosen = energy.technology
    lines.append(f"technology {chosen.name}: {chosen.title}")
    if energy.not_injected:
        lines.append(f"without bit errors: {energy.not_injected}")
    lines += [f"left out: {text}" for text in energy.missing_reasons]
    if energy.bounded:
        lines.append(
            f"an upper bound: rows of compressed memories in {len(energy.bounded)} of "
            f"{len(energy.layers)} layers, which had no operands to count them from"
        )
    return lines


_PREFIXES = ((1e3, "k"), (1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"), (1e-12, "p"))


def si(value: float, unit: str) -> str:
    """Three digits with the prefix that reads well: 1.23 mJ."""
    for factor, prefix in _PREFIXES:
        if value >= factor:
            return f"{value / factor:.3g} {prefix}{unit}"
    return f"{value:.3g} {unit}"


def print_result(
    result: NetworkResult, console: Console, energy: EnergyAccount | None = None, why_not: str = ""
) -> None:
    """Table, legend, and the closing lines; `why_not` says why there is no energy."""
    table, legend = layer_table(result, console)
    console.print(table, markup=False)
    for line in legend:
        console.print(line, style="dim", markup=False)
    lines = closing_lines(result)
    if energy is not None and energy.layers:
        lines += energy_lines(energy)
    elif why_not:
        lines.append(f"energy: not computed: {why_not}; see `archsim list technologies`")
    for line in lines:
        console.print(line, markup=False)
