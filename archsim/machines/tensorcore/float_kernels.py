"""Sums of floats, bit for bit, as kernels: the arithmetic of `archsim.arithmetic.dot_product` once
more, in float64, where every step is exact (`_chunks` says why).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from archsim.arithmetic.float_kernels import LOW, Unit, over, pattern_of, power_of, rounded, term_of
from archsim.kernels import kernel
from archsim.numbers import IntArray

__all__ = ["WIDTH", "Doubles", "Side", "Singles", "products"]

Singles = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]

WIDTH = 64
"""Columns of a panel: as many sums are under way together."""

PANEL_ELEMENTS = 128
"""Elements of a panel, which with their powers then take 128 kB: it stays in a level-2 cache."""


class Side(NamedTuple):
    """An operand: element t of vector n is values[starts[n] + offsets[t]], +0 if offsets[t] < 0."""

    values: Singles | IntArray
    starts: IntArray
    offsets: IntArray


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
            c, c_power = term_of(sums[n], unit)
            own = max(LOW, c_power * unit.joins)
            for i in range(len(lanes)):
                own = max(own, row[1, t + i] * panel[1, t + i, n])
            largest = max(own, c_power)
            scale = over(own, unit.aligned_bits)
            partial = 0.0
            for i in range(len(lanes)):
                partial += np.trunc(row[0, t + i] * panel[0, t + i, n] * scale)
            total = 0.0 + np.trunc(partial * (own * over(largest, 0)))
            total += np.trunc(c * over(largest, unit.aligned_bits))
            sums[n] = rounded(total * (largest * unit.aligned_step), unit)


@kernel
def _added(held: Doubles, sums: Doubles, unit: Unit) -> None:
    """held[n] ← held[n] + sums[n], by the adder of the same rules."""
    for n in range(len(sums)):
        c, c_power = term_of(held[n], unit)
        a, a_power = term_of(sums[n], unit)
        largest = max(LOW, c_power, a_power)
        scale = over(largest, unit.aligned_bits)
        total = 0.0 + np.trunc(c * scale) + np.trunc(a * scale)
        held[n] = rounded(total * (largest * unit.aligned_step), unit)


@kernel
def _pack(into: Doubles, side: Side, vector: int, elements: tuple[int, int], least: float) -> None:
    """The vector's elements, from the first to before the second, and their powers: into [2, t]."""
    start = side.starts[vector]
    for t in range(elements[0], elements[1]):
        offset = side.offsets[t]
        value = 0.0 if offset < 0 else np.float64(side.values[start + offset])
        into[0, t - elements[0]] = value
        into[1, t - elements[0]] = 0.0 if value == 0.0 else power_of(value, least)


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
            answer[m, n] = pattern_of(held[m, n], unit)
    return answer
