"""From a plan to figures: how many cycles a layer takes and where every one of them went."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from archsim.kernels import kernel
from archsim.numbers import IntArray
from archsim.tiled import commands as cmd
from archsim.tiled import machine_vector as mc
from archsim.tiled import plan as pn
from archsim.tiled.folds import fold_span, moving_words
from archsim.tiled.gaps import no_gaps
from archsim.tiled.schedule import schedule
from archsim.tiled.traffic import port_bytes, services_of

(
    CYCLES,  # from the first command to the last ofmap word off-chip
    SERIAL,  # SCALE-Sim's, of folds that do not overlap
    COMPUTING,  # from here to MEMORY: `archsim.causes`
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


class LayerSummary(NamedTuple):
    """The columns of a summary, by name and in order."""

    cycles: int
    serial: int
    computing: int
    filling: int
    draining: int
    wait_weight: int
    wait_ifmap: int
    wait_output: int
    control: int
    memory: int
    tiles: int
    folds: int
    ifmap_bytes: int
    weight_bytes: int
    bias_bytes: int
    ofmap_bytes: int


@kernel
def serial_cycles(row: IntArray, machine: IntArray) -> int:
    """SCALE-Sim's cycles of a tile's folds, none overlapping another (docs/contracts/systolic.md).

    Systolic, weight- and input-stationary: (2·rows + columns + moving words − 2) a fold, that is
    `rows` stationary words whatever is loaded; output-stationary (rows + columns + K − 2), K being
    the elements, not the whole chunks that are moved.  Others, which SCALE-Sim does not have: the
    folds' moving words, and the latency of the array once a fold.
    """
    span = fold_span(row, machine)
    if machine[mc.DATAFLOW] == mc.OUTPUT_STATIONARY and machine[mc.SLOTS] == machine[mc.CHUNK]:
        elements = row[cmd.TAPS] * row[cmd.RUNS] * row[cmd.RUN_LENGTH]
        return span[0] * (machine[mc.SKEW] + elements)
    return span[0] * machine[mc.SKEW] + moving_words(span, machine)


@kernel
def summarize(tiles: IntArray, written: int, ideal: IntArray, machine: IntArray) -> IntArray:
    """[SUMMARY_COLUMNS] of a layer; `ideal` is the plan with ports that never wait.

    written: the cycle after the last word has left, in the plan with ports that do.
    """
    out = np.zeros(SUMMARY_COLUMNS, np.int64)
    for at in range(len(tiles)):
        span = fold_span(tiles[at], machine)
        out[FOLDS] += span[0]
        out[SERIAL] += serial_cycles(tiles[at], machine)
        out[COMPUTING] += moving_words(span, machine)
        out[FILLING] += ideal[at, pn.WAIT_FILL] + ideal[at, pn.BUBBLE]
        out[WAIT_WEIGHT] += ideal[at, pn.WAIT_WEIGHT]
        out[WAIT_IFMAP] += ideal[at, pn.WAIT_IFMAP]
        out[WAIT_OUTPUT] += ideal[at, pn.WAIT_OUTPUT]
        out[CONTROL] += ideal[at, pn.WAIT_CONTROL]
    last = len(tiles) - 1
    out[CYCLES] = written
    out[DRAINING] = ideal[last, pn.WRITTEN] - ideal[last, pn.STREAM_END]
    out[MEMORY] = written - ideal[last, pn.WRITTEN]
    out[TILES] = len(tiles)
    moved = port_bytes(tiles, machine)
    for port in range(pn.IFMAP, pn.OFMAP + 1):
        out[IFMAP_BYTES + port - pn.IFMAP] = moved[port]
    return out


@kernel
def count_cycles(tiles: IntArray, machine: IntArray) -> int:
    """The cycles of a layer's tiles, and nothing else."""
    plan = schedule(tiles, machine, services_of(machine), no_gaps())
    return plan[len(tiles) - 1, pn.WRITTEN]


@kernel("i8.2, i8.1")
def time_tiles(tiles: IntArray, machine: IntArray) -> IntArray:
    """The summary of a layer's tiles with the design's off-chip memory."""
    services, written = services_of(machine), np.int64(-1)
    if services[:, pn.WORD_TICKS].sum() + services[:, pn.LATENCY].sum() > 0:
        # its plan is not held beside the next: of a million tiles it takes a quarter of a gigabyte
        written = count_cycles(tiles, machine)
    ideal = schedule(tiles, machine, np.zeros_like(services), no_gaps())
    if written < 0:
        written = np.int64(ideal[len(tiles) - 1, pn.WRITTEN])
    return summarize(tiles, int(written), ideal, machine)
