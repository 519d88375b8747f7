"""Tiles where their directories say that they lie: other places than they have, if cells fail.

A core reads the rows that a directory's entry names, and counts them, whatever the cells gave; of
rows that the tile has not written it reads none.  A tile's cells fail otherwise in the other half
of the memory, so that what is walked is a tile in a half.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from archsim.blocks import address_bits
from archsim.memories.boveda.cells import DIRECTORY, entries_read
from archsim.memories.boveda.places import NOT_THERE, Narrow, Places, look_for_words
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
    store, units = stored.store, stored.store.units(stored.words)
    masks = [_read_everywhere(store, value, int(units.max())) for value in (0, 1)]
    places = np.empty((store.columns, int(stored.words[of].sum())), np.int32)
    directory = np.cumsum(units) - units, stored.directory, stored.rows
    form = *store.shape, address_bits(store.rows)
    look_for_words(stored.stored, form, directory, (of, half), (masks[0], masks[1]), places)
    return places


def _behind(counts: IntArray) -> IntArray:
    """0, 1, … of each of the counts, one behind the other."""
    return np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)


@lru_cache(maxsize=32)
def _read_everywhere(store: Store, value: int, units: int) -> IntArray:
    """What numbers of entries [halves, columns, units, 1 + U], a row and widths less 1, are read as
    where one value is stored everywhere; not to be written to."""
    each: list[IntArray] = []
    for half in range(2):
        bits = np.full((store.columns, units, store.entry_bits), value, np.uint8)
        for cells, use in store.cells:
            bits = cells.failing_bits(use.in_half(half), DIRECTORY, bits)
        rows, widths = entries_read(bits, (address_bits(store.rows), store.form.field_bits))
        each.append(np.concatenate([rows.T[:, :, None], widths.transpose(2, 0, 1) - 1], axis=2))
    found = np.stack(each)
    found.flags.writeable = False
    return found


__all__ = ["MISPLACED", "ReadTiles", "misplaced", "read_tiles"]
