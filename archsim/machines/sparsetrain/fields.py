"""The windows of many dot products at once, each in a field of a word; compiled by numba.

A word of 64 bits holds a step of several dot products side by side, and what is done to one word
is done to a few hundred of them, one behind the other: LLVM makes vectors of that.  Time goes by
steps, not by cycles: at a step those dot products take a cycle whose window begins there, and the
others, which left that step behind as an empty one, rest.  So none needs a place of its own in its
operands.

Free lanes are turned from one place of the window to the next, and pairs never are: at a place
with `aside`, lane i takes the pair at i + aside if that bit of the free lanes, turned by so many,
is 1.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from archsim.kernels import inlined
from archsim.machines.sparsetrain.design import SparseTrain
from archsim.numbers import IntArray

Words = npt.NDArray[np.uint64]

COUNTER_BITS = 16
"""A field is not narrower, so that it can count this many steps."""

MOST_STEPS = (1 << COUNTER_BITS) - 1
"""That are counted before counters are emptied."""

BATCH = 256
"""Words that are handled together, or a block's rows if these are more: what is known of them fits
the first cache."""

ROOM = 1 << 20
"""Of a batch, words times steps at most, if it is not one word of columns with all rows: blocks of
many thousand steps are handled in smaller batches."""

ALIGNED = 16
"""Of words as many at a time: so that a loop has no rest that is not a vector."""

Fields = tuple[IntArray, Words, IntArray, Words]
"""`fields_of`: of each place [places, 2] the rows ahead, and how far free lanes are turned from the
place before; [places, 2] where lanes then come from below, and where from above; `BITS` and the
following; masks (`ONES` and the following)."""

(BITS, NUMBER, RING, WINDOW_ROWS, LANES, SEGMENTS) = range(6)
"""Bits of a field, fields of a word; lanes of a segment, in a ring; rows of the window; lanes of a
PE; its segments."""

(ONES, HIGHEST) = range(2)
"""In each field the lowest bit; the highest bit."""

Batch = tuple[Words, Words, Words, Words]
"""Of some words of a block's columns, each with all of its rows, one behind the other: pairs of
which none is zero [steps + rows of the window, words]; which dot products rest in a step, by its
number modulo the rows of the window [rows, words]; lanes of the fields that are in use [words];
what is used meanwhile [3, words]."""


def fields_of(design: SparseTrain, segments: int) -> Fields:
    """A design's window as this module takes it, its lanes in so many segments."""
    lanes, ring = design.lanes, design.lanes // segments
    bits = max(lanes, COUNTER_BITS)
    number = 64 // bits
    ones = sum(1 << (at * bits) for at in range(number))
    asides = [place.aside % ring for place in design.window]
    turns = [(aside - before) % ring for before, aside in zip([0, *asides], asides, strict=False)]
    everywhere = ones * sum(1 << (at * ring) for at in range(segments))
    below = [everywhere * ((1 << ring) - (1 << turn)) for turn in turns]
    above = [everywhere * ((1 << turn) - 1) for turn in turns]
    ahead = [place.ahead for place in design.window]
    return (
        np.array([ahead, turns], np.int64).T.copy(),
        np.array([below, above], np.uint64).T.copy(),
        np.array([bits, number, ring, design.window_rows, lanes, segments], np.int64),
        np.array([ones, ones << (bits - 1)], np.uint64),
    )


@inlined
def empty(counters: Words, own: IntArray, rows: int, shape: IntArray, ends: IntArray) -> None:
    """Adds the fields of a batch's words to the PEs that they are of, and makes them 0.

    own: which word of the block's columns each is; `rows` of each.
    """
    most = np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(64 - shape[BITS])
    for word in range(len(own)):
        of_word = counters[word * rows : (word + 1) * rows]
        for field in range(shape[NUMBER]):
            total, by = 0, np.uint64(field * shape[BITS])
            for at in range(rows):
                total += np.int64((of_word[at] >> by) & most)
            ends[(own[word] * shape[NUMBER] + field) & (len(ends) - 1)] += total
        for at in range(rows):
            of_word[at] = 0


@inlined
def count_pairs(steps: int, count: int, batch: Batch, fields: Fields, into: IntArray) -> None:
    """Adds to each sum [fields, words] the pairs of its dot product."""
    pairs, _, _, used = batch
    ones, shape, padded = used[0], fields[2], -(-count // ALIGNED) * ALIGNED
    apart = shape[BITS] // COUNTER_BITS
    for step in range(steps):
        row = pairs[step]
        for at in range(padded):
            x = row[at]
            x -= (x >> np.uint64(1)) & np.uint64(0x5555555555555555)
            x = (x & np.uint64(0x3333333333333333)) + (
                (x >> np.uint64(2)) & np.uint64(0x3333333333333333)
            )
            ones[at] += (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
        if step % 31 != 30 and step != steps - 1:  # of a byte at most 8 a step
            continue
        for at in range(padded):
            x = ones[at]
            ones[at] = (x & np.uint64(0x00FF00FF00FF00FF)) + (
                (x >> np.uint64(8)) & np.uint64(0x00FF00FF00FF00FF)
            )
        for quarter in range(4):
            own, by = into[quarter // apart], np.uint64(16 * quarter)
            for at in range(padded):
                own[at] += np.int64((ones[at] >> by) & np.uint64(0xFFFF))
        for at in range(padded):
            ones[at] = 0


@inlined
def _take(
    row: Words, free: Words, padded: int, turn: tuple[int, int], lanes: tuple[np.uint64, np.uint64]
) -> None:
    """At one place: pairs of `row` that are taken become 0, and so do the lanes that take them.

    turn: by how many lanes the free ones are turned first; the lanes of a ring.
    lanes: those that then have what came from below, and what came from above.
    """
    if turn[0]:
        up, down = np.uint64(turn[0]), np.uint64(turn[1] - turn[0])
        below, above = lanes
        for at in range(padded):
            has, pairs = free[at], row[at]
            has = ((has << up) & below) | ((has >> down) & above)
            free[at] = has & ~pairs
            row[at] = pairs & ~has
        return
    for at in range(padded):
        has, pairs = free[at], row[at]
        free[at] = has & ~pairs
        row[at] = pairs & ~has


@inlined
def count_cycles(
    sizes: tuple[int, int], own: IntArray, batch: Batch, fields: Fields, ends: IntArray
) -> None:
    """Adds to each PE the cycles of its dot products, whose pairs are used up.

    sizes: steps and rows.
    own: which word of the block's columns each is.
    """
    steps, outputs = sizes
    pairs, resting, exists, used = batch
    places, lanes, shape, masks = fields
    rows, padded = shape[WINDOW_ROWS], -(-outputs * len(own) // ALIGNED) * ALIGNED
    counters, busy, free = used[0], used[1], used[2]
    ones, highest = masks[ONES], masks[HIGHEST]
    below, top = highest - ones, np.uint64(shape[BITS] - 1)
    for step in range(steps):
        rest, row = resting[step % rows], pairs[step]
        for at in range(padded):
            now = exists[at] & ~rest[at]
            busy[at] = now
            free[at] = now & ~row[at]
            counters[at] += now & ones
            rest[at] = 0
        for place in range(1, len(places)):  # the first is a lane's own, which is always taken
            turn = (places[place, 1], shape[RING])
            row = pairs[step + places[place, 0]]
            _take(row, free, padded, turn, (lanes[place, 0], lanes[place, 1]))
        for ahead in range(1, rows):
            row, rest = pairs[step + ahead], resting[(step + ahead) % rows]
            for at in range(padded):
                x = row[at]
                full = (((x & below) + below) | x) & highest
                now = busy[at] & ~((full - (full >> top)) | full)
                busy[at] = now
                rest[at] |= now
        if step % MOST_STEPS == MOST_STEPS - 1:
            empty(counters, own, outputs, shape, ends)
    empty(counters, own, outputs, shape, ends)


__all__ = [
    "ALIGNED",
    "BATCH",
    "BITS",
    "LANES",
    "NUMBER",
    "ONES",
    "RING",
    "ROOM",
    "SEGMENTS",
    "WINDOW_ROWS",
    "Batch",
    "Fields",
    "count_cycles",
    "count_pairs",
    "fields_of",
]
