"""The products of a tile by PE, in the order in which the array takes them.

A tile is walked as

    for filter block: for pixel block: for kernel row and run: for chunk: a *turn*

where one of the blocks may be all of the tile (docs/contracts/systolic.md): a turn is a fold of a
stationary operand, and a chunk of an output-stationary fold.  A product counts in the cycle in
which its moving word enters the array: padding of the ifmap is counted, as in a layer's MACs, what
lanes are filled up with is not, nor are products of two different groups.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from archsim.numbers import IntArray, ceil_div
from archsim.tiled import machine_vector as mc
from archsim.tiled.commands import TileCommand
from archsim.tiled.pe_array import PeArray, Products


def _places(indices: range, size: int) -> IntArray:
    """How many of the indices stand at each of `size` places, index i at i modulo size."""
    at = np.arange(size)
    return (indices.stop - at + size - 1) // size - (indices.start - at + size - 1) // size


def _within(indices: range, first: int, count: int) -> range:
    """Those of the indices from `first` on, at most `count`."""
    start = min(max(indices.start, first), first + count)
    return range(start, max(start, min(indices.stop, first + count)))


def _block(number: int, size: int, whole: int) -> range:
    return range(number * size, min((number + 1) * size, whole))


@dataclass(frozen=True, kw_only=True, eq=False)
class TileProducts:
    """The products of tiles of one shape.

    machine, pes: of the design.  row: the command of such a tile.  groups: those of
    the layer that are in it; together: for how many there is room side by side.  left: a group's
    channels from the tile's first on, where an element is a vector of several.
    """

    machine: mc.MachineRecord
    pes: PeArray
    row: TileCommand[int]
    groups: int
    together: int
    left: int

    @cached_property
    def whole(self) -> IntArray:
        """Products of each PE in the whole tile: [rows, columns]."""
        return self._box(self._pixels, self._filters, self._elements) * self._runs

    def until(self, cycle: int, cycles: int) -> IntArray:
        """Products of each PE, [rows, columns], in the first `cycle` cycles of the tile's stream,
        which takes `cycles` with the bubbles in it."""
        starts, slots = self._turns(cycles)
        turn = int(np.searchsorted(starts + slots, cycle, side="right"))
        if turn == len(starts):
            return self.whole
        return self._before(turn) + self._part(turn, max(0, cycle - int(starts[turn])))

    def _turns(self, cycles: int) -> tuple[IntArray, IntArray]:
        """When each turn starts, and how many slots it has: [turns] each."""
        count = self._filter_blocks * self._pixel_blocks * self._runs * self._chunks
        if self._dataflow == mc.OUTPUT_STATIONARY:
            slots = np.full(count, self.machine.slots)
            if not self.machine.slots:
                sizes = [len(self._pixel_block(at)) for at in range(self._pixel_blocks)]
                each = np.repeat(sizes, self._runs * self._chunks)
                slots = np.tile(each, self._filter_blocks)
            return np.cumsum(slots) - slots, slots
        moving = len(self._pixels)
        loads = np.full(self._chunks, self.machine.rows)
        loads[-1] = len(self._chunk(self._chunks - 1))
        if self._dataflow == mc.INPUT_STATIONARY:
            moving, loads = len(self._filters), np.full(self._chunks, self.machine.columns)
        # from the second on, a turn takes the longer of its words and the next load
        apart = np.tile(np.maximum(moving, loads), count // self._chunks)
        starts = cycles - moving - (apart[::-1].cumsum()[::-1] - apart)
        starts[0] = 0
        return starts, np.full(count, moving)

    def _before(self, turn: int) -> IntArray:
        """Products of the turns before one, each of them whole: [rows, columns]."""
        filter_block, pixel_block, run, chunk = self._place(turn)
        here, pixels = self._filter_block(filter_block), self._pixel_block(pixel_block)
        elements = self._elements
        earlier = range(filter_block * self._filter_step)
        beside = range(pixel_block * self._pixel_step)
        before = range(chunk * self.machine.chunk)
        return (
            self._runs * self._box(self._pixels, earlier, elements)
            + self._runs * self._box(beside, here, elements)
            + run * self._box(pixels, here, elements)
            + self._box(pixels, here, before)
        )

    def _part(self, turn: int, slots: int) -> IntArray:
        """Products of the first slots of a turn: [rows, columns]."""
        filter_block, pixel_block, _, chunk = self._place(turn)
        filters, pixels = self._filter_block(filter_block), self._pixel_block(pixel_block)
        elements = self._chunk(chunk)
        if self.pes.units is not None:
            return self._box(pixels, filters, elements, slots)
        if self._dataflow == mc.INPUT_STATIONARY:
            filters = filters[:slots]
        elif self._dataflow == mc.WEIGHT_STATIONARY or not self.machine.slots:
            pixels = pixels[:slots]
        else:  # a short chunk stands in the last slots
            empty = self.machine.slots - len(elements)
            elements = elements[: max(0, slots - empty)]
        return self._box(pixels, filters, elements)

    def _box(
        self, pixels: range, filters: range, elements: range, slots: int | None = None
    ) -> IntArray:
        """Products of these pixels and filters with these elements of one run."""
        part = Products(
            pixels=_places(pixels, 1 if self._all_pixels else self._pixel_step),
            filters=self._by_group(filters, 1 if self._all_filters else self._filter_step),
            elements=self._element_places(elements),
        )
        return self.pes.products(part, slots)

    def _by_group(self, filters: range, places: int) -> IntArray:
        each = self.row.tile_filters // self.together
        found = [_places(_within(filters, at * each, each), places) for at in range(self.groups)]
        return np.stack(found)

    def _element_places(self, elements: range) -> IntArray:
        """[groups, places]; an element of a run is a kernel column's channel of a group."""
        channels, chunk = self.row.tile_channels, self.machine.chunk
        if self.together == 1 and self.pes.vector == 1:
            return _places(elements, chunk)[None]
        each, vector = channels // self.together, self.pes.vector
        found = np.zeros((self.groups, chunk * vector), np.int64)
        for column in range(0, self.row.run_length, channels):
            for group in range(self.groups):
                first = column + group * each
                own = _within(elements, first, each)
                if vector == 1:
                    found[group] += _places(own, chunk)
                else:
                    found[group] += self._vectors(range(own.start - first, own.stop - first))
        return found

    def _vectors(self, vectors: range) -> IntArray:
        """Products at each place of a vector, of a group's vectors from the tile's first on."""
        full, rest = divmod(self.left, self.pes.vector)
        whole = len(_within(vectors, 0, full))
        return whole + (np.arange(self.pes.vector) < rest) * (full in vectors)

    def _place(self, turn: int) -> tuple[int, int, int, int]:
        """Of a turn: filter block, pixel block, run, chunk."""
        turn, chunk = divmod(turn, self._chunks)
        turn, run = divmod(turn, self._runs)
        return *divmod(turn, self._pixel_blocks), run, chunk

    @property
    def _dataflow(self) -> int:
        return self.machine.dataflow

    @property
    def _all_pixels(self) -> bool:
        """Whether a block is all pixels of the tile, which come one after the other."""
        return self._dataflow == mc.WEIGHT_STATIONARY

    @property
    def _all_filters(self) -> bool:
        return self._dataflow == mc.INPUT_STATIONARY

    @property
    def _pixels(self) -> range:
        return range(self.row.pixels)

    @property
    def _filters(self) -> range:
        return range(self.row.tile_filters)

    @property
    def _elements(self) -> range:
        return range(self.row.run_length)

    @property
    def _runs(self) -> int:
        return self.row.taps * self.row.runs

    @property
    def _pixel_step(self) -> int:
        if self._all_pixels:
            return len(self._pixels)
        output = self._dataflow == mc.OUTPUT_STATIONARY
        return self.machine.rows if output else self.machine.columns

    @property
    def _filter_step(self) -> int:
        return len(self._filters) if self._all_filters else self.machine.columns

    @property
    def _pixel_blocks(self) -> int:
        return ceil_div(len(self._pixels), self._pixel_step)

    @property
    def _filter_blocks(self) -> int:
        return ceil_div(len(self._filters), self._filter_step)

    @property
    def _chunks(self) -> int:
        return ceil_div(len(self._elements), self.machine.chunk)

    def _pixel_block(self, number: int) -> range:
        return _block(number, self._pixel_step, len(self._pixels))

    def _filter_block(self, number: int) -> range:
        return _block(number, self._filter_step, len(self._filters))

    def _chunk(self, number: int) -> range:
        return _block(number, self.machine.chunk, len(self._elements))
