"""NSGA-II (Deb et al., IEEE TEC 2002) by pymoo: a generation is asked for, computed, and told."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from archsim.numbers import IntArray
from archsim.sweeps.merit import violations
from archsim.sweeps.points import Grid
from archsim.sweeps.samplers.genes import Genes
from archsim.sweeps.samplers.sampler import FloatArray, Sampler
from archsim.sweeps.search import Search

SPREAD = 3.0
"""Of children about their parents: the distribution index for whole numbers (pymoo's guide)."""

WITHOUT_NEW = 20
"""Generations without a new design after which the search is at its end."""

EXCLUDED = 1e6
"""Constraints that a design which is none breaks: more than any other."""


class Nsga2(Sampler):
    """Designs that break a constraint or a requirement come behind all others (Deb's rule).

    The same seed asks for the same designs if it is told the same, so that a search that was ended
    is gone through again with what is kept.
    """

    learns = True

    def __init__(self, grid: Grid, search: Search) -> None:
        super().__init__(grid, search)
        self._genes = Genes(grid)
        self._problem, self._algorithm = _made(self._genes, grid, search)
        self._left = search.most(grid.space.design_count)
        self._seen: set[int] = set()
        self._population: Any = None
        self._numbers = np.empty(0, np.int64)
        self._values: dict[int, FloatArray] = {}
        self._idle = 0

    def ask(self, most: int) -> IntArray:
        """The next generation's designs that were not told yet, whatever `most` is."""
        while self._left > 0 and self._idle < WITHOUT_NEW:
            self._population = self._algorithm.ask()
            if self._population is None or not len(self._population):
                break
            genes = np.asarray(self._population.get("X")).astype(np.int64)
            self._numbers = self._genes.numbers(genes)
            allowed = self._numbers[self.grid.allowed(self._numbers)]
            fresh = dict.fromkeys(n for n in allowed.tolist() if n not in self._seen)
            new = list(fresh)[: self._left]
            if new:
                self._idle = 0
                self._seen.update(new)
                self._left -= len(new)
                return np.array(new, np.int64)
            self._idle += 1
            self._end_generation()
        return np.empty(0, np.int64)

    def tell(self, numbers: IntArray, values: FloatArray) -> None:
        """Of the whole generation."""
        self._values |= dict(zip(numbers.tolist(), values, strict=True))
        self._end_generation()

    def _end_generation(self) -> None:
        objectives = len(self.grid.space.objectives)
        none = np.full(objectives, np.nan)
        values = np.array([self._values.get(n, none) for n in self._numbers.tolist()])
        broken = violations(self.grid, self._numbers, values)
        broken[np.isnan(values).any(axis=1)] = EXCLUDED
        static = import_module("pymoo.problems.static").StaticProblem(
            self._problem, F=np.nan_to_num(values, nan=1e300), G=broken[:, None]
        )
        import_module("pymoo.core.evaluator").Evaluator().eval(static, self._population)
        self._algorithm.tell(infills=self._population)


def _made(genes: Genes, grid: Grid, search: Search) -> tuple[Any, Any]:
    """pymoo's problem and algorithm."""
    operators = "pymoo.operators"
    repair = import_module(f"{operators}.repair.rounding").RoundingRepair()
    problem = import_module("pymoo.core.problem").Problem(
        n_var=len(genes.sizes),
        n_obj=len(grid.space.objectives),
        n_ieq_constr=1,
        xl=np.zeros(len(genes.sizes), np.int64),
        xu=genes.highest,
        vtype=int,
    )
    crossover = import_module(f"{operators}.crossover.sbx").SBX
    mutation = import_module(f"{operators}.mutation.pm").PM
    algorithm = import_module("pymoo.algorithms.moo.nsga2").NSGA2(
        pop_size=search.population,
        sampling=import_module(f"{operators}.sampling.rnd").IntegerRandomSampling(),
        crossover=crossover(prob=1.0, eta=SPREAD, vtype=float, repair=repair),
        mutation=mutation(eta=SPREAD, vtype=float, repair=repair),
        eliminate_duplicates=True,
    )
    algorithm.setup(problem, termination=("n_gen", 1 << 40), seed=search.seed, verbose=False)
    return problem, algorithm


__all__ = ["Nsga2"]
