"""How a layer is cut: products of row vectors with column vectors, in tiles, and these in blocks.

A layer is, for each group, rows × columns dot products of `steps` steps.  A tile is some rows by
some columns, whose sums stay in the accumulators; a block is some steps of a tile, which the
operand buffers hold.  Which cut a layer gets: `cutting`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from archsim.numbers import IntArray

(GROUP, ROW, ROWS, COLUMN, COLUMNS, STEP, STEPS, FIRST, LAST, TILE, BLOCK_COLUMNS) = range(11)
"""Columns of a table of blocks: what begins where, and how long; number of the tile."""


@dataclass(frozen=True, kw_only=True)
class Cut:
    """Sizes of a layer as the core sees it, and of its tiles and blocks.

    turned: the ifmap's vectors are the columns, and the weights' the rows.
    segments: of which each computes an output; 1 if PEs compute one at a time.  A step has the
        lanes of one.
    by_columns: tiles of the same columns follow one another, not those of the same rows.
    """

    groups: int
    rows: int
    columns: int
    steps: int
    tile_rows: int
    tile_columns: int
    block_steps: int
    turned: bool = False
    segments: int = 1
    by_columns: bool = False

    @cached_property
    def blocks(self) -> IntArray:
        """[blocks, BLOCK_COLUMNS] in order: groups, tiles of rows, tiles of columns (`by_columns`
        these first), steps."""
        starts = [np.arange(0, whole, part) for whole, part in self._axes]
        outer, inner = (1, 0) if self.by_columns else (0, 1)
        walk = np.arange(self.groups), starts[outer], starts[inner], starts[2]
        group, *tile, step = (one.ravel() for one in np.meshgrid(*walk, indexing="ij"))
        row, column = tile[outer], tile[inner]
        found = np.zeros((len(group), BLOCK_COLUMNS), np.int64)
        found[:, GROUP] = group
        for at, start, (whole, part) in zip(
            (ROW, COLUMN, STEP), (row, column, step), self._axes, strict=True
        ):
            found[:, at], found[:, at + 1] = start, np.minimum(part, whole - start)
        found[:, FIRST] = step == 0
        found[:, LAST] = found[:, STEP] + found[:, STEPS] == self.steps
        found[:, TILE] = np.arange(len(group)) // len(starts[2])
        return found

    @property
    def _axes(self) -> tuple[tuple[int, int], ...]:
        return (
            (self.rows, self.tile_rows),
            (self.columns, self.tile_columns),
            (self.steps, self.block_steps),
        )


def vectors_of(columns: Any, pes: int, segments: int) -> Any:
    """Column vectors of so many columns: with segments, as many columns of a PE in each."""
    apart = pes * segments
    return columns // apart * pes + np.minimum(columns % apart, pes)


__all__ = ["Cut", "vectors_of"]
