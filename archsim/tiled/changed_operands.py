"""Elements of an operand that a layer's tiles read otherwise than they were written.

Tiles of one shape that are loaded into one half meet the same failing cells, so their elements are
found together.  What one load alone reads is put into the operand; what several loads read, and
not alike, is an exception of each of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from archsim.memory.at_once import wrong_of
from archsim.memory.lane_masks import LaneMasks
from archsim.numbers import AnyIntArray, IntArray
from archsim.tiled.changed_kernels import place_changes, read_by_masks
from archsim.tiled.design import CoreDesign
from archsim.tiled.numerics import Blocks
from archsim.tiled.operand_loads import Alike, OperandLoads
from archsim.tiled.tile_words import PARTS, tile_words

Wrong = tuple[IntArray, IntArray]
"""Words of tiles that are read wrong, by their places in all tiles one behind the other, and by how
much: [n] each."""


class Placed(NamedTuple):
    """Elements that are read wrong [n]: the load, of those that are alike; the place in its tile;
    by how much; where it lies in the operand."""

    which: IntArray
    elements: IntArray
    change: IntArray
    flat: IntArray


BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True, eq=False)
class Exceptions:
    """Elements that some of the loads that read them read wrong, in the order of the loads.

    load_of [tiles]: the load that each tile computes with.  starts [loads + 1]: of each load the
    first of its elements.  elements [n]: within the tile; places [n, axes]: of weights and biases,
    in the operand's blocks of groups; wrong [n]: by how much.
    """

    load_of: IntArray
    starts: IntArray
    elements: IntArray
    places: IntArray
    wrong: IntArray


@dataclass(frozen=True, kw_only=True, eq=False)
class OperandReads:
    """How a layer reads an operand: its loads, with what is loaded.

    side: groups of a block.  split: the operand [images, groups, H, W, C], [groups, K, R, S, C] or
    [groups, K].  blocks: the same in blocks, on demand.
    """

    design: CoreDesign
    loads: OperandLoads
    side: int
    split: AnyIntArray
    blocks: Callable[[], Blocks]

    def changes(self) -> tuple[AnyIntArray, Exceptions]:
        """The operand, with what is read of elements that one load alone reads; the exceptions."""
        seen_as, shared = self.split.copy(order="K"), list[tuple[IntArray, ...]]()
        strides = tuple(stride // seen_as.itemsize for stride in seen_as.strides)
        for alike, table in zip(self.loads.alike, self.loads.tables(strides), strict=True):
            out, alone, several = self._placed(alike, table, seen_as)
            seen_as = self._changed(alike, seen_as, Placed(*out[:, :alone]))
            some = Placed(*out[:, out.shape[1] - several :][:, ::-1])
            found = alike.numbers[some.which], some.elements, some.change
            if self.loads.name != "ifmap":
                found = *found, *alike.places(some.which, some.elements)
            shared.append(found)
        own, elements, change, *places = (np.concatenate(one) for one in zip(*shared, strict=True))
        order = np.argsort(own, kind="stable")
        return seen_as, Exceptions(
            load_of=self.loads.of_tile,
            starts=np.searchsorted(own[order], np.arange(len(self.loads.each) + 1)),
            elements=elements[order],
            places=np.stack(places or [own], axis=1)[order],
            wrong=change[order],
        )

    def _placed(
        self, alike: Alike, table: tuple[IntArray, IntArray], whole: AnyIntArray
    ) -> tuple[IntArray, int, int]:
        """Of loads that are alike, as `place_changes` leaves it.  whole: the operand, of which
        elements may be read already that no other load reads."""
        use = self.design.use(self.loads.name).in_half(alike.half)
        count = len(alike.elements)
        masks = self.design.bank(self.loads.name).masks(use, count)
        if masks is not None and self.side == 1:
            cells, flat = masks.cells(count), whole.ravel(order="K")
            out = np.empty((4, len(cells) * len(alike.numbers)), np.int64)
            return out, *read_by_masks(flat, (cells, masks.lanes), table, self.loads.read_by, out)
        wrong = self._of_words(alike) if masks is None else self._of_masks(alike, table, masks)
        out = np.empty((4, len(wrong[0])), np.int64)
        return out, *place_changes(wrong, table, self.loads.read_by, out)

    def _of_masks(self, alike: Alike, table: tuple[IntArray, IntArray], masks: LaneMasks) -> Wrong:
        """Of blocks of several groups, by masks of their words."""
        count, lanes = alike.elements.shape
        rows, columns = masks.failing_in(count)
        real = alike.elements[rows, columns] >= 0
        at = rows[real], columns[real]
        words = at[0] * lanes + at[1]
        which, own = np.indices((len(alike.numbers), len(words))).reshape(2, -1)
        index, inside = self._index(alike.places(which, table[1][0, words][own]))
        meant = np.zeros(len(inside), np.int64)
        meant[inside] = self.split[index]
        meant = meant.reshape(len(alike.numbers), len(words))
        change = (masks.read_at(at, meant) - meant).reshape(-1)
        wrong = np.flatnonzero(change)
        places = np.arange(len(alike.numbers))[:, None] * alike.elements.size + words
        return places.reshape(-1)[wrong], change[wrong]

    def _of_words(self, alike: Alike) -> Wrong:
        """Of all words of each tile, through the memory."""
        name, lanes = self.loads.name, self.design.numerics.word_lanes
        use, memory = self.design.use(name).in_half(alike.half), self.design.bank(name)
        whole = self.split[..., None] if self.side == 1 else self.blocks().of(name)
        tiles = [self.loads.each[int(number)][1] for number in alike.numbers]
        each = [tile_words(name, one, PARTS[name](one, whole), lanes) for one in tiles]
        return wrong_of(memory, use, np.stack(each))

    def _changed(self, alike: Alike, seen_as: AnyIntArray, some: Placed) -> AnyIntArray:
        """The operand with other elements, each of which is as it was meant, in a type that holds
        them."""
        index, change = some.flat, some.change
        flat = seen_as.ravel(order="K")
        if self.side > 1:
            index, inside = self._index(alike.places(some.which, some.elements))
            flat, change = seen_as, change[inside]
        if not len(change):
            return seen_as
        values = flat[index] + change
        limits = np.iinfo(seen_as.dtype)
        if values.min() < limits.min or values.max() > limits.max:
            seen_as = seen_as.astype(np.int64)
            flat = seen_as.ravel(order="K") if self.side == 1 else seen_as
        flat[index] = values
        return seen_as

    def _index(self, places: IntArray) -> tuple[tuple[IntArray, ...], BoolArray]:
        """Places [axes, n] in blocks of groups as an index of the split operand, and which of them
        are in it: not those of empty groups."""
        side, axes = self.side, list(places)
        if side == 1:
            return tuple(axes), np.ones(len(axes[0]), np.bool_)
        at = 1 if self.loads.name == "ifmap" else 0
        counted = -1 if self.loads.name == "ifmap" else 1  # weights and biases: of one group alone
        size = self.split.shape[counted]
        group, axes[counted] = np.divmod(axes[counted], size)
        axes[at] = axes[at] * side + group
        inside = axes[at] < self.split.shape[at]
        return tuple(axis[inside] for axis in axes), inside


__all__ = ["Exceptions", "OperandReads"]
