"""Tilings for compressed memories: what every tile takes, exactly, and the tiling that fits.

A compressed scratchpad (`archsim.compressed_memory`) holds the more words the narrower their
values.  So the tiling of a layer depends on its operands: tiles are made as large as the memory
seems to hold, the rows of every tile are counted, and where one does not fit the words a tile may
have are scaled down by the excess, until all fit; at the latest with as many words as rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from archsim.codecs.boveda_format import Bytes
from archsim.core import commands as cmd
from archsim.core import machine as mc
from archsim.core.compressed_places import Places, Stored, fill_directory, place_words
from archsim.core.compressed_store import Store
from archsim.core.compressed_widths import tile_widths
from archsim.core.core_design import CoreDesign
from archsim.core.numerics import IntegerArray
from archsim.core.problem import Problem, Tiling
from archsim.core.tiling import check_tiling, find_tiling, why_nothing_fits
from archsim.core.walk import operand_tiles, walk
from archsim.errors import InputError
from archsim.numbers import IntArray

_DEPTHS = {"ifmap": mc.IFMAP_DEPTH, "weight": mc.WEIGHT_DEPTH}
_PLACES = {
    "ifmap": (
        cmd.TILE_GROUP,
        cmd.TILE_IMAGE,
        cmd.TILE_ROW,
        cmd.TILE_COLUMN,
        cmd.TILE_CHANNEL,
    ),
    "weight": (cmd.TILE_GROUP, cmd.TILE_FILTER, cmd.TILE_CHANNEL),
}
_AXES = {
    cmd.TILE_GROUP: "group",
    cmd.TILE_IMAGE: "image",
    cmd.TILE_ROW: "row",
    cmd.TILE_COLUMN: "column",
    cmd.TILE_CHANNEL: "channel",
    cmd.TILE_FILTER: "filter",
}
_FEWER = {"ifmap": "pixels or channels", "weight": "filters or channels"}


@dataclass(frozen=True, kw_only=True, eq=False)
class StoredTiles:
    """What the distinct tiles of an operand take of a compressed memory.

    tiles [tiles, WALK_COLUMNS]: the layer's walk.  first: of each distinct tile, the first tile of
    the walk that reads it; tile_of: of every tile of the walk, which it reads.  starts: the first
    word of each distinct tile, and one more.  widths [words, columns]: of the groups of each word.
    """

    store: Store
    tiles: IntArray
    first: IntArray
    tile_of: IntArray
    starts: IntArray
    widths: Bytes

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

    def why_not(self, layer: str) -> InputError | None:
        """The error if a tile does not fit."""
        name, tile = self.store.name, self.places[self.fullest]
        if self.most_rows <= self.store.rows:
            return None
        place = ", ".join(f"{_AXES[axis]} {int(tile[axis])}" for axis in _PLACES[name])
        return InputError(
            f"{layer}: the {name} tile at {place} does not fit half of the compressed {name} "
            f"scratchpad: it takes {self.most_rows} rows, it has {self.store.rows}; take fewer "
            f"{_FEWER[name]} a tile, or a larger memory"
        )


def stored_tiles(
    design: CoreDesign, problem: Problem, tiling: Tiling, arrays: tuple[IntegerArray, IntegerArray]
) -> dict[str, StoredTiles]:
    """Of each compressed memory, what every distinct tile of its operand takes."""
    vectors = problem.vector(), tiling.vector()
    tiles = walk(*vectors, design.machine)
    moving = bool(design.machine[mc.DATAFLOW] == mc.INPUT_STATIONARY)
    found: dict[str, StoredTiles] = {}
    for name, (tile_of, first), operand in zip(
        _PLACES, operand_tiles(*vectors), arrays, strict=True
    ):
        if name in design.stores:
            store = design.stores[name]
            starts, widths = tile_widths(store, tiles[first], operand, moving=moving)
            found[name] = StoredTiles(
                store=store, tiles=tiles, first=first, tile_of=tile_of, starts=starts, widths=widths
            )
    return found


def check_fit(
    name: str,
    design: CoreDesign,
    problem: Problem,
    tiling: Tiling,
    arrays: tuple[IntegerArray, IntegerArray],
) -> dict[str, StoredTiles]:
    """Raise `InputError` if a tile does not fit; returns what the tiles take."""
    check_tiling(name, problem, _machine(design, {}), tiling)
    found = stored_tiles(design, problem, tiling, arrays)
    for one in found.values():
        error = one.why_not(name)
        if error is not None:
            raise error
    return found


def fit_tiling(
    name: str,
    design: CoreDesign,
    problem: Problem,
    arrays: tuple[IntegerArray, IntegerArray],
    sure: Tiling | None,
) -> tuple[Tiling, dict[str, StoredTiles]]:
    """The tiling for these operands, and what its tiles take.

    sure: the one for any values (`find_tiling` on the design's machine), None if none is sure to
    fit.  Tiles may at first have as many words as would fit at the mean rows a word of its tiles.
    Raises `InputError` if nothing fits.
    """
    stores = design.stores
    words = {one: store.depth for one, store in stores.items()}
    counted: dict[Tiling | None, dict[str, StoredTiles]] = {}
    if sure is not None:
        counted[sure] = stored_tiles(design, problem, sure, arrays)
        for one, stored in counted[sure].items():
            rows, taken = stores[one].rows, int(stored.rows.max(axis=1).sum())
            words[one] = min(max(rows * int(stored.starts[-1]) // taken, rows), stores[one].depth)
    while True:
        deeper = any(words[one] > store.rows for one, store in stores.items())
        tiling = find_tiling(problem, _machine(design, words)) if deeper else sure
        if tiling is None:
            raise why_nothing_fits(name, problem, _machine(design, words))
        found = counted.get(tiling) or stored_tiles(design, problem, tiling, arrays)
        excess = {one: tiles for one, tiles in found.items() if tiles.most_rows > stores[one].rows}
        if not excess:
            return tiling, found
        for one, tiles in excess.items():
            rows = stores[one].rows
            words[one] = max(rows, min(words[one] - 1, words[one] * rows // tiles.most_rows))


def _machine(design: CoreDesign, words: dict[str, int]) -> IntArray:
    """The machine vector of memories of so many words, else of all they can address."""
    machine = design.machine.copy()
    for name, store in design.stores.items():
        machine[_DEPTHS[name]] = words.get(name, store.depth)
    return machine
