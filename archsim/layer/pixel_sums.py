"""What is added to the sums of some pixels of a layer (`archsim.layer.integer_values`)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from archsim.layer.problem import Problem
from archsim.numbers import IntArray

Integers = npt.NDArray[np.int32]


class PixelSums(NamedTuple):
    """Of pixels [n], each once and in order, by their places in [images, groups, P, Q] as a flat
    array: which row of `sums` [rows, K] is added to each."""

    pixels: IntArray
    rows: IntArray
    sums: Integers

    def whole(self, one: Problem) -> Integers:
        """[images, groups, P, Q, K], filters first in memory, zeros of other pixels."""
        planes = one.images, one.groups, one.filters, one.out_height, one.out_width
        found = np.zeros(planes, np.int32).transpose(0, 1, 3, 4, 2)
        places = np.unravel_index(self.pixels, found.shape[:-1])
        found[places] = self.sums[self.rows]
        return found


__all__ = ["PixelSums"]
