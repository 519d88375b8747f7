"""What every way to search a space answers: which designs next, and what is learned of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from importlib import import_module

import numpy as np
import numpy.typing as npt

from archsim.numbers import IntArray
from archsim.sweeps.points import Grid
from archsim.sweeps.search import Search

FloatArray = npt.NDArray[np.float64]


class Sampler(ABC):
    """Numbers of designs, in batches; constraints hold for all of them.

    learns: whether it has to be told (`tell`) of what it asked for before it asks for more.
    remembers: of how many points that are kept it wants to be told when it begins (`remember`).
    """

    learns: bool = False
    remembers: int = 0

    def __init__(self, grid: Grid, search: Search) -> None:
        self.grid, self.search = grid, search

    @abstractmethod
    def ask(self, most: int) -> IntArray:
        """Numbers of at most so many designs; none when the search is at its end."""

    def tell(self, numbers: IntArray, values: FloatArray) -> None:
        """What was asked for: values [designs, objectives], NaN for what could not be computed."""
        return

    def remember(self, numbers: IntArray, values: FloatArray) -> None:
        """Points of before, as `tell`; at most `remembers`."""
        return


HOMES = {
    "exhaustive": ("exhaustive", "Exhaustive"),
    "random": ("drawn", "Random"),
    "sobol": ("drawn", "Sobol"),
    "nsga2": ("nsga2", "Nsga2"),
    "tpe": ("tpe", "Tpe"),
    "surrogate": ("surrogate", "Learned"),
}
"""Module and class of each method; what one needs is imported when it is asked for."""


def sampler_of(grid: Grid, search: Search) -> Sampler:
    """The sampler of a method."""
    module, name = HOMES[search.method]
    kind: type[Sampler] = getattr(import_module(f"archsim.sweeps.samplers.{module}"), name)
    return kind(grid, search)


__all__ = ["FloatArray", "Sampler", "sampler_of"]
