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
from archsim.memories.boveda.places import walk_weights
from archsim.numbers import IntArray
from archsim.tiled import commands as cmd
from archsim.tiled import machine_vector as mc

if TYPE_CHECKING:
    from archsim.memories.boveda.tiles import StoredTiles


def row_actions(stored: StoredTiles, machine: IntArray) -> dict[str, int]:
    """What hangs on the values of an operand's tiles: rows read and written, entries read."""
    return (_ifmap if stored.store.name == "ifmap" else _weights)(machine, stored)


def _written(stored: StoredTiles, flag: int) -> int:
    """Rows of group columns that all loads write."""
    loads = stored.tile_of[stored.tiles[:, flag] == 1]
    return int(stored.tile_rows[loads].sum())


def _ifmap(machine: IntArray, stored: StoredTiles) -> dict[str, int]:
    """Each distinct tile is walked once; loads and the walks of each multiply."""
    store, tiles = stored.store, stored.tiles
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


def _weights(machine: IntArray, stored: StoredTiles) -> dict[str, int]:
    """A step's words follow each other, and are read again for every block of pixels."""
    tiles = stored.tiles
    blocks = {mc.OUTPUT_STATIONARY: mc.ROWS, mc.INPUT_STATIONARY: mc.COLUMNS}
    dataflow = int(machine[mc.DATAFLOW])
    uses = np.ones((len(tiles), 4), np.int64)
    uses[:, 0], uses[:, 1] = stored.tile_of, tiles[:, cmd.LOAD_WEIGHT]
    if dataflow != mc.INPUT_STATIONARY:
        uses[:, 2] = tiles[:, cmd.FILTER_STEPS]
    if dataflow in blocks:
        uses[:, 3] = -(-tiles[:, cmd.PIXELS] // int(machine[blocks[dataflow]]))
    shape = stored.store.shape
    row_read, entry_read = walk_weights(uses, stored.stored, stored.directory, shape)
    return {
        "row_read": row_read,
        "row_write": _written(stored, cmd.LOAD_WEIGHT),
        "entry_read": entry_read * stored.store.columns,
    }


__all__ = ["row_actions"]
