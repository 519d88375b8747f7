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

from archsim.memory.tile_store import TileStore
from archsim.numbers import IntArray
from archsim.tiled import commands as cmd
from archsim.tiled import machine_vector as mc

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

_LOADED = {
    "ifmap": (cmd.IFMAP_WORDS, cmd.LOAD_IFMAP),
    "weight": (cmd.WEIGHT_WORDS, cmd.LOAD_WEIGHT),
}
"""Words of a tile of an operand, and whether it is loaded."""


def _folds(tiles: IntArray, machine: IntArray) -> dict[str, IntArray]:
    """Per tile: reads of the operands, moving and stationary words, rows of sums."""
    rows, columns = int(machine[mc.ROWS]), int(machine[mc.COLUMNS])
    slots = int(machine[mc.SLOTS])
    pixels, steps = tiles[:, cmd.PIXELS], tiles[:, cmd.FILTER_STEPS]
    length = tiles[:, cmd.RUN_LENGTH]
    runs = tiles[:, cmd.TAPS] * tiles[:, cmd.RUNS]
    folds = runs * -(-length // int(machine[mc.CHUNK]))
    if machine[mc.DATAFLOW] == mc.WEIGHT_STATIONARY:
        moving = folds * steps * pixels
        return {
            "ifmap_read": moving,
            "weight_read": runs * length * steps,
            "array_step": moving,
            "stationary_step": runs * length * steps,
            "sums": moving,
            "fresh": steps * pixels,
        }
    if machine[mc.DATAFLOW] == mc.INPUT_STATIONARY:
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
        "array_step": folds * steps * (blocks * slots if slots else pixels),
        "stationary_step": 0 * pixels,
        "sums": steps * pixels,
        "fresh": steps * pixels,
    }


def _loaded(tiles: IntArray, operand: str) -> IntArray:
    """Per tile: words that are loaded of "ifmap" or "weight"."""
    words, load = _LOADED[operand]
    return tiles[:, words] * tiles[:, load]


def count_store_writes(tiles: IntArray, stores: Mapping[str, TileStore]) -> dict[str, int]:
    """What memories count of a layer's tiles [tiles, WALK_COLUMNS] whatever their values are.

    stores: by operand (`CoreDesign.stores`).
    """
    return {
        f"{operand}_{action}": count
        for operand, store in stores.items()
        for action, count in store.count_writes(_loaded(tiles, operand)).items()
    }


def count_actions(
    tiles: IntArray, machine: IntArray, stores: Mapping[str, TileStore]
) -> dict[str, int]:
    """The actions of a layer's tiles [tiles, WALK_COLUMNS] that do not hang on values.

    machine, stores: of the design (`CoreDesign`).
    """
    work = _folds(tiles, machine)
    outputs = tiles[:, cmd.OUTPUT_ROWS] * tiles[:, cmd.LAST_K]
    first = tiles[:, cmd.FIRST_K]
    counts = {
        "ifmap_write": _loaded(tiles, "ifmap"),
        "weight_write": _loaded(tiles, "weight"),
        "bias_write": tiles[:, cmd.BIAS_WORDS],
        "ifmap_read": work["ifmap_read"],
        "weight_read": work["weight_read"],
        "accumulator_read": work["sums"] - work["fresh"] * first + outputs,
        "accumulator_write": work["sums"],
        "array_step": work["array_step"],
        "stationary_step": work["stationary_step"],
        "output_read": outputs,
        "ofmap_write": tiles[:, cmd.OUTPUT_WORDS],
    }
    plain = {name: int(counts[name].sum()) for name in ACTIONS}
    return plain | count_store_writes(tiles, stores)
