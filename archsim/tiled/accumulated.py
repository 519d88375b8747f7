"""Rows of sums in accumulators that are not read as they were written.

Every addition reads what a row held, through its memory, and writes back the sum; the output stage
reads once more.  A row read while it is written fails as any other (`rtl.core.accumulators`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from archsim.layer.layout import blocks_of
from archsim.layer.problem import Problem
from archsim.memory import Use
from archsim.memory.at_once import seen
from archsim.numbers import IntArray
from archsim.tiled.commands import TileCommand
from archsim.tiled.design import CoreDesign
from archsim.tiled.numerics import Blocks, Spans


def accumulated(
    design: CoreDesign, half: int, tiles: Sequence[tuple[TileCommand[int], Problem, Blocks]]
) -> IntArray:
    """The sums [images, 1, P, Q, K] of an output tile, as its output stage reads them.

    half: of the accumulators.  tiles: its channel tiles in turn, each as a problem with what is
    read of its operands.
    """
    numerics = design.numerics
    use = replace(design.use("accumulator"), half=half)
    held: IntArray | None = None
    for tile, problem, read in tiles:
        split = numerics.split_of(read)
        whole = replace(problem, filters=read.weight.shape[1])
        for sums in numerics.partial_sums(whole, split, spans_of(design, tile)):
            held = sums if held is None else numerics.added(_read(design, use, held), sums)
    assert held is not None  # there is a tile
    return _read(design, use, held)[:, None]


def spans_of(design: CoreDesign, tile: TileCommand[int]) -> Spans:
    """Elements of a tile's kernel that are summed before they are added."""
    length, chunk = tile.run_length, design.array_columns["chunk"]
    runs = tile.taps * tile.runs
    if not design.adds_folds:
        return [(0, runs * length)]
    return [
        (run * length + begin, run * length + min(begin + chunk, length))
        for run in range(runs)
        for begin in range(0, length, chunk)
    ]


def _read(design: CoreDesign, use: Use, sums: IntArray) -> IntArray:
    """What is read of sums [images, P, Q, K], written to rows from 0 on."""
    moving = design.numerics.word_lanes.moving
    flat = sums.reshape(-1, sums.shape[-1])
    part = flat.T if moving else flat
    rows = blocks_of(part, use.lanes, 1).transpose(1, 0, 2).reshape(-1, use.lanes)
    memory = design.accumulator_memory
    read = seen(memory, use, rows)
    along = read.reshape(-1, len(part), use.lanes).transpose(1, 0, 2)
    found = along.reshape(len(part), -1)[:, : part.shape[1]]
    return np.ascontiguousarray(found.T if moving else found).reshape(sums.shape)


__all__ = ["accumulated", "spans_of"]
