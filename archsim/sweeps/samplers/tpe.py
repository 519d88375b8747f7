"""A tree-structured Parzen estimator by Optuna, asked and told in memory."""

from __future__ import annotations

import math
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np

from archsim.numbers import IntArray
from archsim.sweeps.merit import violations
from archsim.sweeps.points import Grid
from archsim.sweeps.samplers.drawn import Random
from archsim.sweeps.samplers.genes import Genes
from archsim.sweeps.samplers.sampler import FloatArray, Sampler
from archsim.sweeps.search import Search

REMEMBERED = 2000
"""Points that are kept of which it is told when it begins; with more it takes longer to ask."""

TRIES = 10
"""Of a design that is allowed and new; then one is drawn at random."""

BROKEN = "requirements broken"
"""The constraint of a trial."""


class Tpe(Sampler):
    """Asks for as many designs at once as `Search.population` says, at most."""

    learns = True
    remembers = REMEMBERED

    def __init__(self, grid: Grid, search: Search) -> None:
        super().__init__(grid, search)
        self._genes = Genes(grid)
        optuna = import_module("optuna")
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._optuna = optuna
        self._distributions = {
            name or "variant": optuna.distributions.IntDistribution(0, size - 1)
            for name, size in self._genes.sizes.items()
        }
        self._study = optuna.create_study(
            directions=["minimize"] * len(grid.space.objectives), sampler=_sampler(optuna, search)
        )
        self._left = search.most(grid.space.design_count)
        self._drawn = Random(grid, replace(search, designs=grid.space.design_count))
        self._trials: dict[int, Any] = {}
        self._seen: set[int] = set()

    def remember(self, numbers: IntArray, values: FloatArray) -> None:
        """Points of before."""
        broken = violations(self.grid, numbers, values)
        rows = self._genes.genes(numbers).tolist()
        trials: list[Any] = []
        for row, one, count in zip(rows, values.tolist(), broken.tolist(), strict=True):
            failed = any(map(math.isnan, one))
            state = self._optuna.trial.TrialState
            trials.append(
                self._optuna.trial.create_trial(
                    params=dict(zip(self._distributions, row, strict=True)),
                    distributions=self._distributions,
                    values=None if failed else one,
                    state=state.FAIL if failed else state.COMPLETE,
                    constraints={BROKEN: count},
                )
            )
        self._study.add_trials(trials)
        self._seen.update(numbers.tolist())
        self._left -= len(numbers)

    def ask(self, most: int) -> IntArray:
        """New designs; fewer where it finds none."""
        found: list[int] = []
        for _ in range(min(most, self._left, self.search.population)):
            number = self._one()
            if number is None:
                break
            found.append(number)
        self._left -= len(found)
        return np.array(found, np.int64)

    def _one(self) -> int | None:
        """A design that is allowed, and was not asked for."""
        for _ in range(TRIES):
            trial = self._study.ask(self._distributions)
            genes = np.array([[trial.params[name] for name in self._distributions]], np.int64)
            numbers = self._genes.numbers(genes)
            number = int(numbers[0])
            if number not in self._seen and bool(self.grid.allowed(numbers)[0]):
                self._seen.add(number)
                self._trials[number] = trial
                return number
            self._study.tell(trial, state=self._optuna.trial.TrialState.FAIL)
        return self._random()

    def _random(self) -> int | None:
        """The same, drawn; None if there is none."""
        while len(numbers := self._drawn.ask(1)):
            number = int(numbers[0])
            if number not in self._seen:
                genes = self._genes.genes(numbers)[0].tolist()
                self._study.enqueue_trial(dict(zip(self._distributions, genes, strict=True)))
                self._seen.add(number)
                self._trials[number] = self._study.ask(self._distributions)
                return number
        return None

    def tell(self, numbers: IntArray, values: FloatArray) -> None:
        """What became of them."""
        broken = violations(self.grid, numbers, values)
        for number, one, count in zip(
            numbers.tolist(), values.tolist(), broken.tolist(), strict=True
        ):
            trial = self._trials.pop(number)
            trial.set_constraint(BROKEN, count)
            if any(map(math.isnan, one)):
                self._study.tell(trial, state=self._optuna.trial.TrialState.FAIL)
            else:
                self._study.tell(trial, one)


def _sampler(optuna: Any, search: Search) -> Any:
    return optuna.samplers.TPESampler(seed=search.seed, multivariate=True, constant_liar=True)


__all__ = ["Tpe"]
