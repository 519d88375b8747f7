"""When words cross, of what PEs take for each block (docs/contracts/sparsetrain.md)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from archsim.kernels import inlined, kernel
from archsim.numbers import IntArray

Counts = npt.NDArray[np.uint8]

Waits = tuple[IntArray, IntArray, IntArray, IntArray, IntArray, IntArray, IntArray]
"""Of commands, masks of rows, rows, masks of columns, columns, masks of outputs, the ofmap."""

(LOAD_ROWS, LOAD_COLUMNS, LOAD_NEEDED, WORK, WORDS, ROWS_AGAIN, COLUMNS_AGAIN) = range(7)
"""Of a block: steps of rows and of columns, words of the mask of outputs, cycles of the longest PE,
words of the ofmap that leave behind it; whether rows and columns are read in a scratchpad."""

(COMMAND, LOADED, START, DONE, FREE) = range(5)
"""Cycles of a block: its command crosses; its last step is written; PEs begin; they are done, and
the ofmap before has left; from which on nothing but the load holds the start up."""


@kernel("i8.2, int")
def block_times(blocks: IntArray, pipeline: int) -> IntArray:
    """Cycles of each block [blocks, 5] where no port waits.

    blocks: [blocks, 5 or more] as `LOAD_ROWS` and the following.  A step comes from a scratchpad as
        it comes from a port that never waits.
    pipeline: `SparseTrain.pipeline_cycles`.
    """
    times = np.zeros((len(blocks), 5), np.int64)
    left = -1
    for number in range(len(blocks)):
        block = blocks[number]
        command, started = _before(times, number)
        loaded = command + max(block[LOAD_ROWS], block[LOAD_COLUMNS])
        if block[LOAD_NEEDED]:
            loaded = max(loaded, max(command, started) + block[LOAD_NEEDED])
        _compute(times, number, (command, loaded, left, pipeline), block)
        if block[WORDS]:
            left = times[number, DONE] + 1 + block[WORDS]
    return times


@inlined
def _before(times: IntArray, number: int) -> tuple[int, int]:
    """The cycle from which a block's command can cross, and the start of the block before."""
    begin, started = 0, -1
    if number > 0:
        begin, started = times[number - 1, LOADED] + 2, times[number - 1, START]
    if number > 1:
        begin = max(begin, times[number - 2, DONE] + 1)
    return begin, started


@inlined
def _compute(
    times: IntArray, number: int, reached: tuple[int, int, int, int], block: IntArray
) -> None:
    """The start and the end of a block.  reached: its command; its last step; the last word of the
    ofmap that left before; and cycles of the pipeline."""
    command, loaded, left, pipeline = reached
    free = times[number - 1, DONE] if number else 0
    start = max(loaded + 2, free)
    done = start + pipeline + block[WORK]
    if block[WORDS]:
        done = max(done, left + 1)
    times[number, COMMAND], times[number, LOADED] = command, loaded
    times[number, FREE], times[number, START], times[number, DONE] = free, start, done


@kernel("i8.2, (u1.1, u1.1), (int, int), (i8.1, i8.1, i8.1, i8.1, i8.1, i8.1, i8.1)")
def block_scan(
    blocks: IntArray,
    ones: tuple[Counts, Counts],
    sizes: tuple[int, int],
    waits: Waits,
) -> IntArray:
    """`block_times` with idle cycles before each word of each port, and when each word crosses.

    ones: of each step of rows and of columns that crosses, the values that are not zero.
    sizes: lanes, and `SparseTrain.pipeline_cycles`.
    waits: idle cycles; as answer, the cycle in which each word crosses.
    """
    times = np.zeros((len(blocks), 5), np.int64)
    lanes, pipeline = sizes
    commands, row_masks, rows, column_masks, columns, needed, ofmap = waits
    row_state, column_state = np.zeros(6, np.int64), np.zeros(6, np.int64)
    row_state[LAST_STEP] = column_state[LAST_STEP] = -1
    asked, words, crossed, left = 0, 0, -1, -1
    for number in range(len(blocks)):
        block = blocks[number]
        command, started = _before(times, number)
        before = times[number - 1, COMMAND] if number else -1
        command = max(command, before + 1 + commands[number])
        commands[number] = command
        loaded = command + block[LOAD_ROWS]
        if not block[ROWS_AGAIN]:
            load = (command, block[LOAD_ROWS], lanes)
            loaded = _load(load, ones[0], row_masks, rows, row_state)
        if block[COLUMNS_AGAIN]:
            loaded = max(loaded, command + block[LOAD_COLUMNS])
        else:
            load = (command, block[LOAD_COLUMNS], lanes)
            loaded = max(loaded, _load(load, ones[1], column_masks, columns, column_state))
        for _ in range(block[LOAD_NEEDED]):
            crossed = max(crossed + 1 + needed[asked], max(command, started) + 1)
            needed[asked] = crossed
            asked += 1
            loaded = max(loaded, crossed)
        _compute(times, number, (command, loaded, left, pipeline), block)
        read = times[number, DONE]
        for _ in range(block[WORDS]):
            read = max(read + 1, left)
            left = max(read + 1, left + 1 + ofmap[words])
            ofmap[words] = left
            words += 1
    return times


(STEPS_DONE, LAST_STEP, VALUES, COME, FREED, FREEING) = range(6)
"""Of an operand's stream: steps so far, the cycle of the last, their values; words so far; the
values that the first `FREEING` steps take out of the ring."""


@inlined
def _load(
    load: tuple[int, int, int], ones: Counts, masks: IntArray, words: IntArray, state: IntArray
) -> int:
    """A block's steps of one operand: the cycle of the last one.

    A step is written when its mask is there and its values are in the ring of two words; a word
    comes when the ring has a place for it, behind that step or in its cycle.
    load: the cycle of the block's command, steps, lanes.
    """
    command, steps, lanes = load
    for _ in range(steps):
        at = state[STEPS_DONE]
        state[VALUES] += ones[at]
        while state[COME] * lanes < state[VALUES]:
            come = state[COME]
            cycle = words[come] + (words[come - 1] + 1 if come else 0)
            while state[FREED] < (come - 1) * lanes:
                state[FREED] += ones[state[FREEING]]
                state[FREEING] += 1
            if come > 1:
                cycle = max(cycle, masks[state[FREEING] - 1])
            words[come] = cycle
            state[COME] = come + 1
        ready = max(command + 1, state[LAST_STEP] + 1 + masks[at])
        if state[VALUES]:
            ready = max(ready, words[(state[VALUES] - 1) // lanes] + 1)
        masks[at] = ready
        state[LAST_STEP] = ready
        state[STEPS_DONE] = at + 1
    return state[LAST_STEP]


__all__ = [
    "COLUMNS_AGAIN",
    "COMMAND",
    "DONE",
    "FREE",
    "LOADED",
    "LOAD_COLUMNS",
    "LOAD_NEEDED",
    "LOAD_ROWS",
    "ROWS_AGAIN",
    "START",
    "WORDS",
    "WORK",
    "Counts",
    "Waits",
    "block_scan",
    "block_times",
]
