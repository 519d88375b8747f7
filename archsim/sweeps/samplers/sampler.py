"""What every way to search a space answers: which designs next, and what is learned of them."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import numpy.typing as npt

from archsim.numbers import IntArray
from archsim.sweeps.points import Grid
from archsim.sweeps.search import Search

FloatArray = npt.NDArray[np.float64]


class Sampler(ABC):
    """Numbers of designs, in batches; constraints hold for all of them.

    learns: whether it has to be told (`tell`) of what it asked for before it asks for more.
    """

    learns: bool = False

    def __init__(self, grid: Grid, search: Search) -> None:
        self.grid, self.search = grid, search

    @abstractmethod
    def ask(self, most: int) -> IntArray:
        """Numbers of at most so many designs; none when the search is at its end."""

    def tell(self, numbers: IntArray, values: FloatArray) -> None:
        """What was asked for: values [designs, objectives], NaN for what could not be computed."""
        return


def sampler_of(grid: Grid, search: Search) -> Sampler:
    """The sampler of a method."""
    if search.method == "exhaustive":
        from archsim.sweeps.samplers.exhaustive import Exhaustive

        return Exhaustive(grid, search)
    raise NotImplementedError(search.method)


__all__ = ["FloatArray", "Sampler", "sampler_of"]
