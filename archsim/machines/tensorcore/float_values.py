"""What a tensor core of floats computes for a whole layer, bit for bit, fast enough for networks.

Sums of floats depend on their order, which is here that of the hardware: channel tiles in turn; in
each, kernel rows, runs of contiguous elements, chunks of as many elements as the unit has
multipliers.  The unit is `archsim.arithmetic.dot_product`, whose arithmetic
`archsim.machines.tensorcore.float_kernels` has once more.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np

from archsim.arithmetic.dot_product import DotProduct
from archsim.arithmetic.float_kernels import unit_of
from archsim.arithmetic.float_sum import add_floats, adder
from archsim.arithmetic.formats import FloatFormat
from archsim.errors import require, require_positive
from archsim.layer.problem import Problem, margins
from archsim.machines.tensorcore.float_kernels import (
    WIDTH,
    Doubles,
    Side,
    Singles,
    products,
)
from archsim.machines.tensorcore.float_order import block_elements, elements
from archsim.numbers import IntArray
from workloads.threads import in_threads

__all__ = ["float_sums"]


WIDEST_EXACT = 54
"""Signed bits of an aligned sum of which a float64 holds the magnitude."""


ROWS = 1024
"""Rows of a job: the share of the work that a thread takes at a time."""


def _exact_sums(dot: DotProduct, pixels: Side, filters: Side, ends: IntArray) -> IntArray:
    """Sums [pixels, filters] by the kernels, whose columns are filters, else pixels."""
    unit, lanes = unit_of(dot.datapath), (0,) * dot.length
    least = 2.0 ** (1 - dot.datapath.operand.bias)
    if len(filters.starts) >= min(len(pixels.starts), WIDTH // 4):
        return products(pixels, filters, ends, lanes, unit, least)
    return products(filters, pixels, ends, lanes, unit, least).T


def _wide_sums(dot: DotProduct, pixels: Side, filters: Side, ends: IntArray) -> IntArray:
    """The same by `DotProduct.compute`, for all sums at once."""
    join = adder(dot.datapath.accumulator, dot.datapath.rules)
    m, n = len(pixels.starts), len(filters.starts)
    a, b = (
        np.where(side.offsets < 0, 0, side.values[side.starts[:, None] + side.offsets])
        for side in (pixels, filters)
    )
    total, begin = np.zeros(m * n, np.int64), 0
    for tile, end in enumerate(ends.tolist()):
        sums = np.zeros(m * n, np.int64)
        for t in range(begin, end, dot.length):
            chunk = slice(t, t + dot.length)
            x, y = np.repeat(a[:, chunk], n, axis=0), np.tile(b[:, chunk], (m, 1))
            sums = dot.compute(x, y, sums)
        total = sums if tile == 0 else add_floats(join, total, sums)
        begin = end
    return total.reshape(m, n)


def _padded(ifmap: IntArray, problem: Problem) -> IntArray:
    """The ifmap with the +0 that the windows reach into."""
    return np.pad(ifmap, ((0, 0), (0, 0), *margins(problem), (0, 0)))


def _addresses(problem: Problem, elements: IntArray, pitch: int) -> tuple[IntArray, IntArray]:
    """Of windows [P · Q] and of their elements, in a padded image with rows of `pitch` pixels."""
    rows = np.arange(problem.out_height)[:, None] * problem.stride_height * pitch
    columns = np.arange(problem.out_width) * problem.stride_width
    row, rest = np.divmod(elements, problem.kernel_width * problem.channels)
    column, channel = np.divmod(rest, problem.channels)
    pixel = row * problem.dilation_height * pitch + column * problem.dilation_width
    offsets = np.where(elements < 0, -1, pixel * problem.channels + channel)
    return ((rows + columns) * problem.channels).reshape(-1), offsets


@cache
def _table(form: FloatFormat) -> Doubles:
    """The value of every pattern."""
    return form.decode(np.arange(1 << form.bits))


def _decoded(form: FloatFormat, patterns: IntArray, subnormals: bool) -> Singles:
    """The values of patterns, exactly; a subnormal is a zero unless they are kept."""
    values = form.decode(patterns) if form.bits > 16 else _table(form)[patterns]
    if not subnormals:
        values[np.abs(values) < 2.0 ** (1 - form.bias)] = 0.0
    return values.astype(np.float32)


def _jobs(problem: Problem) -> Iterator[tuple[int, int, slice]]:
    """Images, groups and shares of their pixels."""
    for image in range(problem.images):
        for group in range(problem.groups):
            for first in range(0, problem.out_height * problem.out_width, ROWS):
                yield image, group, slice(first, first + ROWS)


def _checked(problem: Problem, dot: DotProduct, operands: tuple[IntArray, IntArray]) -> None:
    p, bits = problem, dot.datapath.operand.bits
    shapes = {
        "ifmap": (p.images, p.groups, p.height, p.width, p.channels),
        "weight": (p.groups, p.filters, p.kernel_height, p.kernel_width, p.channels),
    }
    for (name, shape), patterns in zip(shapes.items(), operands, strict=True):
        require(
            patterns.shape == shape, f"{name} must be of shape {shape}, not of {patterns.shape}"
        )
        require(patterns.dtype == np.int64, f"{name} must be int64, not {patterns.dtype}")
        low, high = int(patterns.min()), int(patterns.max())
        require(
            low >= 0 and high >> bits == 0,
            f"{name} must hold patterns of {bits} bits, 0 to {(1 << bits) - 1}, "
            f"not {low if low < 0 else high}",
        )


def float_sums(
    problem: Problem,
    ifmap: IntArray,
    weight: IntArray,
    dot: DotProduct,
    channel_tile: int,
    groups: int = 1,
) -> IntArray:
    """Patterns of the sums [images, groups, P, Q, K], int64, of split operands (patterns too).

    ifmap [images, groups, H, W, C], weight [groups, K, R, S, C].  Channel tiles of `channel_tile`
    channels are summed in turn, each from +0 on, and added up by `float_sum.adder` with the rules
    of `dot`.  In a tile, for every kernel row: its S · C_tile elements, or with a dilation_width
    each of its S taps alone, in chunks of `dot.length`, the last filled up with +0 · +0; and
    sums ← dot(chunk of the ifmap, chunk of the weight, sums).  Padding is +0.
    groups: that lie side by side, in one tile (`Problem.side_by_side`): then a run holds the
    channels of all groups of a block, and those of others, which must be finite, are products
    of 0.

    Equal in every bit to `DotProduct.compute`, which is called itself (about a hundred times as
    slow) where the aligned sum has more than WIDEST_EXACT bits.  Raises InputError for integers,
    other shapes, and what is not a pattern.
    """
    require_positive(channel_tile=channel_tile)
    _checked(problem, dot, (ifmap, weight))
    if groups == 1:
        places = [elements(problem, channel_tile, dot.length)]
    else:
        places = block_elements(problem, groups, dot.length)
    padded = _padded(ifmap, problem)
    walks = [_addresses(problem, order, padded.shape[3]) for order, _ in places]
    starts = walks[0][0]
    shape = (problem.images, problem.groups, len(starts), problem.filters)
    answer = np.empty(shape, np.int64)
    whole = (*shape[:2], problem.out_height, problem.out_width, problem.filters)
    weight_starts = np.arange(problem.filters) * weight[0, 0].size
    exact = dot.datapath.sum_bits <= WIDEST_EXACT
    form, subnormals = dot.datapath.operand, dot.datapath.rules.subnormal_inputs
    x, w = (_decoded(form, each, subnormals) if exact else each for each in (padded, weight))
    work = _exact_sums if exact else _wide_sums

    def share(job: tuple[int, int, slice]) -> None:
        image, group, part = job
        order, ends = places[group % groups]
        pixels = Side(x[image, group].reshape(-1), starts[part], walks[group % groups][1])
        filters = Side(w[group].reshape(-1), weight_starts, order)
        answer[image, group, part] = work(dot, pixels, filters, ends)

    in_threads(share, _jobs(problem))
    return answer.reshape(whole)
