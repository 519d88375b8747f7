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
    plane: npt.NDArray[Integer], one: Problem, rows: tuple[int, int], *, taps_first: bool = False
) -> npt.NDArray[Integer]:
    """What windows of some rows of the ofmap see: [C · R · S, pixels], or, taps first,
    [R · S · C, pixels].

    plane: [C, H, W].  At a stride of 1 rows are as wide as the padded plane (`seen_width`): what is
    behind their pixels is none.  Padding is 0.
    """
    first, last = rows
    channels, taps = len(plane), one.kernel_height * one.kernel_width
    if is_product(one):
        flat = plane.reshape(channels, -1)[:, first * one.out_width : last * one.out_width]
        return np.ascontiguousarray(flat)
    width = seen_width(one)
    seen = np.empty((channels * taps, (last - first) * width), plane.dtype)
    order = (1, channels) if taps_first else (taps, 1)
    if one.stride_height == one.stride_width == 1:
        flat = _padded(plane, one).reshape(channels, -1)
        ik.runs(flat, one.vector(), (first, width), order, seen)
    else:
        ik.columns(plane, one.vector(), rows, order, seen)
    return seen


def seen_width(one: Problem) -> int:
    """How wide rows are: of the ofmap, or of the padded plane."""
    if is_product(one) or not one.stride_height == one.stride_width == 1:
        return one.out_width
    return one.width + sum(margins(one)[1])


def _padded(plane: npt.NDArray[Integer], one: Problem) -> npt.NDArray[Integer]:
    """[C, H, W] with the zeros that windows reach into, as far as they reach."""
    rows, columns = margins(one)
    if not any(rows + columns):
        return plane
    shape = len(plane), sum(rows) + one.height, sum(columns) + one.width
    padded = np.zeros(shape, plane.dtype)
    padded[:, rows[0] : rows[0] + one.height, columns[0] : columns[0] + one.width] = plane
    return padded


__all__ = ["is_product", "seen_by", "seen_width"]
