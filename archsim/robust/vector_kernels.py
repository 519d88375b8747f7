"""The kernel behind `archsim.robust.between_layers`, compiled by numba."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from archsim.kernels import inlined, kernel
from archsim.numbers import IntArray
from workloads.quantize import Integers
from workloads.simplenet_onnx import EPSILON

Floats = npt.NDArray[np.float32]

BLOCK = 128
"""Terms that NumPy adds up in one go: eight sums side by side."""

ROUNDING_32, ROUNDING_64 = 1.5 * 2.0**23, 1.5 * 2.0**52
"""Added and taken off again, a float32 below 2^22, a float64 below 2^51 is rounded half to even."""

_STACK = 64
"""Sums of halves that wait: halving 2^64 terms needs no more."""


@inlined
def _eight(values: Floats, start: np.uint64, end: np.uint64) -> np.float32:
    """At most `BLOCK` terms."""
    total, at = np.float32(0), start
    if end - start < np.uint64(8):
        for i in range(start, end):
            total += values[i]
        return total
    r0, r1 = values[at], values[at + np.uint64(1)]
    r2, r3 = values[at + np.uint64(2)], values[at + np.uint64(3)]
    r4, r5 = values[at + np.uint64(4)], values[at + np.uint64(5)]
    r6, r7 = values[at + np.uint64(6)], values[at + np.uint64(7)]
    for _ in range(np.uint64(1), (end - start) // np.uint64(8)):
        at += np.uint64(8)
        r0 += values[at]
        r1 += values[at + np.uint64(1)]
        r2 += values[at + np.uint64(2)]
        r3 += values[at + np.uint64(3)]
        r4 += values[at + np.uint64(4)]
        r5 += values[at + np.uint64(5)]
        r6 += values[at + np.uint64(6)]
        r7 += values[at + np.uint64(7)]
    total = ((r0 + r1) + (r2 + r3)) + ((r4 + r5) + (r6 + r7))
    for i in range(at + np.uint64(8), end):
        total += values[i]
    return total


@inlined
def _sum(values: Floats, halves: IntArray, waiting: Floats) -> np.float32:
    """In NumPy's order (`archsim.robust.between_layers.halves_of`)."""
    start, held, one = np.uint64(0), np.uint64(0), np.uint64(1)
    for at in range(len(halves)):
        end = np.uint64(halves[at, 0])
        waiting[held] = _eight(values, start, end)
        for _ in range(halves[at, 1]):
            waiting[held - one] = waiting[held - one] + waiting[held]
            held -= one
        start, held = end, held + one
    return waiting[0]


@inlined
def _larger(one: np.float32, other: np.float32) -> np.float32:
    """What is no number, where one of them is none."""
    return other if other > one or other != other else one


@inlined
def _pool(plane: Floats, width: int, side: int, columns: int, out: Floats) -> None:
    """Maxima of windows side by side, of planes [pixels]; what is left at the edges is dropped."""
    for row in range(len(out) // columns):
        first, into = row * side * width, out[row * columns : (row + 1) * columns]
        if side == 2:  # whole vectors
            upper = plane[first : first + 2 * columns]
            lower = plane[first + width : first + width + 2 * columns]
            for at in range(columns):
                above = _larger(upper[2 * at], upper[2 * at + 1])
                into[at] = _larger(above, _larger(lower[2 * at], lower[2 * at + 1]))
            continue
        for at in range(columns):
            most = np.float32(-np.inf)
            for down in range(side):
                for across in range(side):
                    most = _larger(plane[first + down * width + at * side + across], most)
            into[at] = most


@inlined
def _levels(plane: Floats, levels: tuple[float, float, float], out: Any) -> bool:
    """Floats as integers (`workloads.quantize.quantize_at`); whether all are numbers.

    Float32 says which integer is nearest, but where it is not `sure`: so near to the middle between
    two that float64 is asked.
    """
    scale, limit, sure = levels
    highest, by, far = np.float32(limit), np.float32(1.0 / scale), np.float32(sure)
    rounding, unsure, zero, one = np.float32(ROUNDING_32), np.int32(0), np.int32(0), np.int32(1)
    for p in range(len(plane)):
        level = plane[p] * by
        level = -highest if level < -highest else level
        level = highest if level > highest else level
        nearest = level + rounding - rounding
        unsure = np.int32(unsure | (zero if abs(level - nearest) <= far else one))
        out[p] = np.int32(nearest)
    if unsure == 0:
        return True
    strange = 0
    for p in range(len(plane)):
        exact = np.float64(plane[p]) / scale
        strange += exact != exact
        exact = -limit if exact < -limit else exact
        exact = limit if exact > limit else exact
        out[p] = np.int32(exact + ROUNDING_64 - ROUNDING_64)
    return strange == 0


@inlined
def _add(more: Floats, into: Floats) -> None:
    for at in range(len(into)):
        into[at] += more[at]


@inlined
def _cut(own: Any, limits: tuple[float, float, float, float, float], into: Floats) -> None:
    """An array's sums in float32, limited; what is no number is 0."""
    unit, largest, zero = np.float32(limits[0]), np.float32(limits[1]), np.float32(0)
    for at in range(len(into)):
        value = np.float32(own[at]) * unit
        value = value if value == value else zero
        value = value if value > -largest else -largest
        into[at] = value if value < largest else largest


@inlined
def _centred(group: Floats, squares: Floats, halves: IntArray, waiting: Floats) -> np.float32:
    """A group less its mean; how far it spreads."""
    count = np.float64(len(group))
    mean = np.float32(np.float64(_sum(group, halves, waiting)) / count)
    for at in range(len(group)):
        value = group[at] - mean
        group[at] = value
        squares[at] = value * value
    square = np.float32(np.float64(_sum(squares, halves, waiting)) / count)
    return np.sqrt(square + np.float32(EPSILON))


@inlined
def _activated(plane: Floats, spread: np.float32, scale: np.float32, shift: np.float32) -> None:
    zero = np.float32(0)
    for at in range(len(plane)):
        value = plane[at] / spread * scale + shift
        plane[at] = zero if value <= zero else value


@kernel(
    "(??.2, f4.2), (float, float, float, float, float), (f4.1, f4.1), (int, int, int, int), "
    "(i8.2, i8.2), (i?.2, f4.2)"
)
def normalized(
    given: tuple[npt.NDArray[Any], Floats],
    limits: tuple[float, float, float, float, float],
    weights: tuple[Floats, Floats],
    shape: tuple[int, int, int, int],
    halves: tuple[IntArray, IntArray],
    made: tuple[Integers, Floats],
) -> bool:
    """Sums of a layer, normalised, activated and pooled, as the next one's ifmap; whether all of it
    are numbers.

    given: sums [n, K · pixels], times the first of `limits`, at most ± the second; and what is
    added to each [n, pixels], or no rows.  weights: scale and shift [K].  made: integers
    [n, K · pixels], in units of the third of `limits`, at most ± the fourth (the fifth: `_levels`);
    and sums of all channels of the floats [n, pixels].

    shape: channels of a group, width before the pooling, its side, width behind it.  halves: of the
    terms of a group, and of K.
    """
    (sums, beside), (out, channel_sums), (each, width, side, columns) = given, made, shape
    channels, left = len(weights[0]), channel_sums.shape[1]
    pixels, levels, good = sums.shape[1] // channels, (limits[2], limits[3], limits[4]), True
    group, squares = np.empty(each * pixels, np.float32), np.empty(each * pixels, np.float32)
    small, across = np.empty(each * left, np.float32), np.empty(channels, np.float32)
    waiting = np.empty(_STACK, np.float32)
    for n in range(len(sums)):
        channel_sums[n] = np.float32(0)
        for first in range(0, channels, each):
            _cut(sums[n, first * pixels :], limits, group)
            for c in range(each if len(beside) else 0):
                _add(beside[n], group[c * pixels : (c + 1) * pixels])
            spread = _centred(group, squares, halves[0], waiting)
            for c in range(each):
                plane, own = group[c * pixels : (c + 1) * pixels], small[c * left : (c + 1) * left]
                _activated(plane, spread, weights[0][first + c], weights[1][first + c])
                if side > 1:
                    _pool(plane, width, side, columns, own)
                else:
                    own = plane
                _add(own, channel_sums[n])
                across[first + c] = own[0]
            pooled, into = small if side > 1 else group, out[n, first * left :]
            good = _levels(pooled, levels, into) and good
        if left == 1:  # side by side, they are added in another order
            channel_sums[n, 0] = _sum(across, halves[1], waiting)
    return good


__all__ = ["BLOCK", "normalized"]
