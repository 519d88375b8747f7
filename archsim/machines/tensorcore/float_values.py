"""What a tensor core of floats computes for a whole layer, bit for bit, fast enough for networks.

Sums of floats depend on their order, which is here that of the hardware: channel tiles in turn; in
each, kernel rows, runs of contiguous elements, chunks of as many elements as the unit has
multipliers.  The unit is `archsim.arithmetic.dot_product`; this is its arithmetic once more, in
float64, where every step is exact (`_chunks` says why).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from archsim.arithmetic.dot_product import DotProduct
from archsim.arithmetic.float_datapath import FloatDatapath
from archsim.arithmetic.float_sum import add_floats, adder
from archsim.arithmetic.formats import FloatFormat
from archsim.errors import require, require_positive
from archsim.kernels import kernel
from archsim.layer.problem import Problem
from archsim.layer.values import margins
from archsim.machines.tensorcore.float_order import block_elements, elements
from archsim.numbers import IntArray
from workloads.threads import in_threads

__all__ = ["float_sums"]

Singles = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]

WIDEST_EXACT = 54
"""Signed bits of an aligned sum of which a float64 holds the magnitude."""

WIDTH = 64
"""Columns of a panel: as many sums are under way together."""

PANEL_ELEMENTS = 128
"""Elements of a panel, which with their powers then take 128 kB: it stays in a level-2 cache."""

ROWS = 1024
"""Rows of a job: the share of the work that a thread takes at a time."""

_LOW, _HIGH = 2.0**-300, 2.0**200
"""Below and above the powers of all finite numbers (and of products, below)."""


class _Unit(NamedTuple):
    """The datapath's widths and rules, as numbers that the kernels use."""

    aligned_bits: int
    fraction_bits: int
    bias: int
    aligned_step: float
    fraction_step: float
    least_normal: float
    least_input: float
    least_output: float
    limit: float
    joins: float
    nearest: bool


class _Side(NamedTuple):
    """An operand: element t of vector n is values[starts[n] + offsets[t]], +0 if offsets[t] < 0."""

    values: Singles | IntArray
    starts: IntArray
    offsets: IntArray


def _unit(datapath: FloatDatapath) -> _Unit:
    form, rules = datapath.accumulator, datapath.rules
    least_normal = 2.0 ** (1 - form.bias)
    least = least_normal * 2.0**-form.fraction_bits
    return _Unit(
        aligned_bits=rules.aligned_fraction_bits,
        fraction_bits=form.fraction_bits,
        bias=form.bias,
        aligned_step=2.0**-rules.aligned_fraction_bits,
        fraction_step=2.0**-form.fraction_bits,
        least_normal=least_normal,
        least_input=least if rules.subnormal_inputs else least_normal,
        least_output=least if rules.subnormal_outputs else least_normal,
        limit=2.0 ** (form.bias + 1),
        joins=float(rules.accumulator_joins),
        nearest=rules.rounding == "nearest_even",
    )


@kernel
def _power(value: Any, least_normal: float) -> float:
    """2^(exponent of a number that is not 0), at least `least_normal`; finite for ∞ and NaN."""
    bits = np.float64(value).view(np.int64) & 0x7FF0000000000000
    return min(max(np.int64(bits).view(np.float64), least_normal), _HIGH)


@kernel
def _over(power: Any, bits: int) -> float:
    """2^bits / power, of a power of two."""
    inverse = ((2046 + bits) << 52) - np.float64(power).view(np.int64)
    return np.int64(inverse).view(np.float64)


@kernel
def _rounded(value: float, unit: _Unit) -> float:
    """To the accumulator's format: a zero keeps its sign, an overflow is infinite."""
    power = _power(value, unit.least_normal)
    steps = value * _over(power, unit.fraction_bits)
    steps = np.rint(steps) if unit.nearest else np.trunc(steps)
    result = steps * (power * unit.fraction_step)
    result = result * 0.0 if abs(result) < unit.least_output else result
    return result if abs(result) < unit.limit else result * np.inf


@kernel
def _term(value: float, unit: _Unit) -> tuple[float, float]:
    """A number of the accumulator's format and the power of its exponent; both 0 if it is 0."""
    zero = abs(value) < unit.least_input
    return (0.0 if zero else value, 0.0 if zero else _power(value, unit.least_normal))


@kernel
def _chunks(
    row: Doubles, panel: Doubles, count: int, sums: Doubles, unit: _Unit, lanes: Any
) -> None:
    """sums[n] ← sums[n] + Σ row · panel, over `count` elements, a chunk after another.

    row [2, t] and panel [2, t, n] hold values and, second, the powers of their exponents.  lanes: a
    tuple as long as a chunk, so that the loops over it are unrolled.

    Every step is exact: a product has at most 48 bits, an aligned term is a whole number of steps
    2^(E - F), their sum has at most 53 bits, and scaling is by powers of two that stay within the
    range of float64.  ∞ and NaN go through the same operations, by IEEE 754.  Sums begin at +0.0,
    and so are never -0.
    """
    for t in range(0, count, len(lanes)):
        for n in range(len(sums)):
            c, c_power = _term(sums[n], unit)
            own = max(_LOW, c_power * unit.joins)
            for i in range(len(lanes)):
                own = max(own, row[1, t + i] * panel[1, t + i, n])
            largest = max(own, c_power)
            scale = _over(own, unit.aligned_bits)
            partial = 0.0
            for i in range(len(lanes)):
                partial += np.trunc(row[0, t + i] * panel[0, t + i, n] * scale)
            total = 0.0 + np.trunc(partial * (own * _over(largest, 0)))
            total += np.trunc(c * _over(largest, unit.aligned_bits))
            sums[n] = _rounded(total * (largest * unit.aligned_step), unit)


@kernel
def _added(held: Doubles, sums: Doubles, unit: _Unit) -> None:
    """held[n] ← held[n] + sums[n], by the adder of the same rules."""
    for n in range(len(sums)):
        c, c_power = _term(held[n], unit)
        a, a_power = _term(sums[n], unit)
        largest = max(_LOW, c_power, a_power)
        scale = _over(largest, unit.aligned_bits)
        total = 0.0 + np.trunc(c * scale) + np.trunc(a * scale)
        held[n] = _rounded(total * (largest * unit.aligned_step), unit)


@kernel
def _pack(into: Doubles, side: _Side, vector: int, elements: tuple[int, int], least: float) -> None:
    """The vector's elements, from the first to before the second, and their powers: into [2, t]."""
    start = side.starts[vector]
    for t in range(elements[0], elements[1]):
        offset = side.offsets[t]
        value = 0.0 if offset < 0 else np.float64(side.values[start + offset])
        into[0, t - elements[0]] = value
        into[1, t - elements[0]] = 0.0 if value == 0.0 else _power(value, least)


@kernel
def _pattern(value: Any, unit: _Unit) -> int:
    """Of a number of the accumulator's format."""
    power = _power(value, unit.least_normal)
    field = int(np.float64(power).view(np.int64) >> 52) - 1023 + unit.bias
    special = 2 * unit.bias + 1
    if value != value:
        return ((special + 1) << unit.fraction_bits) - 1
    if abs(value) == np.inf:
        pattern = special << unit.fraction_bits
    else:
        significand = int(abs(value) * _over(power, unit.fraction_bits))
        pattern = ((field - 1) << unit.fraction_bits) + significand
    negative = np.float64(value).view(np.int64) < 0
    return pattern + ((special + 1) << unit.fraction_bits) if negative else pattern


@kernel(
    "_Side(f4.1, i8.1, i8.1), _Side(f4.1, i8.1, i8.1), i8.1, (*), _Unit(int, int, int, float, "
    "float, float, float, float, float, float, bool), float"
)
def _products(
    rows: _Side, columns: _Side, ends: IntArray, lanes: Any, unit: _Unit, least: float
) -> IntArray:
    """Patterns of the sums [rows, columns] over all elements.

    ends: the element before which each channel tile ends.  least: the smallest normal number of
    the operands' format.
    """
    height, width = len(rows.starts), len(columns.starts)
    held = np.empty((height, width))
    depth = max(PANEL_ELEMENTS // len(lanes), 1) * len(lanes)
    panel, row = np.empty((2, depth, WIDTH)), np.empty((2, depth))
    for left in range(0, width, WIDTH):
        right = min(left + WIDTH, width)
        begin = 0
        for tile in range(len(ends)):
            sums = np.zeros((height, right - left))
            for first in range(begin, ends[tile], depth):
                last = min(first + depth, ends[tile])
                for n in range(right - left):
                    _pack(panel[:, :, n], columns, left + n, (first, last), least)
                for m in range(height):
                    _pack(row, rows, m, (first, last), least)
                    _chunks(row, panel, last - first, sums[m], unit, lanes)
            for m in range(height):
                if tile == 0:
                    held[m, left:right] = sums[m]
                else:
                    _added(held[m, left:right], sums[m], unit)
            begin = ends[tile]
    answer = np.empty((height, width), np.int64)
    for m in range(height):
        for n in range(width):
            answer[m, n] = _pattern(held[m, n], unit)
    return answer


def _exact_sums(dot: DotProduct, pixels: _Side, filters: _Side, ends: IntArray) -> IntArray:
    """Sums [pixels, filters] by the kernels, whose columns are filters, else pixels."""
    unit, lanes = _unit(dot.datapath), (0,) * dot.length
    least = 2.0 ** (1 - dot.datapath.operand.bias)
    if len(filters.starts) >= min(len(pixels.starts), WIDTH // 4):
        return _products(pixels, filters, ends, lanes, unit, least)
    return _products(filters, pixels, ends, lanes, unit, least).T


def _wide_sums(dot: DotProduct, pixels: _Side, filters: _Side, ends: IntArray) -> IntArray:
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
        pixels = _Side(x[image, group].reshape(-1), starts[part], walks[group % groups][1])
        filters = _Side(w[group].reshape(-1), weight_starts, order)
        answer[image, group, part] = work(dot, pixels, filters, ends)

    in_threads(share, _jobs(problem))
    return answer.reshape(whole)
