"""Actions of the core, counted alike by the model and by the RTL's performance counters.

ifmap_write, weight_write, bias_write   words stored by the loaders
ifmap_read                              vectors read from the ifmap banks
weight_read                             words read from the weight scratchpad
accumulator_read, accumulator_write     rows of partial sums, reads for the output included
array_step                              moving words that enter the array (all PEs busy)
stationary_step                         stationary words that enter the array
output_read                             rows of sums that the output stage reads
ofmap_write                             words that leave through the ofmap port

A memory whose capacity hangs on values counts more, with <operand>_ in front (`TileStore.counted`).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from archsim.memory.tile_store import TileStore
from archsim.numbers import IntArray
from archsim.tiled.commands import TileCommand, columns_of
from archsim.tiled.machine_vector import (
    INPUT_STATIONARY,
    WEIGHT_STATIONARY,
    MachineRecord,
    machine_record,
)

ACTIONS = (
    "ifmap_write",
    "weight_write",
    "bias_write",
    "ifmap_read",
    "weight_read",
    "accumulator_read",
    "accumulator_write",
    "array_step",
    "stationary_step",
    "output_read",
    "ofmap_write",
)


def _folds(tiles: TileCommand[IntArray], machine: MachineRecord) -> dict[str, IntArray]:
    """Per tile: reads of the operands, moving and stationary words, rows of sums."""
    rows, columns, slots = machine.rows, machine.columns, machine.slots
    pixels, steps, length = tiles.pixels, tiles.filter_steps, tiles.run_length
    runs = tiles.taps * tiles.runs
    folds = runs * -(-length // machine.chunk)
    if machine.dataflow == WEIGHT_STATIONARY:
        moving = folds * steps * pixels
        return {
            "ifmap_read": moving,
            "weight_read": runs * length * steps,
            "array_step": moving,
            "stationary_step": runs * length * steps,
            "sums": moving,
            "fresh": steps * pixels,
        }
    if machine.dataflow == INPUT_STATIONARY:
        blocks = -(-pixels // columns)
        moving = folds * blocks * steps
        return {
            "ifmap_read": folds * pixels,
            "weight_read": moving,
            "array_step": moving,
            "stationary_step": folds * blocks * columns,
            "sums": moving,
            "fresh": blocks * steps,
        }
    blocks = -(-pixels // rows)
    return {
        "ifmap_read": folds * steps * pixels,
        "weight_read": runs * length * steps * blocks,
        "array_step": folds * steps * np.where(np.asarray(slots) > 0, blocks * slots, pixels),
        "stationary_step": 0 * pixels,
        "sums": steps * pixels,
        "fresh": steps * pixels,
    }


def tile_actions(tiles: TileCommand[IntArray], machine: MachineRecord) -> dict[str, IntArray]:
    """Per tile: its actions, but for the words that are loaded and leave.

    machine: of all tiles, or its sizes arrays as long as theirs, of machines of one dataflow.
    """
    work = _folds(tiles, machine)
    outputs = tiles.output_rows * tiles.last_k
    return {
        "ifmap_read": work["ifmap_read"],
        "weight_read": work["weight_read"],
        "accumulator_read": work["sums"] - work["fresh"] * tiles.first_k + outputs,
        "accumulator_write": work["sums"],
        "array_step": work["array_step"],
        "stationary_step": work["stationary_step"],
        "output_read": outputs,
    }


def _loaded(tiles: TileCommand[IntArray]) -> dict[str, IntArray]:
    """Per tile: words that are loaded of each operand."""
    each = zip(("ifmap", "weight", "bias"), tiles.words, tiles.loads, strict=True)
    return {operand: words * load for operand, words, load in each}


def count_store_writes(tiles: IntArray, stores: Mapping[str, TileStore]) -> dict[str, int]:
    """What memories count of a layer's tiles [tiles, WALK_COLUMNS] whatever their values are.

    stores: by operand (`CoreDesign.stores`).
    """
    loaded = _loaded(columns_of(tiles))
    return {
        f"{operand}_{action}": count
        for operand, store in stores.items()
        for action, count in store.count_writes(loaded[operand]).items()
    }


def count_actions(
    tiles: IntArray, machine: IntArray, stores: Mapping[str, TileStore]
) -> dict[str, int]:
    """The actions of a layer's tiles [tiles, WALK_COLUMNS] that do not hang on values.

    machine, stores: of the design (`CoreDesign`).
    """
    columns = columns_of(tiles)
    counts = tile_actions(columns, machine_record(machine))
    counts |= {f"{operand}_write": words for operand, words in _loaded(columns).items()}
    counts["ofmap_write"] = columns.output_words
    plain = {name: int(counts[name].sum()) for name in ACTIONS}
    return plain | count_store_writes(tiles, stores)
