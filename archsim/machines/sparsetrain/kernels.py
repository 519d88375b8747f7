"""How many cycles dot products take, which depends on their zeros; compiled by numba.

A row of the window is a word with a bit for each lane whose two operands are not zero.  The places
that lanes may choose are gone through in order, all lanes at once: for one place no two lanes want
the same operands, so an order of lanes does not matter.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from archsim.kernels import inlined, kernel
from archsim.machines.sparsetrain.tiling import COLUMN, COLUMNS, GROUP, ROW, ROWS, STEP, STEPS
from archsim.numbers import IntArray

Words = npt.NDArray[np.uint64]
Flags = npt.NDArray[np.bool_]

Window = tuple[IntArray, IntArray, int, int]
"""Of each place the rows ahead and the lanes aside (from 0); rows of the window; lanes."""

Outputs = tuple[Flags, IntArray, int]
"""Which are needed, [groups, rows, columns as they are dealt], of no elements where all are; which
column is dealt to each place, [groups, tiles of rows, columns]; rows of a tile."""

(STEPPED, PRODUCTS, OUTPUTS, TAKEN_ROWS, LONGEST, LEAST) = range(6)
"""Of a block: cycles in which PEs multiply, products, outputs, rows of all of these, the cycles of
the longest PE; and the cycles in which PEs would multiply if the window had no bounds."""


@inlined
def _turned(word: np.uint64, by: int, lanes: int) -> np.uint64:
    """Lane i of the answer is lane i + by of the word, lanes in a ring."""
    if by == 0:
        return word
    full = np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(64 - lanes)
    return ((word >> np.uint64(by)) | (word << np.uint64(lanes - by))) & full


@inlined
def _ones(word: np.uint64) -> int:
    """How many bits are 1."""
    x = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return int((x * np.uint64(0x0101010101010101)) >> np.uint64(56))


@inlined
def _choose(left: Words, window: Window) -> int:
    """One cycle: takes out of `left` what lanes choose; how many rows are done then."""
    ahead, aside, rows, lanes = window
    free = np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(64 - lanes)
    for place in range(len(ahead)):
        row = ahead[place]
        word = np.uint64(left[row])
        if word == 0:
            continue
        chosen = _turned(word, aside[place], lanes) & free
        free ^= chosen
        back = lanes - aside[place] if aside[place] else 0
        left[row] = word ^ _turned(chosen, back, lanes)
        if free == 0:
            break
    done = 1
    while done < rows and left[done] == 0:
        done += 1
    return done


@inlined
def _dot(a: Words, b: Words, left: Words, window: Window) -> tuple[int, int]:
    """A dot product of the rows of two vectors: cycles, and pairs of which none is zero."""
    rows, steps = window[2], len(a)
    for row in range(rows):
        left[row] = a[row] & b[row] if row < steps else np.uint64(0)
    pairs = 0
    for step in range(steps):
        pairs += _ones(a[step] & b[step])
    if rows == 1:
        return steps, pairs
    head, cycles = 0, 0
    while head < steps:
        done = _choose(left, window)
        head += done
        cycles += 1
        for row in range(rows):
            come = head + row
            if row + done < rows:
                left[row] = left[row + done]
            else:
                left[row] = a[come] & b[come] if come < steps else np.uint64(0)
    return cycles, pairs


@kernel("u8.3, u8.3, (b1.3, i8.3, int), i8.2, (i8.1, i8.1, int, int), int")
def block_work(
    row_words: Words,
    column_words: Words,
    outputs: Outputs,
    blocks: IntArray,
    window: Window,
    pes: int,
) -> IntArray:
    """What PEs do for each block [blocks, 6] (`STEPPED` and the following).

    row_words, column_words: [groups, vectors, steps].
    """
    needed, order, tile_rows = outputs
    found = np.zeros((len(blocks), 6), np.int64)
    left = np.zeros(window[2], np.uint64)
    ends = np.zeros(pes, np.int64)
    for number in range(len(blocks)):
        block = blocks[number]
        group, first, steps = block[GROUP], block[STEP], block[STEPS]
        for pe in range(pes):
            ends[pe] = 0
        for row in range(block[ROW], block[ROW] + block[ROWS]):
            a = row_words[group, row, first : first + steps]
            for at in range(block[COLUMNS]):
                column = block[COLUMN] + at
                if needed.size:
                    if not needed[group, row, column]:
                        continue
                    column = order[group, row // tile_rows, column]
                b = column_words[group, column, first : first + steps]
                cycles, pairs = _dot(a, b, left, window)
                ends[at % pes] += cycles
                found[number, STEPPED] += cycles
                found[number, PRODUCTS] += pairs
                found[number, OUTPUTS] += 1
                found[number, TAKEN_ROWS] += steps
                found[number, LEAST] += max((pairs + window[3] - 1) // window[3], 1)
        for pe in range(pes):
            found[number, LONGEST] = max(found[number, LONGEST], ends[pe])
    return found


__all__ = [
    "LEAST",
    "LONGEST",
    "OUTPUTS",
    "PRODUCTS",
    "STEPPED",
    "TAKEN_ROWS",
    "Window",
    "block_work",
]
