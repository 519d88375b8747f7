"""The kernels behind `archsim.machines.scnn.failing_sums` and `few_sums`, compiled by numba."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from archsim.kernels import inlined, kernel
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
"""Sums of a half, those of a place side by side: PE, row, column and filter of a group [n, 4]; bits
of them that read 1 where 0 is stored, and where 1 is [n]."""

Beside = tuple[BoolArray, IntArray, IntArray]
"""Sums that are not added to here [PEs, addresses]; places and values of their products, in order,
all of a PE behind those of the one before."""

Operands = tuple[IntArray, IntArray]
"""Activations [PEs, channels, phases · places] and weights [filters, channels · taps], of all
phases, where they lie, zeros and all."""

Taps = tuple[IntArray, IntArray, IntArray]
"""The output of each PE's first row of inputs at the first tap, in its region, and of its first
column [PEs, phases] each; each phase's rows and columns of taps [phases, 2]."""

Plane = tuple[int, int, int, int, int, int]
"""Rows and columns of places of a phase, and from a row to the next; filters of a group, and of
all; bits of 64 that a sum lacks."""


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


@inlined
def _not_zero(
    given: IntArray, met: tuple[IntArray, IntArray, Any], each: Any, out: tuple[Any, IntArray]
) -> Any:
    """Activations [channels, places] that are not zero where taps meet a place, in order, with
    where their weights lie of a filter's [channels, taps]: they go into `out`; how many."""
    (here, there, seen), (at, values), count = met, out, np.uint64(0)
    for channel in range(len(given)):
        first = channel * each
        for tap in range(seen):
            value = given[channel, here[tap]]
            at[count], values[count] = first + there[tap], value
            count += np.uint64(value != 0)
    return count


@inlined
def _total(own: IntArray, given: tuple[Any, IntArray], count: Any) -> Any:
    """A sum of which no bit is read otherwise; own [channels · taps] of a filter."""
    (at, values), total = given, np.int64(0)
    for n in range(count):
        total += values[np.uint64(n)] * own[at[np.uint64(n)]]
    return total


@inlined
def _total_as_read(
    own: IntArray, given: tuple[Any, IntArray], count: Any, word: tuple[Any, Any], room: IntArray
) -> Any:
    """A sum that is read before each product is added; word: both masks.  Of its bits those above
    its width are no matter: none of them is carried down."""
    (at, values), (zero, one), products = given, word, np.uint64(0)
    for n in range(count):
        product = values[np.uint64(n)] * own[at[np.uint64(n)]]
        room[products] = product
        products += np.uint64(product != 0)
    kept, total = zero ^ one, np.int64(0)
    for n in range(products):
        total = (zero ^ (total & kept)) + room[np.uint64(n)]
    return total


@inlined
def _before(words: IntArray, at: Any, others: IntArray, other: Any) -> Any:
    """Whether the place of a word comes before that of another, or with it; of none it comes
    last."""
    if at == len(words) or other == len(others):
        return at < len(words)
    for field in range(3):
        if words[at, field] != others[other, field]:
            return words[at, field] < others[other, field]
    return True


@kernel(
    "(i8.2, i8.1, i8.1), (i8.2, i8.1, i8.1), (i8.2, i8.2), (i8.3, i8.2), (i8.2, i8.2, i8.2), "
    "(int, int, int, int, int, int)"
)
def add_in_order(
    first: Words,
    second: Words,
    sums: tuple[IntArray, IntArray],
    operands: Operands,
    taps: Taps,
    plane: Plane,
) -> None:
    """Add to sums of both halves [groups in them, n] what is added to each, in order, where
    operands are read as they are meant.

    Activations of a list come row by row, and so do the taps of a filter, so that a sum's products
    come by channel, phase, and tap.  Groups are in the first half and the second in turns.
    """
    activations, weights = operands
    firsts_down, firsts_right, counts = taps
    height, width, pitch, size, filters, above = plane
    each, most = weights.shape[1] // activations.shape[1], weights.shape[1] + 1
    here, there = np.empty(each, np.int64), np.empty(each, np.int64)
    given = np.empty(most, np.uint64), np.empty(most, np.int64)
    room = np.empty(most, np.int64)
    pe = row = column = np.int64(-1)
    count, one, other = np.uint64(0), 0, 0
    while one < len(first[0]) or other < len(second[0]):
        half = 0 if _before(first[0], one, second[0], other) else 1
        (words, zeros, ones), n = (second, other) if half else (first, one)
        stored = sums[1] if half else sums[0]
        one, other = one + 1 - half, other + half
        if words[n, 0] != pe or words[n, 1] != row or words[n, 2] != column:
            pe, row, column = words[n, 0], words[n, 1], words[n, 2]
            firsts = firsts_down[pe], firsts_right[pe]
            seen = _met((row, column), firsts, counts, (height, width, pitch), (here, there))
            count = _not_zero(activations[pe], (here, there, seen), each, given)
        for group in range(len(stored)):
            filter_ = (2 * group + half) * size + words[n, 3]
            if filter_ >= filters:
                break
            if zeros[n] == 0 and ones[n] == -1:
                total = _total(weights[filter_], given, count)
            else:
                word = zeros[n], ones[n]
                total = _total_as_read(weights[filter_], given, count, word, room)
            stored[group, n] = (total << above) >> above


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
