"""The kernel behind `archsim.machines.scnn.failing_sums`, compiled by numba."""

from __future__ import annotations

from archsim.kernels import kernel
from archsim.machines.scnn.kernels import BoolArray
from archsim.numbers import IntArray

Activations = tuple[IntArray, IntArray, IntArray, IntArray]
"""Of a PE [vectors, lanes]: values, and the outputs of their first taps, rows and columns; where
each list begins [lists + 1]."""

Weights = tuple[IntArray, IntArray, IntArray, IntArray, IntArray]
"""Of a group [vectors, lanes]: values, filters, rows and columns of taps; where each list begins
[lists + 1]."""

Region = tuple[int, int, int, int, int]
"""Rows and columns of a PE's region; outputs from a row to the next; sums from an output to the
next; bits of 64 that a sum lacks."""

Sums = tuple[IntArray, IntArray, IntArray]
"""[addresses] each: what is stored; bits that read 1 where 0 is stored, and where 1 is."""

Beside = tuple[BoolArray, IntArray, IntArray]
"""Sums that are not added to here [addresses]; places and values of their products, in order."""


@kernel(
    "(i8.2, i8.2, i8.2, i8.1), (i8.2, i8.2, i8.2, i8.2, i8.1), (int, int, int, int, int), "
    "(i8.1, i8.1, i8.1), (b1.1, i8.1, i8.1)"
)
def add_products(
    activations: Activations, weights: Weights, region: Region, into: Sums, beside: Beside
) -> int:
    """Add every product to its sum as it is read, pair by pair, lane by lane.

    Returns how many products belong to sums beside, of which no more are written than there is
    room for.
    """
    values, y, x, starts = activations
    factors, filters, rows, columns, begins = weights
    height, width, pitch, side, above = region
    stored, zero, one = into
    fails, places, products = beside
    found = 0
    for block in range(len(starts) - 1):
        for vector in range(starts[block], starts[block + 1]):
            for other in range(begins[block], begins[block + 1]):
                for lane in range(values.shape[1]):
                    value = values[vector, lane]
                    if value == 0:
                        continue
                    for weight in range(factors.shape[1]):
                        row = y[vector, lane] - rows[other, weight]
                        column = x[vector, lane] - columns[other, weight]
                        inside = 0 <= row < height and 0 <= column < width
                        if factors[other, weight] == 0 or not inside:
                            continue
                        at = (row * pitch + column) * side + filters[other, weight]
                        product = value * factors[other, weight]
                        if fails[at]:
                            if found < len(places):
                                places[found], products[found] = at, product
                            found += 1
                            continue
                        read = (stored[at] & one[at]) | (~stored[at] & zero[at])
                        stored[at] = ((read + product) << above) >> above
    return found


__all__ = ["Activations", "Beside", "Region", "Sums", "Weights", "add_products"]
