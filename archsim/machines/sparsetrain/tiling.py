"""How a layer is cut: products of row vectors with column vectors, in tiles, and these in blocks.

A layer is, for each group, rows × columns dot products of `steps` steps.  A tile is some rows by
some columns, whose sums stay in the accumulators; a block is some steps of a tile, which the
operand buffers hold.  Sizes are as even as they can be, so that no last block is nearly empty.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from archsim.layer.problem import Problem
from archsim.machines.sparsetrain.dealing import in_order, longest, order_of
from archsim.machines.sparsetrain.design import SparseTrain
from archsim.numbers import BoolArray, IntArray, ceil_div

(GROUP, ROW, ROWS, COLUMN, COLUMNS, STEP, STEPS, FIRST, LAST, TILE, BLOCK_COLUMNS) = range(11)
"""Columns of a table of blocks: what begins where, and how long; number of the tile."""


@dataclass(frozen=True, kw_only=True)
class Cut:
    """Sizes of a layer as the core sees it, and of its tiles and blocks.

    turned: the ifmap's vectors are the columns, and the weights' the rows.
    segments: of which each computes an output; 1 if PEs compute one at a time.  A step has the
        lanes of one.
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


def vectors_of(columns: Any, pes: int, segments: int) -> Any:
    """Column vectors of so many columns: with segments, as many columns of a PE in each."""
    apart = pes * segments
    return columns // apart * pes + np.minimum(columns % apart, pes)


def cut_of(
    design: SparseTrain, problem: Problem, needed: BoolArray | None = None, pairs: float = 1.0
) -> Cut:
    """The layer whole, or split into segments if that takes fewer cycles.

    needed: outputs [groups, pixels, filters] that are computed; None for all.
    pairs: of the operands' pairs the share of which none is zero.
    """
    found = _turned_or_not(design, problem, needed, 1)
    if design.segments == 1:
        return found
    split = _turned_or_not(design, problem, needed, design.segments)
    share = max(pairs, 1 / design.window_rows)
    return (
        split
        if _cycles(design, split, needed, share) < _cycles(design, found, needed, share)
        else found
    )


def _cycles(design: SparseTrain, cut: Cut, needed: BoolArray | None, share: float = 1.0) -> float:
    """Of a cut, if dot products take so much of their steps."""
    if needed is None:
        return dense_cycles(design, cut, share)
    return needed_cycles(design, cut, needed.transpose(0, 2, 1) if cut.turned else needed, share)


def _turned_or_not(
    design: SparseTrain, problem: Problem, needed: BoolArray | None, segments: int
) -> Cut:
    """With its pixels as rows, or turned if that takes fewer cycles with no zeros."""
    pixels = problem.images * problem.out_height * problem.out_width
    depth = problem.channels * problem.kernel_height * problem.kernel_width
    steps = ceil_div(depth, design.lanes // segments)
    sizes = (problem.groups, steps, segments)
    plain = _even(design, sizes, (pixels, problem.filters))
    turned = replace(_even(design, sizes, (problem.filters, pixels)), turned=True)
    fewer = _cycles(design, turned, needed) < _cycles(design, plain, needed)
    return turned if fewer else plain


def needed_cycles(design: SparseTrain, cut: Cut, needed: BoolArray, share: float = 1.0) -> float:
    """Of every tile in which an output is needed the longer of load and longest PE.

    needed: [groups, rows, columns].  share: of their steps what dot products take.
    """
    most = _longest(design, cut, needed)
    load = max(cut.tile_rows, vectors_of(cut.tile_columns, design.pes, cut.segments))
    return float(np.where(most > 0, np.maximum(most * share, load), 0).sum()) * cut.steps


def _longest(design: SparseTrain, cut: Cut, needed: BoolArray) -> IntArray:
    """Of every tile what the PE takes that has most."""
    if design.move_work and cut.segments > 1:
        order = order_of(needed, (cut.tile_rows, cut.tile_columns), design.pes)
        needed = in_order(needed, order, cut.tile_rows)
    sizes = (cut.tile_rows, cut.tile_columns)
    short = [-whole % part for whole, part in zip(needed.shape[1:], sizes, strict=True)]
    padded = np.pad(needed, ((0, 0), (0, short[0]), (0, short[1])))
    tiles = [whole // part for whole, part in zip(padded.shape[1:], sizes, strict=True)]
    split = padded.reshape(cut.groups, tiles[0], sizes[0], tiles[1], sizes[1])
    if cut.segments > 1:
        at_once = split.reshape(*split.shape[:4], -1, cut.segments, design.pes)
        return at_once.any(axis=5).sum(axis=(2, 4)).max(axis=3)
    counts = split.sum(axis=2)
    if design.move_work:
        return longest(counts, design.pes)
    return counts.reshape(*counts.shape[:3], -1, design.pes).sum(axis=3).max(axis=3)


def _even(design: SparseTrain, sizes: tuple[int, int, int], outputs: tuple[int, int]) -> Cut:
    """sizes: groups, steps, segments; outputs: rows, columns."""
    (groups, steps, segments), (rows, columns) = sizes, outputs
    at_once = design.pes * segments
    sets = ceil_div(columns, at_once)
    return Cut(
        groups=groups,
        rows=rows,
        columns=columns,
        steps=steps,
        tile_rows=_part(rows, design.rows),
        tile_columns=at_once * _part(sets, design.own_columns // segments),
        block_steps=_part(steps, design.depth),
        segments=segments,
    )


def _part(whole: int, most: int) -> int:
    """The size of the first of the fewest, most even parts."""
    return ceil_div(whole, ceil_div(whole, most))


def dense_cycles(design: SparseTrain, cut: Cut, share: float = 1.0) -> float:
    """Of every block the longer of load and products, with all outputs.

    share: of their steps what dot products take.
    """
    rows, columns = (
        _sizes(whole, part)
        for whole, part in ((cut.rows, cut.tile_rows), (cut.columns, cut.tile_columns))
    )
    total = 0.0
    for row_size, row_tiles in rows:
        for column_size, column_tiles in columns:
            work = row_size * ceil_div(column_size, design.pes * cut.segments)
            load = max(row_size, vectors_of(column_size, design.pes, cut.segments))
            total += row_tiles * column_tiles * max(load, work * share)
    return cut.groups * total * cut.steps


def _sizes(whole: int, part: int) -> list[tuple[int, int]]:
    """Sizes of the parts, and how many there are."""
    full, left = divmod(whole, part)
    return [(size, number) for size, number in ((part, full), (left, 1)) if size and number]


__all__ = ["Cut", "cut_of", "dense_cycles", "needed_cycles", "vectors_of"]
