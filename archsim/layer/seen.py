"""What the windows of a problem see, gathered into the right factor of a product of matrices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from archsim.layer import integer_kernels as ik
from archsim.layer.problem import Problem, margins
from archsim.numbers import IntArray

Integer = TypeVar("Integer", bound=np.signedinteger[Any])


class Block(NamedTuple):
    """Of an ofmap: images and rows, from the first to before the last, of a group.  All rows, where
    there are several images."""

    image: int
    image_behind: int
    group: int
    row: int
    row_behind: int

    @property
    def rows(self) -> int:
        """Of all images together."""
        return (self.image_behind - self.image) * (self.row_behind - self.row)


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

    def shape(self, channels: int, rows: int) -> tuple[int, int]:
        """Of what they see of so many channels, in so many rows of the ofmap."""
        return channels * self._taps, rows * self.width

    def seen(self, planes: npt.NDArray[Integer], rows: tuple[int, int]) -> npt.NDArray[Integer]:
        """What they see of planes [images, C, H, W] in rows of the ofmap from the first to before
        the last."""
        block = Block(0, len(planes), 0, *rows)
        found = np.empty(self.shape(planes.shape[1], block.rows), planes.dtype)
        self.bound(np.ascontiguousarray(planes), np.array(block), found)()
        return found

    def bound(
        self, planes: npt.NDArray[Integer], place: IntArray, out: npt.NDArray[Integer]
    ) -> Callable[[], None]:
        """What gathers what they see of the block that `place` is whenever it is called: out
        [C · R · S, images · pixels], or, taps first, [R · S · C, images · pixels].

        planes: [images, groups · C, H, W].  Rows have `width` pixels: what is behind those of the
        ofmap is none.  Padding is 0.
        """
        if self._are_pixels:
            return partial(self._copy, planes, place, out)
        order = (1, len(out) // self._taps) if self.taps_first else (self._taps, 1)
        gather = ik.runs if self._runs else ik.columns
        return gather.bound(planes, self._vector, place, order, out)

    def _copy(
        self, planes: npt.NDArray[Integer], place: IntArray, out: npt.NDArray[Integer]
    ) -> None:
        """Pixels that see themselves."""
        block = Block(*place.tolist())
        channels, images = len(out), slice(block.image, block.image_behind)
        own = slice(block.group * channels, (block.group + 1) * channels)
        pixels = slice(block.row * self.width, block.row_behind * self.width)
        flat = planes.reshape(*planes.shape[:2], -1)[images, own, pixels]
        out.reshape(channels, len(flat), -1)[:] = flat.transpose(1, 0, 2)

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


__all__ = ["Block", "Windows", "is_product"]
