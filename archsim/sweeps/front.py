"""Fronts: points that no other beats in all objectives, found of any number of points in one pass.

All objectives are the less the better.  Of equal points, all are on the front.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from archsim.kernels import kernel
from archsim.numbers import IntArray

FloatArray = npt.NDArray[np.float64]

CHUNK = 1 << 18
"""Points that are looked at at once."""


def front_of(values: FloatArray) -> IntArray:
    """Places [front] of the points of `values` [points, objectives] that none dominates, in order.

    One dominates another where it is nowhere more and somewhere less.  Points with a NaN are on no
    front.
    """
    known = np.flatnonzero(~np.isnan(values).any(axis=1))
    kept = np.empty(0, np.int64)
    for start in range(0, len(known), CHUNK):
        kept = _merged(values, kept, known[start : start + CHUNK])
    return np.sort(kept)


def _merged(values: FloatArray, kept: IntArray, new: IntArray) -> IntArray:
    """The front of a front and of new points."""
    if not len(new):
        return kept
    new = new[_few_beat(values, new)]
    both = np.concatenate([kept, new])
    return both[_front(values[both])]


def _few_beat(values: FloatArray, new: IntArray) -> npt.NDArray[np.bool_]:
    """Where none of a few good ones dominates: nearly all go, at a small price."""
    given = values[new]
    with np.errstate(invalid="ignore"):  # of infinite ones
        least, most = given.min(axis=0), given.max(axis=0)
        spread = np.where(most > least, most - least, 1.0)
        scaled = (given - least) / spread
    few = {int(np.argmin(scaled.sum(axis=1))), int(np.argmin(scaled.max(axis=1)))}
    few |= {int(place) for place in np.argmin(scaled, axis=0)}
    alive = np.ones(len(new), np.bool_)
    for place in few:
        alive &= ~_dominated(given, given[place])
    return alive


def _dominated(given: FloatArray, by: FloatArray) -> npt.NDArray[np.bool_]:
    """Which of [points, objectives] one point dominates."""
    return np.logical_and((given >= by).all(axis=1), (given > by).any(axis=1))


def _front(given: FloatArray) -> IntArray:
    """The front of points that all are in memory; of two objectives by one sort."""
    if given.shape[1] == 1:
        return np.flatnonzero(given[:, 0] == given[:, 0].min()) if len(given) else _none()
    return _front_of_two(given) if given.shape[1] == 2 else _front_of_more(given)


def _none() -> IntArray:
    return np.empty(0, np.int64)


def _front_of_two(given: FloatArray) -> IntArray:
    order = np.lexsort((given[:, 1], given[:, 0]))
    first, second = given[order, 0], given[order, 1]
    before = np.concatenate([[np.inf], np.minimum.accumulate(second)[:-1]])
    better = second < before
    group = np.cumsum(better) - 1  # those that equal the last better one are as good
    leaders = np.flatnonzero(better)
    if not len(leaders):  # all infinite
        return np.sort(order[(first == first[0]) & (second == second[0])])
    same = (group >= 0) & (first == first[leaders[group]]) & (second == second[leaders[group]])
    return np.sort(order[same])


def _front_of_more(given: FloatArray) -> IntArray:
    """In the order of their sums nobody is dominated by one that comes later."""
    order = np.lexsort((*given.T, given.sum(axis=1)))
    return np.sort(order[undominated(np.ascontiguousarray(given[order]))])


@kernel("f8.2")
def undominated(given: FloatArray) -> IntArray:
    """Places of the points that none before them dominates; who beats one is looked at first for
    the next."""
    points, objectives = given.shape
    kept, found = np.empty(points, np.int64), 0
    for at in range(points):
        beaten = False
        for place in range(found):
            less = more = False
            for objective in range(objectives):
                one, other = given[kept[place], objective], given[at, objective]
                if one > other:
                    more = True
                    break
                less |= one < other
            if less and not more:
                beaten = True
                if place > 0:
                    kept[place], kept[place // 2] = kept[place // 2], kept[place]
                break
        if not beaten:
            kept[found] = at
            found += 1
    return kept[:found]


class Front:
    """The front, over some objectives, of points that come in chunks; no more than it is held.

    columns: places of its objectives; numbers [front] of points, values [front, columns].
    """

    def __init__(self, columns: Sequence[int]) -> None:
        self.columns = list(columns)
        self.numbers: IntArray = np.empty(0, np.int64)
        self.values: FloatArray = np.empty((0, len(self.columns)))

    def take(self, numbers: IntArray, values: FloatArray) -> None:
        """More points: numbers [points], values [points, objectives]."""
        both = np.concatenate([self.values, values[:, self.columns]])
        places = front_of(both)
        self.numbers = np.concatenate([self.numbers, numbers])[places]
        self.values = both[places]


__all__ = ["Front", "front_of"]
