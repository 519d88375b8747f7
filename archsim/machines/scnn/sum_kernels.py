"""The kernel behind `archsim.machines.scnn.failing_sums`, compiled by numba."""

from __future__ import annotations

from typing import NamedTuple

from archsim.kernels import kernel
from archsim.machines.scnn.kernels import BoolArray
from archsim.numbers import IntArray


class Elements(NamedTuple):
    """Lists without their zeros, [elements] each: values, rows, columns, and the address that each
    brings to its products' sums; where each vector begins [vectors + 1], and each list's first
    vector [lists + 1]."""

    values: IntArray
    rows: IntArray
    columns: IntArray
    addresses: IntArray
    vectors: IntArray
    starts: IntArray


Region = tuple[IntArray, int, int]
"""Of PEs [PEs, 2] rows and columns of their regions; lists of each; bits of 64 that a sum lacks."""

Sums = tuple[IntArray, IntArray, IntArray]
"""[PEs, addresses] each: what is stored; bits that read 1 where 0 is stored, and where 1 is."""

Beside = tuple[BoolArray, IntArray, IntArray]
"""Sums that are not added to here [PEs, addresses]; places and values of their products, in order,
all of a PE behind those of the one before."""


@kernel(
    "Elements(i8.1, i8.1, i8.1, i8.1, i8.1, i8.1), "
    "Elements(i8.1, i8.1, i8.1, i8.1, i8.1, i8.1), "
    "(i8.2, int, int), (i8.2, i8.2, i8.2), (b1.2, i8.1, i8.1)"
)
def add_products(
    activations: Elements, weights: Elements, region: Region, into: Sums, beside: Beside
) -> int:
    """Add every product of some PEs to its sum as it is read, pair by pair, lane by lane.

    activations: rows and columns of the outputs of their first taps; weights: of their taps.
    Returns how many products belong to sums beside, of which no more are written than there is
    room for.
    """
    values, y, x, bases, vectors, starts = activations
    factors, rows, columns, offsets, others, begins = weights
    sizes, lists, above = region
    stored, zero, one = into
    fails, places, products = beside
    found = 0
    for pe in range(len(sizes)):
        height, width = sizes[pe, 0], sizes[pe, 1]
        for block in range(lists):
            for vector in range(starts[pe * lists + block], starts[pe * lists + block + 1]):
                for other in range(begins[block], begins[block + 1]):
                    for a in range(vectors[vector], vectors[vector + 1]):
                        value, down, right, base = values[a], y[a], x[a], bases[a]
                        for w in range(others[other], others[other + 1]):
                            row, column = down - rows[w], right - columns[w]
                            if row < 0 or row >= height or column < 0 or column >= width:
                                continue
                            at, product = base + offsets[w], value * factors[w]
                            if not fails[pe, at]:
                                was = stored[pe, at]
                                read = (was & one[pe, at]) | (~was & zero[pe, at])
                                stored[pe, at] = ((read + product) << above) >> above
                            else:
                                if found < len(places):
                                    places[found] = pe * stored.shape[1] + at
                                    products[found] = product
                                found += 1
    return found


__all__ = ["Beside", "Elements", "Region", "Sums", "add_products"]
