"""Words of compressed tiles that are read otherwise than they were written, by numba.

What `cells.stored` and `cells.read_back` do of all bits is done here of few: of units whose entry
in the directory fails, which are looked for elsewhere, and of single containers that fail.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from archsim.codecs.boveda_format import Bytes, Values
from archsim.codecs.boveda_kernels import Form, code_of, value_of, wide
from archsim.kernels import inlined, kernel
from archsim.memories.boveda.widths import Scratch, measure_words
from archsim.numbers import IntArray

BoolArray = npt.NDArray[np.bool_]

Masks = tuple[IntArray, IntArray]
"""What numbers of cells read as where all hold 0, and where all hold 1."""

Column = tuple[int, int, int, int, int]
"""Which group column, words of a unit, rows that there are, bits of a row's number, and rows that
the tile has written."""

Room = tuple[IntArray, IntArray, IntArray, IntArray, IntArray, IntArray]
"""Of a tile's group column: where each word begins, in bits of a container, and its width; of each
row the first word that has bits in it, whether it has been made, and its containers, flat; lanes
of a word."""

Tile = tuple[Values, Form, Column, Room, Masks]
"""Words [words, lanes], and the masks of rows [columns, rows · G]."""

Out = tuple[IntArray, IntArray, int, int]
"""Places of elements that are read wrong, by how much, the place of the tile's first, how many."""


@inlined
def _read(held: Any, zero: Any, one: Any) -> Any:
    return (held & one) | (~held & zero)


@inlined
def _placed(measured: Bytes, form: Form, column: Column, room: Room) -> int:
    """Fill in where words begin; how many rows they take, -1 where there are fewer.

    measured: the words' widths, of all columns."""
    container, (first, unit_words, most, _, _) = form[1], column
    starts, widths, firsts, made, _, _ = room
    columns = len(measured) // len(widths)
    firsts[:], made[:], at, row, left = -1, 0, 0, 0, 0
    for word in range(len(widths)):
        if left == 0:
            at, left = (at + container - 1) // container * container, unit_words
        left -= 1
        width = wide(measured[word * columns + first])
        if at + width > most * container:
            return -1
        starts[word], widths[word] = at, width
        while (row + 1) * container <= at:
            row += 1
        if firsts[row] < 0:
            firsts[row] = word
        if at + width > (row + 1) * container:
            firsts[row + 1] = word
        at += width
    return (at + container - 1) // container


@inlined
def _make(tile: Tile, row: int) -> None:
    """A row's containers, as they are read."""
    words, form, column, room, masks = tile
    (lanes, container, _, _), first = form, column[0]
    starts, widths, firsts, made, rows, _ = room
    if made[row]:
        return
    made[row] = 1
    for lane in range(lanes):
        held, word, at = np.int64(0), firsts[row], first * lanes + lane
        while 0 <= word < len(words) and starts[word] < (row + 1) * container:
            bit = starts[word] - row * container
            code = code_of(words[word, at], widths[word], form)
            held |= code << bit if bit >= 0 else code >> -bit
            word += 1
        held &= (np.int64(1) << container) - 1
        cell = row * lanes + lane
        rows[cell] = _read(held, masks[0][first, cell], masks[1][first, cell])


@inlined
def _look_for(tile: Tile, at: Any, width: Any, codes: IntArray) -> None:
    """What the lanes of a word are read as that is looked for at a bit."""
    _, form, column, room, _ = tile
    (lanes, container, _, _), written, rows = form, column[4], room[4]
    row, bit = divmod(at, container)
    codes[:] = 0
    if row >= written:
        return
    _make(tile, row)
    for lane in range(lanes):
        codes[lane] = rows[row * lanes + lane] >> bit
    if bit + width > container and row + 1 < written:
        _make(tile, row + 1)
        for lane in range(lanes):
            codes[lane] |= rows[(row + 1) * lanes + lane] << (container - bit)
    for lane in range(lanes):
        codes[lane] = value_of(codes[lane] & ((np.int64(1) << width) - 1), width, form)


@inlined
def _moved(tile: Tile, entry_masks: Masks, unit: int, out: Out) -> tuple[bool, int]:
    """Whether a unit's entry is read wrong, its words then looked for; how many are wrong."""
    words, (lanes, container, _, _), (first, size, _, row_bits, _), room, _ = tile
    (places, changes, base, count), (starts, widths, _, _, _, codes) = out, room
    begin, end = unit * size, min((unit + 1) * size, len(words))
    no, yes = entry_masks[0][unit, first], entry_masks[1][unit, first]
    row = starts[begin] // container
    wrong = _read(row, no[0], yes[0]) != row
    for word in range(begin, end):
        number = 1 + word - begin
        wrong |= _read(widths[word] - 1, no[number], yes[number]) != widths[word] - 1
    if not wrong:
        return False, count
    at, wrap = container * _read(row, no[0], yes[0]), container << row_bits
    for word in range(begin, end):
        number = 1 + word - begin
        width = 1 + _read(widths[word] - 1, no[number], yes[number])
        _look_for(tile, at % wrap, width, codes)
        for lane in range(lanes):
            change = codes[lane] - words[word, first * lanes + lane]
            if change:
                places[count] = base + word * words.shape[1] + first * lanes + lane
                changes[count] = change
                count += 1
        at += width
    return True, count


@inlined
def _part(code: Any, bit: Any, cells: tuple[Any, Any, Any], container: int) -> Any:
    """A code of so many bits below a container's bit or above it (bit < 0), where that container
    fails; cells: what it reads as where all hold 0, and 1; the code's width."""
    zero, one, width = cells
    full, own = (np.int64(1) << container) - 1, (np.int64(1) << width) - 1
    held = (code << bit if bit >= 0 else code >> -bit) & full
    under = (own << bit if bit >= 0 else own >> -bit) & full
    read = _read(held, zero, one) & under
    return code ^ ((read ^ held) >> bit if bit >= 0 else (read ^ held) << -bit)


@inlined
def _single(tile: Tile, cell: tuple[int, int], moved: BoolArray, out: Out) -> int:
    """Words that have bits in a container that fails; how many are wrong then.

    One that begins in the row before is left out where its container fails there, too."""
    words, form, (first, size, _, _, _), room, (zero, one) = tile
    (lanes, container, _, _), (row, lane), (starts, widths, firsts, _, _, _) = form, cell, room
    (places, changes, base, count), word = out, firsts[row]
    full = (np.int64(1) << container) - 1
    while 0 <= word < len(words) and starts[word] < (row + 1) * container:
        top, above = starts[word] // container, (row - 1) * lanes + lane
        known = top < row and (zero[first, above] != 0 or one[first, above] != full)
        if not moved[word // size] and not known:
            width, bit, at = widths[word], starts[word] - top * container, top * lanes + lane
            meant = words[word, first * lanes + lane]
            code = code_of(meant, width, form)
            code = _part(code, bit, (zero[first, at], one[first, at], width), container)
            if bit + width > container:
                below = zero[first, at + lanes], one[first, at + lanes], width
                code = _part(code, bit - container, below, container)
            change = value_of(code, width, form) - meant
            if change:
                places[count] = base + word * words.shape[1] + first * lanes + lane
                changes[count] = change
                count += 1
        word += 1
    return count


@kernel(
    "(??.3, (??.1, u8.1, (u8, int))), (int, int, int, int), (int, int, int), "
    "((i8.2, i8.2), (i8.3, i8.3), u1.2, i8.1, i8.2), (i8.1, i8.1)"
)
def wrong_words(
    given: tuple[Values, Scratch],
    form: Form,
    sizes: tuple[int, int, int],
    failing: tuple[Masks, Masks, Bytes, IntArray, IntArray],
    out: tuple[IntArray, IntArray],
) -> int:
    """Elements of tiles [tiles, words, lanes] that are read wrong, and by how much, in `out`: how
    many; -1 where a tile takes more rows than there are.

    given: the tiles, and the same densely.  sizes: words of a unit, rows, bits of a row's number.
    failing: masks of rows [columns, rows · G] and of entries [units, columns, 1 + U]; whether the
    entry has cells that fail [units, columns]; of each column the first of its containers that
    fail, and one more; row and lane of each.
    """
    (tiles, dense), (row_masks, entry_masks, entry_fails, begins, cells) = given, failing
    number, columns, most = tiles.shape[1], len(begins) - 1, sizes[1]
    widths = np.empty(len(tiles) * number * columns, np.uint8)
    measure_words(dense, (tiles.shape[2], form), widths)
    room = (np.empty(number, np.int64), np.empty(number, np.int64), np.empty(most, np.int64),
            np.empty(most, np.int64), np.empty(most * form[0], np.int64),
            np.empty(form[0], np.int64))  # fmt: skip
    moved = np.empty(number // sizes[0] + 1, np.bool_)
    count = 0
    for tile in range(len(tiles)):
        words, base = tiles[tile], tile * number * tiles.shape[2]
        measured = widths[tile * number * columns : (tile + 1) * number * columns]
        for first in range(columns):
            written = _placed(measured, form, (first, sizes[0], most, sizes[2], 0), room)
            if written < 0:
                return -1
            held = words, form, (first, sizes[0], most, sizes[2], written), room, row_masks
            for unit in range((number + sizes[0] - 1) // sizes[0]):
                moved[unit] = False
                if entry_fails[unit, first]:
                    own = out[0], out[1], base, count
                    moved[unit], count = _moved(held, entry_masks, unit, own)
            for at in range(begins[first], begins[first + 1]):
                if cells[at, 0] < written:
                    own = out[0], out[1], base, count
                    count = _single(held, (cells[at, 0], cells[at, 1]), moved, own)
    return count


__all__ = ["Masks", "wrong_words"]
