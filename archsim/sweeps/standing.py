"""What a study has found so far: of each network the least of every objective, and a front.

Kept while points come in, a transaction at a time; only points that fulfil the space's requirements
count.  The front is of two objectives, which is what can be drawn: the first, and the first other
that is not the same time again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from archsim.numbers import IntArray
from archsim.sweeps.evaluation import Outcome
from archsim.sweeps.front import FloatArray, Front
from archsim.sweeps.merit import required_of
from archsim.sweeps.points import Grid, point_numbers

if TYPE_CHECKING:
    from archsim.sweeps.study import Study

MOST_DRAWN = 400
"""Points of a front that are told; of more, some, evenly along it."""

TIMES = frozenset(("cycles", "seconds"))

SHOWN_FIELDS = 12
"""Fields of a design that are told beside it."""


@dataclass(kw_only=True)
class _OfNetwork:
    """front: of what can be drawn; best: by objective, its least value and the point of that."""

    front: Front
    best: dict[str, tuple[float, int]] = field(default_factory=dict[str, tuple[float, int]])


class Standing:
    """The best of a study, network by network."""

    def __init__(self, grid: Grid) -> None:
        self._grid = grid
        self._names = grid.space.objectives
        self._axes = _axes(self._names)
        self._of = [_OfNetwork(front=Front(self._axes)) for _ in grid.space.network_names]

    @classmethod
    def of_study(cls, study: Study, grid: Grid) -> Standing:
        """Of all that a study keeps, read in one pass."""
        found = cls(grid)
        for at, name in enumerate(study.space.network_names):
            for numbers, values in study.chunks(study.objectives, name):
                found._take(at, numbers, values)
        return found

    def take(self, outcome: Outcome) -> None:
        """Points that came in."""
        values = np.stack([outcome.values[name] for name in self._names], axis=1)
        good = required_of(self._grid, outcome.numbers, values)
        numbers = point_numbers(self._grid, outcome.numbers[good], outcome.network)
        self._take(outcome.network, numbers, values[good])

    def _take(self, network: int, numbers: IntArray, values: FloatArray) -> None:
        kept = self._of[network]
        for column, name in enumerate(self._names):
            known = np.flatnonzero(~np.isnan(values[:, column]))
            if len(known):
                at = int(known[np.argmin(values[known, column])])
                least = (float(values[at, column]), int(numbers[at]))
                if name not in kept.best or least[0] < kept.best[name][0]:
                    kept.best[name] = least
        kept.front.take(numbers, values)

    @property
    def best(self) -> dict[str, float]:
        """The least of each objective on any network."""
        found: dict[str, float] = {}
        for one in self._of:
            for name, (value, _) in one.best.items():
                found[name] = min(found.get(name, value), value)
        return found

    def record(self) -> list[dict[str, Any]]:
        """Plain data, of each network."""
        names = self._grid.space.network_names
        return [self._record(name, one) for name, one in zip(names, self._of, strict=True)]

    def _record(self, network: str, kept: _OfNetwork) -> dict[str, Any]:
        front = kept.front
        order = np.argsort(front.values[:, 0], kind="stable")
        some = order[_evenly(len(order), MOST_DRAWN)]
        best = [
            {"objective": name, "value": value, "point": number, "fields": self._fields(number)}
            for name, (value, number) in kept.best.items()
        ]
        return {
            "network": network,
            "best": best,
            "axes": [self._names[at] for at in self._axes],
            "on_front": len(front.numbers),
            "front": front.values[some].tolist(),
            "points": front.numbers[some].tolist(),
        }

    def _fields(self, number: int) -> dict[str, Any]:
        """What varies, of a point's design."""
        design = np.array([number // len(self._of)], np.int64)
        columns = {name: column[0] for name, column in self._grid.columns(design).items()}
        told = {name: value for name, value in columns.items() if value is not None}
        if len(self._grid.space.machines) == 1:
            del told["machine"]
        return dict(list(told.items())[:SHOWN_FIELDS])


def _axes(names: Sequence[str]) -> list[int]:
    """Places of the objectives of the front."""
    rest = range(1, len(names))
    others = [at for at in rest if not {names[0], names[at]} <= TIMES]
    return [0, *(others or list(rest))[:1]]


def _evenly(count: int, most: int) -> IntArray:
    """Places of at most so many of `count`, both ends among them."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(np.int64))


__all__ = ["Standing"]
