"""Every design of a space, in order."""

from __future__ import annotations

import numpy as np

from archsim.numbers import IntArray
from archsim.sweeps.points import Grid
from archsim.sweeps.samplers.sampler import Sampler
from archsim.sweeps.search import Search

LOOKED_AT = 1 << 16
"""Designs whose constraints are looked at at once."""


class Exhaustive(Sampler):
    """From the first to the last, those that break a constraint left out."""

    def __init__(self, grid: Grid, search: Search) -> None:
        super().__init__(grid, search)
        self._next = 0
        self._left = search.most(grid.space.design_count)
        self._waiting = np.empty(0, np.int64)

    def ask(self, most: int) -> IntArray:
        """The next that are allowed."""
        end = self.grid.space.design_count
        most = min(most, self._left)
        while len(self._waiting) < most and self._next < end:
            last = min(self._next + LOOKED_AT, end)
            numbers = np.arange(self._next, last, dtype=np.int64)
            self._next = last
            allowed = numbers[self.grid.allowed(numbers)]
            self._waiting = np.concatenate([self._waiting, allowed])
        taken, self._waiting = self._waiting[:most], self._waiting[most:]
        self._left -= len(taken)
        return taken


__all__ = ["Exhaustive"]
