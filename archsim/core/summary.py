"""From a plan to figures: how many cycles a layer takes and where every one of them went."""

from __future__ import annotations

import numpy as np

from archsim.core import commands as cmd
from archsim.core import machine as mc
from archsim.core import schedule as sc
from archsim.core.kernel import kernel
from archsim.core.tiling import best_tiling
from archsim.core.traffic import port_bytes, services_of
from archsim.core.walk import walk
from archsim.numbers import IntArray

(
    CYCLES,  # from the first command to the last ofmap word, with the design's off-chip memory
    SERIAL,  # of the array alone, if no fold overlapped another
    COMPUTING,  # from here to MEMORY: `archsim.core.causes`
    FILLING,
    DRAINING,
    WAIT_WEIGHT,
    WAIT_IFMAP,
    WAIT_OUTPUT,
    CONTROL,
    MEMORY,
    TILES,
    FOLDS,
    IFMAP_BYTES,
    WEIGHT_BYTES,
    BIAS_BYTES,
    OFMAP_BYTES,
    SUMMARY_COLUMNS,
) = range(17)


@kernel
def serial_cycles(row: IntArray, machine: IntArray) -> int:
    """A tile's array cycles if no fold overlapped another, whole folds charged.

    Systolic, weight- and input-stationary: (2·rows + columns + T − 2) a fold; output-stationary
    (rows + columns + K − 2), K being the steps that carry elements: the formulas of SCALE-Sim.
    Others: the folds' moving words, and the latency of the array once a fold.
    """
    span = sc.fold_span(row, machine)
    if machine[mc.DATAFLOW] == mc.OUTPUT_STATIONARY and machine[mc.SLOTS] == machine[mc.CHUNK]:
        elements = row[cmd.TAPS] * row[cmd.RUNS] * row[cmd.RUN_LENGTH]
        return span[0] * (machine[mc.SKEW] + elements)
    return span[0] * machine[mc.SKEW] + sc.moving_words(span, machine)


@kernel
def summarize(tiles: IntArray, plan: IntArray, ideal: IntArray, machine: IntArray) -> IntArray:
    """[SUMMARY_COLUMNS] of a layer; `ideal` is the plan with ports that never wait."""
    out = np.zeros(SUMMARY_COLUMNS, np.int64)
    for at in range(len(tiles)):
        span = sc.fold_span(tiles[at], machine)
        out[FOLDS] += span[0]
        out[SERIAL] += serial_cycles(tiles[at], machine)
        out[COMPUTING] += sc.moving_words(span, machine)
        out[FILLING] += ideal[at, sc.WAIT_FILL] + ideal[at, sc.BUBBLE]
        out[WAIT_WEIGHT] += ideal[at, sc.WAIT_WEIGHT]
        out[WAIT_IFMAP] += ideal[at, sc.WAIT_IFMAP]
        out[WAIT_OUTPUT] += ideal[at, sc.WAIT_OUTPUT]
        out[CONTROL] += ideal[at, sc.WAIT_CONTROL]
    last = len(tiles) - 1
    out[CYCLES] = plan[last, sc.LAST_OUT] + 1
    out[DRAINING] = ideal[last, sc.LAST_OUT] + 1 - ideal[last, sc.STREAM_END]
    out[MEMORY] = plan[last, sc.LAST_OUT] - ideal[last, sc.LAST_OUT]
    out[TILES] = len(tiles)
    out[IFMAP_BYTES : OFMAP_BYTES + 1] = port_bytes(tiles, machine)[sc.IFMAP :]
    return out


@kernel
def time_tiles(tiles: IntArray, machine: IntArray) -> IntArray:
    """The summary of a layer's tiles with the off-chip memory's services."""
    gaps = sc.no_gaps()
    services = services_of(tiles, machine)
    plan = sc.schedule(tiles, machine, services, gaps)
    ideal = plan
    if services[:, sc.BURST_WORDS].sum() + services[:, sc.LATENCY].sum() > 0:
        ideal = sc.schedule(tiles, machine, np.zeros_like(services), gaps)
    return summarize(tiles, plan, ideal, machine)


@kernel
def count_cycles(tiles: IntArray, machine: IntArray) -> int:
    """The cycles of a layer's tiles, and nothing else."""
    plan = sc.schedule(tiles, machine, services_of(tiles, machine), sc.no_gaps())
    return plan[len(tiles) - 1, sc.LAST_OUT] + 1


@kernel
def time_many(problems: IntArray, machines: IntArray) -> tuple[IntArray, IntArray]:
    """Cycles [designs, layers] and tilings [designs, layers, 5].

    Every layer takes its best tiling on every design; its cycles are −1 where none fits.
    """
    designs, layers = len(machines), len(problems)
    cycles = np.full((designs, layers), -1, np.int64)
    tilings = np.zeros((designs, layers, 5), np.int64)
    for design in range(designs):
        machine = machines[design]
        for layer in range(layers):
            tiling = tilings[design, layer]
            if best_tiling(problems[layer], machine, tiling):
                tiles = walk(problems[layer], tiling, machine)
                cycles[design, layer] = count_cycles(tiles, machine)
    return cycles, tilings
