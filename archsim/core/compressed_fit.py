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

from archsim.codecs.boveda_format import BovedaFormat, Bytes
from archsim.compressed_memory import Boveda
from archsim.core import commands as cmd
from archsim.core import machine as mc
from archsim.core.compressed_kernels import Places, Stored, fill_directory, place_words
from archsim.core.compressed_widths import tile_widths
from archsim.core.core_design import CoreDesign
from archsim.core.numerics import IntegerArray
from archsim.core.problem import Problem, Tiling
from archsim.core.tiling import best_tiling, check_tiling, why_nothing_fits
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

    places: a command row of each tile.  tile_of: of every tile of the walk, which of these it
    reads.  starts: the first word of each tile, and one more.  widths [words, columns]: of the
    groups of each word.  word_bits, container_bits: of a word and of a lane of it.
    """

    name: str
    memory: Boveda
    places: IntArray
    tile_of: IntArray
    starts: IntArray
    widths: Bytes
    word_bits: int
    container_bits: int

    @property
    def form(self) -> tuple[int, int]:
        """(log2 U, log2 B), for the kernels."""
        return self.memory.unit_words.bit_length() - 1, self.container_bits.bit_length() - 1

    @property
    def stored(self) -> Stored:
        """For the kernels."""
        return self.starts, self.widths

    @cached_property
    def words(self) -> IntArray:
        """Of each tile."""
        return np.diff(self.starts)

    @cached_property
    def _counted(self) -> tuple[IntArray, IntArray]:
        columns = self.widths.shape[1]
        units = int((-(-self.words // self.memory.unit_words)).sum())
        directory = np.empty((units, columns), np.int64)
        rows = np.empty((len(self.places), columns), np.int64)
        fill_directory(self.stored, self.form, directory, rows)
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
    def placed(self) -> Places:
        """Where all words lie."""
        places = np.empty(self.widths.shape[::-1], np.int32)
        place_words(self.stored, self.form, places)
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
        return int(self.words.sum()) * self.word_bits

    @property
    def stored_bits(self) -> int:
        """Rows of all tiles, and their directories."""
        units, columns = self.directory.shape
        entry = self.memory.entry_bits(self.word_bits, self.container_bits)
        return int(self.rows.sum()) * (self.word_bits // columns) + units * columns * entry

    def why_not(self, layer: str) -> InputError | None:
        """The error if a tile does not fit."""
        rows, tile = self.memory.rows(self.word_bits), self.places[self.fullest]
        if self.most_rows <= rows:
            return None
        place = ", ".join(f"{_AXES[axis]} {int(tile[axis])}" for axis in _PLACES[self.name])
        return InputError(
            f"{layer}: the {self.name} tile at {place} does not fit half of the compressed "
            f"{self.name} scratchpad: it takes {self.most_rows} rows, it has {rows}; take fewer "
            f"{_FEWER[self.name]} a tile, or a larger memory"
        )


def stored_tiles(
    design: CoreDesign, problem: Problem, tiling: Tiling, arrays: tuple[IntegerArray, IntegerArray]
) -> dict[str, StoredTiles]:
    """Of each compressed memory, what every distinct tile of its operand takes."""
    vectors = problem.vector(), tiling.vector()
    tiles, read = walk(*vectors, design.machine), operand_tiles(*vectors)
    moving = bool(design.machine[mc.DATAFLOW] == mc.INPUT_STATIONARY)
    found: dict[str, StoredTiles] = {}
    for name, memory in design.compressed_memories.items():
        port = next(one for one in design.data_ports if one.name == name)
        tile_of = read[name == "weight"]
        chosen = np.empty(int(tile_of.max()) + 1, np.int64)
        chosen[tile_of[::-1]] = np.arange(len(tiles))[::-1]  # the first that reads it
        places = tiles[chosen]
        form = BovedaFormat(
            group=memory.group, container_bits=port.lane_bits[0], signed=port.lane_signed[0]
        )
        operand = arrays[0] if name == "ifmap" else arrays[1]
        starts, widths = tile_widths(name, places, operand, port.lanes, form, moving=moving)
        found[name] = StoredTiles(
            name=name,
            memory=memory,
            places=places,
            tile_of=tile_of,
            starts=starts,
            widths=widths,
            word_bits=port.bits,
            container_bits=port.lane_bits[0],
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
    name: str, design: CoreDesign, problem: Problem, arrays: tuple[IntegerArray, IntegerArray]
) -> tuple[Tiling, dict[str, StoredTiles]]:
    """The tiling for these operands, and what its tiles take.

    Tiles may at first have as many words as would fit at the mean rows a word of the tiling that
    suits any values.  Raises `InputError` if nothing fits.
    """
    sizes = {one: (design.sure_depth(one), design.depth(one)) for one in design.compressed_memories}
    words = {one: deepest for one, (_, deepest) in sizes.items()}
    sure = _best(problem, design.machine)
    counted: dict[Tiling | None, dict[str, StoredTiles]] = {}
    if sure is not None:
        counted[sure] = stored_tiles(design, problem, sure, arrays)
        for one, stored in counted[sure].items():
            rows, deepest = sizes[one]
            taken = int(stored.rows.max(axis=1).sum())
            words[one] = min(max(rows * int(stored.words.sum()) // taken, rows), deepest)
    while True:
        machine = _machine(design, words)
        tiling = sure if np.array_equal(machine, design.machine) else _best(problem, machine)
        if tiling is None:
            raise why_nothing_fits(name, problem, machine)
        found = counted.get(tiling) or stored_tiles(design, problem, tiling, arrays)
        excess = {one: tiles for one, tiles in found.items() if tiles.most_rows > sizes[one][0]}
        if not excess:
            return tiling, found
        for one, tiles in excess.items():
            rows = sizes[one][0]
            words[one] = max(rows, min(words[one] - 1, words[one] * rows // tiles.most_rows))


def _best(problem: Problem, machine: IntArray) -> Tiling | None:
    found = np.zeros(5, np.int64)
    return Tiling.from_vector(found) if best_tiling(problem.vector(), machine, found) else None


def _machine(design: CoreDesign, words: dict[str, int]) -> IntArray:
    """The machine vector of memories of so many words, else of all they can address."""
    machine = design.machine.copy()
    for name in design.compressed_memories:
        machine[_DEPTHS[name]] = words.get(name, design.depth(name))
    return machine
