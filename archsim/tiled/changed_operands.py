"""Elements of an operand that a layer's tiles read otherwise than they were written.

Tiles of one shape that are loaded into one half meet the same failing cells, so their elements are
found together.  What one load alone reads is put into the operand; what several loads read, and
not alike, is an exception of each of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np
import numpy.typing as npt

from archsim.layer.problem import Problem
from archsim.memory.at_once import wrong_of
from archsim.numbers import AnyIntArray, IntArray
from archsim.tiled.commands import TileCommand
from archsim.tiled.design import CoreDesign
from archsim.tiled.numerics import Blocks
from archsim.tiled.output_tiles import slice_of
from archsim.tiled.tile_words import PARTS, loads, tile_words

Load = tuple[int, TileCommand[int]]
"""The half that a tile's operand is loaded into, and the tile."""

Wrong = tuple[IntArray, IntArray, IntArray, IntArray]
"""Of each element that is read wrong [n] the load, by its place in a list; the place in its tile,
and in the operand's blocks [axes, n]; by how much."""

Given = tuple[Problem, int, AnyIntArray, Callable[[], Blocks]]
"""The problem of a block of groups, how many these are, an operand by groups, and blocks of all."""

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True, eq=False)
class Exceptions:
    """Elements that some of the loads that read them read wrong, in the order of the loads.

    load_of [tiles]: the load that each tile computes with.  starts [loads + 1]: of each load the
    first of its elements.  elements [n]: within the tile; places [n, axes]: in the operand's blocks
    of groups; wrong [n]: by how much.
    """

    load_of: IntArray
    starts: IntArray
    elements: IntArray
    places: IntArray
    wrong: IntArray


@dataclass(frozen=True, kw_only=True, eq=False)
class OperandReads:
    """How a layer reads "ifmap", "weight" or "bias": loads that differ, and whose tiles are whose.

    block: the problem of a block of `side` groups.  split: the operand [images, groups, H, W, C],
    [groups, K, R, S, C] or [groups, K].  blocks: the same in blocks, on demand.
    """

    design: CoreDesign
    name: str
    block: Problem
    side: int
    split: AnyIntArray
    blocks: Callable[[], Blocks]
    loads: Sequence[Load]
    load_of: Sequence[int]

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

    def changes(self) -> tuple[AnyIntArray, Exceptions]:
        """The operand, with what is read of elements that one load alone reads; the exceptions."""
        seen_as, shared = self.split, list[Wrong]()
        for (half, *_), numbers in self._alike().items():
            those = [self.loads[number][1] for number in numbers]
            wrong = self._of_masks(half, those)
            if wrong is None:
                wrong = self._of_words(half, those)
            which, elements, places, change = wrong
            several = self._several(places)
            if not several.all():
                alone = ~several
                index, inside = self._index(places[:, alone])
                seen_as = _changed(self.split, seen_as, index, change[alone][inside])
            own = np.array(numbers, np.int64)[which[several]]
            shared.append((own, elements[several], places[:, several], change[several]))
        own, elements, places, change = (
            np.concatenate(one, axis=-1) for one in zip(*shared, strict=True)
        )
        order = np.argsort(own, kind="stable")
        return seen_as, Exceptions(
            load_of=np.array(self.load_of, np.int64),
            starts=np.searchsorted(own[order], np.arange(len(self.loads) + 1)),
            elements=elements[order],
            places=np.ascontiguousarray(places[:, order].T),
            wrong=change[order],
        )

    def _alike(self) -> dict[tuple[int, tuple[int, ...], int], list[int]]:
        """Loads by half, shape and run: what says which elements lie in which cells."""
        found: dict[tuple[int, tuple[int, ...], int], list[int]] = {}
        for number, (half, tile) in enumerate(self.loads):
            found.setdefault((half, self.shape(tile), tile.run_length), []).append(number)
        return found

    @cached_property
    def _readers(self) -> tuple[Sequence[int], IntArray]:
        """Where tiles of channels begin; of each such tile, and of each place along the other axes
        (but for kernel rows and columns, which tiles have all of), the loads that read it."""
        one, outer = self.block, 4 if self.name == "ifmap" else 2
        size = (one.images, one.groups, one.height, one.width)
        size = size if outer == 4 else (one.groups, one.filters)
        parts = [(self.origin(tile), self.shape(tile)) for _, tile in self.loads]
        firsts = [0 if self.name == "bias" else origin[-1] for origin, _ in parts]
        begins = sorted(set(firsts))
        found = np.zeros((len(begins), *size), np.int64)
        for first, (origin, shape) in zip(firsts, parts, strict=True):
            at = [slice(low, low + n) for low, n in zip(origin[:outer], shape, strict=False)]
            found[(begins.index(first), *at)] += 1
        return begins, found

    def _several(self, places: IntArray) -> BoolArray:
        """Whether elements at places [axes, n] in blocks are read by several loads."""
        begins, readers = self._readers
        own = cast("IntArray", np.searchsorted(np.array(begins), places[-1], "right")) - 1
        return readers[(own, *places[: readers.ndim - 1])] > 1

    def _places(self, tiles: Sequence[TileCommand[int]], elements: IntArray) -> IntArray:
        """Of elements of tiles of one shape, in the operand's blocks: [axes, tiles, elements]."""
        within = np.stack(np.unravel_index(elements, self.shape(tiles[0])))
        origins = np.array([self.origin(tile) for tile in tiles], np.int64)
        return origins.T[:, :, None] + within[:, None, :]

    def _of_masks(self, half: int, tiles: Sequence[TileCommand[int]]) -> Wrong | None:
        """Of tiles of one shape in a half, by masks of their words; None without any."""
        use = self.design.use(self.name).in_half(half)
        words = dict(zip(PARTS, tiles[0].words, strict=True))[self.name]
        masks = self.design.bank(self.name).masks(use, words)
        if masks is None:
            return None
        rows, columns = (one[: np.searchsorted(masks.failing[0], words)] for one in masks.failing)
        elements = self._elements(tiles[0])[rows, columns]
        real = np.flatnonzero(elements >= 0)
        elements, at = elements[real], (rows[real], columns[real])
        places = self._places(tiles, elements)
        places = places.reshape(len(places), -1)
        index, inside = self._index(places)
        meant = self.split[index].astype(np.int64)
        if not inside.all():
            meant, known = np.zeros(len(inside), np.int64), meant
            meant[inside] = known
        change = masks.read_at(at, meant.reshape(len(tiles), len(elements))).reshape(-1) - meant
        wrong = np.flatnonzero(change)
        which, number = np.divmod(wrong, max(len(elements), 1))
        return which, elements[number], places[:, wrong], change[wrong]

    def _elements(self, tile: TileCommand[int]) -> IntArray:
        """[words, lanes]: which of its elements a tile has where, -1 where none."""
        shape = self.shape(tile)
        part = np.arange(1, 1 + math.prod(shape)).reshape(shape)
        part = part if self.name == "ifmap" else part[0]
        lanes = self.design.numerics.word_lanes
        return tile_words(self.name, tile, part[..., None], lanes) - 1

    def _of_words(self, half: int, tiles: Sequence[TileCommand[int]]) -> Wrong:
        """The same, of all words of each tile."""
        use, memory = self.design.use(self.name).in_half(half), self.design.bank(self.name)
        whole = self.split[..., None] if self.side == 1 else self.blocks().of(self.name)
        part, lanes, held = (
            PARTS[self.name],
            self.design.numerics.word_lanes,
            self._elements(tiles[0]),
        )
        words = np.stack([tile_words(self.name, one, part(one, whole), lanes) for one in tiles])
        at, change = wrong_of(memory, use, words)
        which, number = np.divmod(at, held.size)
        elements = held.reshape(-1)[number]
        real = elements >= 0
        which, elements, change = which[real], elements[real], change[real]
        origins = np.array([self.origin(tile) for tile in tiles], np.int64)
        within = np.stack(np.unravel_index(elements, self.shape(tiles[0])))
        return which, elements, origins[which].T + within, change

    def _index(self, places: IntArray) -> tuple[tuple[IntArray, ...], BoolArray]:
        """Places [axes, n] in blocks of groups as an index of the split operand, and which of them
        are in it: not those of empty groups."""
        side, axes = self.side, list(places)
        if side == 1:
            return tuple(axes), np.ones(len(axes[0]), np.bool_)
        at = 1 if self.name == "ifmap" else 0
        counted = -1 if self.name == "ifmap" else 1  # weights and biases: of one group alone
        size = self.split.shape[counted]
        group, axes[counted] = np.divmod(axes[counted], size)
        axes[at] = axes[at] * side + group
        inside = axes[at] < self.split.shape[at]
        return tuple(axis[inside] for axis in axes), inside


def reads_of(
    design: CoreDesign, name: str, tiles: Sequence[TileCommand[int]], given: Given, half: int
) -> OperandReads:
    """How tiles read an operand whose first load is into `half`."""
    numbers: dict[tuple[int, ...], int] = {}
    found, load_of, current = list[Load](), list[int](), 0
    for tile in tiles:
        if loads(name, tile):
            key = half, tile.run_length, *slice_of(name, tile)
            current = numbers.setdefault(key, len(found))
            if current == len(found):
                found.append((half, tile))
            half ^= 1
        load_of.append(current)
    block, side, split, blocks = given
    return OperandReads(
        design=design, name=name, block=block, side=side, split=split, blocks=blocks, loads=found,
        load_of=load_of,
    )  # fmt: skip


def _changed(
    meant: AnyIntArray, seen_as: AnyIntArray, index: tuple[IntArray, ...], change: IntArray
) -> AnyIntArray:
    """The operand with other elements, in a type that holds them."""
    values = meant[index] + change
    if seen_as is meant:
        seen_as = meant.copy(order="K")
    if len(values):
        limits = np.iinfo(seen_as.dtype)
        if values.min() < limits.min or values.max() > limits.max:
            seen_as = seen_as.astype(np.int64)
    seen_as[index] = values
    return seen_as


__all__ = ["Exceptions", "OperandReads", "reads_of"]
