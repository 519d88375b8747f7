"""How many cycles the dot products of blocks take, which depends on their zeros; compiled by numba.

A block's outputs are its rows with its columns.  Columns lie side by side in the fields of words
(`archsim.machines.sparsetrain.fields`), and a batch is some of these words, each with all rows.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from archsim.kernels import inlined, kernel
from archsim.machines.sparsetrain.fields import (
    ALIGNED,
    BATCH,
    BITS,
    LANES,
    NUMBER,
    ONES,
    RING,
    ROOM,
    SEGMENTS,
    WINDOW_ROWS,
    Batch,
    Fields,
    Words,
    count_cycles,
    count_pairs,
)
from archsim.machines.sparsetrain.kernels import Outputs, bundled_words
from archsim.machines.sparsetrain.tiling import COLUMN, COLUMNS, GROUP, ROW, ROWS, STEP, STEPS
from archsim.numbers import IntArray

Flags = npt.NDArray[np.bool_]

Found = tuple[IntArray, IntArray, IntArray]
"""Of a block its line of `block_work`; cycles of each PE; room for sums [fields, words]."""

(STEPPED, PRODUCTS, OUTPUTS, TAKEN_ROWS, LONGEST, LEAST) = range(6)
"""Of a block: cycles in which PEs multiply, products, outputs, rows of all of these, the cycles of
the longest PE; and the cycles in which PEs would multiply if the window had no bounds."""


@inlined
def _side_by_side(bundles: Words, shape: IntArray) -> Words:
    """The column vectors of a block, as many in a word as it has fields: [steps, words]."""
    found = np.zeros((bundles.shape[1], -(-len(bundles) // shape[NUMBER])), np.uint64)
    for vector in range(len(bundles)):
        word, shift = vector // shape[NUMBER], np.uint64(vector % shape[NUMBER] * shape[BITS])
        for step in range(bundles.shape[1]):
            found[step, word] |= bundles[vector, step] << shift
    return found


@inlined
def _asked(
    flags: Flags, word: int, sizes: tuple[int, int, int], shape: IntArray, into: tuple[Words, Words]
) -> int:
    """Of a word of columns with each row of a block: the lanes whose output is needed, and all of
    fields with one; how many outputs are needed.

    flags: of all of the block's outputs [rows, columns], or of none where all are.
    sizes: the block's rows and columns, PEs.
    """
    rows, columns, pes = sizes
    wanted, exists = into
    full, count = np.uint64(0xFFFFFFFFFFFFFFFF), 0
    segment, field = full >> np.uint64(64 - shape[RING]), full >> np.uint64(64 - shape[LANES])
    wanted[:] = 0
    exists[:] = 0
    for number in range(shape[NUMBER]):
        vector, first = word * shape[NUMBER] + number, number * shape[BITS]
        for own in range(shape[SEGMENTS]):
            place = vector // pes * pes * shape[SEGMENTS] + vector % pes + own * pes
            if place >= columns:
                continue
            lanes = segment << np.uint64(first + own * shape[RING])
            whole = field << np.uint64(first)
            for row in range(rows):
                asked = not flags.size or flags[row, place]
                mask = full * np.uint64(asked)
                wanted[row] |= lanes & mask
                exists[row] |= whole & mask
                count += asked
    return count


@inlined
def _take_in(step_words: tuple[Words, Words], own: IntArray, wanted: Words, batch: Batch) -> None:
    """The pairs of a batch.  step_words: of a block's rows and columns [steps, rows], [steps,
    words].  own: which words of columns."""
    rows, columns = step_words
    pairs, resting, _, used = batch
    steps, many = rows.shape
    for step in range(steps):
        a = rows[step]
        for word in range(len(own)):
            b, place = columns[step, own[word]], slice(word * many, (word + 1) * many)
            into, asked = pairs[step, place], wanted[place]
            for row in range(many):
                into[row] = a[row] & b & asked[row]
        pairs[step, len(own) * many :] = 0
    pairs[steps:] = 0
    resting[:] = 0
    used[:] = 0


@inlined
def _count(
    sizes: tuple[int, int], own: IntArray, batch: Batch, fields: Fields, found: Found
) -> None:
    """What the dot products of a batch take, into a block's line and the ends of PEs.

    sizes: steps and rows.  own: which words of columns.
    """
    line, ends, sums = found
    shape, exists, count = fields[2], batch[2], sizes[1] * len(own)
    lanes, one = shape[LANES], np.uint64(1)
    sums[:] = 0
    count_pairs(sizes[0], count, batch, fields, sums)
    count_cycles(sizes, own, batch, fields, ends)
    shift = 0
    while 1 << shift < lanes:
        shift += 1
    for field in range(shape[NUMBER]):
        products, by = sums[field], np.uint64(field * shape[BITS])
        outputs = least = total = 0
        for at in range(count):
            there = np.int64((exists[at] >> by) & one)
            outputs += there
            total += products[at]
            least += max((products[at] + lanes - 1) >> shift, 1) * there
        line[PRODUCTS] += total
        line[TAKEN_ROWS] += outputs * sizes[0]
        line[LEAST] += least


@inlined
def _room(blocks: IntArray, shape: IntArray) -> Batch:
    """For the largest batch of any block."""
    longest, width = shape[WINDOW_ROWS], 1
    for number in range(len(blocks)):
        longest = max(longest, blocks[number, STEPS] + shape[WINDOW_ROWS])
        width = max(width, blocks[number, ROWS])
    width = -(-max(width, min(BATCH, ROOM // longest)) // ALIGNED) * ALIGNED
    return (
        np.zeros((longest, width), np.uint64),
        np.zeros((shape[WINDOW_ROWS], width), np.uint64),
        np.zeros(width, np.uint64),
        np.zeros((3, width), np.uint64),
    )


@inlined
def _rows_of(row_words: Words, block: IntArray, ones: np.uint64) -> Words:
    """The rows of a block [steps, rows], in every field.  row_words: of its group."""
    found = np.zeros((block[STEPS], block[ROWS]), np.uint64)
    for row in range(block[ROWS]):
        for step in range(block[STEPS]):
            found[step, row] = row_words[block[ROW] + row, block[STEP] + step] * ones
    return found


@kernel("u8.3, u8.3, (b1.3, i8.3, int), i8.2, (i8.2, u8.2, i8.1, u8.1), int")
def block_work(
    row_words: Words,
    column_words: Words,
    outputs: Outputs,
    blocks: IntArray,
    fields: Fields,
    pes: int,
) -> IntArray:
    """What PEs do for each block [blocks, 6] (`STEPPED` and the following).

    row_words, column_words: [groups, vectors, steps]; with segments, of so many lanes, those of
        rows once in each.
    fields: `archsim.machines.sparsetrain.fields.fields_of`.  pes: a power of two.
    """
    needed, order, tile_rows = outputs
    shape = fields[2]
    found = np.zeros((len(blocks), 6), np.int64)
    sizes = np.array([pes, shape[SEGMENTS], shape[RING]])
    room, rests, exists, used = _room(blocks, shape)
    width = len(exists)
    wanted, sums = np.zeros(width, np.uint64), np.zeros((shape[NUMBER], width), np.int64)
    ends, own = np.zeros(pes, np.int64), np.zeros(width, np.int64)
    for number in range(len(blocks)):
        block = blocks[number]
        group, many, steps = block[GROUP], block[ROWS], block[STEPS]
        batch = (room[: steps + shape[WINDOW_ROWS]], rests, exists, used)
        ends[:] = 0
        dealt = order[group, block[ROW] // tile_rows]
        columns = _side_by_side(bundled_words(column_words[group], dealt, block, sizes), shape)
        rows = _rows_of(row_words[group], block, fields[3][ONES])
        flags = np.zeros((0, 0), np.bool_)
        if needed.size:
            top, left = block[ROW], block[COLUMN]
            flags = needed[group, top : top + many, left : left + block[COLUMNS]].copy()
        count = 0
        for word in range(columns.shape[1]):
            place, given = slice(count * many, (count + 1) * many), (many, block[COLUMNS], pes)
            asked = _asked(flags, word, given, shape, (wanted[place], exists[place]))
            if asked:
                found[number, OUTPUTS] += asked
                own[count] = word
                count += 1
            if count and (count == width // many or word == columns.shape[1] - 1):
                _take_in((rows, columns), own[:count], wanted, batch)
                line = (found[number], ends, sums)
                _count((steps, many), own[:count], batch, fields, line)
                count = 0
        for pe in range(pes):
            found[number, STEPPED] += ends[pe]
            found[number, LONGEST] = max(found[number, LONGEST], ends[pe])
    return found


__all__ = [
    "LEAST",
    "LONGEST",
    "OUTPUTS",
    "PRODUCTS",
    "STEPPED",
    "TAKEN_ROWS",
    "block_work",
]
