"""How a layer's tiles load an operand: which loads differ, whose elements lie in which cells, and
which elements several loads read.

It hangs on the walk alone, so it is kept for the next layer that is walked alike.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from archsim.layer.problem import Problem
from archsim.numbers import IntArray
from archsim.tiled.commands import WALK_COLUMNS, TileCommand, commands_of
from archsim.tiled.output_tiles import slice_of
from archsim.tiled.tile_words import WordLanes, loads, tile_words

Load = tuple[int, TileCommand[int]]
"""The half that a tile's operand is loaded into, and the tile."""

MOST_KEPT = 1 << 18
"""Bytes of a walk that is kept."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Alike:
    """Loads of one shape into one half: what lies in a cell has one place in all of them.

    numbers [loads]; tile: of the first; shape: of what they load, along all axes of the operand.
    origins [loads, axes]: where that begins in the operand's blocks of groups.  elements
    [words, lanes]: which of a tile's elements lies where, -1 where none.
    """

    half: int
    numbers: IntArray
    tile: TileCommand[int]
    shape: tuple[int, ...]
    origins: IntArray
    elements: IntArray

    def places(self, which: IntArray, elements: IntArray) -> IntArray:
        """Of elements [n] of loads [n] in the operand's blocks: [axes, n]."""
        return self.origins[which].T + np.stack(np.unravel_index(elements, self.shape))

    def lie(self, strides: Sequence[int]) -> tuple[IntArray, IntArray]:
        """Where loads begin in an array of such strides [loads], and how far from there each word
        of a tile lies [words · lanes]."""
        found = np.zeros(1, np.int64)
        for size, stride in zip(self.shape, strides, strict=True):
            found = np.add.outer(found, np.arange(size) * stride).reshape(-1)
        return self.origins @ np.array(strides, np.int64), found[self.elements.reshape(-1)]


@dataclass(frozen=True, kw_only=True, eq=False)
class OperandLoads:
    """Of "ifmap", "weight" or "bias": loads that differ, and whose tiles are whose [tiles].

    block: the problem of a block of groups.
    """

    name: str
    block: Problem
    lanes: WordLanes
    each: Sequence[Load]
    of_tile: IntArray

    def shape(self, tile: TileCommand[int]) -> tuple[int, ...]:
        """Of a tile's part, along all axes of the operand."""
        filters, channels = tile.tile_filters, tile.tile_channels
        if self.name == "bias":
            return 1, filters
        if self.name == "weight":
            return 1, filters, self.block.kernel_height, self.block.kernel_width, channels
        return tile.tile_images, 1, tile.height, tile.pitch // channels, channels

    def origin(self, tile: TileCommand[int]) -> tuple[int, ...]:
        """Where a tile's part begins in the operand's blocks."""
        if self.name == "bias":
            return tile.tile_group, tile.tile_filter
        if self.name == "weight":
            return tile.tile_group, tile.tile_filter, 0, 0, tile.tile_channel
        place = tile.ifmap_row, tile.ifmap_column, tile.tile_channel
        return (tile.tile_image, tile.tile_group, *place)

    @cached_property
    def alike(self) -> list[Alike]:
        """Loads by half, shape and run: what says which elements lie in which cells."""
        found: dict[tuple[int, tuple[int, ...], int], list[int]] = {}
        for number, (half, tile) in enumerate(self.each):
            found.setdefault((half, self.shape(tile), tile.run_length), []).append(number)
        return [
            Alike(
                half=half,
                numbers=np.array(numbers, np.int64),
                tile=self.each[numbers[0]][1],
                shape=shape,
                origins=np.array([self.origin(self.each[one][1]) for one in numbers], np.int64),
                elements=self._elements(self.each[numbers[0]][1], shape),
            )
            for (half, shape, _), numbers in found.items()
        ]

    def _elements(self, tile: TileCommand[int], shape: tuple[int, ...]) -> IntArray:
        part = np.arange(1, 1 + math.prod(shape)).reshape(shape)
        part = part if self.name == "ifmap" else part[0]
        return tile_words(self.name, tile, part[..., None], self.lanes) - 1

    @cached_property
    def _readers(self) -> tuple[IntArray, IntArray]:
        """Where tiles of channels begin; of each such tile, and of each place along the other axes
        (but for kernel rows and columns, which tiles have all of), the loads that read it."""
        one, outer = self.block, 4 if self.name == "ifmap" else 2
        size = (one.images, one.groups, one.height, one.width)
        size = size if outer == 4 else (one.groups, one.filters)
        parts = [(self.origin(tile), self.shape(tile)) for _, tile in self.each]
        firsts = [0 if self.name == "bias" else origin[-1] for origin, _ in parts]
        begins = sorted(set(firsts))
        found = np.zeros((len(begins), *size), np.int64)
        for first, (origin, shape) in zip(firsts, parts, strict=True):
            at = [slice(low, low + n) for low, n in zip(origin[:outer], shape, strict=False)]
            found[(begins.index(first), *at)] += 1
        return np.array(begins, np.int64), found

    @property
    def read_by(self) -> IntArray:
        """Of places, as `tables` has them, how many loads read each."""
        return self._readers[1].reshape(-1)

    def tables(self, strides: tuple[int, ...]) -> list[tuple[IntArray, IntArray]]:
        """Of loads that are alike, as `archsim.tiled.changed_kernels.place_changes` takes them; of
        an operand of such strides."""
        if strides not in self._tables:
            self._tables[strides] = [self._table(alike, strides) for alike in self.alike]
        return self._tables[strides]

    @cached_property
    def _tables(self) -> dict[tuple[int, ...], list[tuple[IntArray, IntArray]]]:
        return {}

    def _table(self, alike: Alike, strides: tuple[int, ...]) -> tuple[IntArray, IntArray]:
        begins, readers = self._readers
        steps = [step // readers.itemsize for step in readers.strides[1:]]
        steps += [0] * (len(strides) - len(steps))
        first, within = alike.lie(strides)
        known, beside = alike.lie(steps)
        if self.name != "bias":
            own = np.searchsorted(begins, alike.origins[:, -1])
            known = known + own * (readers.size // len(begins))
        words = np.stack([alike.elements.reshape(-1), within, beside])
        return np.stack([first, known]), words


def loads_of(
    name: str, block: Problem, walked: IntArray, half: int, lanes: WordLanes
) -> OperandLoads:
    """How a walk [tiles, WALK_COLUMNS] loads an operand, the first time into `half`."""
    if walked.nbytes > MOST_KEPT:
        return _loads_of(name, block, commands_of(walked), half, lanes)
    return _known(name, block, walked.astype(np.int64).tobytes(), half, lanes)


@lru_cache(maxsize=32)
def _known(name: str, block: Problem, walked: bytes, half: int, lanes: WordLanes) -> OperandLoads:
    tiles = np.frombuffer(walked, np.int64).reshape(-1, WALK_COLUMNS)
    return _loads_of(name, block, commands_of(tiles), half, lanes)


def _loads_of(
    name: str, block: Problem, tiles: Sequence[TileCommand[int]], half: int, lanes: WordLanes
) -> OperandLoads:
    numbers: dict[tuple[int, ...], int] = {}
    found, of_tile, current = list[Load](), list[int](), 0
    for tile in tiles:
        if loads(name, tile):
            key = half, tile.run_length, *slice_of(name, tile)
            current = numbers.setdefault(key, len(found))
            if current == len(found):
                found.append((half, tile))
            half ^= 1
        of_tile.append(current)
    own = np.array(of_tile, np.int64)
    return OperandLoads(name=name, block=block, lanes=lanes, each=found, of_tile=own)


__all__ = ["Alike", "OperandLoads", "loads_of"]
