"""The figures of the page: colours are memories, lines are forms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from archsim.plots.axes import Layout, dress, note
from archsim.plots.palette import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILION
from archsim.report.figures import Figure, figure_of
from archsim.robust.low_voltage import MachineAtLowVoltage, Point, Series
from archsim.robust.parts_alone import PartsAlone, mean
from archsim.robust.voltage_plot import LINES

COLOURS = (VERMILION, BLUE, GREEN, PURPLE, ORANGE, SKY, BLACK, GREY)
"""Of memories, in the order in which they are looked at."""

_HEIGHT = 4.2
_GROUP, _BAR = 0.12, 0.15
"""Inches: between the names of a figure of bars, and for each bar."""

ERRORS = "pictures taken for another, %"


def figures(found: MachineAtLowVoltage, parts: Sequence[PartsAlone]) -> list[Figure]:
    """Those of errors over the supply, of energy, and where errors hurt."""
    bound = found.nominal.error + found.loss
    clean = found.nominal.error
    drawn = [
        figure_of(
            "supply",
            "Errors over the supply, one memory at a time",
            lambda layout: _over_supply(layout, found, energy=False),
            f"All other memories at V_min. The grey line is what is borne: {bound:.1f} %, "
            f"of which {clean:.1f} % are wrong without errors of memories. A dot is the "
            "lowest supply down to which a memory stays below it. Up to 1 % the axis is linear, "
            "above it logarithmic.",
        ),
        figure_of(
            "energy",
            "Energy of that memory's accesses",
            lambda layout: _over_supply(layout, found, energy=True),
            "Of one picture, the memory's own components alone.",
        ),
    ]
    return [*drawn, *_of_parts(found, parts)]


def _of_parts(found: MachineAtLowVoltage, parts: Sequence[PartsAlone]) -> list[Figure]:
    """Where errors hurt: in one layer alone, in one bit alone."""
    drawn: list[Figure] = []
    by_layer = {one.at.memory: {k: mean(v) for k, v in one.by_layer.items()} for one in parts}
    by_bit = {
        one.at.memory: {
            f"bit {at}": mean(one.by_bit[at]) for at in reversed(range(len(one.by_bit)))
        }
        for one in parts
        if one.by_bit
    }
    line = f"The grey line is without errors: {found.nominal.error:.1f} %."
    if by_layer:
        drawn.append(
            figure_of(
                "layers",
                "Errors in one layer alone",
                lambda layout: _bars(layout, by_layer, found),
                f"A memory fails while one layer is computed, and in no other. {line}",
            )
        )
    if by_bit:
        drawn.append(
            figure_of(
                "bits",
                "Errors in one bit alone",
                lambda layout: _bars(layout, by_bit, found),
                "One bit of every value may fail, all others are protected; bit 0 is worth least. "
                + line,
            )
        )
    return drawn


def colours(found: MachineAtLowVoltage) -> dict[str, str]:
    """By memory."""
    names = dict.fromkeys(one.memory for one in found.series)
    return {name: COLOURS[at % len(COLOURS)] for at, name in enumerate(names)}


def _over_supply(layout: Layout, found: MachineAtLowVoltage, *, energy: bool) -> Any:
    axes = layout.axes(None, 8.0, _HEIGHT)
    bound, chosen = found.nominal.error + found.loss, colours(found)
    for one in found.series:
        if one.points:
            _line(axes, one, chosen[one.memory], bound, energy=energy)
    dress(axes, f"{len(found.series)} series", "y")
    axes.set_xlabel("supply over V_min")
    axes.set_ylabel("nJ a picture" if energy else ERRORS)
    if energy:
        axes.set_ylim(0, None)
        return axes
    axes.axhline(bound, color=GREY, linewidth=1)
    axes.set_yscale("symlog", linthresh=1, linscale=0.3)
    axes.set_ylim(0, 100)
    ticks = (0, 1, 2, 5, 10, 20, 50, 100)
    axes.set_yticks(ticks, [str(one) for one in ticks])
    axes.minorticks_off()
    return axes


def _line(axes: Any, one: Series, colour: str, bound: float, *, energy: bool) -> None:
    def value(point: Point) -> float:
        return point.energy.by_memory_pj[one.memory] / 1e3 if energy else point.error

    axes.plot(
        [point.at[0].voltage for point in one.points],
        [value(point) for point in one.points],
        LINES.get(one.form, "-"),
        color=colour,
        linewidth=1.6,
        label=f"{one.memory} {one.form}",
    )
    lowest = one.lowest(bound)
    for point in one.points:
        if point.at[0].voltage == lowest:
            axes.plot([lowest], [value(point)], "o", color=colour, markersize=5)


def _bars(
    layout: Layout, values: Mapping[str, Mapping[str, float]], found: MachineAtLowVoltage
) -> Any:
    """Of each name one bar a memory, names down the page: values by memory and name."""
    names = list(dict.fromkeys(name for own in values.values() for name in own))
    inches = _GROUP + _BAR * len(values)
    axes = layout.axes(None, 8.0, 0.7 + inches * len(names))
    bar = _BAR / inches
    for at, (memory, own) in enumerate(values.items()):
        places = [names.index(name) + bar * (at - (len(values) - 1) / 2) for name in own]
        drawn = axes.barh(
            places, list(own.values()), bar, color=colours(found)[memory], label=memory
        )
        for one, (name, percent) in zip(drawn, own.items(), strict=True):
            note(one, f"{memory}, {name}: {percent:.1f} %")
    dress(axes, f"{len(names)} of {len(values)} memories", "x")
    axes.axvline(found.nominal.error, color=GREY, linewidth=1)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    most = max(percent for own in values.values() for percent in own.values())
    axes.set_xlim(0, max(1.08 * most, 2 * found.nominal.error, 1))
    axes.set_xlabel(ERRORS)
    return axes


__all__ = ["colours", "figures"]
