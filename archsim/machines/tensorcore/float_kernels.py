"""Sums of floats, bit for bit, as kernels: the arithmetic of `archsim.arithmetic.dot_product` once
more, in float64, where every step is exact (`_chunks` says why).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from archsim.arithmetic.float_datapath import FloatDatapath
from archsim.kernels import kernel
from archsim.numbers import IntArray

__all__ = ["WIDTH", "Doubles", "Side", "Singles", "products", "unit_of"]

Singles = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]

WIDTH = 64
"""Columns of a panel: as many sums are under way together."""

PANEL_ELEMENTS = 128
"""Elements of a panel, which with their powers then take 128 kB: it stays in a level-2 cache."""

_LOW, _HIGH = 2.0**-300, 2.0**200
"""Below and above the powers of all finite numbers (and of products, below)."""


class Unit(NamedTuple):
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


class Side(NamedTuple):
    """An operand: element t of vector n is values[starts[n] + offsets[t]], +0 if offsets[t] < 0."""

    values: Singles | IntArray
    starts: IntArray
    offsets: IntArray


def unit_of(datapath: FloatDatapath) -> Unit:
    """A datapath's widths and rules for the kernels."""
    form, rules = datapath.accumulator, datapath.rules
    least_normal = 2.0 ** (1 - form.bias)
    least = least_normal * 2.0**-form.fraction_bits
    return Unit(
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
def _rounded(value: float, unit: Unit) -> float:
    """To the accumulator's format: a zero keeps its sign, an overflow is infinite."""
    power = _power(value, unit.least_normal)
    steps = value * _over(power, unit.fraction_bits)
    steps = np.rint(steps) if unit.nearest else np.trunc(steps)
    result = steps * (power * unit.fraction_step)
    result = result * 0.0 if abs(result) < unit.least_output else result
    return result if abs(result) < unit.limit else result * np.inf


@kernel
def _term(value: float, unit: Unit) -> tuple[float, float]:
    """A number of the accumulator's format and the power of its exponent; both 0 if it is 0."""
    zero = abs(value) < unit.least_input
    return (0.0 if zero else value, 0.0 if zero else _power(value, unit.least_normal))


@kernel
def _chunks(
    row: Doubles, panel: Doubles, count: int, sums: Doubles, unit: Unit, lanes: Any
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
def _added(held: Doubles, sums: Doubles, unit: Unit) -> None:
    """held[n] ← held[n] + sums[n], by the adder of the same rules."""
    for n in range(len(sums)):
        c, c_power = _term(held[n], unit)
        a, a_power = _term(sums[n], unit)
        largest = max(_LOW, c_power, a_power)
        scale = _over(largest, unit.aligned_bits)
        total = 0.0 + np.trunc(c * scale) + np.trunc(a * scale)
        held[n] = _rounded(total * (largest * unit.aligned_step), unit)


@kernel
def _pack(into: Doubles, side: Side, vector: int, elements: tuple[int, int], least: float) -> None:
    """The vector's elements, from the first to before the second, and their powers: into [2, t]."""
    start = side.starts[vector]
    for t in range(elements[0], elements[1]):
        offset = side.offsets[t]
        value = 0.0 if offset < 0 else np.float64(side.values[start + offset])
        into[0, t - elements[0]] = value
        into[1, t - elements[0]] = 0.0 if value == 0.0 else _power(value, least)


@kernel
def _pattern(value: Any, unit: Unit) -> int:
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
    "Side(f4.1, i8.1, i8.1), Side(f4.1, i8.1, i8.1), i8.1, (*), Unit(int, int, int, float, "
    "float, float, float, float, float, float, bool), float"
)
def products(
    rows: Side, columns: Side, ends: IntArray, lanes: Any, unit: Unit, least: float
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
