"""Vector work in integers, as a small accelerator would do it.

Every function takes and returns integers of one width with symmetric scales; a change of scale
is a multiplication by an unsigned 16-bit multiplier and an arithmetic shift which rounds half
up (`workloads.quantize`). Images are [N, C, H, W].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from workloads.quantize import (
    Integers,
    requantize,
    requantize_parameters,
    round_shift,
    saturate,
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Levels:
    """A tensor as integers: real value = values * scale."""

    values: Integers
    scale: float

    @property
    def real(self) -> NDArray[np.float64]:
        """The real values, shape of `values`."""
        return self.values * np.float64(self.scale)


@dataclass(frozen=True, kw_only=True)
class Window:
    """A pooling window: sizes in rows and columns, ofmap size (P, Q), padding before."""

    kernel: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    before: tuple[int, int]
    ofmap: tuple[int, int]

    def over(self, x: Integers, fill: int) -> Integers:
        """[N, C, P, Q, R, S]: what each window sees of x [N, C, H, W], padded with `fill`."""
        pads = [(0, 0), (0, 0)]
        for axis in range(2):
            span = self.dilation[axis] * (self.kernel[axis] - 1) + 1
            needed = (self.ofmap[axis] - 1) * self.stride[axis] + span
            after = max(needed - x.shape[2 + axis] - self.before[axis], 0)
            pads.append((self.before[axis], after))
        padded = np.pad(x, pads, constant_values=fill)
        spans = [d * (k - 1) + 1 for d, k in zip(self.dilation, self.kernel, strict=True)]
        seen: Any = sliding_window_view(padded, spans, axis=(2, 3))
        return seen[
            :,
            :,
            : (self.ofmap[0] - 1) * self.stride[0] + 1 : self.stride[0],
            : (self.ofmap[1] - 1) * self.stride[1] + 1 : self.stride[1],
            :: self.dilation[0],
            :: self.dilation[1],
        ]


def relu(x: Levels) -> Levels:
    """max(x, 0), the scale kept."""
    return Levels(values=np.maximum(x.values, 0), scale=x.scale)


def clip(x: Levels, low: float, high: float) -> Levels:
    """Clip to the bounds rounded half to even to levels, the scale kept."""
    limits = np.iinfo(x.values.dtype)
    bounds = np.clip(np.rint(np.array([low, high]) / x.scale), limits.min, limits.max)
    values = np.clip(x.values, int(bounds[0]), int(bounds[1])).astype(x.values.dtype)
    return Levels(values=values, scale=x.scale)


def max_pool(x: Levels, window: Window) -> Levels:
    """The largest value a window sees, padding never among them; the scale kept."""
    lowest = int(np.iinfo(x.values.dtype).min)
    return Levels(values=window.over(x.values, lowest).max(axis=(4, 5)), scale=x.scale)


def average_pool(
    x: Levels, window: Window, scale: float, bits: int, *, include_pad: bool = False
) -> Levels:
    """Sum of a window, times x.scale / (scale * count) as multiplier and shift.

    `count` is the elements a window sees, padding among them only with `include_pad`.
    """
    total = window.over(x.values.astype(np.int64), 0).sum(axis=(4, 5))
    ones = np.ones((1, 1, *x.values.shape[2:]), np.int64)
    counts = window.over(ones, 1 if include_pad else 0).sum(axis=(4, 5))
    counts = np.broadcast_to(counts, total.shape)
    values = np.zeros(total.shape, x.values.dtype)
    for count in np.unique(counts):
        multiplier, shift = requantize_parameters(x.scale / (scale * int(count)))
        here = counts == count
        values[here] = requantize(total[here], multiplier, shift, False, bits)
    return Levels(values=values, scale=scale)


def rescale(x: Levels, scale: float, bits: int) -> Integers:
    """x at another scale: times x.scale / scale as multiplier and shift, saturated."""
    multiplier, shift = requantize_parameters(x.scale / scale)
    return requantize(x.values, multiplier, shift, False, bits)


def concatenate(parts: Sequence[Levels], axis: int, scale: float, bits: int) -> Levels:
    """The parts, each rescaled to the common scale, along `axis`."""
    values = np.concatenate([rescale(part, scale, bits) for part in parts], axis=axis)
    return Levels(values=values, scale=scale)


def multiply(left: Levels, right: Levels, scale: float, bits: int) -> Levels:
    """Products of integers, times left.scale · right.scale / scale as multiplier and shift.

    Shapes are broadcast as in NumPy.
    """
    product = left.values.astype(np.int64) * right.values.astype(np.int64)
    multiplier, shift = requantize_parameters(left.scale * right.scale / scale)
    return Levels(values=requantize(product, multiplier, shift, False, bits), scale=scale)


def add(parts: Sequence[Levels], scale: float, bits: int) -> Levels:
    """saturate((sum of part * multiplier, + half) >> shift), one shift for all parts.

    The shift is the one which the largest scale admits (16-bit multipliers); the other
    multipliers are rounded half to even at it. Shapes are broadcast as in NumPy.
    """
    largest = max(part.scale for part in parts) / scale
    _, shift = requantize_parameters(largest)
    total: Integers = np.zeros((1,), np.int64)
    for part in parts:
        multiplier = round(part.scale / scale * 2.0**shift)
        total = total + part.values.astype(np.int64) * multiplier
    return Levels(values=saturate(round_shift(total, shift), bits), scale=scale)
