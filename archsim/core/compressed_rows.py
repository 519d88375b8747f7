"""How often the banks of a compressed memory are read and written: exact, from the values.

A core reads a bank of rows only if the word has bits in it and the bank's output does not hold the
row (docs/contracts/compressed-memory.md).  So the number of reads is a matter of the order of the
addresses, not of their cycles: `archsim.core.compressed_kernels` walks them.  A tile that is read
several times on end takes `first + (n - 1) · again` reads, `again` those of a walk behind another
one of the same tile.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from archsim.core import commands as cmd
from archsim.core import machine as mc
from archsim.core.actions import ROW_ACTIONS, count_entry_writes
from archsim.core.compressed_fit import StoredTiles, stored_tiles
from archsim.core.compressed_kernels import walk_ifmap, walk_weights
from archsim.core.core_design import CoreDesign
from archsim.core.problem import Problem, Tiling
from archsim.numbers import IntArray
from workloads.layers import Conv2d, MatMul


@dataclass(frozen=True, kw_only=True)
class RowCounts:
    """What depends on values of one operand in a layer: reads and writes of rows, reads of
    directories."""

    row_read: int
    row_write: int
    entry_read: int

    def actions(self, operand: str) -> dict[str, int]:
        """By the names of `archsim.core.actions`."""
        return {f"{operand}_{what}": count for what, count in asdict(self).items()}


def row_actions(
    design: CoreDesign, tiles: IntArray, found: dict[str, StoredTiles]
) -> dict[str, int]:
    """The row actions of a layer.  tiles [tiles, WALK_COLUMNS]: its walk; found: what they take."""
    counts = count_entry_writes(tiles, design.directories)
    for name, stored in found.items():
        count = _ifmap if name == "ifmap" else _weights
        counts |= count(design, tiles, stored).actions(name)
    return counts


def stored_actions(
    design: CoreDesign,
    layer: Conv2d | MatMul,
    tiled: tuple[Problem, Tiling, IntArray],
    operands: Any,
) -> dict[str, int]:
    """`row_actions` of operands that the design's numerics has taken; none without such memories.

    tiled: the layer's problem, tiling and walk.
    """
    if not design.compressed_memories:
        return {}
    problem, tiling, tiles = tiled
    arrays = design.numerics.stored(layer, operands)
    return row_actions(design, tiles, stored_tiles(design, problem, tiling, arrays))


def row_bounds(design: CoreDesign, reads: dict[str, float]) -> dict[str, float]:
    """The most that the row actions can be for so many reads and writes of words.

    reads: counts by action.  Every read takes two banks in each piece (a group column of weights, a
    lane of the ifmap) and an entry of each bank of directories; every word written takes a row,
    and an entry of each directory (of a tile with one word).
    """
    bounds: dict[str, float] = {}
    for name, (_, columns) in design.directories.items():
        lanes = columns * design.compressed_memories[name].group
        pieces, banks = (lanes, 2) if name == "ifmap" else (columns, 1)
        read, written = reads[f"{name}_read"], reads[f"{name}_write"]
        most = (2 * pieces * read, pieces * written, banks * columns * read, columns * written)
        bounds |= {f"{name}_{what}": count for what, count in zip(ROW_ACTIONS, most, strict=True)}
    return bounds


def _written(tiles: IntArray, flag: int, stored: StoredTiles) -> int:
    """Rows of group columns that all loads write."""
    loads = stored.tile_of[tiles[:, flag] == 1]
    return int(stored.rows.sum(axis=1)[loads].sum())


def _ifmap(design: CoreDesign, tiles: IntArray, stored: StoredTiles) -> RowCounts:
    """Each distinct tile is walked once; loads and the walks of each multiply."""
    machine, memory = design.machine, stored.memory
    lanes = stored.rows.shape[1] * memory.group
    shape = (
        lanes.bit_length() - 1,
        memory.group.bit_length() - 1,
        memory.unit_words.bit_length() - 1,
    )
    stationary = machine[mc.DATAFLOW] == mc.INPUT_STATIONARY
    blocks = {
        mc.WEIGHT_STATIONARY: int(tiles[:, cmd.PIXELS].max()),
        mc.OUTPUT_STATIONARY: int(machine[mc.ROWS]),
        mc.INPUT_STATIONARY: int(machine[mc.COLUMNS]),
    }
    found = np.zeros((len(stored.places), 4), np.int64)
    loops = (blocks[int(machine[mc.DATAFLOW])], int(machine[mc.CHUNK]))
    walk_ifmap(stored.places, stored.placed, shape, loops, found)
    passes = np.ones(len(tiles), np.int64) if stationary else tiles[:, cmd.FILTER_STEPS]
    loads = np.flatnonzero(tiles[:, cmd.LOAD_IFMAP])
    again = np.add.reduceat(passes, loads) - 1
    counted = found[stored.tile_of[loads]]
    reads = (counted[:, 0::2] + again[:, None] * counted[:, 1::2]).sum(axis=0)
    return RowCounts(
        row_read=int(reads[0]),
        row_write=memory.group * _written(tiles, cmd.LOAD_IFMAP, stored),
        entry_read=int(reads[1]) * stored.rows.shape[1],
    )


def _weights(design: CoreDesign, tiles: IntArray, stored: StoredTiles) -> RowCounts:
    """A step's words follow each other, and are read again for every block of pixels."""
    machine = design.machine
    pixels, ones = tiles[:, cmd.PIXELS], np.ones(len(tiles), np.int64)
    steps, repeats = {
        mc.WEIGHT_STATIONARY: (tiles[:, cmd.FILTER_STEPS], ones),
        mc.OUTPUT_STATIONARY: (tiles[:, cmd.FILTER_STEPS], -(-pixels // int(machine[mc.ROWS]))),
        mc.INPUT_STATIONARY: (ones, -(-pixels // int(machine[mc.COLUMNS]))),
    }[int(machine[mc.DATAFLOW])]
    uses = np.stack([stored.tile_of, tiles[:, cmd.LOAD_WEIGHT], steps, repeats], axis=1)
    row_read, entry_read = walk_weights(uses, stored.stored, stored.directory, stored.form)
    return RowCounts(
        row_read=row_read,
        row_write=_written(tiles, cmd.LOAD_WEIGHT, stored),
        entry_read=entry_read * stored.rows.shape[1],
    )


__all__ = ["RowCounts", "row_actions", "row_bounds", "stored_actions"]
