"""Where words lie in a compressed memory, and the rows that weights read; compiled by numba.

A word's place in a group column is one number: 2 · row + spill, spill if it ends in row + 1; −2
where no row of it is there, as a failing directory may have it (`read_tiles`).  Row r
lies in the even or the odd bank, r mod 2, and so does the directory's entry of unit u of an ifmap.
A tag names the row that a bank's output holds, −1 for none: a tile begins with none
(`rtl.core.held_bank`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from archsim.codecs.boveda_format import Bytes
from archsim.codecs.boveda_kernels import wide
from archsim.kernels import inlined, kernel
from archsim.numbers import IntArray

Narrow = npt.NDArray[np.int32]

Stored = tuple[IntArray, Bytes]
"""First word of each tile, and one more; widths [words, columns]."""

NOT_THERE = -2
"""A place of which no row has been written."""

Places = tuple[IntArray, Narrow]
"""First word of each tile, and one more; places [columns, words]."""


@kernel("(i8.1, u1.2), (int, int), i8.2, i8.2")
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


@kernel("(i8.1, u1.2), (int, int), i4.2")
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


@inlined
def _as_read(meant: Any, masks: tuple[IntArray, IntArray], entry: Any, number: int) -> Any:
    """What is read of a number of an entry (half, column, unit)."""
    zero, one = masks
    half, column, unit = entry
    return (meant & one[half, column, unit, number]) | (~meant & zero[half, column, unit, number])


@kernel("(i8.1, u1.2), (int, int, int), (i8.1, i8.2, i8.2), (i8.1, i8.1), (i8.4, i8.4), i4.2")
def look_for_words(
    stored: Stored,
    form: tuple[int, int, int],
    directory: tuple[IntArray, IntArray, IntArray],
    of: tuple[IntArray, IntArray],
    masks: tuple[IntArray, IntArray],
    places: Narrow,
) -> None:
    """Places [columns, words] of tiles that are looked for where failing directories say.

    form: as for `fill_directory`, and bits of a row's number.  directory: the first unit of each
    tile; first rows [units, columns]; rows [tiles, columns].  of: tiles, and the half that each
    lies in.  masks [halves, columns, units, 1 + U]: what a row's number and widths less 1 are read
    as where all cells hold 0, and 1.
    """
    (starts, widths), (shift, bits, row_bits) = stored, form
    (units, first_rows, rows), size, container = directory, 1 << shift, 1 << bits
    begin = 0
    for n in range(len(of[0])):
        tile, half = of[0][n], of[1][n]
        words = starts[tile + 1] - starts[tile]
        for column in range(widths.shape[1]):
            written = rows[tile, column]
            for unit in range((words + size - 1) >> shift):
                entry = half, column, np.int64(unit)
                first = _as_read(first_rows[units[tile] + unit, column], masks, entry, 0)
                taken = np.int64(0)
                for word in range(unit << shift, min((unit + 1) << shift, words)):
                    meant = wide(widths[starts[tile] + word, column]) - 1
                    width = 1 + _as_read(meant, masks, entry, 1 + word - (unit << shift))
                    row = (first + (taken >> bits)) & ((np.int64(1) << row_bits) - 1)
                    place = np.int64(NOT_THERE)
                    if row < written:
                        spills = (taken & (container - 1)) + width > container
                        place = 2 * row + (spills and row + 1 < written)
                    places[column, begin + word] = place
                    taken += width
        begin += words


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


@kernel("i8.2, (i8.1, u1.2), i8.2, (int, int)")
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


@kernel
def _read_step(tags: IntArray, places: Narrow) -> int:
    """Rows read of words in order, of a column with tags [2], wherever the words are."""
    count = 0
    for word in range(len(places)):
        place = wide(places[word])
        for spilt in range((place >= 0) + (place & 1)):
            row = (place >> 1) + spilt
            count += tags[row & 1] != row
            tags[row & 1] = row
    return count


@kernel("i8.2, (i8.1, i4.2)")
def walk_placed(uses: IntArray, placed: Places) -> int:
    """Rows of weights read where words lie anywhere; uses as for `walk_weights`.

    A step that is read again finds in every bank what its words left, and reads as many each time.
    """
    starts, places = placed
    tags, rows_read = np.empty((len(places), 2), np.int64), 0
    for use in range(len(uses)):
        tile, loaded, steps, repeats = uses[use]
        if loaded:
            tags[:] = -1
        words = (starts[tile + 1] - starts[tile]) // steps
        for step in range(steps):
            begin = starts[tile] + step * words
            for column in range(len(places)):
                own = places[column, begin : begin + words]
                rows_read += _read_step(tags[column], own)
                if repeats > 1:
                    rows_read += (repeats - 1) * _read_step(tags[column], own)
    return rows_read


__all__ = [
    "NOT_THERE",
    "Places",
    "Stored",
    "fill_directory",
    "look_for_words",
    "place_words",
    "walk_placed",
    "walk_weights",
]
