"""What a tile asks of the array: its folds, summed in closed form."""

from __future__ import annotations

from archsim.kernels import kernel
from archsim.numbers import IntArray
from archsim.tiled import commands as cmd
from archsim.tiled import machine_vector as mc
from archsim.tiled.walk import chunks_of

Span = tuple[int, int, int, int, int, int]
"""What `fold_span` answers."""


@kernel
def span_of(machine: IntArray, pixels: int, steps: int, runs: int, length: int) -> Span:
    """`fold_span` of so many pixels, filter steps, runs of a kernel and elements of a run."""
    rows, columns = machine[mc.ROWS], machine[mc.COLUMNS]
    chunks = chunks_of(length, machine)
    last = length - (chunks - 1) * rows
    if machine[mc.DATAFLOW] == mc.OUTPUT_STATIONARY:
        folds, slots = steps * -(-pixels // rows), machine[mc.SLOTS]
        moving = runs * chunks * (slots if slots > 0 else min(rows, pixels))
        if slots == 0:
            return folds, moving, 0, 0, 0, steps * pixels * runs * chunks
        return folds, moving, 0, 0, 0, folds * moving
    if machine[mc.DATAFLOW] == mc.INPUT_STATIONARY:
        folds = -(-pixels // columns) * runs * chunks
        return folds, steps, columns, columns, columns, folds * max(steps, columns)
    blocks = steps * runs
    total = blocks * ((chunks - 1) * max(pixels, rows) + max(pixels, last))
    first = rows if chunks > 1 else last
    second = rows if chunks > 2 else last
    return blocks * chunks, pixels, first, second, last, total


@kernel
def fold_span(row: IntArray, machine: IntArray) -> Span:
    """What a tile asks of the array: folds, moving words of a fold, and the stationary loads.

    Returns (folds, moving, first, second, last, total): the moving words of a whole fold; the
    stationary words of the first two folds and of the last; total = Σ max(moving, stationary) over
    all folds, which is the time from the first fold's start to the end of the last once loads and
    streams overlap.
    """
    runs = row[cmd.TAPS] * row[cmd.RUNS]
    return span_of(machine, row[cmd.PIXELS], row[cmd.FILTER_STEPS], runs, row[cmd.RUN_LENGTH])


@kernel
def moving_words(span: Span, machine: IntArray) -> int:
    """Moving words of a tile: cycles in which the array computes."""
    return span[5] if machine[mc.DATAFLOW] == mc.OUTPUT_STATIONARY else span[0] * span[1]
