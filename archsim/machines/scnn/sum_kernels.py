"""The kernels behind `archsim.machines.scnn.failing_sums` and `few_sums`, compiled by numba."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

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

Words = tuple[IntArray, IntArray, IntArray]
"""The same of some sums, [n] each."""

Beside = tuple[BoolArray, IntArray, IntArray]
"""Sums that are not added to here [PEs, addresses]; places and values of their products, in order,
all of a PE behind those of the one before."""

Operands = tuple[IntArray, IntArray]
"""Activations [PEs, channels, phases · places] and weights [filters, channels, taps of all phases],
where they lie, zeros and all."""

Taps = tuple[IntArray, IntArray, IntArray]
"""The output of each PE's first row of inputs at the first tap, in its region, and of its first
column [PEs, phases] each; each phase's rows and columns of taps [phases, 2]."""

Plane = tuple[int, int, int, int, int, int]
"""Rows and columns of places of a phase, and from a row to the next; the first filter of a group,
how many it has; bits of 64 that a sum lacks."""


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


@kernel
def _met(
    place: tuple[Any, Any],
    firsts: tuple[IntArray, IntArray],
    counts: IntArray,
    plane: tuple[Any, Any, Any],
    out: tuple[IntArray, IntArray],
) -> Any:
    """How many taps meet a place of an output, in order, and which: places and taps go into `out`.

    place: its row and column; firsts [phases]: those of the first input at the first tap.
    """
    height, width, pitch = plane
    here, there = out
    seen = begin = 0
    for phase in range(len(counts)):
        for r in range(counts[phase, 0]):
            for s in range(counts[phase, 1]):
                y, x = place[0] - firsts[0][phase] + r, place[1] - firsts[1][phase] + s
                if 0 <= y < height and 0 <= x < width:
                    here[seen] = (phase * height + y) * pitch + x
                    there[seen] = begin + r * counts[phase, 1] + s
                    seen += 1
        begin += counts[phase, 0] * counts[phase, 1]
    return seen


@kernel
def _total(given: IntArray, own: IntArray, here: IntArray, there: IntArray) -> Any:
    """A sum of which no bit is read otherwise; given and own [channels, places or taps]."""
    total = np.int64(0)
    for channel in range(len(own)):
        for at in range(len(here)):
            total += given[channel, here[at]] * own[channel, there[at]]
    return total


@kernel
def _total_as_read(
    given: IntArray, own: IntArray, here: IntArray, there: IntArray, word: tuple[Any, Any, Any]
) -> Any:
    """A sum that is read before each product is added; word: both masks, and bits of 64 that it
    lacks."""
    zero, one, above = word
    total = np.int64(0)
    for channel in range(len(own)):
        for at in range(len(here)):
            product = given[channel, here[at]] * own[channel, there[at]]
            if product:
                read = (total & one) | (~total & zero)
                total = ((read + product) << above) >> above
    return total


@kernel(
    "i8.2, (i8.1, i8.1, i8.1), (i8.3, i8.3), (i8.2, i8.2, i8.2), (int, int, int, int, int, int)"
)
def add_in_order(
    words: IntArray, into: Words, operands: Operands, taps: Taps, plane: Plane
) -> None:
    """Add to some sums what is added to each, in order, where operands are read as they are meant.

    Activations of a list come row by row, and so do the taps of a filter, so that a sum's products
    come by channel, phase, and tap.  words [n, 4]: PE, row, column and filter; those of a place
    side by side.
    """
    stored, zero, one = into
    activations, weights = operands
    firsts_down, firsts_right, counts = taps
    height, width, pitch, first, filters, above = plane
    each = weights.shape[2]
    here, there = np.empty(each, np.int64), np.empty(each, np.int64)
    pe = row = column = np.int64(-1)
    seen = 0
    for n in range(len(words)):
        if words[n, 3] >= filters:
            continue
        if words[n, 0] != pe or words[n, 1] != row or words[n, 2] != column:
            pe, row, column = words[n, 0], words[n, 1], words[n, 2]
            firsts = firsts_down[pe], firsts_right[pe]
            seen = _met((row, column), firsts, counts, (height, width, pitch), (here, there))
        operands_met = activations[pe], weights[first + words[n, 3]], here[:seen], there[:seen]
        if zero[n] == 0 and one[n] == -1:
            stored[n] = (_total(*operands_met) << above) >> above
        else:
            stored[n] = _total_as_read(*operands_met, (zero[n], one[n], above))


__all__ = [
    "Beside",
    "Elements",
    "Operands",
    "Plane",
    "Region",
    "Sums",
    "Taps",
    "Words",
    "add_in_order",
    "add_products",
]
