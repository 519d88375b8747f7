"""Designs drawn at random, each once, and of a Sobol sequence."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from archsim.numbers import IntArray
from archsim.sweeps.points import Grid
from archsim.sweeps.samplers.sampler import FloatArray, Sampler
from archsim.sweeps.search import Search

ROUNDS = 8
"""Of the permutation: four make one that cannot be told from a random one by its outputs."""

DRAWN = 4096
"""Designs that are drawn at once."""

WITHOUT_NEW = 1 << 20
"""Draws of which none is new after which a sequence is at its end."""

Words = npt.NDArray[np.uint64]


def permuted(places: IntArray, count: int, seed: int) -> IntArray:
    """Where a random permutation of `count` numbers, drawn from a seed, takes each of [places].

    A Feistel network over twice as many bits as half of `count` has; what falls outside goes
    through it again (cycle walking: Black and Rogaway, CT-RSA 2002).  Nothing is held, however
    large `count` is.
    """
    half = np.uint64(max(1, ((count - 1).bit_length() + 1) // 2))
    keys = np.random.default_rng(seed).integers(1 << 63, size=ROUNDS, dtype=np.uint64)
    found = places.astype(np.uint64)
    outside = np.ones(len(found), np.bool_)
    while outside.any():
        found[outside] = _feistel(found[outside], half, keys)
        outside = found >= np.uint64(count)
    return found.astype(np.int64)


def _feistel(words: Words, half: np.uint64, keys: Words) -> Words:
    mask = (np.uint64(1) << half) - np.uint64(1)
    left, right = words >> half, words & mask
    for key in keys:
        left, right = right, left ^ (_mixed(right + key) & mask)
    return (left << half) | right


def _mixed(words: Words) -> Words:
    """SplitMix64's finaliser (Steele, Lea, Flood, OOPSLA 2014)."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


class Random(Sampler):
    """Allowed designs in the order of a random permutation."""

    def __init__(self, grid: Grid, search: Search) -> None:
        super().__init__(grid, search)
        self._place = 0
        self._left = search.most(grid.space.design_count)
        self._waiting = np.empty(0, np.int64)

    def ask(self, most: int) -> IntArray:
        """The next that are allowed."""
        most = min(most, self._left)
        while len(self._waiting) < most:
            drawn = self._draw()
            if drawn is None:
                break
            fitting = drawn[self.grid.allowed(drawn)]
            self._waiting = np.concatenate([self._waiting, fitting])
        taken, self._waiting = self._waiting[:most], self._waiting[most:]
        self._left -= len(taken)
        return taken

    def _draw(self) -> IntArray | None:
        """More designs that were not drawn yet; None if there are none."""
        count = self.grid.space.design_count
        last = min(self._place + DRAWN, count)
        if last == self._place:
            return None
        places = np.arange(self._place, last, dtype=np.int64)
        self._place = last
        return permuted(places, count, self.search.seed)


class Sobol(Random):
    """Allowed designs of a scrambled Sobol sequence (scipy), one axis a field and one for the
    machine; designs that it comes back to are left out."""

    def __init__(self, grid: Grid, search: Search) -> None:
        super().__init__(grid, search)
        axes = 1 + max(len(part.variant.shape) for part in grid.parts)
        rng = np.random.default_rng(search.seed)
        self._sequence: Any = import_module("scipy.stats.qmc").Sobol(axes, scramble=True, rng=rng)
        self._seen = np.empty(0, np.int64)

    def _draw(self) -> IntArray | None:
        count = self.grid.space.design_count
        for _ in range(0, WITHOUT_NEW, DRAWN):
            if len(self._seen) == count:
                return None
            with warnings.catch_warnings(action="ignore"):  # of lengths that are no power of two
                numbers = self._numbers(self._sequence.random(DRAWN))
            _, first = np.unique(numbers, return_index=True)
            numbers = numbers[np.sort(first)]
            new = numbers[~np.isin(numbers, self._seen)]
            if len(new):
                self._seen = np.concatenate([self._seen, new])
                return new
        return None

    def _numbers(self, drawn: FloatArray) -> IntArray:
        """Designs at points of the unit cube."""
        count = self.grid.space.design_count
        first = np.minimum((drawn[:, 0] * count).astype(np.int64), count - 1)
        found = np.empty(len(drawn), np.int64)
        for part, places, _ in self.grid.split(first):
            number = np.zeros(len(places), np.int64)
            for axis, size in enumerate(part.variant.shape, start=1):
                digit = np.minimum((drawn[places, axis] * size).astype(np.int64), size - 1)
                number = number * size + digit
            found[places] = part.first + number
        return found


__all__ = ["Random", "Sobol", "permuted"]
