"""From components to prices: what every counted action costs in every component.

Prices are found once a design; an account of a whole network is then one matrix product.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from energy_models.component import Component
from energy_models.errors import require
from energy_models.estimator import Quantity
from energy_models.technology import Technology

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Price:
    """One figure of a component, for provenance tables.

    what: the action's name, "area" or "leakage"; figure: None where nobody has said, and
    `figure_missing` says why.
    """

    component: Component
    what: str
    figure: Quantity | None
    figure_missing: str = ""


@dataclass(frozen=True, kw_only=True)
class PriceList:
    """What a design costs in a technology.

    dynamic: [counted actions, components], energy of one counted action, in `technology.unit`.
    area_um2, leakage_mw: [components], all pieces of each; NaN where there is no source.
    """

    technology: Technology
    components: tuple[Component, ...]
    counted: tuple[str, ...]
    dynamic: FloatArray
    area_um2: FloatArray
    leakage_mw: FloatArray
    prices: tuple[Price, ...]

    def energy(self, counts: Sequence[Mapping[str, float]]) -> FloatArray:
        """Dynamic energy [rows, components] of rows of counted actions.

        Raises `EnergyError` if a row lacks an action that a component is priced by.
        """
        for row in counts:
            lacking = [name for name in self.counted if name not in row]
            require(not lacking, f"the action counts lack {', '.join(lacking)}")
        table = np.array([[row[name] for name in self.counted] for row in counts], np.float64)
        return table.reshape(len(counts), len(self.counted)) @ self.dynamic

    def static_pj(self, seconds: Sequence[float]) -> FloatArray:
        """Energy of leakage [rows, components] over the given times: mW × s = 1e9 pJ."""
        known = np.nan_to_num(self.leakage_mw)
        return np.outer(np.asarray(seconds, np.float64), known) * 1e9


def price(technology: Technology, components: Iterable[Component]) -> PriceList:
    """Look every component up.  Raises `EnergyError` where a source has no figure."""
    listed = tuple(components)
    counted = tuple(
        dict.fromkeys(name for one in listed for events in one.actions.values() for name in events)
    )
    dynamic = np.zeros((len(counted), len(listed)))
    prices: list[Price] = []
    for column, component in enumerate(listed):
        for action, events in component.actions.items():
            found = technology.energy(component, action)
            missing = technology.absence("energy", component.kind, action)
            prices.append(
                Price(component=component, what=action, figure=found, figure_missing=missing)
            )
            if found is None:
                continue
            for name, number in events.items():
                dynamic[counted.index(name), column] += number * found.value
    return PriceList(
        technology=technology,
        components=listed,
        counted=counted,
        dynamic=dynamic,
        area_um2=_static(technology, listed, "area", prices),
        leakage_mw=_static(technology, listed, "leakage", prices),
        prices=tuple(prices),
    )


def _static(
    technology: Technology,
    components: tuple[Component, ...],
    what: Literal["area", "leakage"],
    prices: list[Price],
) -> FloatArray:
    """Area or leakage [components] of all pieces on chip; adds to the prices."""
    ask = technology.area_um2 if what == "area" else technology.leakage_mw
    values = np.full(len(components), np.nan)
    for place, component in enumerate(components):
        if component.kind == "dram":
            values[place] = 0.0  # not on the chip
            continue
        found = ask(component)
        missing = technology.absence(what, component.kind)
        if found is not None:
            values[place] = component.count * found.value
        prices.append(Price(component=component, what=what, figure=found, figure_missing=missing))
    return values


@dataclass(frozen=True, kw_only=True)
class PriceTotals:
    """What all components of a design cost together.

    dynamic: energy of one of each counted action, in `technology.unit`; area_um2: of all that have
    a source, None where nothing on the chip has; leakage_mw: of all that have one.
    """

    dynamic: Mapping[str, float]
    area_um2: float | None
    leakage_mw: float


MOST_REMEMBERED = 1 << 16
"""Sizes of components whose figures a book keeps: a space of any size is priced in some 50 MB."""

Figures = dict[str, float | None]
"""Of one piece of a size: of each action that was asked for, of "area" and "leakage"; None where
there is no source."""


class PriceBook:
    """Sums of prices for many designs: each size of component is looked up once.

    Whoever prices batch after batch keeps the book.
    """

    def __init__(self, technology: Technology) -> None:
        self.technology = technology
        self._found: dict[tuple[object, ...], Figures] = {}

    def totals(self, components: Iterable[Component]) -> PriceTotals:
        """The sums over a design's components.  Raises `EnergyError` where a source has no figure.

        They are those of `price`, without where each figure is from.
        """
        dynamic: dict[str, float] = {}
        area, leakage, known = 0.0, 0.0, False
        for one in components:
            figures = self._figures(one)
            for action, events in one.actions.items():
                found = figures[action] or 0.0
                for name, number in events.items():
                    if name in dynamic:
                        dynamic[name] += number * found
                    else:
                        dynamic[name] = number * found
            piece = figures["area"]
            if piece is not None:
                area, known = area + one.count * piece, known or one.kind != "dram"
            leakage += one.count * (figures["leakage"] or 0.0)
        return PriceTotals(dynamic=dynamic, area_um2=area if known else None, leakage_mw=leakage)

    def _figures(self, component: Component) -> Figures:
        """The figures of a component, found once a size."""
        size = (component.kind, component.relative_voltage, *component.attributes.values())
        found = self._found.get(size)
        if found is None:
            if len(self._found) >= MOST_REMEMBERED:
                self._found.clear()
            found = self._found[size] = self._of_piece(component)
        for action in component.actions:
            if action not in found:
                found[action] = _value(self.technology.energy(component, action))
        return found

    def _of_piece(self, component: Component) -> Figures:
        """What one piece has whatever it does; off the chip, nothing."""
        if component.kind == "dram":
            return {"area": 0.0, "leakage": 0.0}
        area, leakage = self.technology.area_um2(component), self.technology.leakage_mw(component)
        return {"area": _value(area), "leakage": _value(leakage)}


def _value(found: Quantity | None) -> float | None:
    return None if found is None else found.value
