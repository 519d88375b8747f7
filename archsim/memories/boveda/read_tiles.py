"""Tiles where their directories say that they lie: other places than they have, if cells fail.

A core reads the rows that a directory's entry names, and counts them, whatever the cells gave; of
rows that the tile has not written it reads none.  A tile's cells fail otherwise in the other half
of the memory, so that what is walked is a tile in a half.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from archsim.blocks import address_bits
from archsim.codecs.boveda_format import Bytes
from archsim.memories.boveda.cells import DIRECTORY, entries_of, entries_read
from archsim.memories.boveda.places import Narrow, Places
from archsim.numbers import IntArray

if TYPE_CHECKING:
    from archsim.memories.boveda.store import Store
    from archsim.memories.boveda.tiles import StoredTiles

ELSEWHERE = "a word is looked for in another row"
NOWHERE = "a word is looked for where no row is"
OTHER_END = "a word begins in its row, and ends in another than it did"

MISPLACED = {
    ELSEWHERE: "a failing directory is followed, and reads are counted there",
    NOWHERE: "of rows that the tile has not written zeros are read, and nothing is counted",
    OTHER_END: "a wrong width decides whether a second row is read",
}
"""What failing directories do, and why a proof must have seen it."""

NOT_THERE = -2
"""A place of which no row has been written."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ReadTiles:
    """Distinct tiles as they are read.

    rows [tiles, WALK_COLUMNS]: a command of each.  placed: where their words are looked for.
    of_load [loads]: which one each load of the walk brings.  of [tiles]: the distinct tile.
    """

    rows: IntArray
    placed: Places
    of_load: IntArray
    of: IntArray


def read_tiles(stored: StoredTiles, loaded: IntArray) -> ReadTiles:
    """What the loads of a walk bring; loaded [tiles of the walk]: 1 where an operand is."""
    loads = stored.tile_of[loaded == 1]
    if not stored.store.cells:
        alike = np.arange(len(stored.places))
        return ReadTiles(rows=stored.places, placed=stored.placed, of_load=loads, of=alike)
    halves = (stored.half + np.arange(len(loads))) % 2
    found, of_load = np.unique(2 * loads + halves, return_inverse=True)
    of, half = found // 2, found % 2
    starts = np.zeros(len(of) + 1, np.int64)
    np.cumsum(stored.words[of], out=starts[1:])
    places = _looked_for(stored, of, half)
    return ReadTiles(rows=stored.places[of], placed=(starts, places), of_load=of_load, of=of)


def misplaced(stored: StoredTiles, read: ReadTiles) -> set[str]:
    """Which of `MISPLACED` is so."""
    words, first = stored.words[read.of], np.cumsum(stored.words) - stored.words
    meant = stored.placed[1][:, np.repeat(first[read.of], words) + _behind(words)]
    found, there = read.placed[1], read.placed[1] != NOT_THERE
    same = found >> 1 == meant >> 1
    seen = {ELSEWHERE: there & ~same, NOWHERE: ~there, OTHER_END: same & (found != meant)}
    return {name for name, where in seen.items() if where.any()}


def _looked_for(stored: StoredTiles, of: IntArray, half: IntArray) -> Narrow:
    """Places [columns, words] of distinct tiles `of`, each in a half."""
    store, size = stored.store, stored.store.memory.unit_words
    units = store.units(stored.words)
    first_units, first_words = (np.cumsum(one) - one for one in (units, stored.words))
    taken, words = units[of], stored.words[of]
    unit, at_word = _behind(taken), _behind(words)
    source = np.repeat(first_units[of], taken) + unit
    tops = np.repeat(np.cumsum(taken) - taken, words) * size + at_word
    in_units = np.zeros((len(unit) * size, store.columns), np.int64)
    in_units[tops] = stored.widths[np.repeat(first_words[of], words) + at_word]
    own = in_units.reshape(len(unit), size, -1)
    first, widths = _seen(store, (stored.directory[source], own), (np.repeat(half, taken), unit))
    written = np.repeat(stored.rows[of], taken, axis=0)
    return _places(store, first, widths, written).reshape(-1, store.columns)[tops].T.copy()


def _behind(counts: IntArray) -> IntArray:
    """0, 1, … of each of the counts, one behind the other."""
    return np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)


def _seen(
    store: Store, entries: tuple[IntArray, IntArray], at: tuple[IntArray, IntArray]
) -> tuple[IntArray, IntArray]:
    """First rows and widths as failing cells give them; at: half and number of each unit."""
    bits = address_bits(store.rows), store.form.field_bits
    meant = entries_of(*entries, bits)
    zero, one = (
        _read_everywhere(store, value, int(at[1].max()) + 1)[at[0], :, at[1]].swapaxes(0, 1)
        for value in (0, 1)
    )
    return entries_read(np.where(meant, one, zero), bits)


def _read_everywhere(store: Store, value: int, units: int) -> Bytes:
    """What [halves, columns, units, entry bits] is read where one value is stored everywhere."""
    each: list[Bytes] = []
    for half in range(2):
        bits = np.full((store.columns, units, store.entry_bits), value, np.uint8)
        for cells, use in store.cells:
            bits = cells.failing_bits(use.in_half(half), DIRECTORY, bits)
        each.append(bits)
    return np.stack(each)


def _places(store: Store, first: IntArray, widths: IntArray, written: IntArray) -> Narrow:
    """Places [units, U, columns], as `archsim.memories.boveda.places` has them."""
    shift, bits = store.form.field_bits, store.form.container_bits
    before = np.cumsum(widths, axis=1) - widths
    row = (first[:, None] + (before >> shift)) & ((1 << address_bits(store.rows)) - 1)
    spills = (before & (bits - 1)) + widths > bits
    spills &= row + 1 < written[:, None]
    found = np.where(row < written[:, None], 2 * row + spills, NOT_THERE)
    return found.astype(np.int32)


__all__ = ["MISPLACED", "ReadTiles", "misplaced", "read_tiles"]
