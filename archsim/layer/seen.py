"""What the windows of a problem see, gathered into the right factor of a product of matrices."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from archsim.layer import integer_kernels as ik
from archsim.layer.problem import Problem, margins
from archsim.numbers import IntArray

Integer = TypeVar("Integer", bound=np.signedinteger[Any])


def is_product(one: Problem) -> bool:
    """Whether a pixel of the ofmap sees the same pixel of the ifmap, and no other."""
    plane = one.height, one.width, 1, 1, 1, 1, 0, 0
    return plane == (
        one.out_height, one.out_width, one.kernel_height, one.kernel_width,
        one.stride_height, one.stride_width, one.pad_top, one.pad_left,
    )  # fmt: skip


@dataclass(frozen=True)
class Windows:
    """Of a problem; taps_first: a tap's channels lie together, else a channel's taps."""

    problem: Problem
    taps_first: bool = False

    @cached_property
    def width(self) -> int:
        """How wide rows are: of the ofmap, or, at a stride of 1, of the plane with its padding, of
        which the one behind a row is the one before the next."""
        one = self.problem
        if not self._runs:
            return one.out_width
        return max(one.width + max(margins(one)[1]), one.out_width)

    def seen(self, planes: npt.NDArray[Integer], rows: tuple[int, int]) -> npt.NDArray[Integer]:
        """What they see in some rows of the ofmap: [C · R · S, images · pixels], or, taps first,
        [R · S · C, images · pixels].

        planes: [images, C, H, W].  Rows have `width` pixels: what is behind those of the ofmap is
        none.  Padding is 0.
        """
        (first, last), (images, channels), width = rows, planes.shape[:2], self.width
        if self._are_pixels and images == 1:
            flat = planes.reshape(channels, -1)[:, first * width : last * width]
            return np.ascontiguousarray(flat)
        seen = np.empty((channels * self._taps, images * (last - first) * width), planes.dtype)
        order = (1, channels) if self.taps_first else (self._taps, 1)
        if self._are_pixels and last - first == self.problem.height:
            ik.side_by_side(planes.reshape(images, channels, -1), seen)
        elif self._runs:
            ik.runs(planes, self._vector, (first, last, width), order, seen)
        else:
            ik.columns(planes, self._vector, rows, order, seen)
        return seen

    @cached_property
    def _are_pixels(self) -> bool:
        return is_product(self.problem)

    @cached_property
    def _runs(self) -> bool:
        return self.problem.stride_height == self.problem.stride_width == 1

    @cached_property
    def _taps(self) -> int:
        return self.problem.kernel_height * self.problem.kernel_width

    @cached_property
    def _vector(self) -> IntArray:
        return self.problem.vector()


__all__ = ["Windows", "is_product"]
