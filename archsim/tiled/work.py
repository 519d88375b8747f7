"""What a tile asks of each unit of the core, as the scan reads it: figures that a command implies.

They are the same for all tiles of a kind; those of the outputs hang on what is begun of a word too.
"""

from __future__ import annotations

from archsim.kernels import kernel
from archsim.numbers import IntArray
from archsim.tiled import commands as cmd
from archsim.tiled import machine_vector as mc
from archsim.tiled.channel import leave
from archsim.tiled.folds import fold_span
from archsim.tiled.packing import row_of_word

(
    IFMAP_WORDS,
    WEIGHT_WORDS,
    BIAS_WORDS,
    OUTPUT_ROWS,
    FIRST_K,
    LAST_K,
    HAS_BIAS,
    IFMAP_FIRST,  # whether a slot's part of the ifmap goes before that of the weights
    FOLDS,  # from here on: `archsim.tiled.folds`
    MOVING,
    FIRST_LOAD,
    SECOND_LOAD,
    LAST_LOAD,
    TOTAL,
    MOVING_WORDS,  # cycles in which the array computes
    TAIL,  # cycles from the last moving word to the last sum, beside the latency
    OUTPUT_WORDS,
    FIRST_ROW,  # rows that complete the first and the last of them
    LAST_ROW,
    LEAD,  # `archsim.tiled.channel.leave`
    PIXELS,  # of a kind (`archsim.tiled.nest`): what its outputs are made of, in units too
    FILTERS,
    UNITS,
    BEGUN,  # units of a word for which the outputs are filled in, and those left then; -1: none
    LEFT,
    LEAST_STREAM,  # cycles of its streams at least, and of its stationary loads
    LEAST_LOADING,
    WORK_COLUMNS,
) = range(28)


@kernel
def _ifmap_first(row: IntArray, machine: IntArray, filling: int) -> bool:
    """Whether a slot's part of the ifmap goes before that of the weights.

    First goes what takes longer behind an infinitely fast channel: crossing its port and, of the
    stationary operand, `filling` the array; of equals the stationary one.  The channel's rate has
    no say in it, so that a faster one is never slower.
    """
    ifmap, weight = row[cmd.IFMAP_WORDS], row[cmd.WEIGHT_WORDS]
    if machine[mc.DATAFLOW] == mc.INPUT_STATIONARY:
        return ifmap + filling >= weight
    return ifmap > weight + filling


@kernel
def fill_work(works: IntArray, at: int, row: IntArray, machine: IntArray) -> None:
    """What a tile's command `row` asks for into `works` [·, WORK_COLUMNS], but for the outputs."""
    folds, moving, first, second, last, total = fold_span(row, machine)
    works[at, IFMAP_WORDS] = row[cmd.IFMAP_WORDS]
    works[at, WEIGHT_WORDS] = row[cmd.WEIGHT_WORDS]
    works[at, BIAS_WORDS] = row[cmd.BIAS_WORDS]
    works[at, OUTPUT_ROWS] = row[cmd.OUTPUT_ROWS]
    works[at, FIRST_K] = row[cmd.FIRST_K]
    works[at, LAST_K] = row[cmd.LAST_K]
    works[at, HAS_BIAS] = row[cmd.HAS_BIAS]
    works[at, IFMAP_FIRST] = _ifmap_first(row, machine, first)
    works[at, FOLDS] = folds
    works[at, MOVING] = moving
    works[at, FIRST_LOAD] = first
    works[at, SECOND_LOAD] = second
    works[at, LAST_LOAD] = last
    works[at, TOTAL] = total
    works[at, MOVING_WORDS] = folds * moving
    works[at, TAIL] = works[at, OUTPUT_WORDS] = 0
    if machine[mc.DATAFLOW] == mc.OUTPUT_STATIONARY:
        works[at, MOVING_WORDS] = total
        if machine[mc.SLOTS] > 0:
            works[at, TAIL] = (row[cmd.PIXELS] - 1) % machine[mc.ROWS]


@kernel
def fill_outputs(works: IntArray, at: int, row: IntArray, machine: IntArray, ticks: int) -> None:
    """The words that leave with a tile: `row` says what is begun of a word, and how many leave.

    ticks: of a word on the channel.
    """
    words = row[cmd.OUTPUT_WORDS]
    works[at, OUTPUT_WORDS] = words
    if words > 0:
        first, last = row_of_word(row, 0, machine), row_of_word(row, words - 1, machine)
        works[at, FIRST_ROW], works[at, LAST_ROW] = first, last
        works[at, LEAD] = leave(row, (first, last), ticks, machine)
