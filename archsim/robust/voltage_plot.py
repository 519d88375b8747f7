"""Errors and energy of a machine's memories over their supply, as a figure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from archsim.plots.palette import GREY, PORT_COLOURS
from archsim.robust.low_voltage import MachineAtLowVoltage, Series

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LINES: Mapping[str, str] = {"plain": "-", "boveda": ":", "secded": "--"}
"""Of forms."""

_PANEL_WIDTH, _HEIGHT = 3.6, 5.2


def voltage_figure(machines: Mapping[str, MachineAtLowVoltage]) -> Figure:
    """A column for each machine, by name: errors above, energy of the memory's accesses below.

    Colours are memories, lines forms; a dot is the lowest voltage that is borne.
    """
    import matplotlib.pyplot as plt

    pyplot: Any = plt
    figure, axes = pyplot.subplots(
        2, len(machines), sharex=True, sharey="row", squeeze=False,
        figsize=(_PANEL_WIDTH * len(machines), _HEIGHT), layout="constrained",
    )  # fmt: skip
    for column, (name, found) in enumerate(machines.items()):
        errors, energy = axes[0][column], axes[1][column]
        _draw(found, errors, energy)
        errors.set_title(name)
        errors.set_yscale("symlog", linthresh=1)
        errors.set_ylim(0, 100)
        energy.set_xlabel("supply over V_min")
        energy.set_ylim(0, None)
    axes[0][0].set_ylabel("pictures taken for another, %")
    axes[1][0].set_ylabel("the memory's energy a picture, nJ")
    for row in axes:
        for one in row:
            one.spines[["top", "right"]].set_visible(False)
            one.grid(alpha=0.3)
    _legend(machines, axes[0][-1])
    return figure


def _draw(found: MachineAtLowVoltage, errors: Any, energy: Any) -> None:
    """The series of a machine."""
    bound = found.nominal.error + found.loss
    errors.axhline(bound, color="0.6", linewidth=0.8)
    drawn = [one for one in found.series if one.points]
    for one in drawn:
        colour = PORT_COLOURS.get(one.memory, GREY)
        style = LINES.get(one.form, "-")
        voltages = [point.at[0].voltage for point in one.points]
        own = [point.energy.by_memory_pj[one.memory] / 1e3 for point in one.points]
        errors.plot(voltages, [point.error for point in one.points], style, color=colour)
        energy.plot(voltages, own, style, color=colour)
        _mark(one, bound, colour, errors)


def _mark(one: Series, bound: float, colour: str, errors: Any) -> None:
    """The lowest voltage that is borne."""
    lowest = one.lowest(bound)
    for point in one.points:
        if point.at[0].voltage == lowest:
            errors.plot([lowest], [point.error], "o", color=colour, markersize=5)


def _legend(machines: Mapping[str, MachineAtLowVoltage], axes: Any) -> None:
    """Colours and lines, once."""
    from matplotlib.lines import Line2D

    series = [one for found in machines.values() for one in found.series if one.points]
    memories = list(dict.fromkeys(one.memory for one in series))
    forms = list(dict.fromkeys(one.form for one in series))
    handles = [Line2D([], [], color=PORT_COLOURS.get(name, GREY), label=name) for name in memories]
    for form in forms:
        line: Any = LINES.get(form, "-")
        handles.append(Line2D([], [], color="black", linestyle=line, label=form))
    axes.legend(handles=handles, frameon=False, fontsize="small")


__all__ = ["voltage_figure"]
