"""Where each joule and each mm² goes: areas that are to the whole as costs are to the total.

A row is a group of components, as high as its share of the total; in it every component is as wide
as its share of the group.  So a component's area is its share of the total, and the rows are read
as a bar that is stacked.  This is a treemap of two levels, cut the same way in every figure, so
that two designs can be laid side by side; squares, as other treemaps draw, would move from one to
the next.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from archsim.errors import require
from archsim.plots.axes import POINTS_PER_INCH, Layout, legend, note, plain
from archsim.plots.palette import BLACK, GROUP_COLOURS
from archsim.plots.units import Unit, area_unit, energy_unit

if TYPE_CHECKING:
    from archsim.energy_account import EnergyAccount
    from archsim.result import NetworkResult
    from energy_models.pricing import FloatArray

Parts = Mapping[str, Mapping[str, float]]
"""Costs by group, and in it by component."""

_WIDTH, _HEIGHT, _HEIGHT_NARROW = 9.0, 4.6, 5.0
_LETTER, _LINE = 0.6, 1.5
"""Of a letter's width and of a line's height, over the size of the letters."""
_PALES, _PALES_OF_BLACK = (0.7, 0.5), (0.34, 0.22)
"""Opacity of neighbours in a row: names are to be read on them."""


@dataclass(frozen=True, kw_only=True)
class Breakdown:
    """Areas of all components; the names of those with room for them are written."""

    result: NetworkResult
    layout: Layout

    def energy(self, account: EnergyAccount, ax: Any) -> Any:
        """Of the network's energy; leakage is a group, of every component its own."""
        parts = energy_parts(account)
        headline = energy_unit(account, account.total).text(account.total)
        return self._draw(parts, partial(energy_unit, account), headline, account, ax)

    def area(self, account: EnergyAccount, ax: Any) -> Any:
        """Of the chip's area.  Raises `InputError` if the technology has none."""
        total, name = account.area_um2, account.technology.name
        require(total is not None, f"technology {name} has no areas; choose one that does")
        parts = area_parts(account)
        headline = area_unit(total or 0.0).text(total or 0.0)
        return self._draw(parts, area_unit, headline, account, ax)

    def _draw(
        self, parts: Parts, unit: Any, headline: str, account: EnergyAccount, given: Any
    ) -> Any:
        ax = self.layout.axes(given, _WIDTH, _HEIGHT_NARROW if self.layout.narrow else _HEIGHT)
        title = f"{self.result.network} on {self.result.design_name}"
        ax.set_title(plain(f"{title}: {headline} in {account.technology.name}"), wrap=True)
        ax.set_axis_off()
        ax.set_xlim(0, 1)
        ax.set_ylim(1, 0)
        whole = sum(sum(group.values()) for group in parts.values()) or 1.0
        top = 0.0
        for group, found in parts.items():
            high = sum(found.values()) / whole
            self._row(ax, (group, found), (top, high), unit)
            top += high
        legend(ax)
        return ax

    def _row(
        self, ax: Any, row: tuple[str, Mapping[str, float]], place: tuple[float, float], unit: Any
    ) -> None:
        from matplotlib.patches import Rectangle

        (group, found), (top, high), left = row, place, 0.0
        whole = sum(found.values())
        pales = _PALES_OF_BLACK if GROUP_COLOURS[group] == BLACK else _PALES
        for at, (name, value) in enumerate(found.items()):
            wide = value / whole
            cell = Rectangle(
                (left, top), wide, high, facecolor=GROUP_COLOURS[group], edgecolor="none",
                alpha=pales[at % 2], label="_" if at else f"{group} {_percent(high)}",
            )  # fmt: skip
            ax.add_patch(cell)
            chosen: Unit = unit(value)
            share = _percent(wide * high)
            note(cell, f"{name}: {group} {chosen.text(value, 5)}, {share} of the total")
            self._name(ax, name, share, (left, top, wide, high))
            left += wide

    def _name(self, ax: Any, name: str, share: str, box: tuple[float, float, float, float]) -> None:
        """The name and the share, in as many lines as there is room for, or nothing."""
        left, top, wide, high = box
        size = max(self.layout.smallest_text_points, 9.0)
        figure = ax.figure
        room = 0.93 * figure.get_figwidth() * POINTS_PER_INCH * wide / (_LETTER * size)
        lines = 0.93 * figure.get_figheight() * POINTS_PER_INCH * high / (_LINE * size)
        one = f"{name} {share}"
        text = ""
        if lines >= 1 and len(one) + 1 <= room:
            text = one
        elif lines >= 2 and max(len(name), len(share)) + 1 <= room:
            text = f"{name}\n{share}"
        elif lines >= 1 and len(share) + 1 <= room:
            text = share
        if text:
            middle = left + wide / 2, top + high / 2
            ax.text(*middle, plain(text), ha="center", va="center", fontsize=size)


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %" if share >= 0.0005 else "< 0.1 %"


def energy_parts(account: EnergyAccount) -> Parts:
    """Energy of the whole network; leakage is a group, of every component its own."""
    return _by_group(account, account.dynamic.sum(axis=0), account.static.sum(axis=0))


def area_parts(account: EnergyAccount) -> Parts:
    """Area of the design."""
    return _by_group(account, np.nan_to_num(account.price_list.area_um2), None)


def _by_group(account: EnergyAccount, values: FloatArray, static: FloatArray | None) -> Parts:
    """Costs [components] by group, in each the largest component first; static as one more."""
    from archsim.energy_account import GROUPS, STATIC

    found: dict[str, dict[str, float]] = {group: {} for group in GROUP_COLOURS}
    for at, one in enumerate(account.price_list.components):
        for group, value in (
            (GROUPS[one.kind], float(values[at])),
            (STATIC, 0.0 if static is None else float(static[at])),
        ):
            if value:
                found[group][one.name] = found[group].get(one.name, 0.0) + value
    return {
        group: dict(sorted(parts.items(), key=lambda item: -item[1]))
        for group, parts in found.items()
        if parts
    }
