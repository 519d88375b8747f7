"""What lanes choose in a cycle, and how columns lie in PEs; compiled by numba.

A row of the window is a word with a bit for each lane whose two operands are not zero.  The places
that lanes may choose are gone through in order, all lanes at once: for one place no two lanes want
the same operands, so an order of lanes does not matter.

Where lanes are split into segments, a word holds a step of several dot products of one row, a
segment each, and lanes choose in their own segment: all begin and end together.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from archsim.kernels import inlined
from archsim.machines.sparsetrain.design import SparseTrain
from archsim.machines.sparsetrain.tiling import COLUMN, COLUMNS, STEP, STEPS
from archsim.numbers import IntArray

Words = npt.NDArray[np.uint64]
Flags = npt.NDArray[np.bool_]

Window = tuple[IntArray, IntArray, Words, Words, int, int, int]
"""`window_of`: of each place the rows ahead and the lanes aside (from 0), the lanes whose place is
in the segment above it, and those from which it is reached by going back; rows of the window;
lanes; segments."""

Outputs = tuple[Flags, IntArray, int]
"""Which are needed, [groups, rows, columns as they are dealt], of no elements where all are; which
column is dealt to each place, [groups, tiles of rows, columns]; rows of a tile."""


def window_of(design: SparseTrain, segments: int) -> Window:
    """A design's window as kernels take it, its lanes in so many segments."""
    ring = design.lanes // segments
    ahead = np.array([place.ahead for place in design.window], np.int64)
    aside = np.array([place.aside % ring for place in design.window], np.int64)
    on, back = (
        np.array([_lowest(int(one), ring, segments) for one in lanes], np.uint64)
        for lanes in (ring - aside, aside)
    )
    return ahead, aside, on, back, design.window_rows, design.lanes, segments


def _lowest(lanes: int, ring: int, segments: int) -> int:
    """The lowest lanes of each segment."""
    return sum(((1 << lanes) - 1) << (at * ring) for at in range(segments))


@inlined
def _turned(word: np.uint64, by: int, ring: int, lanes: tuple[np.uint64, np.uint64]) -> np.uint64:
    """Lane i of the answer is lane i + by of the word, lanes of a segment in a ring.

    lanes: those i for which i + by is in the segment too, and the others.
    """
    if by == 0:
        return word
    return ((word >> np.uint64(by)) & lanes[0]) | ((word << np.uint64(ring - by)) & lanes[1])


@inlined
def ones(word: np.uint64) -> int:
    """How many bits are 1."""
    x = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return int((x * np.uint64(0x0101010101010101)) >> np.uint64(56))


@inlined
def choose(left: Words, window: Window) -> int:
    """One cycle: takes out of `left` what lanes choose; how many rows are done then."""
    ahead, aside, on, back, rows, lanes, segments = window
    ring = lanes // segments
    full = np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(64 - lanes)
    free = full
    for place in range(len(ahead)):
        row = ahead[place]
        word = np.uint64(left[row])
        if word == 0:
            continue
        chosen = _turned(word, aside[place], ring, (on[place], full ^ on[place])) & free
        free ^= chosen
        by = ring - aside[place] if aside[place] else 0
        left[row] = word ^ _turned(chosen, by, ring, (back[place], full ^ back[place]))
        if free == 0:
            break
    done = 1
    while done < rows and left[done] == 0:
        done += 1
    return done


@inlined
def bundled_words(column_words: Words, order: IntArray, block: IntArray, sizes: IntArray) -> Words:
    """The column vectors of a block as PEs see them: with segments, as many columns a vector.

    order: which column is dealt to each place.  sizes: PEs, segments, lanes of one.
    """
    pes, segments, ring = sizes[0], sizes[1], sizes[2]
    first, steps, columns = block[STEP], block[STEPS], block[COLUMNS]
    apart = pes * segments
    found = np.zeros((columns // apart * pes + min(columns % apart, pes), steps), np.uint64)
    for at in range(columns):
        column = order[block[COLUMN] + at]
        vector, shift = at // apart * pes + at % pes, np.uint64(at // pes % segments * ring)
        for step in range(steps):
            found[vector, step] |= column_words[column, first + step] << shift
    return found


__all__ = ["Outputs", "Window", "Words", "bundled_words", "choose", "ones", "window_of"]
