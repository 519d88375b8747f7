"""Candidates in the order that a learned surrogate gives them; what is asked for is simulated.

The first designs are a Sobol sequence's.  Then, round after round, a model is fitted to all that
was told (`archsim.sweeps.surrogate`), many candidates are predicted, and those are asked for that
would be on the front, or nearest behind it; some are drawn, so that what the model does not know is
seen.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from archsim.numbers import IntArray
from archsim.sweeps.merit import violations
from archsim.sweeps.points import Grid
from archsim.sweeps.samplers.drawn import Random, Sobol
from archsim.sweeps.samplers.genes import Genes
from archsim.sweeps.samplers.sampler import FloatArray, Sampler
from archsim.sweeps.search import Search
from archsim.sweeps.surrogate import Surrogate, in_layers

CANDIDATES = 1 << 13
"""Designs that are predicted in a round: all of a space that has no more."""

NEAR = 64
"""Of every design of the front, designs that differ from it in a field or two."""

DRAWN_SHARE = 1 / 8
"""Of a round: designs that are drawn."""

REMEMBERED = 20_000
"""Points that are kept of which it is told when it begins."""

A_GENE = 4
"""Designs for every field before the first model."""


class Learned(Sampler):
    """Asks for as many designs at once as `Search.population` says, at most."""

    learns = True
    remembers = REMEMBERED

    def __init__(self, grid: Grid, search: Search) -> None:
        super().__init__(grid, search)
        whole = replace(search, designs=grid.space.design_count)
        self._genes = Genes(grid)
        self._sobol, self._drawn = Sobol(grid, whole), Random(grid, whole)
        self._rng = np.random.default_rng(search.seed)
        self._left = search.most(grid.space.design_count)
        self._asked: set[int] = set()
        self._numbers = np.empty(0, np.int64)
        self._values = np.empty((0, len(grid.space.objectives)))
        self._begin = max(search.population, A_GENE * len(self._genes.sizes))

    def remember(self, numbers: IntArray, values: FloatArray) -> None:
        """Points of before."""
        self._asked.update(numbers.tolist())
        self._left -= len(numbers)
        self.tell(numbers, values)

    def tell(self, numbers: IntArray, values: FloatArray) -> None:
        """What was simulated."""
        self._numbers = np.concatenate([self._numbers, numbers])
        self._values = np.concatenate([self._values, values])

    def ask(self, most: int) -> IntArray:
        """The next round, whatever `most` is."""
        count = min(self.search.population, self._left)
        if count <= 0:
            return np.empty(0, np.int64)
        if (~np.isnan(self._values).any(axis=1)).sum() < self._begin:
            found = self._new(self._sobol, count)
        else:
            drawn = self._new(self._drawn, max(round(count * DRAWN_SHARE), 1))
            best = self._best(count - len(drawn))
            found = np.concatenate([best, drawn[~np.isin(drawn, best)]])
        if not len(found):
            found = self._new(self._drawn, count)
        self._asked.update(found.tolist())
        self._left -= len(found)
        return found

    def _new(self, source: Sampler, count: int) -> IntArray:
        """Designs that were not asked for, from a sampler that gives each once."""
        found: list[int] = []
        while len(found) < count and len(numbers := source.ask(count)):
            found += [number for number in numbers.tolist() if number not in self._asked]
        return np.array(found[:count], np.int64)

    def _best(self, count: int) -> IntArray:
        """Of many candidates those that the model has foremost."""
        candidates = self._candidates()
        if not len(candidates) or count <= 0:
            return np.empty(0, np.int64)
        seed = self.search.seed + len(self._numbers)
        model = Surrogate(self._genes.genes(self._numbers), self._values, seed % (1 << 32))
        values = model.values(self._genes.genes(candidates))
        broken = violations(self.grid, candidates, values)
        found: list[IntArray] = []
        for kind in np.unique(broken).tolist():
            alike = np.flatnonzero(broken == kind)
            found.append(candidates[alike[in_layers(values[alike], count)]])
            count -= len(found[-1])
            if count <= 0:
                break
        return np.concatenate(found)

    def _candidates(self) -> IntArray:
        """All that were not asked for, of a small space; else drawn ones, some about the front."""
        size = self.grid.space.design_count
        if size <= CANDIDATES:
            numbers = np.arange(size, dtype=np.int64)
        else:
            anywhere = self._rng.integers(size, size=CANDIDATES // 2, dtype=np.int64)
            numbers = np.unique(np.concatenate([anywhere, self._about_front()]))
        asked = np.fromiter(self._asked, np.int64, len(self._asked))
        numbers = numbers[~np.isin(numbers, asked)]
        return numbers[self.grid.allowed(numbers)]

    def _about_front(self) -> IntArray:
        """Designs that differ in one field, or two, from the best that were simulated."""
        broken = violations(self.grid, self._numbers, self._values)
        best = np.flatnonzero(broken == broken.min())
        places = best[in_layers(self._values[best], CANDIDATES // 2 // NEAR)]
        genes = np.repeat(self._genes.genes(self._numbers[places]), NEAR, axis=0)
        rows = np.arange(len(genes))
        for _ in range(2):
            which = self._rng.integers(genes.shape[1], size=len(genes))
            genes[rows, which] = self._rng.integers(self._genes.highest[which] + 1)
        return self._genes.numbers(genes)


__all__ = ["Learned"]
