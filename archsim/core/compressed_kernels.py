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
from archsim.codecs.boveda_kernels import Form, group_width, wide
from archsim.core import commands as cmd
from archsim.core.kernel import inlined, kernel
from archsim.numbers import IntArray

Narrow = npt.NDArray[np.int32]

Places = tuple[IntArray, Narrow]
"""First word of each tile, and one more; places [columns, words]."""

Shape = tuple[int, int, int]
"""log2 of the lanes of a word, lanes of a group, log2 of the words of a unit."""

Held = tuple[Narrow, Narrow, IntArray, IntArray, IntArray]
"""Tags of rows [2, lanes] and the first rows read, of entries [2] and the first ones; counts [2]
of rows and entries read."""


ONES = {1: np.uint64(0x0101010101010101), 2: np.uint64(0x0001000100010001)}
"""The lowest bit of each value in 64 bits, by bytes of a value."""


@kernel
def measure_whole(
    packed: npt.NDArray[np.uint64], form: Form, lane: tuple[np.uint64, int], widths: Bytes
) -> None:
    """Widths of groups that fill 64 bits, some values at a time; as `boveda_kernels.measure`.

    packed [groups · words of a group].  lane: `ONES` of the values, and their bits.
    """
    ones, bits = lane
    top, mask = np.uint64(bits - 1), np.uint64((1 << bits) - 1)
    size = len(packed) // len(widths)
    for group in range(len(widths)):
        union = np.uint64(0)
        for at in range(group * size, (group + 1) * size):
            values = packed[at]
            if form[2]:
                negative = (values >> top) & ones
                values = (values ^ (negative * mask)) + negative
            union |= values
        union |= union >> np.uint64(32)
        union |= union >> np.uint64(16)
        if bits == 8:
            union |= union >> np.uint64(8)
        widths[group] = group_width(wide(union & mask), form)


@kernel
def place_words(
    widths: Bytes, starts: IntArray, form: tuple[int, int], places: Narrow, rows: IntArray
) -> None:
    """Places [columns, words] of words of widths [words, columns], and rows [tiles, columns].

    starts: the first word of each tile, and one more.  form: (U, B).  A tile takes, of a column,
    Σ over units of ⌈Σ w / B⌉ rows, w the widths of the column's groups in the unit.
    """
    unit_words, bits = form
    for tile in range(len(starts) - 1):
        for column in range(widths.shape[1]):
            row, at = 0, 0
            for word in range(starts[tile], starts[tile + 1]):
                if at and (word - starts[tile]) % unit_words == 0:
                    row, at = row + 1, 0
                end = at + int(widths[word, column])
                places[column, word] = 2 * row + (end > bits)
                at = end
                if end >= bits:
                    row, at = row + 1, end - bits
            rows[tile, column] = row + (at > 0)


@inlined
def _read_row(held: Held, row: int, begin: int, end: int) -> None:
    """A row is wanted in the lanes from `begin` to before `end`."""
    tags, first, counts = held[0][row & 1], held[1][row & 1], held[4]
    count, wanted = np.int32(0), np.int32(row)
    for lane in range(begin, end):
        count += np.int32(tags[lane] != wanted)
        first[lane] = wanted if first[lane] < 0 else first[lane]
        tags[lane] = wanted
    counts[0] += count


@inlined
def _read_elements(
    held: Held, places: Narrow, shape: Shape, begin: int, end: int, origin: int
) -> None:
    """Elements of a tile from `begin` to before `end`, at most a word's lanes; origin: its words.

    Word ⌊a / lanes⌋ holds element a in lane a mod lanes.
    """
    lane_bits, group, unit_bits = shape
    _, _, units, first_units, counts = held
    lanes, word, left = 1 << lane_bits, begin >> lane_bits, end - begin
    lane = begin & (lanes - 1)
    while left > 0:
        unit = word >> unit_bits
        if units[unit & 1] != unit:
            counts[1] += 1
            units[unit & 1] = unit
            if first_units[unit & 1] < 0:
                first_units[unit & 1] = unit
        last = min(lane + left, lanes)
        left -= last - lane
        column = lane // group if lane else 0
        while lane < last:
            stop = min((column + 1) * group, last)
            place = places[column, origin + word]
            _read_row(held, place >> 1, lane, stop)
            if place & 1:
                _read_row(held, (place >> 1) + 1, lane, stop)
            lane, column = stop, column + 1
        word, lane = word + 1, 0


@kernel
def _read_fold(
    held: Held,
    row: IntArray,
    places: tuple[Narrow, int],
    shape: Shape,
    pixels: tuple[int, int],
    fold: tuple[int, int, int, int],
) -> None:
    """A fold: its elements of every pixel from pixels[0] to before pixels[1].

    places: of all words, and the tile's first word.  fold: tap, offset of the run, first element of
    the chunk and how many.  What lies in the padding is not read.
    """
    tap, run, chunk, elements = fold
    down, across = divmod(pixels[0], row[cmd.PIXEL_COLUMNS])
    for _ in range(pixels[0], pixels[1]):
        at_row = row[cmd.ROW_START] + down * row[cmd.ROW_STRIDE] + tap * row[cmd.TAP_ROWS]
        inside = row[cmd.ELEMENT_START] + across * row[cmd.COLUMN_STEP] + run + chunk
        begin, end = max(inside, 0), min(inside + elements, row[cmd.PITCH])
        if 0 <= at_row < row[cmd.HEIGHT] and begin < end:
            base = at_row * row[cmd.PITCH]
            _read_elements(held, places[0], shape, base + begin, base + end, places[1])
        across += 1
        if across == row[cmd.PIXEL_COLUMNS]:
            down, across = down + 1, 0


@kernel
def _walk_tile(
    held: Held, row: IntArray, places: tuple[Narrow, int], shape: Shape, loops: tuple[int, int]
) -> None:
    """for block: for tap: for run: for chunk: for pixel; loops: pixels of a block, a chunk."""
    block, chunk = loops
    for start in range(0, row[cmd.PIXELS], block):
        pixels = (start, min(start + block, row[cmd.PIXELS]))
        for tap in range(row[cmd.TAPS]):
            for run in range(row[cmd.RUNS]):
                for at in range(0, row[cmd.RUN_LENGTH], chunk):
                    elements = min(chunk, row[cmd.RUN_LENGTH] - at)
                    fold = (tap, run * row[cmd.RUN_STEP], at, elements)
                    _read_fold(held, row, places, shape, pixels, fold)


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
    units, first_units, counts = np.empty(2, np.int64), np.empty(2, np.int64), np.empty(2, np.int64)
    held = (tags, first, units, first_units, counts)
    for tile in range(len(rows)):
        tags[:], first[:], units[:], first_units[:], counts[:] = -1, -1, -1, -1, 0
        _walk_tile(held, rows[tile], (places, starts[tile]), shape, loops)
        kept = ((tags == first) & (first >= 0)).sum()
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
def walk_weights(uses: IntArray, placed: Places, unit_words: int) -> tuple[int, int]:
    """Rows read, of all group columns, and entries read, of each.

    uses [tiles, 4]: the distinct tile that a tile of the walk reads, whether it is loaded for it,
    the steps that its words are cut into, and how often each is read.
    """
    starts, places = placed
    columns = len(places)
    tags, unit, rows_read, entries_read = np.empty((columns, 2), np.int64), -1, 0, 0
    for use in range(len(uses)):
        tile, loaded, steps, repeats = uses[use]
        if loaded:
            tags[:], unit = -1, -1
        origin = starts[tile]
        words = (starts[tile + 1] - origin) // steps
        for step in range(steps):
            begin, last = step * words, (step + 1) * words - 1
            low_unit, high_unit = begin // unit_words, last // unit_words
            taken = high_unit - low_unit + 1
            again = 0 if taken == 1 else taken
            entries_read += taken - (unit == low_unit) + (repeats - 1) * again
            unit = high_unit
            for column in range(columns):
                end = places[column, origin + last]
                low, high = places[column, origin + begin] >> 1, (end >> 1) + (end & 1)
                rows_read += _read_range(tags[column], low, high)
                if repeats > 1:
                    again = _read_range(tags[column], low, high)
                    rows_read += (repeats - 1) * again
    return rows_read, entries_read


__all__ = ["ONES", "Places", "measure_whole", "place_words", "walk_ifmap", "walk_weights"]
