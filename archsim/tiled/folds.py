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
def fold_span(row: IntArray, machine: IntArray) -> Span:
    """What a tile asks of the array: folds, moving words of a fold, and the stationary loads.

    Returns (folds, moving, first, second, last, total): the moving words of a whole fold; the
    stationary words of the first two folds and of the last; total = Σ max(moving, stationary) over
    all folds, which is the time from the first fold's start to the end of the last once loads and
    streams overlap.
    """
    rows, columns = machine[mc.ROWS], machine[mc.COLUMNS]
    chunks = chunks_of(row[cmd.RUN_LENGTH], machine)
    last = row[cmd.RUN_LENGTH] - (chunks - 1) * rows
    runs = row[cmd.TAPS] * row[cmd.RUNS]
    if machine[mc.DATAFLOW] == mc.OUTPUT_STATIONARY:
        folds, slots = row[cmd.FILTER_STEPS] * -(-row[cmd.PIXELS] // rows), machine[mc.SLOTS]
        moving = runs * chunks * (slots if slots > 0 else min(rows, row[cmd.PIXELS]))
        if slots == 0:
            steps = row[cmd.FILTER_STEPS] * row[cmd.PIXELS]
            return folds, moving, 0, 0, 0, steps * runs * chunks
        return folds, moving, 0, 0, 0, folds * moving
    if machine[mc.DATAFLOW] == mc.INPUT_STATIONARY:
        folds = -(-row[cmd.PIXELS] // columns) * runs * chunks
        moving = row[cmd.FILTER_STEPS]
        return folds, moving, columns, columns, columns, folds * max(moving, columns)
    moving = row[cmd.PIXELS]
    blocks = row[cmd.FILTER_STEPS] * runs
    total = blocks * ((chunks - 1) * max(moving, rows) + max(moving, last))
    first = rows if chunks > 1 else last
    second = rows if chunks > 2 else last
    return blocks * chunks, moving, first, second, last, total


@kernel
def moving_words(span: Span, machine: IntArray) -> int:
    """Moving words of a tile: cycles in which the array computes."""
    return span[5] if machine[mc.DATAFLOW] == mc.OUTPUT_STATIONARY else span[0] * span[1]
