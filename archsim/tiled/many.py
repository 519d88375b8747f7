"""What layers on many designs count, each in its tiling: by kinds of tiles, all designs at once.

A kind's command is made once, and counts for all tiles of the kind (`archsim.tiled.nest`).
"""

from __future__ import annotations

import numpy as np

from archsim.kernels import kernel
from archsim.layer import problem as pb
from archsim.numbers import IntArray
from archsim.tiled import commands as cmd
from archsim.tiled import nest as ns
from archsim.tiled.actions import ACTIONS, stored_words, tile_actions
from archsim.tiled.commands import columns_of
from archsim.tiled.machine_vector import MachineRecord
from archsim.tiled.nest import (
    fill_command,
    load_intervals,
    make_nest,
    most_runs,
    tiles_of_kind,
)
from archsim.tiled.packing import layer_words
from archsim.tiled.side_by_side import block_problem

COUNTS = (*ACTIONS, "ifmap_bytes", "weight_bytes", "bias_bytes", "ofmap_bytes")
"""What is counted, in order."""

WRITES = ("ifmap_write", "weight_write", "bias_write")
BYTES = ("ifmap_bytes", "weight_bytes", "bias_bytes")

AT_ONCE = 64
"""Designs whose commands are held at a time: of each some hundred rows."""


@kernel("i8.2, i8.3, i8.2")
def _pairs(problems: IntArray, tilings: IntArray, machines: IntArray) -> IntArray:
    """[designs · layers, 4]: kinds of tiles, tiles from one load of the ifmap to the next, of the
    weights, and ofmap words; zeros where T_ROWS is 0."""
    layers = len(problems)
    found = np.zeros((len(machines) * layers, 4), np.int64)
    for at in range(len(found)):
        design, layer = divmod(at, layers)
        tiling = tilings[design, layer]
        if tiling[pb.T_ROWS] > 0:
            block = block_problem(problems[layer], tiling[pb.T_GROUPS])
            runs = np.empty((most_runs(block, tiling), ns.RUN_COLUMNS), np.int64)
            nest = make_nest(block, tiling, runs)
            found[at, 0] = nest[ns.KINDS]
            found[at, 1], found[at, 2] = load_intervals(nest, tiling)
            found[at, 3] = layer_words(block, machines[design])
    return found


@kernel("i8.2, i8.3, i8.2, i8.1")
def _commands(
    problems: IntArray, tilings: IntArray, machines: IntArray, kinds: IntArray
) -> IntArray:
    """The commands of all kinds [kinds in all, WALK_COLUMNS], behind each other as in `_pairs`.

    kinds: of every pair.  TILE_GROUP is the number of tiles of the kind.
    """
    rows = np.zeros((kinds.sum(), cmd.WALK_COLUMNS), np.int64)
    layers, count = len(problems), 0
    for at in range(len(kinds)):
        design, layer = divmod(at, layers)
        tiling = tilings[design, layer]
        if kinds[at] > 0:
            block = block_problem(problems[layer], tiling[pb.T_GROUPS])
            runs = np.empty((most_runs(block, tiling), ns.RUN_COLUMNS), np.int64)
            nest = make_nest(block, tiling, runs)
            layer_of = block, tiling, machines[design]
            for kind in range(kinds[at]):
                fill_command(rows[count], kind, nest, runs, layer_of)
                rows[count, cmd.TILE_GROUP] = tiles_of_kind(kind, nest, runs)
                count += 1
    return rows


def _counted(problems: IntArray, tilings: IntArray, machines: IntArray) -> IntArray:
    """`count_many` of designs of one dataflow."""
    pairs = _pairs(problems, tilings, machines)
    kinds = np.ascontiguousarray(pairs[:, 0])
    found = np.zeros((len(pairs), len(COUNTS)), np.int64)
    some = kinds > 0
    if not some.any():
        return found.reshape(*tilings.shape[:2], -1)
    rows = columns_of(_commands(problems, tilings, machines, kinds))
    design = np.repeat(np.arange(len(pairs)) // len(problems), kinds)
    sizes = MachineRecord(*machines[design].T)
    each = tile_actions(rows, sizes._replace(dataflow=int(np.max(sizes.dataflow))))
    each |= dict(zip(WRITES, stored_words(rows, sizes), strict=True))
    each |= dict(zip(BYTES, rows.words, strict=True))  # words, for now
    starts = np.concatenate([[0], np.cumsum(kinds[some])[:-1]])
    for place, name in enumerate(COUNTS):
        if name in each:
            found[some, place] = np.add.reduceat(each[name] * rows.tile_group, starts)
    loads = {"ifmap": pairs[some, 1], "weight": pairs[some, 2]}
    for name, every in loads.items():
        for what in ("write", "bytes"):
            found[some, COUNTS.index(f"{name}_{what}")] //= every
    found[:, COUNTS.index("ofmap_write")] = found[:, COUNTS.index("ofmap_bytes")] = pairs[:, 3]
    own = MachineRecord(*np.repeat(machines, len(problems), axis=0).T)
    for place, width in enumerate((*own.word_bytes, own.ofmap_word_bytes), len(ACTIONS)):
        found[:, place] *= width
    return found.reshape(*tilings.shape[:2], -1)


def count_many(problems: IntArray, tilings: IntArray, machines: IntArray) -> IntArray:
    """Counts [designs, layers, COUNTS] of layers [layers, ·] on machines [designs, ·].

    tilings: [designs, layers, TILING_COLUMNS]; where all sizes are 0 there is none, and the counts
    are 0.
    """
    found = np.zeros((*tilings.shape[:2], len(COUNTS)), np.int64)
    dataflows = MachineRecord(*machines.T).dataflow
    for dataflow in np.unique(dataflows):
        alike = np.flatnonzero(dataflows == dataflow)
        for begin in range(0, len(alike), AT_ONCE):
            some = alike[begin : begin + AT_ONCE]
            found[some] = _counted(problems, tilings[some], machines[some])
    return found


__all__ = ["COUNTS", "count_many"]
