"""Tilings for compressed memories: what every tile takes, exactly, and the tiling that fits.

A compressed scratchpad (`archsim.compressed_memory`) holds the more words the narrower their
values.  So the tiling of a layer depends on its operands: tiles are made as large as the memory
seems to hold, the rows of every tile are counted, and where one does not fit the words a tile may
have are scaled down by the excess, until all fit; at the latest with as many words as rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from archsim.codecs.boveda_format import BovedaFormat, Bytes
from archsim.codecs.boveda_kernels import measure
from archsim.compressed_memory import Boveda
from archsim.core import commands as cmd
from archsim.core import layout
from archsim.core import machine as mc
from archsim.core.compressed_kernels import ONES, Places, measure_whole, place_words
from archsim.core.core_design import CoreDesign
from archsim.core.numerics import IntegerArray
from archsim.core.problem import Problem, Tiling
from archsim.core.tiling import best_tiling, check_tiling, why_nothing_fits
from archsim.core.walk import walk
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
    reads.  words [tiles].  rows [tiles, columns]: of each group column.  placed: of all words
    (`archsim.core.compressed_kernels.Places`).  word_bits, container_bits: of a word and of a lane
    of it.
    """

    name: str
    memory: Boveda
    places: IntArray
    tile_of: IntArray
    words: IntArray
    rows: IntArray
    placed: Places
    word_bits: int
    container_bits: int

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
        columns = self.rows.shape[1]
        units = int((-(-self.words // self.memory.unit_words)).sum())
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


def word_widths(words: IntegerArray, form: BovedaFormat) -> Bytes:
    """Widths [words, columns] of the groups of words [words, lanes]."""
    count, lanes = words.shape
    columns = lanes // form.group
    widths = np.empty(count * columns, np.uint8)
    values = np.ascontiguousarray(words, form.value_type).reshape(-1)
    if form.group * values.itemsize % 8 == 0:
        lane = ONES[values.itemsize], 8 * values.itemsize
        measure_whole(values.view(np.uint64), form.numbers, lane, widths)
        return widths.reshape(count, columns)
    measure(values, (lanes, columns), form.numbers, (0, len(widths)), widths)
    return widths.reshape(count, columns)


def place_tiles(
    tiles: Iterable[IntegerArray], memory: Boveda, form: BovedaFormat
) -> tuple[Places, IntArray]:
    """Where the words [words, lanes] of tiles lie, and the rows that they take [tiles, columns]."""
    widths = [word_widths(words, form) for words in tiles]
    starts = np.cumsum([0, *(len(one) for one in widths)])
    joined = np.concatenate(widths)
    places = np.empty(joined.shape[::-1], np.int32)
    rows = np.empty((len(widths), joined.shape[1]), np.int64)
    place_words(joined, starts, (memory.unit_words, form.container_bits), places, rows)
    return (starts, places), rows


def stored_tiles(
    design: CoreDesign, problem: Problem, tiling: Tiling, arrays: tuple[IntegerArray, IntegerArray]
) -> dict[str, StoredTiles]:
    """Of each compressed memory, what every distinct tile of its operand takes."""
    tiles = walk(problem.vector(), tiling.vector(), design.machine)
    found: dict[str, StoredTiles] = {}
    for name, memory in design.compressed_memories.items():
        port = next(one for one in design.data_ports if one.name == name)
        key = np.zeros(len(tiles), np.int64)
        for axis in _PLACES[name]:
            key = key * (tiles[:, axis].max() + 1) + tiles[:, axis]
        _, chosen, tile_of = np.unique(key, return_index=True, return_inverse=True)
        places = tiles[chosen]
        form = BovedaFormat(
            group=memory.group, container_bits=port.lane_bits[0], signed=port.lane_signed[0]
        )
        placed, rows = place_tiles(_tile_words(design, name, places, arrays), memory, form)
        found[name] = StoredTiles(
            name=name,
            memory=memory,
            places=places,
            tile_of=tile_of,
            words=np.diff(placed[0]),
            rows=rows,
            placed=placed,
            word_bits=port.bits,
            container_bits=port.lane_bits[0],
        )
    return found


def _tile_words(
    design: CoreDesign, name: str, places: IntArray, arrays: tuple[IntegerArray, IntegerArray]
) -> Iterator[IntegerArray]:
    """The words of each tile, as the port carries them."""
    lanes = next(port.lanes for port in design.data_ports if port.name == name)
    moving = bool(design.machine[mc.DATAFLOW] == mc.INPUT_STATIONARY)
    for row in places:
        if name == "ifmap":
            yield layout.ifmap_words(row, arrays[0], lanes)
        else:
            yield layout.weight_words(row, arrays[1], lanes, moving=moving)


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
    memories = design.compressed_memories
    sizes = {
        one: (memories[one].rows(design.word_bits(one)), design.depth(one)) for one in memories
    }
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
        tiling = _best(problem, machine)
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
