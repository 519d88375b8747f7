"""How often the banks of a compressed memory are read and written: exact, from the values.

A core reads a bank of rows only if the word has bits in it and the bank's output does not hold the
row (docs/contracts/compressed-memory.md).  So the number of reads is a matter of the order of the
addresses, not of their cycles: `compressed_ifmap` and `compressed_places` walk them.  A tile that
is read several times on end takes `first + (n - 1) · again` reads, `again` those of a walk behind
another one of the same tile.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archsim.core import commands as cmd
from archsim.core import machine as mc
from archsim.core.actions import ROW_ACTIONS
from archsim.core.compressed_fit import StoredTiles, stored_tiles
from archsim.core.compressed_ifmap import walk_ifmap
from archsim.core.compressed_places import walk_weights
from archsim.core.core_design import CoreDesign
from archsim.core.problem import Problem, Tiling
from workloads.layers import Conv2d, MatMul


def row_actions(design: CoreDesign, found: dict[str, StoredTiles]) -> dict[str, int]:
    """The actions of a layer that hang on values: rows read and written, entries read.

    found: what its tiles take of every compressed memory.
    """
    counts: dict[str, int] = {}
    for name, stored in found.items():
        count = _ifmap if name == "ifmap" else _weights
        for action, number in count(design, stored).items():
            counts[f"{name}_{action}"] = number
    return counts


def stored_actions(
    design: CoreDesign,
    layer: Conv2d | MatMul,
    tiled: tuple[Problem, Tiling],
    operands: Any,
) -> dict[str, int]:
    """`row_actions` of operands that the design's numerics has taken; none without such memories.

    tiled: the layer's problem and tiling.
    """
    if not design.compressed_memories:
        return {}
    arrays = design.numerics.stored(layer, operands)
    return row_actions(design, stored_tiles(design, *tiled, arrays))


def row_bounds(design: CoreDesign, reads: dict[str, float]) -> dict[str, float]:
    """The most that the row actions can be for so many reads and writes of words.

    reads: counts by action.  Every read takes two banks in each piece (a group column of weights, a
    lane of the ifmap) and an entry of each bank of directories; every word written takes a row,
    and an entry of each directory (of a tile with one word).
    """
    bounds: dict[str, float] = {}
    for name, store in design.stores.items():
        columns = store.columns
        pieces, banks = (store.lanes, 2) if name == "ifmap" else (columns, 1)
        read, written = reads[f"{name}_read"], reads[f"{name}_write"]
        most = (2 * pieces * read, pieces * written, banks * columns * read, columns * written)
        bounds |= {f"{name}_{what}": count for what, count in zip(ROW_ACTIONS, most, strict=True)}
    return bounds


def _written(stored: StoredTiles, flag: int) -> int:
    """Rows of group columns that all loads write."""
    loads = stored.tile_of[stored.tiles[:, flag] == 1]
    return int(stored.tile_rows[loads].sum())


def _ifmap(design: CoreDesign, stored: StoredTiles) -> dict[str, int]:
    """Each distinct tile is walked once; loads and the walks of each multiply."""
    machine, store, tiles = design.machine, stored.store, stored.tiles
    shape = (store.lanes.bit_length() - 1, store.form.group.bit_length() - 1, store.shape[0])
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
    return {
        "row_read": int(reads[0]),
        "row_write": store.form.group * _written(stored, cmd.LOAD_IFMAP),
        "entry_read": int(reads[1]) * store.columns,
    }


def _weights(design: CoreDesign, stored: StoredTiles) -> dict[str, int]:
    """A step's words follow each other, and are read again for every block of pixels."""
    tiles = stored.tiles
    blocks = {mc.OUTPUT_STATIONARY: mc.ROWS, mc.INPUT_STATIONARY: mc.COLUMNS}
    dataflow = int(design.machine[mc.DATAFLOW])
    uses = np.ones((len(tiles), 4), np.int64)
    uses[:, 0], uses[:, 1] = stored.tile_of, tiles[:, cmd.LOAD_WEIGHT]
    if dataflow != mc.INPUT_STATIONARY:
        uses[:, 2] = tiles[:, cmd.FILTER_STEPS]
    if dataflow in blocks:
        uses[:, 3] = -(-tiles[:, cmd.PIXELS] // int(design.machine[blocks[dataflow]]))
    shape = stored.store.shape
    row_read, entry_read = walk_weights(uses, stored.stored, stored.directory, shape)
    return {
        "row_read": row_read,
        "row_write": _written(stored, cmd.LOAD_WEIGHT),
        "entry_read": entry_read * stored.store.columns,
    }


__all__ = ["row_actions", "row_bounds", "stored_actions"]
