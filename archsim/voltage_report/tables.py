"""The tables and headline figures of the page."""

from __future__ import annotations

from collections.abc import Sequence

from archsim.report.cards import Card
from archsim.report.tables import NOTHING, Column, Table
from archsim.robust.low_voltage import MachineAtLowVoltage, Point, Series
from archsim.robust.parts_alone import PartsAlone, mean
from archsim.robust.placed import VOLTAGES
from energy_models.voltage import bit_error_rate


def cards(found: MachineAtLowVoltage) -> list[Card]:
    """Errors without faults, the weak memory, what is saved."""
    nominal = found.nominal
    made = [
        Card(
            name="Without errors of memories",
            value=nominal.error,
            text=f"{nominal.error:.1f} %",
            note=f"are taken for another; {nominal.energy.total_pj / 1e6:.3g} µJ a picture",
        )
    ]
    for name, point in (("One voltage", found.one_voltage), ("Each its own", found.best)):
        saved = 0.0 if point is None else _saved(point, found)
        made.append(
            Card(
                name=f"{name}: saves",
                value=saved,
                text=f"{saved:.0f} %",
                note="nothing below V_min is borne"
                if point is None
                else f"of these memories' energy; {point.error:.1f} % wrong. {_said(point)}",
            )
        )
    return made


def _said(point: Point) -> str:
    return ", ".join(f"{one.memory} {one.form} at {one.voltage:g}" for one in point.at)


def _saved(point: Point, found: MachineAtLowVoltage) -> float:
    memories = sorted({one.memory for one in point.at})
    now = sum(point.energy.by_memory_pj[name] for name in memories)
    return 100 * (1 - now / sum(found.nominal.energy.by_memory_pj[name] for name in memories))


def series_table(found: MachineAtLowVoltage) -> Table:
    """A row for every memory in every form, a column for every supply."""
    voltages = sorted(VOLTAGES, reverse=True)
    bound = found.nominal.error + found.loss
    names = (*(f"{one:g}" for one in voltages), "lowest", "saves, % of memory")
    rows: list[list[str]] = []
    for one in found.series:
        known = {point.at[0].voltage: f"{point.error:.1f}" for point in one.points}
        errors = [known.get(each, "") for each in voltages]
        rows.append([one.memory, one.form, *errors, *_lowest(one, found, bound)])
    return Table(
        name="series",
        caption="Errors in % by supply over V_min",
        columns=[
            Column(name="memory", number=False),
            Column(name="form", number=False),
            *(Column(name=name) for name in names),
        ],
        rows=rows,
        muted=frozenset(at for at, one in enumerate(found.series) if not one.points),
    )


def _lowest(one: Series, found: MachineAtLowVoltage, bound: float) -> tuple[str, str]:
    lowest = one.lowest(bound)
    if lowest is None:
        return NOTHING, NOTHING
    point = next(each for each in one.points if each.at[0].voltage == lowest)
    return f"{lowest:g}", f"{_saved(point, found):.0f}"


def layer_table(parts: Sequence[PartsAlone]) -> Table:
    """A row for every layer, a column for every memory."""
    names = list(dict.fromkeys(name for one in parts for name in one.by_layer))
    rows = [[name, *(f"{mean(one.by_layer[name]):.1f}" for one in parts)] for name in names]
    return _of_parts("layers", "layer", parts, rows)


def bit_table(parts: Sequence[PartsAlone]) -> Table:
    """A row for every bit, the highest first."""
    most = max((len(one.by_bit) for one in parts), default=0)
    rows = [
        [
            str(bit),
            *(f"{mean(one.by_bit[bit]):.1f}" if bit < len(one.by_bit) else "" for one in parts),
        ]
        for bit in reversed(range(most))
    ]
    return _of_parts("bits", "bit", parts, rows)


def _of_parts(name: str, head: str, parts: Sequence[PartsAlone], rows: list[list[str]]) -> Table:
    return Table(
        name=name,
        caption=f"Errors in % by {head}",
        columns=[Column(name=head, number=False), *(Column(name=one.at.memory) for one in parts)],
        rows=rows,
        total=["all together", *(f"{mean(one.whole):.1f}" for one in parts)],
    )


def supplies(parts: Sequence[PartsAlone]) -> list[str]:
    """At which supply each memory was looked at."""
    return [
        f"{one.at.memory} at {one.at.voltage:g}, a bit error rate of "
        f"{bit_error_rate(one.at.voltage):.2g}: {mean(one.whole):.1f} % wrong"
        for one in parts
    ]


__all__ = ["bit_table", "cards", "layer_table", "series_table", "supplies"]
