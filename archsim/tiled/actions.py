"""Actions of the core, counted alike by the model and by the RTL's performance counters.

ifmap_write, weight_write, bias_write   words stored by the loaders
ifmap_read                              vectors read from the ifmap banks
weight_read                             words read from the weight scratchpad
accumulator_read, accumulator_write     rows of partial sums, reads for the output included
array_step                              moving words that enter the array (all PEs busy)
stationary_step                         stationary words that enter the array
output_read                             rows of sums that the output stage reads
ofmap_write                             words that leave through the ofmap port

gather_flags, gather_word               words of flags, and of rows, that the gather unit takes

The last two only of a core that has that unit.  A memory whose capacity hangs on values counts
more, with <operand>_ in front (`TileStore.counted`).
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

GATHER_ACTIONS = ("gather_flags", "gather_word")
"""Of a core with a gather unit."""


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


def stored_words(
    tiles: TileCommand[IntArray], machine: MachineRecord
) -> tuple[IntArray, IntArray, IntArray]:
    """Words that a load of ifmap, weights and biases writes: those that cross, but of rows that are
    gathered the kept units alone."""
    elements = tiles.tile_images * tiles.image_step
    return -(-elements // machine.ifmap_lanes), tiles.weight_words, tiles.bias_words


def gather_counts(
    tiles: TileCommand[IntArray], machine: MachineRecord
) -> tuple[IntArray, IntArray]:
    """Words of flags, and of rows, of a load that the gather unit takes."""
    flags = -(-tiles.row_words // np.maximum(machine.gather_bits, 1))
    return flags, tiles.row_words * tiles.pixels


def _loaded(
    tiles: TileCommand[IntArray], words: tuple[IntArray, IntArray, IntArray]
) -> dict[str, IntArray]:
    """Per tile: words of each operand, where they are loaded."""
    each = zip(("ifmap", "weight", "bias"), words, tiles.loads, strict=True)
    return {operand: one * load for operand, one, load in each}


def count_store_writes(tiles: IntArray, stores: Mapping[str, TileStore]) -> dict[str, int]:
    """What memories count of a layer's tiles [tiles, WALK_COLUMNS] whatever their values are.

    stores: by operand (`CoreDesign.stores`).
    """
    if not stores:
        return {}
    columns = columns_of(tiles)
    loaded = _loaded(columns, columns.words)
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
    columns, record = columns_of(tiles), machine_record(machine)
    counts = tile_actions(columns, record)
    loaded = _loaded(columns, stored_words(columns, record))
    counts |= {f"{operand}_write": words for operand, words in loaded.items()}
    counts["ofmap_write"] = columns.output_words
    names = ACTIONS
    if record.gather_bits:
        gathered = (words * columns.load_ifmap for words in gather_counts(columns, record))
        counts |= dict(zip(GATHER_ACTIONS, gathered, strict=True))
        names = (*ACTIONS, *GATHER_ACTIONS)
    plain = {name: int(counts[name].sum()) for name in names}
    return plain | count_store_writes(tiles, stores)
