"""Figures of whole results side by side, each with its ratio to the first result's."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeVar

from archsim.saved import SavedLayer, SavedResult

Values = tuple[float | None, ...]
"""One for each result; None where a result has none."""

TOTAL = "total"

Name = TypeVar("Name")


def ratio(value: float | None, base: float | None) -> float | None:
    """value / base; 1 where both are zero, None where one is missing or the base alone is zero."""
    if value is None or base is None:
        return None
    if value == base:
        return 1.0
    quotient = value / base if base else math.inf
    return quotient if math.isfinite(quotient) else None


@dataclass(frozen=True, kw_only=True)
class ComparedFigure:
    """One figure of every result, the baseline's first.

    group: "total", or what the figure is a part of ("cycles by cause").
    """

    group: str
    name: str
    unit: str
    values: Values

    @property
    def ratios(self) -> Values:
        """Each value over the baseline's."""
        return tuple(ratio(value, self.values[0]) for value in self.values)

    def record(self) -> dict[str, Any]:
        """The figure as plain data."""
        return {
            "group": self.group,
            "figure": self.name,
            "unit": self.unit,
            "values": list(self.values),
            "ratios": list(self.ratios),
        }


Numbers = Mapping[str, float]

_TOTALS: tuple[tuple[str, str, Callable[[SavedResult], float]], ...] = (
    ("cycles", "cycles", lambda one: one.cycles),
    ("time", "s", lambda one: one.seconds),
    ("utilisation", "share", lambda one: one.utilization),
    ("MACs", "MACs", lambda one: one.macs),
    ("bytes moved", "bytes", lambda one: one.total_bytes),
)

_PARTS: tuple[tuple[str, str, Callable[[SavedResult], Numbers]], ...] = (
    ("cycles by cause", "cycles", lambda one: one.where),
    ("bytes by port", "bytes", lambda one: one.bytes_moved),
)


def in_order(names: Iterable[Iterable[Name]]) -> list[Name]:
    """Every name once, in the order of its first appearance."""
    return list(dict.fromkeys(chain.from_iterable(names)))


def network_figures(results: Sequence[SavedResult]) -> tuple[ComparedFigure, ...]:
    """The totals, then what they are made of; energy and area where any result has them."""
    return (
        *_totals(results),
        *_energy_totals(results),
        *_total("area", "µm²", [one.area.total_um2 if one.area else None for one in results]),
        *chain.from_iterable(
            _parts(group, unit, [get(one) for one in results]) for group, unit, get in _PARTS
        ),
        *_energy_parts(results),
        *_parts(
            "area by component",
            "µm²",
            [one.area.by_component if one.area else {} for one in results],
        ),
    )


def layer_figures(
    layers: Sequence[SavedLayer | None], units: Sequence[str]
) -> tuple[ComparedFigure, ...]:
    """Cycles first, utilisation, bytes moved, and energies in each of the results' units."""
    figures = [
        *_total("cycles", "cycles", [one.cycles if one else None for one in layers]),
        *_total("utilisation", "share", [one.utilization if one else None for one in layers]),
        *_total("bytes moved", "bytes", [one.total_bytes if one else None for one in layers]),
    ]
    for unit in in_order([units]):
        energies = [
            one.total_energy if one and found == unit else None
            for one, found in zip(layers, units, strict=True)
        ]
        figures += _total("energy", unit, energies)
    return tuple(figures)


def _energy_units(results: Sequence[SavedResult]) -> list[str]:
    """The units of the energies: those in one unit have no ratio to those in another."""
    return in_order([one.energy.unit] for one in results if one.energy)


def _totals(results: Sequence[SavedResult]) -> Iterator[ComparedFigure]:
    for name, unit, get in _TOTALS:
        yield from _total(name, unit, [get(one) for one in results])


def _energy_totals(results: Sequence[SavedResult]) -> Iterator[ComparedFigure]:
    for unit in _energy_units(results):
        chosen = [one if one.energy and one.energy.unit == unit else None for one in results]
        total = [one.energy.total if one and one.energy else None for one in chosen]
        yield from _total("energy", unit, total)
        yield from _total(
            "energy-delay product",
            f"{unit}·s",
            [one.energy_delay if one else None for one in chosen],
        )


def _energy_parts(results: Sequence[SavedResult]) -> Iterator[ComparedFigure]:
    for unit in _energy_units(results):
        found = [one.energy if one.energy and one.energy.unit == unit else None for one in results]
        yield from _parts("energy by group", unit, [one.by_group if one else {} for one in found])
        yield from _parts(
            "energy by component", unit, [one.by_component if one else {} for one in found]
        )


def _total(name: str, unit: str, values: Sequence[float | None]) -> Iterator[ComparedFigure]:
    if any(value is not None for value in values):
        yield ComparedFigure(group=TOTAL, name=name, unit=unit, values=tuple(values))


def _parts(group: str, unit: str, parts: Sequence[Numbers]) -> Iterator[ComparedFigure]:
    for name in in_order(parts):
        values = tuple(part.get(name) for part in parts)
        yield ComparedFigure(group=group, name=name, unit=unit, values=values)
