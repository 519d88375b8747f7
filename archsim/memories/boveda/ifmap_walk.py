"""The walk over the rows of a compressed ifmap, compiled by numba: what every address reads.

Places, tags and banks: `archsim.memories.boveda.places`.  A tile begins with nothing held.
"""

from __future__ import annotations

import numpy as np

from archsim.codecs.boveda_kernels import wide
from archsim.kernels import inlined, kernel
from archsim.memories.boveda.places import Narrow, Places
from archsim.numbers import IntArray
from archsim.tiled import commands as cmd

Shape = tuple[int, int, int]
"""log2 of the lanes of a word, of the lanes of a group, of the words of a unit."""

Held = tuple[Narrow, Narrow, IntArray, IntArray]
"""Tags of rows [2, pieces] and the first rows read, of entries [2] and the first ones.

A piece is as many neighbouring lanes as are always read together (`piece_bits`): at most a group.
"""

Banks = tuple[int, int, int, int]
"""Tags of an even and an odd bank, and the first rows, or entries, read of each."""

AT_ONCE = 512
"""Pixels of which the reads are listed before they are looked at."""


@kernel
def piece_bits(row: IntArray, group: int, chunk: int) -> int:
    """log2 of the lanes of a piece: all reads of the tile begin and end at multiples of it."""
    steps = group | row[cmd.ELEMENT_START] | row[cmd.PITCH] | row[cmd.RUN_LENGTH]
    if row[cmd.RUN_LENGTH] > chunk:
        steps |= chunk
    if row[cmd.RUNS] > 1:
        steps |= row[cmd.RUN_STEP]
    if row[cmd.PIXEL_COLUMNS] > 1:
        steps |= row[cmd.COLUMN_STEP]
    bits = 0
    while steps & 1 == 0:
        steps, bits = steps >> 1, bits + 1
    return bits


@inlined
def _pixel_row(row: IntArray, at: int, stop: int, tap: int) -> tuple[int, int, int]:
    """Pixels from `at` on that lie in one row, before `stop`.

    The column of the first, how many, and the element of a tile with which the tap's row of the
    ifmap begins: −1 in the padding.
    """
    columns = row[cmd.PIXEL_COLUMNS]
    line, across = divmod(at, columns)
    image, down = divmod(line, row[cmd.PIXEL_ROWS])
    at_row = row[cmd.ROW_START] + down * row[cmd.ROW_STRIDE] + tap * row[cmd.TAP_ROWS]
    inside = (at_row >= 0) & (at_row < row[cmd.HEIGHT])
    base = image * row[cmd.IMAGE_STEP] + at_row * row[cmd.PITCH]
    return across, min(columns - across, stop - at), base if inside else -1


@kernel
def _fold_reads(
    row: IntArray, pixels: tuple[int, int], fold: tuple[int, int, int], reads: IntArray
) -> int:
    """The elements that a fold reads of every pixel from pixels[0] to before pixels[1].

    fold: tap, first element of the chunk in the window's row, and how many.  reads [pixels, 2]:
    first element, and the one behind the last; what lies in the padding is not read.  Returns how
    many.
    """
    tap, offset, elements = fold
    pitch, step = row[cmd.PITCH], row[cmd.COLUMN_STEP]
    (at, last), count = pixels, 0
    while at < last:
        across, pixels_here, base = _pixel_row(row, at, last, tap)
        at += pixels_here
        inside = row[cmd.ELEMENT_START] + across * step + offset
        for _ in range(pixels_here if base >= 0 else 0):
            begin, end = max(inside, 0), min(inside + elements, pitch)
            reads[count, 0], reads[count, 1] = base + begin, base + end
            count += begin < end
            inside += step
    return count


@inlined
def _hold(tag: int, first: int, wanted: bool, row: int) -> tuple[int, int, int]:
    """A bank's tag and first row behind a read of a row, if it is wanted; 1 if it is not held.

    Without branches: whether a word ends in a second row, and what is held, is not to be guessed.
    """
    read = 1 if wanted & (tag != row) else 0
    first = row if wanted & (first < 0) else first
    return row if wanted else tag, first, read


@inlined
def _read_two(banks: Banks, row: int, spills: bool) -> tuple[int, Banks]:
    """A row is wanted, and the next one if it spills: how many are read, and what is held then.

    row: −1 where there is none, which does not spill.
    """
    even, odd, first_even, first_odd = banks
    is_odd = row & 1
    even, first_even, read = _hold(even, first_even, (is_odd == 0) | spills, row + is_odd)
    odd_wanted = ((is_odd == 1) & (row >= 0)) | spills
    odd, first_odd, other = _hold(odd, first_odd, odd_wanted, row + 1 - is_odd)
    return read + other, (even, odd, first_even, first_odd)


@kernel
def _read_entries(held: Held, reads: IntArray, word_bits: int, unit_bits: int) -> int:
    """Entries read for the words of some reads.  word_bits: log2 of the elements of a word."""
    _, _, tags, firsts = held
    banks, count = (tags[0], tags[1], firsts[0], firsts[1]), 0
    for at in range(len(reads)):
        first_word, last_word = reads[at, 0] >> word_bits, (reads[at, 1] - 1) >> word_bits
        for word in range(first_word, last_word + 1):
            read, banks = _read_two(banks, word >> unit_bits, False)
            count += read
    tags[0], tags[1], firsts[0], firsts[1] = banks
    return count


@kernel
def _read_column(
    held: Held, places: Narrow, reads: IntArray, shape: tuple[int, int], column: int
) -> int:
    """Rows that a group column reads where reads begin and end with groups.

    places: of the column's words.  shape: log2 of the columns, of the lanes of a group.
    """
    tags, firsts, _, _ = held
    low, high = wide(tags[0, column]), wide(tags[1, column])
    banks = (low, high, wide(firsts[0, column]), wide(firsts[1, column]))
    column_bits, group_bits = shape
    count, mask = 0, (1 << column_bits) - 1
    for at in range(len(reads)):
        begin, end = reads[at, 0] >> group_bits, reads[at, 1] >> group_bits
        group = begin + ((column - begin) & mask)
        if group < end:
            place = wide(places[group >> column_bits])
            read, banks = _read_two(banks, place >> 1, place & 1 == 1)
            count += read
    tags[0, column], tags[1, column], firsts[0, column], firsts[1, column] = banks
    return count


@kernel
def _read_pieces(
    held: Held, placed: tuple[Narrow, int], reads: IntArray, shape: tuple[int, int, int]
) -> int:
    """Rows that all pieces read.

    placed: of all words, and the tile's first word.  shape: log2 of the pieces of a word, of the
    pieces of a group, of the lanes of a piece.
    """
    tags, firsts, _, _ = held
    places, origin = placed
    word_bits, group_bits, bits = shape
    count, mask, group = 0, (1 << word_bits) - 1, (1 << group_bits) - 1
    for at in range(len(reads)):
        piece, end = reads[at, 0] >> bits, reads[at, 1] >> bits
        while piece < end:
            lane = piece & mask
            last = min((lane | group) + 1, lane + end - piece)
            place = places[lane >> group_bits, origin + (piece >> word_bits)]
            piece += last - lane
            for spilt in range((place >= 0) + (place & 1)):
                row = np.int32((place >> 1) + spilt)
                bank, one = row & 1, lane
                while True:
                    count += tags[bank, one] != row
                    first = firsts[bank, one]
                    firsts[bank, one] = row if first < 0 else first
                    tags[bank, one] = row
                    one += 1
                    if one >= last:
                        break
    return count


@kernel
def _read_rows(
    held: Held, placed: tuple[Narrow, int], reads: IntArray, shape: Shape, bits: int
) -> int:
    """Rows of pieces that some reads take.

    placed: of all words, and the tile's first word.  bits: log2 of the lanes of a piece.
    """
    word_bits, group_bits, _ = shape
    if bits < group_bits:
        pieces = (word_bits - bits, group_bits - bits, bits)
        return _read_pieces(held, placed, reads, pieces)
    places, origin = placed
    columns, count = (word_bits - group_bits, group_bits), 0
    for column in range(len(places)):
        count += _read_column(held, places[column, origin:], reads, columns, column)
    return count


@kernel
def _walk_tile(
    held: Held, row: IntArray, placed: tuple[Narrow, int], shape: Shape, loops: tuple[int, int]
) -> tuple[int, int]:
    """for block: for tap: for run: for chunk: for pixel; loops: pixels of a block, a chunk.

    Reads of rows, of all lanes, and of entries.
    """
    (block, chunk), rows, entries = loops, 0, 0
    reads = np.empty((AT_ONCE, 2), np.int64)
    bits = piece_bits(row, 1 << shape[1], chunk)
    for start in range(0, row[cmd.PIXELS], block):
        stop = min(start + block, row[cmd.PIXELS])
        for tap in range(row[cmd.TAPS]):
            for run in range(row[cmd.RUNS]):
                for at in range(0, row[cmd.RUN_LENGTH], chunk):
                    elements = min(chunk, row[cmd.RUN_LENGTH] - at)
                    fold = (tap, run * row[cmd.RUN_STEP] + at, elements)
                    for first in range(start, stop, AT_ONCE):
                        pixels = (first, min(first + AT_ONCE, stop))
                        found = reads[: _fold_reads(row, pixels, fold, reads)]
                        entries += _read_entries(held, found, shape[0], shape[2])
                        rows += _read_rows(held, placed, found, shape, bits)
    return rows << bits, entries


@kernel
def _read_words(
    words: tuple[int, int, int], places: Narrow, unit_bits: int, held: tuple[Banks, Banks]
) -> tuple[int, int, tuple[Banks, Banks]]:
    """Rows and entries read for words[0], words[0] + words[1], … before words[2], and what is held.

    Of words of one group.  held: of rows, of entries.
    """
    rows, entries = 0, 0
    row_banks, entry_banks = held
    for word in range(words[0], words[2], words[1]):
        read, entry_banks = _read_two(entry_banks, word >> unit_bits, False)
        entries += read
        place = wide(places[word])
        read, row_banks = _read_two(row_banks, place >> 1, place & 1 == 1)
        rows += read
    return rows, entries, (row_banks, entry_banks)


@inlined
def _kept(banks: Banks) -> int:
    """Banks that hold at the end what was read of them first."""
    even, odd, first_even, first_odd = banks
    return ((even == first_even) & (even >= 0)) + ((odd == first_odd) & (odd >= 0))


@kernel
def _walk_words(
    row: IntArray, places: Narrow, shape: Shape, loops: tuple[int, int], found: IntArray
) -> None:
    """As `_walk_tile`, if words are of one group and every read is of a whole word.

    places: of the tile's words.  found [4]: as of `walk_ifmap`, of the words' rows.  Then the words
    that the pixels of a row read lie at equal distances.
    """
    word_bits, _, unit_bits = shape
    (block, chunk), rows, entries = loops, 0, 0
    step, end = row[cmd.COLUMN_STEP] >> word_bits, row[cmd.PITCH] >> word_bits
    nothing = (-1, -1, -1, -1)
    held = (nothing, nothing)
    for start in range(0, row[cmd.PIXELS], block):
        stop = min(start + block, row[cmd.PIXELS])
        for tap in range(row[cmd.TAPS]):
            for run in range(row[cmd.RUNS]):
                for first in range(0, row[cmd.RUN_LENGTH], chunk):
                    offset = row[cmd.ELEMENT_START] + run * row[cmd.RUN_STEP] + first
                    at, word = start, offset >> word_bits
                    while at < stop:
                        across, pixels, base = _pixel_row(row, at, stop, tap)
                        at += pixels
                        low, high = word + across * step, word + (across + pixels - 1) * step + 1
                        if base >= 0 and low < end and high > 0:
                            if low < 0:
                                low += -(low // step) * step
                            origin = base >> word_bits
                            words = (origin + low, max(step, 1), origin + min(high, end))
                            counts = _read_words(words, places, unit_bits, held)
                            rows, entries, held = rows + counts[0], entries + counts[1], counts[2]
    found[0], found[1] = rows, rows - _kept(held[0])
    found[2], found[3] = entries, entries - _kept(held[1])


@kernel("i8.2, (i8.1, i4.2), (int, int, int), (int, int), i8.2")
def walk_ifmap(
    rows: IntArray, placed: Places, shape: Shape, loops: tuple[int, int], found: IntArray
) -> None:
    """Reads of each tile [tiles, 4]: rows, rows when walked again, entries, entries again.

    rows: a command of each tile.  A second walk finds in every bank what the first one left: it
    reads one row less wherever that is what it begins with.
    """
    starts, places = placed
    tags, first = np.empty((2, 1 << shape[0]), np.int32), np.empty((2, 1 << shape[0]), np.int32)
    units, first_units = np.empty(2, np.int64), np.empty(2, np.int64)
    held = (tags, first, units, first_units)
    for tile in range(len(rows)):
        bits = piece_bits(rows[tile], 1 << shape[1], loops[1])
        if bits == shape[0]:
            _walk_words(rows[tile], places[0, starts[tile] :], shape, loops, found[tile])
            found[tile, :2] <<= bits
            continue
        tags[:], first[:], units[:], first_units[:] = -1, -1, -1, -1
        counts = _walk_tile(held, rows[tile], (places, starts[tile]), shape, loops)
        kept = ((tags == first) & (first >= 0)).sum() << bits
        found[tile, 0], found[tile, 1] = counts[0], counts[0] - kept
        kept = ((units == first_units) & (units >= 0)).sum()
        found[tile, 2], found[tile, 3] = counts[1], counts[1] - kept


__all__ = ["piece_bits", "walk_ifmap"]
