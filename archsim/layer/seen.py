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
    """Of a problem, with whatever channels; taps_first: a tap's channels lie together, else a
    channel's taps."""

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

    def shape(self, planes: npt.NDArray[Integer], rows: tuple[int, int]) -> tuple[int, int]:
        """Of what they see."""
        return planes.shape[1] * self._taps, len(planes) * (rows[1] - rows[0]) * self.width

    def seen(self, planes: npt.NDArray[Integer], rows: tuple[int, int]) -> npt.NDArray[Integer]:
        """As `see`, in an array of its own."""
        found = np.empty(self.shape(planes, rows), planes.dtype)
        self.see(planes, rows, found)
        return found

    def see(
        self, planes: npt.NDArray[Integer], rows: tuple[int, int], out: npt.NDArray[Integer]
    ) -> None:
        """What they see in some rows of the ofmap: out [C · R · S, images · pixels], or, taps
        first, [R · S · C, images · pixels].

        planes: [images, C, H, W].  Rows have `width` pixels: what is behind those of the ofmap is
        none.  Padding is 0.
        """
        (first, last), (images, channels), width = rows, planes.shape[:2], self.width
        order = (1, channels) if self.taps_first else (self._taps, 1)
        if self._are_pixels:
            flat = planes.reshape(images, channels, -1)[:, :, first * width : last * width]
            out.reshape(channels, images, -1)[:] = flat.transpose(1, 0, 2)
        elif self._runs:
            ik.runs(planes, self._vector, (first, last, width), order, out)
        else:
            ik.columns(planes, self._vector, rows, order, out)

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
