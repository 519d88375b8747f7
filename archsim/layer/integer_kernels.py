"""The kernels behind `archsim.layer.integer_values`, compiled by numba.

A problem is given to them as one vector (`Problem.vector`); tensors have their channels first.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from archsim.kernels import inlined, kernel
from archsim.layer import problem as pb
from archsim.numbers import AnyIntArray, IntArray

Bytes = npt.NDArray[np.int8]
Sums = npt.NDArray[np.int32]

(
    MULTIPLIER,
    HALF,  # of 2^shift, rounded down
    SHIFT,
    WRAPPED,  # bits of 64 that an accumulator lacks
    LOWEST,  # of what is kept
    HIGHEST,
    BY_COLUMN,  # whether biases belong to the columns, else to the rows
) = range(7)


class OutputRules(NamedTuple):
    """What becomes of sums, by the names of its places, in order."""

    multiplier: int
    half: int
    shift: int
    wrapped: int
    lowest: int
    highest: int
    by_column: int

    def vector(self) -> IntArray:
        """For the kernels."""
        return np.array(self, np.int64)


@inlined
def _seen(first: int, stride: int, size: int, count: int) -> tuple[int, int]:
    """Of windows 0 … count - 1, which see first + window · stride within 0 … size - 1: from the
    first on, to before the last."""
    low = 0 if first >= 0 else min((stride - 1 - first) // stride, count)
    high = 0 if first >= size else min((size - 1 - first) // stride + 1, count)
    return low, max(low, high)


@inlined
def _copy(given: AnyIntArray, into: AnyIntArray, count: int) -> None:
    for at in range(count):
        into[at] = given[at]


@kernel("i?.4, i8.1, i8.1, (int, int), i?.2")
def columns(
    planes: AnyIntArray,
    problem: IntArray,
    place: IntArray,
    order: tuple[int, int],
    out: AnyIntArray,
) -> None:
    """What windows see of a block at `place` (`archsim.layer.seen.Block`): planes
    [images, groups · C, H, W]; out [C · R · S, images · pixels].  Padding is 0.

    order: rows of `out` from a channel to the next, and from a tap to the next."""
    wide, stride, down = problem[pb.OUT_WIDTH], problem[pb.STRIDE_WIDTH], problem[pb.STRIDE_HEIGHT]
    kernel_height, kernel_width = problem[pb.KERNEL_HEIGHT], problem[pb.KERNEL_WIDTH]
    dilation, dilation_down = problem[pb.DILATION_WIDTH], problem[pb.DILATION_HEIGHT]
    left, top = problem[pb.PAD_LEFT], problem[pb.PAD_TOP]
    image, behind, group, first, last = place
    height, width = planes.shape[2:]
    channels = len(out) // (kernel_height * kernel_width)
    for n in range(behind - image):
        begin = n * (last - first)
        for c in range(channels):
            for r in range(kernel_height):
                for s in range(kernel_width):
                    x = s * dilation - left
                    low, high = _seen(x, stride, width, wide)
                    at = c * order[0] + (r * kernel_width + s) * order[1]
                    for p in range(first, last):
                        y = p * down + r * dilation_down - top
                        to = (begin + p - first) * wide
                        if y < 0 or y >= height:
                            out[at, to : to + wide] = 0
                            continue
                        out[at, to : to + low] = 0
                        out[at, to + high : to + wide] = 0
                        seen = planes[image + n, group * channels + c, y, x + low * stride :]
                        row = out[at, to + low : to + high]
                        for q in range(high - low):
                            row[q] = seen[q * stride]


@kernel("i?.4, i8.1, i8.1, (int, int), i?.2")
def runs(
    planes: AnyIntArray,
    problem: IntArray,
    place: IntArray,
    order: tuple[int, int],
    out: AnyIntArray,
) -> None:
    """The same of a stride of 1, for rows that are wider than the ofmap's by what is no pixel, of
    any values.

    A row's padding is before it and behind it alike, so that a tap sees one run of all rows."""
    kernel_height, kernel_width = problem[pb.KERNEL_HEIGHT], problem[pb.KERNEL_WIDTH]
    dilation, dilation_down = problem[pb.DILATION_WIDTH], problem[pb.DILATION_HEIGHT]
    image, behind, group, first, last = place
    height, width = planes.shape[2:]
    channels, length = len(out) // (kernel_height * kernel_width), out.shape[1] // (behind - image)
    wide, left, top = length // (last - first), problem[pb.PAD_LEFT], first - problem[pb.PAD_TOP]
    tall = last - first + (kernel_height - 1) * dilation_down
    low, high = max(top, 0), min(top + tall, height)
    padded = np.zeros(left + tall * wide + (kernel_width - 1) * dilation, planes.dtype)
    for n in range(behind - image):
        for c in range(channels):
            own = planes[image + n, group * channels + c]
            for y in range(low, high):
                _copy(own[y], padded[left + (y - top) * wide :], width)
            for r in range(kernel_height):
                for s in range(kernel_width):
                    at = c * order[0] + (r * kernel_width + s) * order[1]
                    start = r * dilation_down * wide + s * dilation
                    _copy(padded[start:], out[at, n * length :], length)


@kernel("i1.4, i1.5, i8.1, i4.2")
def add_directly(ifmap: Bytes, weight: Bytes, problem: IntArray, sums: Sums) -> None:
    """The sums of one image: ifmap [groups, C, H, W], weight [groups, K, C, R, S]; sums
    [groups · K, pixels]."""
    wide, stride, down = problem[pb.OUT_WIDTH], problem[pb.STRIDE_WIDTH], problem[pb.STRIDE_HEIGHT]
    dilation, dilation_down = problem[pb.DILATION_WIDTH], problem[pb.DILATION_HEIGHT]
    left, top, tall = problem[pb.PAD_LEFT], problem[pb.PAD_TOP], problem[pb.OUT_HEIGHT]
    groups, filters, channels, kernel_height, kernel_width = weight.shape
    height, width = ifmap.shape[2:]
    for g in range(groups):
        for k in range(filters):
            row = g * filters + k
            sums[row] = 0
            for c in range(channels):
                for r in range(kernel_height):
                    for s in range(kernel_width):
                        x, w = s * dilation - left, np.int32(weight[g, k, c, r, s])
                        low, high = _seen(x, stride, width, wide)
                        for p in range(tall):
                            y = p * down + r * dilation_down - top
                            if y < 0 or y >= height:
                                continue
                            seen = ifmap[g, c, y, x + low * stride :]
                            out = sums[row, p * wide + low : p * wide + high]
                            if stride == 1:
                                for q in range(high - low):
                                    out[q] += w * seen[q]
                            else:
                                for q in range(high - low):
                                    out[q] += w * seen[q * stride]


@inlined
def _kept(total: np.int64, bias: int, rules: tuple[int, int, int, int, int, int]) -> int:
    """`archsim.layer.values.requantize` of a sum that wraps."""
    multiplier, half, shift, wrapped, lowest, highest = rules
    own: int = (total << wrapped) >> wrapped  # pyright: ignore[reportAssignmentType]
    scaled = ((own + bias) * multiplier + half) >> shift
    return min(max(scaled, lowest), highest)


@kernel("i4.2, i8.1, i8.1, int, i1.2")
def keep(sums: Sums, bias: IntArray, rules: IntArray, start: int, out: Bytes) -> None:
    """Sums [M, N] as what is kept of them, in out [M, …] from column `start` on; bias [M], [N]."""
    rows, wide = sums.shape
    by_column = rules[BY_COLUMN]
    given = (rules[MULTIPLIER], rules[HALF], rules[SHIFT], rules[WRAPPED], rules[LOWEST],
             rules[HIGHEST])  # fmt: skip
    for m in range(rows):
        row, found = out[m, start : start + wide], sums[m]
        if by_column:
            for n in range(wide):
                row[n] = _kept(np.int64(found[n]), bias[n], given)
        else:
            own = bias[m]
            for n in range(wide):
                row[n] = _kept(np.int64(found[n]), own, given)


@kernel("(i4.2, i4.3), i8.1, int, i8.1, i8.1, i1.3")
def keep_planes(
    found: tuple[Sums, Sums],
    place: IntArray,
    across: int,
    bias: IntArray,
    rules: IntArray,
    out: Bytes,
) -> None:
    """The same of a block at `place` (`archsim.layer.seen.Block`): out [images, groups · M, P · Q].

    found: sums [M, images · rows · W'], where what is behind a row's pixels is none; and what is
    added to each sum, in the shape of `out`, or no images.  across: Q.  bias [groups · M].
    Accumulators have 32 bits at most where something is added: whether a sum wraps at 32 bits
    before it wraps at theirs is no matter.
    """
    (sums, more), (image, behind, group, first, last) = found, place
    length, images, tall, begin = sums.shape[1], behind - image, last - first, first * across
    wide = length // images // tall
    if wide == across:  # one long row
        wide, across, tall = tall * wide, tall * across, 1
    given = (rules[MULTIPLIER], rules[HALF], rules[SHIFT], rules[WRAPPED], rules[LOWEST],
             rules[HIGHEST])  # fmt: skip
    beside, kept = np.zeros(length, np.int32), np.empty(length, np.int8)
    for m in range(len(sums)):
        row, k = sums[m], int(group) * len(sums) + m
        own = bias[k]
        if len(more):  # as sums lie: whole vectors, in one long loop
            for n in range(images):
                for p in range(tall):
                    to = (n * tall + p) * wide
                    _copy(more[image + n, k, begin + p * across :], beside[to:], across)
            for n in range(length):
                kept[n] = _kept(np.int64(row[n]) + np.int64(beside[n]), own, given)
        else:
            for n in range(length):
                kept[n] = _kept(np.int64(row[n]), own, given)
        for n in range(images):
            for p in range(tall):
                at = (n * tall + p) * wide
                _copy(kept[at:], out[image + n, k, begin + p * across :], across)


@inlined
def _first(values: IntArray, least: int) -> int:
    """The first of values in order that is not less."""
    low, high = 0, len(values)
    while low < high:
        middle = (low + high) // 2
        if values[middle] < least:
            low = middle + 1
        else:
            high = middle
    return low


@kernel("i4.2, i8.1, (i8.1, i8.1, i4.2), (int, int, int)")
def add_pixels(
    sums: Sums,
    place: IntArray,
    more: tuple[IntArray, IntArray, Sums],
    shape: tuple[int, int, int],
) -> None:
    """Add to sums [K, images · rows · W'] of a block at `place` what some pixels have
    (`archsim.layer.pixel_sums.PixelSums`); shape: groups, P and Q."""
    (image, behind, group, first, last), (pixels, rows, added), (groups, tall, across) = (
        place, more, shape,
    )  # fmt: skip
    wide = sums.shape[1] // (behind - image) // (last - first)
    low = _first(pixels, ((image * groups + group) * tall + first) * across)
    high = _first(pixels, (((behind - 1) * groups + group) * tall + last) * across)
    for at in range(low, high):
        line, q = divmod(pixels[at], across)
        plane, p = divmod(line, tall)
        to = np.uint64(((plane // groups - image) * (last - first) + p - first) * wide + q)
        own = added[rows[at]]
        for k in range(np.uint64(len(sums))):
            sums[k, to] += own[k]


__all__ = ["OutputRules", "add_directly", "add_pixels", "columns", "keep", "keep_planes", "runs"]
