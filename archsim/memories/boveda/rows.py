"""How often the banks of a compressed memory are read and written: exact, from the values.

A core reads a bank of rows only if the word has bits in it and the bank's output does not hold the
row (docs/contracts/compressed-memory.md).  So the number of reads is a matter of the order of the
addresses, not of their cycles: `ifmap_walk` and `places` walk them.  A tile that
is read several times on end takes `first + (n - 1) · again` reads, `again` those of a walk behind
another one of the same tile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from archsim.memories.boveda.ifmap_walk import walk_ifmap
from archsim.memories.boveda.places import walk_placed, walk_weights
from archsim.memories.boveda.read_tiles import read_tiles
from archsim.numbers import IntArray
from archsim.tiled import machine_vector as mc
from archsim.tiled.commands import columns_of

if TYPE_CHECKING:
    from archsim.memories.boveda.tiles import StoredTiles


def row_actions(stored: StoredTiles, machine: IntArray) -> dict[str, int]:
    """What hangs on the values of an operand's tiles: rows read and written, entries read."""
    count = _ifmap if stored.store.name == "ifmap" else _weights
    return count(mc.machine_record(machine), stored)


def _written(stored: StoredTiles, loaded: IntArray) -> int:
    """Rows of group columns that all loads write."""
    loads = stored.tile_of[loaded == 1]
    return int(stored.tile_rows[loads].sum())


def _ifmap(machine: mc.MachineRecord, stored: StoredTiles) -> dict[str, int]:
    """Each distinct tile is walked once, as it is read; loads and the walks of each multiply."""
    store, tiles = stored.store, columns_of(stored.tiles)
    shape = (store.lanes.bit_length() - 1, store.form.group.bit_length() - 1, store.shape[0])
    stationary = machine.dataflow == mc.INPUT_STATIONARY
    blocks = {
        mc.WEIGHT_STATIONARY: int(tiles.pixels.max()),
        mc.OUTPUT_STATIONARY: machine.rows,
        mc.INPUT_STATIONARY: machine.columns,
    }
    read = read_tiles(stored, tiles.load_ifmap)
    found = np.zeros((len(read.rows), 4), np.int64)
    loops = (blocks[machine.dataflow], machine.chunk)
    walk_ifmap(read.rows, read.placed, shape, loops, found)
    passes = np.ones_like(tiles.pixels) if stationary else tiles.filter_steps
    loads = np.flatnonzero(tiles.load_ifmap)
    again = np.add.reduceat(passes, loads) - 1
    counted = found[read.of_load]
    reads = (counted[:, 0::2] + again[:, None] * counted[:, 1::2]).sum(axis=0)
    return {
        "row_read": int(reads[0]),
        "row_write": store.form.group * _written(stored, tiles.load_ifmap),
        "entry_read": int(reads[1]) * store.columns,
    }


def _weights(machine: mc.MachineRecord, stored: StoredTiles) -> dict[str, int]:
    """A step's words follow each other, and are read again for every block of pixels."""
    tiles, dataflow = columns_of(stored.tiles), machine.dataflow
    blocks = {mc.OUTPUT_STATIONARY: machine.rows, mc.INPUT_STATIONARY: machine.columns}
    uses = np.ones((len(stored.tiles), 4), np.int64)
    uses[:, 0], uses[:, 1] = stored.tile_of, tiles.load_weight
    if dataflow != mc.INPUT_STATIONARY:
        uses[:, 2] = tiles.filter_steps
    if dataflow in blocks:
        uses[:, 3] = -(-tiles.pixels // blocks[dataflow])
    shape = stored.store.shape
    row_read, entry_read = walk_weights(uses, stored.stored, stored.directory, shape)
    if stored.store.cells:
        read = read_tiles(stored, tiles.load_weight)
        uses[:, 0] = read.of_load[np.cumsum(tiles.load_weight) - 1]
        row_read = walk_placed(uses, read.placed)
    return {
        "row_read": row_read,
        "row_write": _written(stored, tiles.load_weight),
        "entry_read": entry_read * stored.store.columns,
    }


__all__ = ["row_actions"]
