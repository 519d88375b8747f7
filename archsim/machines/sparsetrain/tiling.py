"""How a layer is cut: products of row vectors with column vectors, in tiles, and these in blocks.

A layer is, for each group, rows × columns dot products of `steps` steps.  A tile is some rows by
some columns, whose sums stay in the accumulators; a block is some steps of a tile, which the
operand buffers hold.  Sizes are as even as they can be, so that no last block is nearly empty.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from archsim.layer.problem import Problem
from archsim.machines.sparsetrain.dealing import longest
from archsim.machines.sparsetrain.design import SparseTrain
from archsim.numbers import BoolArray, IntArray, ceil_div

(GROUP, ROW, ROWS, COLUMN, COLUMNS, STEP, STEPS, FIRST, LAST, TILE, BLOCK_COLUMNS) = range(11)
"""Columns of a table of blocks: what begins where, and how long; number of the tile."""


@dataclass(frozen=True, kw_only=True)
class Cut:
    """Sizes of a layer as the core sees it, and of its tiles and blocks.

    turned: the ifmap's vectors are the columns, and the weights' the rows.
    """

    groups: int
    rows: int
    columns: int
    steps: int
    tile_rows: int
    tile_columns: int
    block_steps: int
    turned: bool = False

    @cached_property
    def blocks(self) -> IntArray:
        """[blocks, BLOCK_COLUMNS] in order: groups, tiles of rows, tiles of columns, steps."""
        starts = [np.arange(0, whole, part) for whole, part in self._axes]
        group, row, column, step = (
            one.ravel() for one in np.meshgrid(np.arange(self.groups), *starts, indexing="ij")
        )
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


def cut_of(design: SparseTrain, problem: Problem, needed: BoolArray | None = None) -> Cut:
    """The layer with its pixels as rows, or turned if that takes fewer cycles with no zeros.

    needed: outputs [groups, pixels, filters] that are computed; None for all.
    """
    pixels = problem.images * problem.out_height * problem.out_width
    depth = problem.channels * problem.kernel_height * problem.kernel_width
    plain = _even(design, problem.groups, (pixels, problem.filters), ceil_div(depth, design.lanes))
    turned = _even(design, problem.groups, (problem.filters, pixels), plain.steps)
    if needed is None:
        cycles = [dense_cycles(design, cut) for cut in (plain, turned)]
    else:
        masks = (needed, needed.transpose(0, 2, 1))
        pairs = zip((plain, turned), masks, strict=True)
        cycles = [needed_cycles(design, cut, mask) for cut, mask in pairs]
    return replace(turned, turned=True) if cycles[1] < cycles[0] else plain


def needed_cycles(design: SparseTrain, cut: Cut, needed: BoolArray) -> int:
    """Of every tile in which an output is needed the longer of load and longest PE, with no zeros.

    needed: [groups, rows, columns].
    """
    sizes = (cut.tile_rows, cut.tile_columns)
    short = [-whole % part for whole, part in zip(needed.shape[1:], sizes, strict=True)]
    padded = np.pad(needed, ((0, 0), (0, short[0]), (0, short[1])))
    tiles = [whole // part for whole, part in zip(padded.shape[1:], sizes, strict=True)]
    split = padded.reshape(cut.groups, tiles[0], sizes[0], tiles[1], sizes[1])
    counts = split.sum(axis=2)
    if design.move_work:
        most = longest(counts, design.pes)
    else:
        most = counts.reshape(*counts.shape[:3], -1, design.pes).sum(axis=3).max(axis=3)
    return int(np.where(most > 0, np.maximum(most, max(sizes)), 0).sum()) * cut.steps


def _even(design: SparseTrain, groups: int, outputs: tuple[int, int], steps: int) -> Cut:
    rows, columns = outputs
    sets = ceil_div(columns, design.pes)
    return Cut(
        groups=groups,
        rows=rows,
        columns=columns,
        steps=steps,
        tile_rows=_part(rows, design.rows),
        tile_columns=design.pes * _part(sets, design.own_columns),
        block_steps=_part(steps, design.depth),
    )


def _part(whole: int, most: int) -> int:
    """The size of the first of the fewest, most even parts."""
    return ceil_div(whole, ceil_div(whole, most))


def dense_cycles(design: SparseTrain, cut: Cut) -> int:
    """Of every block the longer of load and products, with no zeros and all outputs."""
    rows, columns = (
        _sizes(whole, part)
        for whole, part in ((cut.rows, cut.tile_rows), (cut.columns, cut.tile_columns))
    )
    total = 0
    for row_size, row_tiles in rows:
        for column_size, column_tiles in columns:
            work = row_size * ceil_div(column_size, design.pes)
            longest = max(row_size, column_size, work)
            total += row_tiles * column_tiles * longest
    return cut.groups * total * cut.steps


def _sizes(whole: int, part: int) -> list[tuple[int, int]]:
    """Sizes of the parts, and how many there are."""
    full, left = divmod(whole, part)
    return [(size, number) for size, number in ((part, full), (left, 1)) if size and number]


__all__ = ["Cut", "cut_of", "dense_cycles", "needed_cycles"]
