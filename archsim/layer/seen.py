"""What the windows of a problem see, gathered into the right factor of a product of matrices."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from archsim.layer import integer_kernels as ik
from archsim.layer.problem import Problem, margins

Integer = TypeVar("Integer", bound=np.signedinteger[Any])


def is_product(one: Problem) -> bool:
    """Whether a pixel of the ofmap sees the same pixel of the ifmap, and no other."""
    plane = one.height, one.width, 1, 1, 1, 1, 0, 0
    return plane == (
        one.out_height, one.out_width, one.kernel_height, one.kernel_width,
        one.stride_height, one.stride_width, one.pad_top, one.pad_left,
    )  # fmt: skip


def seen_by(
    planes: npt.NDArray[Integer], one: Problem, rows: tuple[int, int], *, taps_first: bool = False
) -> npt.NDArray[Integer]:
    """What windows of some rows of the ofmap see: [C · R · S, images · pixels], or, taps first,
    [R · S · C, images · pixels].

    planes: [images, C, H, W].  At a stride of 1 rows are `seen_width` wide: what is behind their
    pixels is none.  Padding is 0.
    """
    first, last = rows
    images, channels = planes.shape[:2]
    taps, width = one.kernel_height * one.kernel_width, seen_width(one)
    if images == 1 and is_product(one):
        flat = planes.reshape(channels, -1)[:, first * width : last * width]
        return np.ascontiguousarray(flat)
    seen = np.empty((channels * taps, images * (last - first) * width), planes.dtype)
    if is_product(one) and last - first == one.height:
        ik.side_by_side(planes.reshape(images, channels, -1), seen)
        return seen
    order = (1, channels) if taps_first else (taps, 1)
    if one.stride_height == one.stride_width == 1:
        ik.runs(planes, one.vector(), (first, last, width), order, seen)
    else:
        ik.columns(planes, one.vector(), rows, order, seen)
    return seen


def seen_width(one: Problem) -> int:
    """How wide rows are: of the ofmap, or of the plane with its padding, of which the one behind a
    row is the one before the next."""
    if not one.stride_height == one.stride_width == 1:
        return one.out_width
    return max(one.width + max(margins(one)[1]), one.out_width)


__all__ = ["is_product", "seen_by", "seen_width"]
