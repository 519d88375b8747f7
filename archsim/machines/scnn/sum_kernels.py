"""The kernels behind `archsim.machines.scnn.failing_sums` and `few_sums`, compiled by numba."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from archsim.kernels import inlined, kernel
from archsim.machines.scnn.few_kernels import Code, Edits, Grid, change_weights, read_coded
from archsim.machines.scnn.kernels import BoolArray
from archsim.numbers import IntArray

Narrow = npt.NDArray[np.int32]


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

Words = tuple[IntArray, IntArray, IntArray, BoolArray]
"""Sums of a half, those of a place side by side: PE, row, column and filter of a group [n, 4]; bits
of them that read 1 where 0 is stored, and where 1 is [n]; which of them are read past check bits
[n], whose cells lie above theirs."""

Beside = tuple[BoolArray, IntArray, IntArray]
"""Sums that are not added to here [PEs, addresses]; places and values of their products, in order,
all of a PE behind those of the one before."""

Operands = tuple[IntArray, IntArray, Narrow, IntArray]
"""Activations [PEs, channels, phases · places] and weights [filters, channels · taps], of all
phases, where they lie, zeros and all; the latter also as [channels · taps, filters], and how many
of them are not zero [channels · taps]."""

Taps = tuple[IntArray, IntArray, Edits, Grid]
"""The output of each PE's first row of inputs at the first tap, in its region, and of its first
column [PEs, phases] each; what PEs read otherwise of weights; taps."""

Plane = tuple[int, int, int, int, int, int, int]
"""Rows and columns of places of a phase, and from a row to the next; filters of a group, and of
all; bits of 64 that a sum lacks; from how many sums of a place on those of all filters are walked
side by side, 0: never."""

Rules = tuple[Any, Any, Any, Any, Any, Any, Code]
"""Which half; how many activations are not zero; room for as many products; filters of a group, and
of all; bits of 64 that a sum lacks."""


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
    given: IntArray, met: tuple[IntArray, IntArray, Any], used: IntArray, out: tuple[Any, IntArray]
) -> Any:
    """Activations [channels, places] that are not zero where taps with weights meet a place, in
    order, with where their weights lie of a filter's [channels, taps]: they go into `out`; how
    many.  used [channels · taps]: weights at each."""
    (here, there, seen), (at, values), count = met, out, 0
    each = len(used) // len(given)
    for channel in range(len(given)):
        first = channel * each
        for tap in range(seen):
            value, place = given[channel, here[tap]], first + there[tap]
            at[np.uint64(count)], values[np.uint64(count)] = place, value
            count += int(value != 0) & int(used[np.uint64(place)] != 0)
    return count


@inlined
def _total(own: IntArray, given: tuple[Any, IntArray], count: Any) -> Any:
    """A sum of which no bit is read otherwise; own [channels · taps] of a filter."""
    (at, values), total = given, np.int64(0)
    for n in range(count):
        total += values[np.uint64(n)] * own[np.uint64(at[np.uint64(n)])]
    return total


@inlined
def _total_as_read(
    own: IntArray, given: tuple[Any, IntArray], count: Any, word: tuple[Any, Any], room: IntArray
) -> Any:
    """A sum that is read before each product is added; word: both masks.  Of its bits those above
    its width are no matter: none of them is carried down."""
    (at, values), (zero, one), products = given, word, np.uint64(0)
    for n in range(count):
        product = values[np.uint64(n)] * own[np.uint64(at[np.uint64(n)])]
        room[products] = product
        products += np.uint64(product != 0)
    kept, total = zero ^ one, np.int64(0)
    for n in range(products):
        total = (zero ^ (total & kept)) + room[np.uint64(n)]
    return total


@kernel("i4.2, (i8.1, i4.1), int, i4.2, i4.1", answer="none")
def add_side_by_side(
    weights: Narrow, given: tuple[IntArray, Narrow], count: int, masks: Narrow, totals: Narrow
) -> None:
    """Add what activations make of the sums of all filters [K], each read before that, modulo 2^32.

    weights [channels · taps, K].  given: of so many activations where their weights lie, and their
    values.  masks [2, K]: a read is masks[0] ^ (what is held & masks[1]).
    """
    for n in range(count):
        own, value = weights[given[0][n]], given[1][n]
        for k in range(len(totals)):
            product = np.int32(value * own[k])
            read = np.int32((masks[0, k] ^ (totals[k] & masks[1, k])) + product)
            totals[k] = read if product != 0 else totals[k]


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


@inlined
def _behind(words: IntArray, at: Any, pe: Any, row: Any, column: Any) -> Any:
    """The first word from one on that is not of a place."""
    while at < len(words) and (
        words[at, 0] == pe and words[at, 1] == row and words[at, 2] == column
    ):
        at += 1
    return at


@inlined
def _total_past_checks(
    own: IntArray, given: tuple[Any, IntArray], count: Any, word: tuple[Any, Any], code: Code
) -> Any:
    """The same of a word that is read past check bits."""
    (at, values), total = given, np.int64(0)
    for n in range(count):
        product = values[np.uint64(n)] * own[np.uint64(at[np.uint64(n)])]
        if product != 0:
            total = read_coded(total, word, code) + product
    return total


@inlined
def _one_by_one(
    half: Words, stored: IntArray, own: tuple[Any, Any], given: tuple[Any, Any, Any], rules: Rules
) -> None:
    """Add to the words of a place, in all groups of a half; own: the first and the one behind the
    last."""
    (words, zeros, ones, some), (weights, at, values) = half, given
    number, count, room, size, filters, above, code = rules
    for group in range(len(stored)):
        for n in range(own[0], own[1]):
            filter_ = (2 * group + number) * size + words[n, 3]
            if filter_ >= filters:
                break
            word = zeros[n], ones[n]
            if zeros[n] == 0 and ones[n] == -1:
                total = _total(weights[filter_], (at, values), count)
            elif some[n]:
                total = _total_past_checks(weights[filter_], (at, values), count, word, code)
            else:
                total = _total_as_read(weights[filter_], (at, values), count, word, room)
            stored[group, n] = (total << above) >> above


@inlined
def _coded_alone(
    half: Words, stored: IntArray, own: tuple[Any, Any], given: tuple[Any, Any, Any], rules: Rules
) -> None:
    """The same of those words alone that are read past check bits."""
    for n in range(own[0], own[1]):
        if half[3][n]:
            _one_by_one(half, stored, (n, n + 1), given, rules)


@inlined
def _to_masks(half: Words, own: tuple[Any, Any], number: int, size: Any, masks: Narrow) -> None:
    """Masks of the words of a place, in all groups of a half."""
    words, zeros, ones, _ = half
    for n in range(own[0], own[1]):
        for filter_ in range(number * size + words[n, 3], masks.shape[1], 2 * size):
            masks[0, filter_] = np.int32(zeros[n])
            masks[1, filter_] = np.int32(zeros[n] ^ ones[n])


@inlined
def _from_totals(
    half: Words, own: tuple[Any, Any], number: int, rules: tuple[Any, Any], of: tuple[Any, Any]
) -> None:
    """What sums of all filters are of the words of a place, in all groups of a half, but for those
    that are read past check bits."""
    (totals, stored), (size, above) = of, rules
    for group in range(len(stored)):
        for n in range(own[0], own[1]):
            filter_ = (2 * group + number) * size + half[0][n, 3]
            if filter_ < len(totals) and not half[3][n]:
                stored[group, n] = (np.int64(totals[filter_]) << above) >> above


@kernel(
    "(i8.2, i8.1, i8.1, b1.1), (i8.2, i8.1, i8.1, b1.1), (i8.2, i8.2, (int, i8.1, i8.1)), "
    "(i8.3, i8.2, i4.2, i8.1), (i8.2, i8.2, (i8.1, i8.1, i8.1, i8.1, i8.1), (int, i8.1, i8.2)), "
    "(int, int, int, int, int, int, int)"
)
def add_in_order(
    first: Words,
    second: Words,
    sums: tuple[IntArray, IntArray, Code],
    operands: Operands,
    taps: Taps,
    plane: Plane,
) -> None:
    """Add to sums of both halves [groups in them, n] what is added to each, in order; with them
    goes how words are read past check bits.

    Activations of a list come row by row, and so do the taps of a filter, so that a sum's products
    come by channel, phase, and tap.  Groups are in the first half and the second in turns.  Of a
    place with many sums to walk those of all filters are walked side by side.  Weights are those
    of each PE while its sums are walked, and in the end as they were.
    """
    activations, weights, by_tap, used = operands
    firsts_down, firsts_right, edits, grid = taps
    counts, reads = grid[2], np.int64(-1)
    height, width, pitch, size, filters, above, many = plane
    each, most = weights.shape[1] // activations.shape[1], weights.shape[1] + 1
    here, there = np.empty(each, np.int64), np.empty(each, np.int64)
    at, values, room = (
        np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int64),
    )  # fmt: skip
    narrow = np.empty(most, np.int32)
    masks, totals = np.empty((2, filters), np.int32), np.empty(filters, np.int32)
    one, other = 0, 0
    while one < len(first[0]) or other < len(second[0]):
        words, n = first[0], one
        if not _before(first[0], one, second[0], other):
            words, n = second[0], other
        pe, row, column = words[n, 0], words[n, 1], words[n, 2]
        if pe != reads:
            if reads >= 0:
                change_weights(reads, edits, (weights, by_tap, used), True)
            change_weights(pe, edits, (weights, by_tap, used), False)
            reads = pe
        firsts = firsts_down[pe], firsts_right[pe]
        seen = _met((row, column), firsts, counts, (height, width, pitch), (here, there))
        count = _not_zero(activations[pe], (here, there, seen), used, (at, values))
        own = one, _behind(first[0], one, pe, row, column)
        its = other, _behind(second[0], other, pe, row, column)
        given = weights, at, values
        one_rules = 0, count, room, size, filters, above, sums[2]
        other_rules = 1, count, room, size, filters, above, sums[2]
        walked = (own[1] - own[0]) * len(sums[0]) + (its[1] - its[0]) * len(sums[1])
        if many and walked >= many:
            masks[0], masks[1], totals[:] = 0, -1, 0
            _to_masks(first, own, 0, size, masks)
            _to_masks(second, its, 1, size, masks)
            for at_value in range(count):
                narrow[at_value] = values[at_value]
            add_side_by_side(by_tap, (at, narrow), count, masks, totals)
            _from_totals(first, own, 0, (size, above), (totals, sums[0]))
            _from_totals(second, its, 1, (size, above), (totals, sums[1]))
            _coded_alone(first, sums[0], own, given, one_rules)
            _coded_alone(second, sums[1], its, given, other_rules)
        else:
            _one_by_one(first, sums[0], own, given, one_rules)
            _one_by_one(second, sums[1], its, given, other_rules)
        one, other = own[1], its[1]
    if reads >= 0:
        change_weights(reads, edits, (weights, by_tap, used), True)


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
    "add_side_by_side",
]
