"""What the tiles of an operand take of a compressed scratchpad, exactly."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from archsim.codecs.boveda_format import Bytes
from archsim.errors import InputError
from archsim.memories.boveda.places import Places, Stored, fill_directory, place_words
from archsim.memories.boveda.read_tiles import misplaced, read_tiles
from archsim.memories.boveda.rows import row_actions
from archsim.memories.boveda.store import Store
from archsim.memories.boveda.widths import tile_widths
from archsim.memory.tile_store import WalkedOperand
from archsim.numbers import IntArray
from archsim.tiled.commands import TileCommand, columns_of

_PLACES = {
    "ifmap": ("group", "image", "row", "column", "channel"),
    "weight": ("group", "filter", "channel"),
}
_FEWER = {"ifmap": "pixels or channels", "weight": "filters or channels"}


@dataclass(frozen=True, kw_only=True, eq=False)
class StoredTiles:
    """What the distinct tiles of an operand take of a compressed memory.

    tiles [tiles, WALK_COLUMNS]: the layer's walk.  first: of each distinct tile, the first tile of
    the walk that reads it; tile_of: of every tile of the walk, which it reads.  starts: the first
    word of each distinct tile, and one more.  widths [words, columns]: of the groups of each word.
    together: groups of the layer that lie side by side.  half: into which the walk's first tile is
    loaded.
    """

    store: Store
    tiles: IntArray
    first: IntArray
    tile_of: IntArray
    starts: IntArray
    widths: Bytes
    together: int = 1
    half: int = 0

    @property
    def stored(self) -> Stored:
        """For the kernels."""
        return self.starts, self.widths

    @cached_property
    def places(self) -> IntArray:
        """A command row of each distinct tile."""
        return self.tiles[self.first]

    @cached_property
    def words(self) -> IntArray:
        """Of each distinct tile."""
        return self.starts[1:] - self.starts[:-1]

    @cached_property
    def _counted(self) -> tuple[IntArray, IntArray]:
        units, columns = int(self.store.units(self.words).sum()), self.store.columns
        directory = np.empty((units, columns), np.int64)
        rows = np.empty((len(self.first), columns), np.int64)
        fill_directory(self.stored, self.store.shape, directory, rows)
        return directory, rows

    @property
    def directory(self) -> IntArray:
        """First rows of the units of all tiles, of each group column: [units, columns]."""
        return self._counted[0]

    @property
    def rows(self) -> IntArray:
        """Of each group column of each tile: [tiles, columns]."""
        return self._counted[1]

    @cached_property
    def tile_rows(self) -> IntArray:
        """Of all group columns of each distinct tile."""
        return self.rows.sum(axis=1)

    @cached_property
    def placed(self) -> Places:
        """Where all words lie."""
        places = np.empty(self.widths.shape[::-1], np.int32)
        place_words(self.stored, self.store.shape, places)
        return self.starts, places

    @cached_property
    def fullest(self) -> int:
        """The tile of which a column takes the most rows."""
        return int(self.rows.max(axis=1).argmax())

    @property
    def most_rows(self) -> int:
        """Of any column of any tile."""
        return int(self.rows.max())

    @property
    def plain_bits(self) -> int:
        """What a plain memory would take for all tiles."""
        return int(self.starts[-1]) * self.store.word_bits

    @property
    def stored_bits(self) -> int:
        """Rows of all tiles, and their directories."""
        row_bits = self.store.word_bits // self.store.columns
        return int(self.tile_rows.sum()) * row_bits + self.directory.size * self.store.entry_bits

    @property
    def fits(self) -> bool:
        """Whether every tile does."""
        return self.most_rows <= self.store.rows

    @property
    def mean_words(self) -> int:
        """Words that would fit if all took the mean of these, of each tile's fullest column."""
        taken = int(self.rows.max(axis=1).sum())
        return self.store.rows * int(self.starts[-1]) // taken

    def fewer_words(self, words: int) -> int:
        """Words that would fit of `words` if all took what those of the fullest tile take."""
        return words * self.store.rows // self.most_rows

    def actions(self, machine: IntArray) -> dict[str, int]:
        """Rows read and written, entries read."""
        return row_actions(self, machine)

    def happened(self) -> set[str]:
        """What failing directories do to these tiles."""
        loaded = getattr(columns_of(self.tiles), f"load_{self.store.name}")
        return misplaced(self, read_tiles(self, loaded)) if self.store.cells else set()

    def why_not(self, layer: str) -> InputError | None:
        """The error if a tile does not fit."""
        name, tile = self.store.name, TileCommand(*self.places[self.fullest].tolist())
        if self.fits:
            return None
        tile = tile._replace(tile_group=tile.tile_group * self.together)
        place = ", ".join(f"{axis} {getattr(tile, f'tile_{axis}')}" for axis in _PLACES[name])
        return InputError(
            f"{layer}: the {name} tile at {place} does not fit half of the compressed {name} "
            f"scratchpad: it takes {self.most_rows} rows, it has {self.store.rows}; take fewer "
            f"{_FEWER[name]} a tile, or a larger memory"
        )


def taken_tiles(store: Store, walked: WalkedOperand) -> StoredTiles:
    """What every distinct tile of an operand takes."""
    starts, widths = tile_widths(
        store, walked.tiles[walked.first], walked.values, moving=walked.moving
    )
    return StoredTiles(
        store=store,
        tiles=walked.tiles,
        first=walked.first,
        tile_of=walked.tile_of,
        starts=starts,
        widths=widths,
        together=walked.together,
        half=walked.half,
    )


__all__ = ["StoredTiles", "taken_tiles"]
