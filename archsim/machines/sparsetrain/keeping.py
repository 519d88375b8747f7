"""Which steps stay in the loaders' scratchpads, so that they do not cross the ports again.

A tile's rows are the same for all tiles of columns beside it, which follow one another; a group's
columns are the same for all its tiles of rows.  (`Cut.by_columns`: the other way round.)  Of a
tile's rows, and of a group's columns, those blocks are kept that come first, as many as there is
place for.  The block that loads them first writes them, the others that need them read them.  All
of it is in the commands; the core decides nothing, and no step takes longer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from archsim.machines.sparsetrain.design import SIDES, SparseTrain
from archsim.machines.sparsetrain.tiling import (
    COLUMN,
    COLUMNS,
    GROUP,
    ROW,
    ROWS,
    STEP,
    STEPS,
    Cut,
    vectors_of,
)
from archsim.numbers import BoolArray, IntArray


@dataclass(frozen=True)
class Kept:
    """Of each block's steps of an operand [blocks] where they lie; whether they are written there,
    and whether they are read there; how many they are."""

    place: IntArray
    keep: BoolArray
    again: BoolArray
    steps: IntArray

    @property
    def kept_steps(self) -> int:
        """That are written."""
        return int(self.steps[self.keep].sum())

    @property
    def again_steps(self) -> int:
        """That are read, and do not cross."""
        return int(self.steps[self.again].sum())


def kept_of(design: SparseTrain, cut: Cut, blocks: IntArray, *, dealt: bool) -> tuple[Kept, Kept]:
    """Of rows and of columns, of the blocks that there are of a cut.

    dealt: each tile has its columns in an order of its own (`dealing`); then no columns are kept.
    """
    pes, segments = design.pes, cut.segments
    vectors = vectors_of(blocks[:, COLUMNS], pes, segments)
    row_place, column_place = (many * blocks[:, STEP] for many in (blocks[:, ROWS], vectors))
    if cut.by_columns:
        row_place += blocks[:, ROW] * cut.steps
    else:
        column_place += vectors_of(blocks[:, COLUMN], pes, segments) * cut.steps
    row_room, column_room = (design.kept_steps(name) for name in SIDES)
    rows, columns = (
        (blocks[:, GROUP] * whole + blocks[:, at]) * cut.steps + blocks[:, STEP]
        for whole, at in ((cut.rows, ROW), (cut.columns, COLUMN))
    )
    return (
        _kept(rows, row_place, blocks[:, ROWS] * blocks[:, STEPS], row_room),
        _kept(columns, column_place, vectors * blocks[:, STEPS], 0 if dealt else column_room),
    )


def _kept(whose: IntArray, place: IntArray, steps: IntArray, room: int) -> Kept:
    """whose: of each block a number that tells its steps from others, [blocks]."""
    fits = place + steps <= room
    keep, again = np.zeros_like(fits), np.zeros_like(fits)
    own = np.flatnonzero(fits)
    if len(own):
        _, first, which, uses = np.unique(
            whose[own], return_index=True, return_inverse=True, return_counts=True
        )
        often = own[uses[which] > 1]
        keep[own[first[uses > 1]]] = True
        again[often] = ~keep[often]
    return Kept(np.where(keep | again, place, 0), keep, again, steps)


__all__ = ["Kept", "kept_of"]
