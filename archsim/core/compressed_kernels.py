"""The walks over the rows of compressed memories, compiled by numba.

A word's place in a group column is one number: 2 · row + spill, spill if it ends in row + 1.  Row r
lies in the even or the odd bank, r mod 2, and so does the directory's entry of unit u of an ifmap.
A tag names the row that a bank's output holds, −1 for none: a tile begins with none
(`rtl.core.held_bank`).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from archsim.codecs.boveda_format import Bytes
from archsim.codecs.boveda_kernels import wide
from archsim.core import commands as cmd
from archsim.core.kernel import inlined, kernel
from archsim.numbers import IntArray

Narrow = npt.NDArray[np.int32]

Stored = tuple[IntArray, Bytes]
"""First word of each tile, and one more; widths [words, columns]."""

Places = tuple[IntArray, Narrow]
"""First word of each tile, and one more; places [columns, words]."""

Shape = tuple[int, int, int]
"""log2 of the lanes of a word, of the lanes of a group, of the words of a unit."""

Held = tuple[Narrow, Narrow, IntArray, IntArray]
"""Tags of rows [2, pieces] and the first rows read, of entries [2] and the first ones.

A piece is as many neighbouring lanes as are always read together (`_piece_bits`): at most a group.
"""


AT_ONCE = 512
"""Pixels of which the reads are listed before they are looked at."""


@kernel
def fill_directory(
    stored: Stored, form: tuple[int, int], first_rows: IntArray, rows: IntArray
) -> None:
    """First rows [units, columns] of the units, and rows [tiles, columns] of the tiles.

    form: (log2 U, log2 B).  A tile takes, of a column, Σ over units of ⌈Σ w / B⌉ rows, w the widths
    of the column's groups in the unit.
    """
    starts, widths = stored
    size, bits = 1 << form[0], form[1]
    rows[:], unit = 0, 0
    for tile in range(len(rows)):
        for first in range(starts[tile], starts[tile + 1], size):
            last = min(first + size, starts[tile + 1])
            for column in range(widths.shape[1]):
                taken = 0
                for word in range(first, last):
                    taken += wide(widths[word, column])
                first_rows[unit, column] = rows[tile, column]
                rows[tile, column] += (taken + (1 << bits) - 1) >> bits
            unit += 1


@kernel
def place_words(stored: Stored, form: tuple[int, int], places: Narrow) -> None:
    """Places [columns, words] of all words; form as for `fill_directory`."""
    starts, widths = stored
    size, bits = 1 << form[0], form[1]
    container = 1 << bits
    for tile in range(len(starts) - 1):
        for column in range(widths.shape[1]):
            row = 0
            for first in range(starts[tile], starts[tile + 1], size):
                taken = 0
                for word in range(first, min(first + size, starts[tile + 1])):
                    width = wide(widths[word, column])
                    spills = (taken & (container - 1)) + width > container
                    places[column, word] = 2 * (row + (taken >> bits)) + spills
                    taken += width
                row += (taken + container - 1) >> bits


@kernel
def _piece_bits(row: IntArray, group: int, chunk: int) -> int:
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


@kernel
def _fold_reads(
    row: IntArray, pixels: tuple[int, int], fold: tuple[int, int, int, int], reads: IntArray
) -> int:
    """The elements that a fold reads of every pixel from pixels[0] to before pixels[1].

    fold: tap, offset of the run, first element of the chunk and how many.  reads [pixels, 2]:
    first element, and the one behind the last; what lies in the padding is not read.  Returns how
    many.
    """
    tap, run, chunk, elements = fold
    columns, pitch, step = row[cmd.PIXEL_COLUMNS], row[cmd.PITCH], row[cmd.COLUMN_STEP]
    (at, last), count = pixels, 0
    while at < last:
        down, across = divmod(at, columns)
        stop = min(columns, across + last - at)
        at += stop - across
        at_row = row[cmd.ROW_START] + down * row[cmd.ROW_STRIDE] + tap * row[cmd.TAP_ROWS]
        if not 0 <= at_row < row[cmd.HEIGHT]:
            continue
        base = at_row * pitch
        inside = row[cmd.ELEMENT_START] + across * step + run + chunk
        for _ in range(across, stop):
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


@kernel
def _read_entries(held: Held, reads: IntArray, word_bits: int, unit_bits: int) -> int:
    """Entries read for the words of some reads.  word_bits: log2 of the elements of a word."""
    _, _, tags, firsts = held
    even, odd = wide(tags[0]), wide(tags[1])
    first_even, first_odd = wide(firsts[0]), wide(firsts[1])
    count = 0
    for at in range(len(reads)):
        first_word, last_word = reads[at, 0] >> word_bits, (reads[at, 1] - 1) >> word_bits
        for word in range(first_word, last_word + 1):
            unit = word >> unit_bits
            is_odd = unit & 1 == 1
            even, first_even, read = _hold(even, first_even, not is_odd, unit)
            odd, first_odd, other = _hold(odd, first_odd, is_odd, unit)
            count += read + other
    tags[0], tags[1], firsts[0], firsts[1] = even, odd, first_even, first_odd
    return count


@kernel
def _read_column(
    held: Held, places: Narrow, reads: IntArray, shape: tuple[int, int], column: int
) -> int:
    """Rows that a group column reads where reads begin and end with groups.

    places: of the column's words.  shape: log2 of the columns, of the lanes of a group.
    """
    tags, firsts, _, _ = held
    even, odd = wide(tags[0, column]), wide(tags[1, column])
    first_even, first_odd = wide(firsts[0, column]), wide(firsts[1, column])
    column_bits, group_bits = shape
    count, mask = 0, (1 << column_bits) - 1
    for at in range(len(reads)):
        begin, end = reads[at, 0] >> group_bits, reads[at, 1] >> group_bits
        group = begin + ((column - begin) & mask)
        if group < end:
            place = wide(places[group >> column_bits])
            row, spills = place >> 1, place & 1 == 1
            is_odd = row & 1
            even, first_even, read = _hold(even, first_even, (is_odd == 0) | spills, row + is_odd)
            odd, first_odd, other = _hold(odd, first_odd, (is_odd == 1) | spills, row + 1 - is_odd)
            count += read + other
    tags[0, column], tags[1, column] = even, odd
    firsts[0, column], firsts[1, column] = first_even, first_odd
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
    word_bits, group_bits, piece_bits = shape
    count, mask, group = 0, (1 << word_bits) - 1, (1 << group_bits) - 1
    for at in range(len(reads)):
        piece, end = reads[at, 0] >> piece_bits, reads[at, 1] >> piece_bits
        while piece < end:
            lane = piece & mask
            last = min((lane | group) + 1, lane + end - piece)
            place = places[lane >> group_bits, origin + (piece >> word_bits)]
            piece += last - lane
            for spilt in range(1 + (place & 1)):
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
    held: Held, placed: tuple[Narrow, int], reads: IntArray, shape: Shape, piece_bits: int
) -> int:
    """Rows of pieces that some reads take.  placed: of all words, and the tile's first word."""
    word_bits, group_bits, _ = shape
    if piece_bits < group_bits:
        pieces = (word_bits - piece_bits, group_bits - piece_bits, piece_bits)
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
    piece_bits = _piece_bits(row, 1 << shape[1], chunk)
    for start in range(0, row[cmd.PIXELS], block):
        stop = min(start + block, row[cmd.PIXELS])
        for tap in range(row[cmd.TAPS]):
            for run in range(row[cmd.RUNS]):
                for at in range(0, row[cmd.RUN_LENGTH], chunk):
                    elements = min(chunk, row[cmd.RUN_LENGTH] - at)
                    fold = (tap, run * row[cmd.RUN_STEP], at, elements)
                    for first in range(start, stop, AT_ONCE):
                        pixels = (first, min(first + AT_ONCE, stop))
                        found = reads[: _fold_reads(row, pixels, fold, reads)]
                        entries += _read_entries(held, found, shape[0], shape[2])
                        rows += _read_rows(held, placed, found, shape, piece_bits)
    return rows << piece_bits, entries


@kernel
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
        tags[:], first[:], units[:], first_units[:] = -1, -1, -1, -1
        counts = _walk_tile(held, rows[tile], (places, starts[tile]), shape, loops)
        bits = _piece_bits(rows[tile], 1 << shape[1], loops[1])
        kept = ((tags == first) & (first >= 0)).sum() << bits
        found[tile, 0], found[tile, 1] = counts[0], counts[0] - kept
        kept = ((units == first_units) & (units >= 0)).sum()
        found[tile, 2], found[tile, 3] = counts[1], counts[1] - kept


@inlined
def _read_range(tags: IntArray, low: int, high: int) -> int:
    """Rows from `low` to `high` in order, of a column with tags [2]; returns how many are read."""
    count = high - low + 1
    for row in range(low, min(low + 2, high + 1)):
        count -= tags[row & 1] == row
    for row in range(max(high - 1, low), high + 1):
        tags[row & 1] = row
    return count


@kernel
def _rows_of(
    stored: Stored, directory: IntArray, form: tuple[int, int], word: tuple[int, int, int]
) -> tuple[int, int]:
    """The rows in which a word begins and ends.  word: tile's first one, it, and its column."""
    origin, at, column = word
    unit, bits = (at - origin) >> form[0], form[1]
    taken, row = 0, directory[unit, column]
    for before in range(origin + (unit << form[0]), at):
        taken += wide(stored[1][before, column])
    end = taken + wide(stored[1][at, column])
    return row + (taken >> bits), row + ((end - 1) >> bits)


@kernel
def walk_weights(
    uses: IntArray, stored: Stored, directory: IntArray, form: tuple[int, int]
) -> tuple[int, int]:
    """Rows read, of all group columns, and entries read, of each.

    uses [tiles, 4]: the distinct tile that a tile of the walk reads, whether it is loaded for it,
    the steps that its words are cut into, and how often each is read.  directory: first rows
    [units, columns]; form as for `fill_directory`.
    """
    starts, widths = stored
    columns, size = widths.shape[1], 1 << form[0]
    tags, unit, rows_read, entries_read = np.empty((columns, 2), np.int64), -1, 0, 0
    units = np.zeros(len(starts), np.int64)
    for tile in range(len(starts) - 1):
        units[tile + 1] = units[tile] + (starts[tile + 1] - starts[tile] + size - 1) // size
    for use in range(len(uses)):
        tile, loaded, steps, repeats = uses[use]
        if loaded:
            tags[:], unit = -1, -1
        origin, entries = wide(starts[tile]), directory[units[tile] : units[tile + 1]]
        words = (starts[tile + 1] - origin) // steps
        for step in range(steps):
            begin, last = step * words, (step + 1) * words - 1
            low_unit, high_unit = begin >> form[0], last >> form[0]
            taken = high_unit - low_unit + 1
            again = 0 if taken == 1 else taken
            entries_read += taken - (unit == low_unit) + (repeats - 1) * again
            unit = high_unit
            for column in range(columns):
                low, _ = _rows_of(stored, entries, form, (origin, origin + begin, column))
                _, high = _rows_of(stored, entries, form, (origin, origin + last, column))
                rows_read += _read_range(tags[column], low, high)
                if repeats > 1:
                    again = _read_range(tags[column], low, high)
                    rows_read += (repeats - 1) * again
    return rows_read, entries_read


__all__ = ["Places", "Stored", "fill_directory", "place_words", "walk_ifmap", "walk_weights"]
