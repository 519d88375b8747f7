"""Which cut a layer gets: whole or in segments, its pixels as rows or turned, in which order.

The one that takes fewer cycles; of as many cycles, the one of which fewer bits cross the ports.
Sizes are as even as they can be, so that no last block is nearly empty.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from archsim.layer.problem import Problem
from archsim.machines.sparsetrain.dealing import in_order, longest, order_of
from archsim.machines.sparsetrain.design import SIDES, SparseTrain
from archsim.machines.sparsetrain.keeping import kept_of
from archsim.machines.sparsetrain.tiling import COLUMNS, LAST, ROWS, Cut, vectors_of
from archsim.numbers import BoolArray, IntArray, ceil_div


def cut_of(
    design: SparseTrain, problem: Problem, needed: BoolArray | None = None, pairs: float = 1.0
) -> Cut:
    """The layer whole, or split into segments if that is better.

    needed: outputs [groups, pixels, filters] that are computed; None for all.
    pairs: of the operands' pairs the share of which none is zero.
    """
    found = _turned_or_not(design, problem, needed, 1)
    if design.segments == 1:
        return found
    split = _turned_or_not(design, problem, needed, design.segments)
    return _better(design, (found, split), needed, max(pairs, 1 / design.window_rows))


def _better(
    design: SparseTrain, cuts: tuple[Cut, Cut], needed: BoolArray | None, share: float = 1.0
) -> Cut:
    """The first of two, or the second where that is better.  share: as `_cycles` takes it."""
    first, second = (_cycles(design, cut, needed, share) for cut in cuts)
    if first == second:
        dealt = _dealt(design, needed)
        first, second = (_port_bits(design, cut, dealt=dealt) for cut in cuts)
    return cuts[1] if second < first else cuts[0]


def _port_bits(design: SparseTrain, cut: Cut, *, dealt: bool) -> int:
    """That cross the ports if no value is zero, and all outputs are needed."""
    blocks = cut.blocks
    steps = sum(
        int(one.steps.sum()) - one.again_steps for one in kept_of(design, cut, blocks, dealt=dealt)
    )
    ends = blocks[blocks[:, LAST] == 1]
    words = int((ends[:, ROWS] * -(-ends[:, COLUMNS] // design.pes)).sum())
    return steps * design.lanes * (design.operand_bits + 1) + words * design.word_bits("ofmap")


def _cycles(design: SparseTrain, cut: Cut, needed: BoolArray | None, share: float = 1.0) -> float:
    """Of a cut, if dot products take so much of their steps."""
    if needed is None:
        return dense_cycles(design, cut, share)
    return needed_cycles(design, cut, needed.transpose(0, 2, 1) if cut.turned else needed, share)


def _turned_or_not(
    design: SparseTrain, problem: Problem, needed: BoolArray | None, segments: int
) -> Cut:
    """With its pixels as rows, or turned if that is better with no zeros."""
    pixels = problem.images * problem.out_height * problem.out_width
    depth = problem.channels * problem.kernel_height * problem.kernel_width
    steps = ceil_div(depth, design.lanes // segments)
    sizes = (problem.groups, steps, segments)
    dealt = _dealt(design, needed)
    plain = _even(design, sizes, (pixels, problem.filters))
    turned = replace(_even(design, sizes, (problem.filters, pixels)), turned=True)
    plain, turned = (_in_order(design, cut, dealt=dealt) for cut in (plain, turned))
    return _better(design, (plain, turned), needed)


def _dealt(design: SparseTrain, needed: BoolArray | None) -> bool:
    """Whether each tile has its columns in an order of its own."""
    return needed is not None and design.move_work


def _in_order(design: SparseTrain, cut: Cut, *, dealt: bool) -> Cut:
    """By rows, or by columns if fewer bits cross then."""
    if not any(map(design.kept_steps, SIDES)):
        return cut
    cuts = cut, replace(cut, by_columns=True)
    return min(cuts, key=lambda one: _port_bits(design, one, dealt=dealt))


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


__all__ = ["cut_of"]
