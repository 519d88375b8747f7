"""A layer with its operands: vectors, blocks, and what PEs do for each of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from archsim.layer.problem import Problem, problem_of
from archsim.machine.model import MatrixLayer
from archsim.machines.sparsetrain.block_work import LONGEST, block_work
from archsim.machines.sparsetrain.cutting import cut_of
from archsim.machines.sparsetrain.dealing import in_order, order_of
from archsim.machines.sparsetrain.design import SparseTrain
from archsim.machines.sparsetrain.fields import fields_of
from archsim.machines.sparsetrain.keeping import Kept, kept_of
from archsim.machines.sparsetrain.kernels import Outputs
from archsim.machines.sparsetrain.tiling import (
    COLUMN,
    COLUMNS,
    FIRST,
    GROUP,
    LAST,
    ROW,
    ROWS,
    STEPS,
    Cut,
    vectors_of,
)
from archsim.machines.sparsetrain.vectors import (
    AnyArray,
    Words,
    filter_vectors,
    non_zero,
    outputs_of,
    window_vectors,
)
from archsim.numbers import BoolArray, IntArray
from workloads.threads import in_threads

_SHARES = 16
"""Of a layer's blocks, for threads."""


@dataclass(frozen=True, kw_only=True, eq=False)
class LayerWork:
    """operands: as the design's intake takes them."""

    design: SparseTrain
    layer: MatrixLayer
    operands: Any

    @cached_property
    def problem(self) -> Problem:
        return problem_of(self.layer)

    @property
    def held_bytes(self) -> int:
        """Of memory at a time: vectors, which values are not zero, sums."""
        one, held = self.problem, self.operands.ifmap.dtype.itemsize + 2
        pixels = one.images * one.out_height * one.out_width
        depth = one.channels * one.kernel_height * one.kernel_width
        values = (pixels + one.filters) * depth
        return one.groups * (values * held + pixels * one.filters * 2 * np.dtype(np.int64).itemsize)

    @cached_property
    def cut(self) -> Cut:
        ifmap, weight = self.operands.ifmap, self.operands.weight
        pairs = np.count_nonzero(ifmap) / ifmap.size * np.count_nonzero(weight) / weight.size
        return cut_of(self.design, self.problem, self._needed, pairs)

    @cached_property
    def vectors(self) -> tuple[AnyArray, AnyArray]:
        """Rows and columns, [groups, vectors, depth] each."""
        ifmap, weight = self.operands.ifmap, self.operands.weight
        if self.design.floating:  # patterns
            ifmap, weight = ifmap.astype(np.uint16), weight.astype(np.uint16)
        pixels = window_vectors(self.layer, self.problem, ifmap)
        filters = filter_vectors(self.layer, self.problem, weight)
        return (filters, pixels) if self.cut.turned else (pixels, filters)

    @property
    def step_lanes(self) -> int:
        """Values of a row or of a column in a step."""
        return self.design.lanes // self.cut.segments

    @cached_property
    def non_zero(self) -> tuple[Words, Words]:
        """A bit for each value of rows, of columns that is not zero, [groups, vectors, steps]."""
        rows, columns = (non_zero(one, self.step_lanes) for one in self.vectors)
        return rows, columns

    @cached_property
    def _needed(self) -> BoolArray | None:
        """Outputs that are computed, [groups, pixels, filters]; None for all."""
        if self.operands.needed is None or not self.design.skip_outputs:
            return None
        return outputs_of(self.problem, self.operands.needed)

    @cached_property
    def needed(self) -> BoolArray | None:
        """Outputs that are computed, [groups, rows, columns]; None for all."""
        if self._needed is None or not self.cut.turned:
            return self._needed
        return np.ascontiguousarray(self._needed.transpose(0, 2, 1))

    @cached_property
    def order(self) -> IntArray | None:
        """Which column is dealt to each place (`order_of`); None where they stay."""
        if self.needed is None or not self.design.move_work:
            return None
        tile = (self.cut.tile_rows, self.cut.tile_columns)
        return order_of(self.needed, tile, self.design.pes)

    def in_order(self, outputs: AnyArray) -> AnyArray:
        """[groups, rows, columns] as columns are dealt in every row's tile."""
        if self.order is None:
            return outputs
        return in_order(outputs, self.order, self.cut.tile_rows)

    @cached_property
    def placed(self) -> BoolArray | None:
        """`needed`, in the order in which columns are dealt."""
        return None if self.needed is None else self.in_order(self.needed)

    def columns_of(self, block: IntArray) -> IntArray:
        """The column vectors of a block, in the order in which they come."""
        first, count = int(block[COLUMN]), int(block[COLUMNS])
        places: IntArray = np.arange(first, first + count, dtype=np.int64)
        if self.order is None:
            return places
        return self.order[block[GROUP], block[ROW] // self.cut.tile_rows, places]

    @cached_property
    def words_needed(self) -> BoolArray:
        """Which words of the ofmap leave: of each group and row, of each set of columns, one for
        each PE, [groups, rows, sets]."""
        sets = -(-self.cut.columns // self.design.pes)
        whole = np.ones((self.cut.groups, self.cut.rows, sets), np.bool_)
        if self.placed is None:
            return whole
        short = sets * self.design.pes - self.cut.columns
        padded = np.pad(self.placed, ((0, 0), (0, 0), (0, short)))
        return np.asarray(padded.reshape(*whole.shape, self.design.pes).any(axis=3))

    @cached_property
    def blocks(self) -> IntArray:
        """Those of tiles in which an output is needed, as `Cut.blocks`."""
        blocks = self.cut.blocks
        return blocks if self.needed is None else blocks[self._words_of(blocks) > 0]

    def _words_of(self, blocks: IntArray) -> IntArray:
        """Words of the ofmap of each block's tile."""
        flags = self.words_needed.astype(np.int64).cumsum(axis=1).cumsum(axis=2)
        sums = np.pad(flags, ((0, 0), (1, 0), (1, 0)))
        group, top = blocks[:, GROUP], blocks[:, ROW]
        left = blocks[:, COLUMN] // self.design.pes
        bottom, right = top + blocks[:, ROWS], left - (-blocks[:, COLUMNS] // self.design.pes)
        return (
            sums[group, bottom, right] - sums[group, top, right]
            - sums[group, bottom, left] + sums[group, top, left]
        )  # fmt: skip

    @cached_property
    def work(self) -> IntArray:
        """What PEs do for each block (`archsim.machines.sparsetrain.block_work`)."""
        fields, outputs = fields_of(self.design, self.cut.segments), self.outputs
        (row_words, column_words), blocks = self.lane_words, self.blocks
        size = max(-(-len(blocks) // _SHARES), 1)
        shares = [blocks[first : first + size] for first in range(0, len(blocks), size)]

        def share(own: IntArray) -> IntArray:
            return block_work(row_words, column_words, outputs, own, fields, self.design.pes)

        return np.concatenate(in_threads(share, shares)) if shares else share(blocks)

    @cached_property
    def lane_words(self) -> tuple[Words, Words]:
        """`non_zero`, the rows' in every segment."""
        everywhere = sum(1 << at * self.step_lanes for at in range(self.cut.segments))
        return self.non_zero[0] * np.uint64(everywhere), self.non_zero[1]

    @cached_property
    def outputs(self) -> Outputs:
        """Which are computed, and by which column of their tile."""
        needed = np.zeros((0, 0, 0), np.bool_) if self.placed is None else self.placed
        stay = np.broadcast_to(np.arange(self.cut.columns), (self.cut.groups, 1, self.cut.columns))
        rows = self.cut.tile_rows if self.order is not None else self.cut.rows
        order = np.ascontiguousarray(stay if self.order is None else self.order)
        return needed, order, rows

    @cached_property
    def kept(self) -> tuple[Kept, Kept]:
        """Of rows and of columns what stays in the scratchpads."""
        return kept_of(self.design, self.cut, self.blocks, dealt=self.order is not None)

    @cached_property
    def loads(self) -> IntArray:
        """Of each block what `block_scan` takes, [blocks, 7]."""
        blocks, masked = self.blocks, self.needed is not None
        first, last = blocks[:, FIRST] == 1, blocks[:, LAST] == 1
        columns = vectors_of(blocks[:, COLUMNS], self.design.pes, self.cut.segments)
        return np.stack(
            [
                blocks[:, ROWS] * blocks[:, STEPS],
                columns * blocks[:, STEPS],
                np.where(first & masked, blocks[:, ROWS], 0),
                self.work[:, LONGEST],
                np.where(last, self._words_of(blocks), 0),
                *(one.again.astype(np.int64) for one in self.kept),
            ],
            axis=1,
        )


__all__ = ["LayerWork"]
