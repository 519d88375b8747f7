"""The kernels behind `archsim.machines.vsq.vector_values`, compiled by numba.

A summation is given to them as one vector (`VectorSummation.rules`), a problem likewise
(`Problem.vector`); operands are split by groups, channels last, and scales have ⌈C / V⌉ entries
where values have C.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from archsim.kernels import inlined, kernel
from archsim.layer import problem as pb
from archsim.layer.values import FloatArray
from archsim.numbers import AnyIntArray, IntArray

(
    LENGTH,  # V
    TILE,  # vectors after which the collector is added up
    DROPPED,  # lower bits of the product of scales
    LARGEST_SCALE,  # of what is left of it
    LOWEST,  # of the collector
    HIGHEST,
    CLIPPED,  # whether a step may saturate
    BITS,  # of the collector
    SUM_BITS,  # of the sum of collectors
) = range(9)


class SummationRules(NamedTuple):
    """A summation's vector by the names of its places, in order."""

    length: int
    tile: int
    dropped: int
    largest_scale: int
    lowest: int
    highest: int
    clipped: int
    bits: int
    sum_bits: int

    def vector(self) -> IntArray:
        """For the kernels."""
        return np.array(self, np.int64)


Pair = tuple[AnyIntArray, AnyIntArray]
"""Values and their scales."""


@inlined
def _scale_product(a: int, b: int, rules: IntArray) -> int:
    """`archsim.codecs.vector_dot.scale_product` of two scales."""
    rounded: int = (a * b + ((1 << rules[DROPPED]) >> 1)) >> rules[DROPPED]
    return min(rounded, rules[LARGEST_SCALE])


@inlined
def _wrapped(value: int, bits: int) -> int:
    """Two's complement of so many bits."""
    return (value << (64 - bits)) >> (64 - bits)


@inlined
def _row(p: int, r: int, problem: IntArray) -> int:
    """The row of the ifmap that a row of the kernel sees from a row of the ofmap."""
    row: int = p * problem[pb.STRIDE_HEIGHT] + r * problem[pb.DILATION_HEIGHT]
    return row - problem[pb.PAD_TOP]


@inlined
def _column(q: int, s: int, problem: IntArray) -> int:
    column: int = q * problem[pb.STRIDE_WIDTH] + s * problem[pb.DILATION_WIDTH]
    return column - problem[pb.PAD_LEFT]


@kernel("i8.1, i8.1, (??.3, i4.3), i8.1, (f?.2, i8.2)")
def gather(
    problem: IntArray,
    rules: IntArray,
    plane: Pair,
    place: IntArray,
    buffers: tuple[FloatArray, IntArray],
) -> None:
    """Pixels as one tap sees them, channels of one tile, into [pixels, C] and [pixels, J].

    plane: the ifmap [H, W, C] and its scales [H, W, J], 0 outside.  place: the first pixel, the
    tap's row and column, the first vector of the tile and the one after its last.
    """
    start, r, s, first, last = place
    values, scales = buffers
    low = first * rules[LENGTH]
    for pixel in range(len(values)):
        p, q = divmod(start + pixel, problem[pb.OUT_WIDTH])
        y, x = _row(p, r, problem), _column(q, s, problem)
        if 0 <= y < problem[pb.HEIGHT] and 0 <= x < problem[pb.WIDTH]:
            for c in range(values.shape[1]):
                values[pixel, c] = plane[0][y, x, low + c]
            for j in range(last - first):
                scales[pixel, j] = plane[1][y, x, first + j]
        else:
            values[pixel] = 0
            scales[pixel] = 0


@kernel("f?.2, i8.1, i8.1, i8.1, i8.2")
def add_step(
    dots: FloatArray, a_scales: IntArray, w_scales: IntArray, rules: IntArray, collectors: IntArray
) -> None:
    """A vector of every pixel with that of every filter: dots and collectors [pixels, K]."""
    lowest, highest = rules[LOWEST], rules[HIGHEST]
    if rules[CLIPPED]:
        for pixel in range(len(collectors)):
            a_scale = a_scales[pixel]
            for k in range(collectors.shape[1]):
                term = np.int64(dots[pixel, k]) * _scale_product(a_scale, w_scales[k], rules)
                collectors[pixel, k] = min(max(collectors[pixel, k] + term, lowest), highest)
    else:
        for pixel in range(len(collectors)):
            a_scale = a_scales[pixel]
            for k in range(collectors.shape[1]):
                term = np.int64(dots[pixel, k]) * _scale_product(a_scale, w_scales[k], rules)
                collectors[pixel, k] += term


@kernel("i8.2, i8.1, i8.2")
def add_tile(collectors: IntArray, rules: IntArray, sums: IntArray) -> None:
    """Collectors [pixels, K], wrapped to their width, to the sums.

    Wrap-around once a tile is the same as at every step, and changes nothing that was limited.
    """
    for pixel in range(len(sums)):
        for k in range(sums.shape[1]):
            collector = _wrapped(collectors[pixel, k], rules[BITS])
            sums[pixel, k] = _wrapped(sums[pixel, k] + collector, rules[SUM_BITS])


@kernel
def _collector(
    problem: IntArray,
    rules: IntArray,
    plane: tuple[Pair, int, int],
    taps: Pair,
    first: int,
) -> int:
    """What one tile collects at one output: plane ([H, W, C], [H, W, J]), p, q; taps [R, S, …]."""
    (values, scales), p, q = plane
    collector = 0
    last = min(first + rules[TILE], scales.shape[2])
    for r in range(problem[pb.KERNEL_HEIGHT]):
        y = _row(p, r, problem)
        for s in range(problem[pb.KERNEL_WIDTH]):
            x = _column(q, s, problem)
            if not (0 <= y < problem[pb.HEIGHT] and 0 <= x < problem[pb.WIDTH]):
                continue
            for j in range(first, last):
                low, dot = j * rules[LENGTH], 0
                for c in range(low, min(low + rules[LENGTH], problem[pb.CHANNELS])):
                    dot += values[y, x, c] * taps[0][r, s, c]
                collector += dot * _scale_product(scales[y, x, j], taps[1][r, s, j], rules)
                if rules[CLIPPED]:
                    collector = min(max(collector, rules[LOWEST]), rules[HIGHEST])
    return _wrapped(collector, rules[BITS])


@kernel("i8.1, i8.1, (i8.5, i8.5), (i8.5, i8.5), i8.5")
def add_directly(
    problem: IntArray, rules: IntArray, ifmap: Pair, weight: Pair, sums: IntArray
) -> None:
    """Every tile of every output [images, groups, P, Q, K], by integers of 64 bits."""
    images, groups, rows, columns, filters = sums.shape
    for image in range(images):
        for group in range(groups):
            plane = (ifmap[0][image, group], ifmap[1][image, group])
            for p in range(rows):
                for q in range(columns):
                    for k in range(filters):
                        taps = (weight[0][group, k], weight[1][group, k])
                        total = 0
                        for first in range(0, plane[1].shape[2], rules[TILE]):
                            total += _collector(problem, rules, (plane, p, q), taps, first)
                        sums[image, group, p, q, k] = _wrapped(total, rules[SUM_BITS])


@kernel
def _tile_bound(weight: Pair, rules: IntArray, largest: tuple[int, int], first: int) -> float:
    """The bound of one tile of one filter: weight ([R, S, C], [R, S, J])."""
    values, scales = weight
    bound = 0.0
    for r in range(values.shape[0]):
        for s in range(values.shape[1]):
            for j in range(first, min(first + rules[TILE], scales.shape[2])):
                low, norm = j * rules[LENGTH], 0
                for c in range(low, min(low + rules[LENGTH], values.shape[2])):
                    norm += abs(np.int64(values[r, s, c]))
                own: int = np.int64(scales[r, s, j])  # pyright: ignore
                scale = _scale_product(own, largest[1], rules)
                bound += np.float64(norm) * largest[0] * scale
    return bound


@kernel("(??.5, i4.5), i8.1, (int, int)")
def bounds(weight: Pair, rules: IntArray, largest: tuple[int, int]) -> tuple[float, float]:
    """Bounds on the magnitude of every partial sum: of one tile, and of all tiles together.

    They are the L1 norm of a filter's vectors, each times the largest magnitude of the ifmap and
    the largest rounded product of scales; the worst filter's.  largest: magnitudes of the ifmap
    and of its scales.  weight: [groups, K, R, S, C] and scales.  Exact below 2^53.
    """
    values, scales = weight
    worst_tile, worst = 0.0, 0.0
    for group in range(values.shape[0]):
        for k in range(values.shape[1]):
            taps = (values[group, k], scales[group, k])
            total = 0.0
            for first in range(0, scales.shape[4], rules[TILE]):
                tile = _tile_bound(taps, rules, largest, first)
                worst_tile = max(worst_tile, tile)
                total += tile
            worst = max(worst, total)
    return worst_tile, worst


@kernel("??.2, i4.2, int, i4.2")
def scale_values(
    values: AnyIntArray, scales: AnyIntArray, length: int, products: AnyIntArray
) -> None:
    """value · scale: values and products [rows, C], scales [rows, J]."""
    channels = values.shape[1]
    for row in range(len(values)):
        for j in range(scales.shape[1]):
            for c in range(j * length, min((j + 1) * length, channels)):
                products[row, c] = np.int64(values[row, c]) * scales[row, j]
