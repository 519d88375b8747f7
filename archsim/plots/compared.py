"""Designs side by side: cycles, energy and area of compared results, in all and for each MAC."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from archsim.comparison.figures import Values, ratio
from archsim.errors import InputError, require
from archsim.plots.axes import Layout, dress, legend, note, plain, separate_thousands, shortened
from archsim.plots.palette import BLACK, CAUSE_COLOURS, GREEN, GROUP_COLOURS, cause_text
from archsim.plots.units import Unit, area_unit, count_unit, si_text, si_unit, significant
from workloads.counts import counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from archsim.comparison.results import ResultComparison

NOTEBOOK = Layout()

_WIDTH, _INCHES_PER_BAR, _THICK = 8.0, 0.5, 0.62
_ROOM_FOR_TEXT, _ROOM_IN_PANEL = 1.5, 1.9
_PAD_INCHES = 0.12
"""The axis of values, over the longest bar: behind each bar stands its figure."""
_LETTERS_OF_A_LINE, _LONGEST_LABEL = 26, 48
_PANEL_INCHES, _LEGEND_INCHES = 5.2, 0.6
"""Of a panel's width, and from its axis down to its legend."""


@dataclass(frozen=True, kw_only=True)
class Stacks:
    """What is drawn: a bar for each result, of these parts in a base unit; None: not known.

    what: is shown ("cycles").  each: what it is divided by ("MAC"), or "".  total [results].
    unit: of the axis; text: a value in a unit of its own.
    """

    what: str
    each: str
    parts: Mapping[str, Values]
    total: Values
    colours: Mapping[str, str]
    unit: Unit
    text: Callable[[float], str]


@dataclass(frozen=True)
class ComparisonPlots:
    """Figures of a `ResultComparison`: lying bars, one for each result, the baseline's on top.

    Cycles are stacked by cause, energy and area by group of components.  Each figure is drawn on
    `ax`, or on a new figure, and returned as matplotlib's Axes; behind a bar stand its figure and
    its ratio to the baseline's.  per_mac: cycles and energy over the network's MACs, area over the
    multiply-accumulates that the design can do in a cycle.
    """

    comparison: ResultComparison
    layout: Layout = NOTEBOOK

    def cycles(self, ax: Axes | None = None, *, per_mac: bool = False) -> Axes:
        """Cycles of the networks."""
        return self._draw(self._cycles(per_mac=per_mac), ax)

    def energy(self, ax: Axes | None = None, *, per_mac: bool = False) -> Axes:
        """Energy of the networks; results whose energies have another unit than the first have no
        bar.  Raises `InputError` if no result has energies."""
        return self._draw(self._energy(per_mac=per_mac), ax)

    def area(self, ax: Axes | None = None, *, per_mac: bool = False) -> Axes:
        """Area of the designs.  Raises `InputError` if no result has areas."""
        return self._draw(self._area(per_mac=per_mac), ax)

    def overview(self) -> Figure:
        """All that the results have: above in all, below for each MAC."""
        import matplotlib.pyplot as plt

        panels = [self._cycles]
        if any(one.energy for one in self.comparison.results):
            panels.append(self._energy)
        if any(one.area for one in self.comparison.results):
            panels.append(self._area)
        pyplot: Any = plt
        high = 1.9 + _INCHES_PER_BAR * len(self.comparison.results)
        size = (_PANEL_INCHES * len(panels), 2 * high)
        figure, axes = pyplot.subplots(
            2, len(panels), figsize=size, layout="constrained", squeeze=False
        )
        for row, per_mac in enumerate((False, True)):
            for ax, panel in zip(axes[row], panels, strict=True):
                stacks = panel(per_mac=per_mac)
                self._bars(ax, stacks, _ROOM_IN_PANEL)
                ax.set_title(_heading(stacks))
                _legend_below(ax, len(self.comparison.results), shown=per_mac)
        for ax in axes[:, 1:].ravel():
            ax.set_yticklabels([])
        figure.suptitle(plain(shortened(self._title, 120)))
        figure.get_layout_engine().set(h_pad=_PAD_INCHES)
        return figure

    @property
    def _title(self) -> str:
        networks = dict.fromkeys(one.network for one in self.comparison.results)
        return f"{', '.join(networks)} on {counted(len(self.comparison.results), 'design')}"

    def _cycles(self, *, per_mac: bool) -> Stacks:
        total = tuple(one.cycles for one in self.comparison.results)
        parts = self.comparison.group("cycles by cause")
        unit = count_unit(max(total), "cycles")
        if per_mac:
            parts = {name: self._over_macs(values) for name, values in parts.items()}
            total, unit = self._over_macs(total), Unit(name="cycles", size=1)
        return Stacks(
            what="cycles",
            each="MAC" if per_mac else "",
            parts=parts,
            total=total,
            colours=CAUSE_COLOURS,
            unit=unit,
            text=lambda value: significant(value) if per_mac else f"{value:,}",
        )

    def _energy(self, *, per_mac: bool) -> Stacks:
        results = self.comparison.results
        units = [one.energy.unit for one in results if one.energy]
        require(bool(units), "no result has energies")
        parts = self.comparison.group("energy by group", units[0])
        total: Values = tuple(
            one.energy.total if one.energy and one.energy.unit == units[0] else None
            for one in results
        )
        if per_mac:
            parts = {name: self._over_macs(values) for name, values in parts.items()}
            total = self._over_macs(total)
        size, symbol = (1e-12, "J") if units[0] == "pJ" else (1.0, units[0])
        chosen = si_unit(_largest(total) * size, symbol)
        return Stacks(
            what="energy",
            each="MAC" if per_mac else "",
            parts=parts,
            total=total,
            colours=GROUP_COLOURS,
            unit=Unit(name=chosen.name, size=chosen.size / size),
            text=lambda value: si_text(value * size, symbol),
        )

    def _area(self, *, per_mac: bool) -> Stacks:
        areas = [one.area for one in self.comparison.results]
        require(any(areas), "no result has areas")
        total: Values = tuple(one.total_um2 if one else None for one in areas)
        groups = dict.fromkeys(name for one in areas if one for name in one.by_group)
        parts: dict[str, Values] = {
            name: tuple(one.by_group.get(name) if one else None for one in areas) for name in groups
        }
        if any(one and not one.by_group for one in areas):
            parts = {"area": total}
        if per_mac:
            parts = {name: self._over_pes(values) for name, values in parts.items()}
            total = self._over_pes(total)
        return Stacks(
            what="area",
            each="MAC a cycle" if per_mac else "",
            parts=parts,
            total=total,
            colours={**GROUP_COLOURS, "area": GREEN},
            unit=area_unit(_largest(total)),
            text=lambda value: area_unit(value).text(value),
        )

    def _over_macs(self, values: Values) -> Values:
        return _over(values, [one.macs for one in self.comparison.results])

    def _over_pes(self, values: Values) -> Values:
        return _over(values, [_macs_per_cycle(one.design) for one in self.comparison.results])

    def _draw(self, stacks: Stacks, given: Any) -> Any:
        count = len(self.comparison.results)
        ax = self.layout.axes(given, _WIDTH, 1.3 + _INCHES_PER_BAR * count)
        self._bars(ax, stacks)
        ax.set_title(plain(f"{shortened(self._title, 80)}: {_heading(stacks)}"), wrap=True)
        return ax

    def _bars(self, ax: Any, stacks: Stacks, room: float = _ROOM_FOR_TEXT) -> None:
        dress(ax, "", "x")
        results, unit = self.comparison.results, stacks.unit
        base = [0.0] * len(results)
        for name, values in stacks.parts.items():
            lengths = [(value or 0.0) / unit.size for value in values]
            if not any(lengths):
                continue
            colour, label = stacks.colours.get(name, BLACK), cause_text(name)
            bars = ax.barh(range(len(results)), lengths, _THICK, base, color=colour, label=label)
            for bar, letter, value in zip(bars, self.comparison.labels, values, strict=True):
                note(bar, f"{letter}: {label} {_text(stacks, value)}")
            base = [low + high for low, high in zip(base, lengths, strict=True)]
        longest = max(base) or 1.0
        for at, value in enumerate(stacks.total):
            behind = ratio(value, stacks.total[0])
            times = f"  ({significant(behind, 3)} ×)" if at and behind is not None else ""
            place = ((value or 0.0) / unit.size, at)
            text = f"{_text(stacks, value)}{times}"
            ax.annotate(text, place, (4, 0), textcoords="offset points", va="center")
        ax.set_xlim(0, longest * room)
        ax.set_ylim(len(results) - 0.4, -0.6)
        ax.set_yticks(range(len(results)), self._names())
        ax.set_xlabel(f"{stacks.what} ({unit.name}{f' per {stacks.each}' if stacks.each else ''})")
        separate_thousands(ax.xaxis)
        ax.locator_params(axis="x", nbins=5)
        legend(ax)

    def _names(self) -> list[str]:
        """Letter and design, and the network where it is not the same in all."""
        networks = {one.network for one in self.comparison.results}
        names: list[str] = []
        for letter, one in zip(self.comparison.labels, self.comparison.results, strict=True):
            network = "" if len(networks) == 1 else f": {one.network}"
            name = shortened(f"{letter} {one.design_name}{network}", _LONGEST_LABEL)
            names.append(plain("\n".join(wrap(name, _LETTERS_OF_A_LINE))))
        return names


def _legend_below(ax: Any, bars: int, *, shown: bool) -> None:
    """The legend under the axes of so many bars, where a panel stands beside another."""
    if ax.get_legend() is None:
        return
    ax.get_legend().remove()
    if shown:
        below = -_LEGEND_INCHES / (_INCHES_PER_BAR * bars)
        ax.legend(loc="upper left", bbox_to_anchor=(0.0, below), frameon=False, ncols=3)


def _heading(stacks: Stacks) -> str:
    return f"{stacks.what} per {stacks.each}" if stacks.each else stacks.what


def _text(stacks: Stacks, value: float | None) -> str:
    return "not known" if value is None else stacks.text(value)


def _largest(values: Values) -> float:
    return max((value for value in values if value is not None), default=0.0)


def _over(values: Values, divisors: Sequence[float | None]) -> Values:
    return tuple(
        None if value is None or not divisor or not math.isfinite(divisor) else value / divisor
        for value, divisor in zip(values, divisors, strict=True)
    )


def _macs_per_cycle(record: Mapping[str, Any]) -> int | None:
    """Of a saved design; None where its kind is not known here."""
    from archsim.machine.registry import design_from_record

    try:
        return design_from_record(dict(record), "design").macs_per_cycle
    except InputError:
        return None
