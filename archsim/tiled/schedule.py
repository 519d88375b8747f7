"""The timing of a layer: one pass over its tiles, exact to the cycle, without a clock.

Every unit of the core answers with the cycles at which it takes and gives up what it needs;
`docs/contracts/systolic.md` names each term and the test that pins it.  The folds inside a tile
are summed in closed form (`archsim.tiled.folds`), so the cost is a few operations a tile.

The scan goes over slots, in the order in which the off-chip channel serves transfers: with slot s
go the operands of tile s, an even part of each that a later tile needs next, then the biases of
tile s − 1 and the outputs of tile s − 3 (`docs/adr/0012-one-channel.md`).
"""

from __future__ import annotations

import numpy as np

from archsim.kernels import inlined, kernel
from archsim.memory.ticks import TICK_BITS
from archsim.numbers import IntArray
from archsim.tiled import commands as cmd
from archsim.tiled import machine_vector as mc
from archsim.tiled import plan as pn
from archsim.tiled.channel import send, take, write_back
from archsim.tiled.folds import Span, fold_span, moving_words, stream_folds
from archsim.tiled.gaps import cross, drain_with_gaps, finish_time
from archsim.tiled.packing import row_of_word

OUTPUT_SLOTS = 3
"""Slots behind a tile's own in which its outputs go."""


@kernel
def _initial(tiles: int, machine: IntArray, services: IntArray, gaps: IntArray) -> IntArray:
    columns = max(tiles + pn.SCALAR_COLUMNS, machine[mc.OUTPUT_QUEUE])
    state = np.zeros((pn.STATE_ROWS, columns), np.int64)
    state[pn.CROSSINGS] = -1
    for port in range(5):
        state[pn.SCALARS, pn.CROSSED + port] = -1
        for column in range(pn.SERVICE_COLUMNS):
            at = pn.ON_CHANNEL + 5 * column + port
            state[pn.SCALARS, at] = services[port, column]
    # the layer's command crosses as soon as it is offered; its tiles follow from there
    command = finish_time(0, pn.COMMAND, gaps) - 1
    state[pn.SCALARS, pn.CROSSED + pn.COMMAND] = command
    state[pn.SCALARS, pn.ASKED] = command
    return state


@inlined
def _pop(state: IntArray, queue: int, cycle: int) -> None:
    state[pn.POPS + queue, state[pn.SCALARS, pn.POPPED_SO_FAR + queue]] = cycle
    state[pn.SCALARS, pn.POPPED_SO_FAR + queue] += 1


@inlined
def _dispatch(state: IntArray, row: IntArray, machine: IntArray) -> int:
    """The cycle in which a tile command is taken: it is made, and every queue has room."""
    depth = machine[mc.COMMAND_QUEUE]
    cycle = state[pn.SCALARS, pn.CROSSED + pn.COMMAND] + machine[mc.TILE_INTERVAL]
    for queue in range(6):
        pushed = state[pn.SCALARS, pn.PUSHED + queue]
        if pushed >= depth:
            cycle = max(cycle, state[pn.POPS + queue, pushed - depth] + 1)
    state[pn.SCALARS, pn.CROSSED + pn.COMMAND] = cycle
    state[pn.SCALARS, pn.PUSHED + pn.DRAIN_QUEUE] += row[cmd.LAST_K]
    state[pn.SCALARS, pn.PUSHED + pn.IFMAP_QUEUE] += row[cmd.LOAD_IFMAP]
    state[pn.SCALARS, pn.PUSHED + pn.WEIGHT_QUEUE] += row[cmd.LOAD_WEIGHT]
    state[pn.SCALARS, pn.PUSHED + pn.BIAS_QUEUE] += row[cmd.HAS_BIAS]
    state[pn.SCALARS, pn.PUSHED + pn.STREAM_QUEUE] += 1
    state[pn.SCALARS, pn.PUSHED + pn.LOAD_QUEUE] += machine[mc.DATAFLOW] != mc.OUTPUT_STATIONARY
    return cycle


@inlined
def _allow(state: IntArray, port: int) -> None:
    """The load under way may come once a half is free, and the latency behind the command."""
    free = state[pn.FREE + port, state[pn.SCALARS, pn.HALVES + port]]
    asked = state[pn.SCALARS, pn.ASKED] + state[pn.SCALARS, pn.DELAY + port]
    state[pn.SCALARS, pn.ALLOWED + port] = max(free, asked) << TICK_BITS


@inlined
def _take_load(
    state: IntArray, port: int, words: int, visible: int, machine: IntArray, gaps: IntArray
) -> tuple[int, int, int]:
    """A loader takes its command and the words, all of which have been sent.

    Returns the first cycle in which it may take one, that of the first, and when the walkers see
    the tile.
    """
    number = state[pn.SCALARS, pn.HALVES + port]
    popped = max(visible, state[pn.SCALARS, pn.IDLE + port])
    _pop(state, port, popped)
    ready = max(popped + 1, state[pn.FREE + port, number])
    if gaps[5] > gaps[0]:
        first = cross(state, port, words, ready + state[pn.SCALARS, pn.DELAY + port], gaps)
    else:
        first = take(state, port, words, ready)
    after = state[pn.SCALARS, pn.CROSSED + port] + 1
    state[pn.SCALARS, pn.IDLE + port] = after
    state[pn.SCALARS, pn.HALVES + port] = number + 1
    state[pn.SCALARS, pn.LOADED + port] = after + machine[mc.IFMAP_WRITE_LATENCY + port - pn.IFMAP]
    return ready, first, state[pn.SCALARS, pn.LOADED + port]


@inlined
def _send_operand(state: IntArray, tiles: IntArray, out: IntArray, slot: int, port: int) -> None:
    """What goes through the channel with a slot: an even part of the port's next load.

    It is spread over the slots behind the first that used the load before, until its tile's own.
    """
    at, tile = port - pn.IFMAP, state[pn.SCALARS, pn.NEXT_TILE + port]
    if tile < len(tiles):
        begin = state[pn.SCALARS, pn.FIRST_SLOT + port]
        sent, until = 0, tiles[tile, cmd.IFMAP_WORDS + at]
        if begin < tile:
            sent = until * (slot - begin) // (tile - begin + 1)
            until = until * (slot - begin + 1) // (tile - begin + 1)
        if until > sent:
            if sent == 0:
                _allow(state, port)
            out[slot, pn.IFMAP_SENT + at] = send(state, port, sent, until - sent)
            out[slot, pn.IFMAP_PIECE + at] = until - sent


@inlined
def _take_operand(
    state: IntArray, tiles: IntArray, out: IntArray, machine: IntArray, gaps: IntArray,
    turn: tuple[int, int],
) -> None:  # fmt: skip
    """In its tile's slot a load crosses the port, and the next one may be sent from the next on."""
    slot, port = turn
    at = port - pn.IFMAP
    if state[pn.SCALARS, pn.NEXT_TILE + port] == slot:
        words, visible = tiles[slot, cmd.IFMAP_WORDS + at], out[slot, pn.DISPATCH] + 1
        ready, first, loaded = _take_load(state, port, words, visible, machine, gaps)
        out[slot, pn.IFMAP_READY + 2 * at] = ready
        out[slot, pn.IFMAP_FIRST + at] = first
        out[slot, pn.IFMAP_LOADED + 2 * at] = loaded
        tile = slot + 1
        while tile < len(tiles) and tiles[tile, cmd.LOAD_IFMAP + 2 * at] == 0:
            tile += 1
        state[pn.SCALARS, pn.NEXT_TILE + port] = tile
        state[pn.SCALARS, pn.FIRST_SLOT + port] = slot + 1


@inlined
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


@inlined
def _start(state: IntArray, row: IntArray, out: IntArray, machine: IntArray, first: int) -> None:
    """When the tile's stationary loads and its stream begin, and what the array waited for."""
    visible = out[pn.DISPATCH] + 1
    at = state[pn.SCALARS, pn.STREAM_ENDED]
    popped = max(visible, at)
    _pop(state, pn.STREAM_QUEUE, popped)
    filled = released = 0
    if machine[mc.DATAFLOW] != mc.OUTPUT_STATIONARY:
        operand = pn.IFMAP if machine[mc.DATAFLOW] == mc.INPUT_STATIONARY else pn.WEIGHT
        load_popped = max(visible, state[pn.SCALARS, pn.STATIONARY_ENDED])
        _pop(state, pn.LOAD_QUEUE, load_popped)
        begin = max(load_popped + 1, state[pn.SCALARS, pn.EARLIER_ENDED])
        begin = max(begin, state[pn.SCALARS, pn.LOADED + operand])
        out[pn.STATIONARY_START] = begin
        filled = begin + first
    if row[cmd.FIRST_K] == 1:
        released = state[pn.FREE + pn.OFMAP, state[pn.SCALARS, pn.COMPLETE]]
    state[pn.SCALARS, pn.LIMITS] = popped + 1
    state[pn.SCALARS, pn.LIMITS + 1] = state[pn.SCALARS, pn.LOADED + pn.IFMAP]
    state[pn.SCALARS, pn.LIMITS + 2] = state[pn.SCALARS, pn.LOADED + pn.WEIGHT]
    state[pn.SCALARS, pn.LIMITS + 3] = filled
    state[pn.SCALARS, pn.LIMITS + 4] = released
    out[pn.POPPED] = popped
    for cause in range(5):
        until = max(state[pn.SCALARS, pn.LIMITS + cause], at)
        out[pn.WAIT_CONTROL + cause] = until - at
        at = until
    out[pn.STREAM_START] = at


@inlined
def _compute(state: IntArray, row: IntArray, out: IntArray, machine: IntArray, span: Span) -> None:
    """The folds of a tile; frees the operand tiles that the next tile does not need."""
    _start(state, row, out, machine, span[2])
    stream_folds(span, machine, state, out[pn.STREAM_START], out[pn.STATIONARY_START])
    ended, loads = state[pn.SCALARS, pn.STREAM_ENDED], state[pn.SCALARS, pn.STATIONARY_ENDED]
    out[pn.STREAM_END] = ended
    out[pn.BUBBLE] = ended - out[pn.STREAM_START] - moving_words(span, machine)
    moving_weights = machine[mc.DATAFLOW] == mc.INPUT_STATIONARY
    if row[cmd.FREE_IFMAP] == 1:
        last = loads if moving_weights else ended
        half = state[pn.SCALARS, pn.HALVES + pn.IFMAP] + 1
        state[pn.FREE + pn.IFMAP, half] = last + machine[mc.IFMAP_READ_WAIT]
    if row[cmd.FREE_WEIGHT] == 1:
        last = ended if moving_weights else loads
        half = state[pn.SCALARS, pn.HALVES + pn.WEIGHT] + 1
        state[pn.FREE + pn.WEIGHT, half] = last + machine[mc.WEIGHT_READ_WAIT]
    if row[cmd.LAST_K] == 1:
        tail = 0
        if machine[mc.DATAFLOW] == mc.OUTPUT_STATIONARY and machine[mc.SLOTS] > 0:
            tail = (row[cmd.PIXELS] - 1) % machine[mc.ROWS]
        out[pn.SUMMED] = ended + machine[mc.RESULT_LATENCY] + tail
        state[pn.SCALARS, pn.COMPLETE] += 1


@inlined
def _drain(
    state: IntArray, row: IntArray, out: IntArray, machine: IntArray, gaps: IntArray
) -> None:
    """Read an output tile's accumulators through the output stage and the ofmap port.

    The off-chip memory takes a word a cycle, and the queue holds more words than the stage has
    cycles, so that only explicit gaps push back.
    """
    popped = max(out[pn.DISPATCH] + 1, state[pn.SCALARS, pn.IDLE + pn.OFMAP])
    _pop(state, pn.DRAIN_QUEUE, popped)
    start = max(popped + 1, out[pn.SUMMED])
    if row[cmd.HAS_BIAS] == 1:
        start = max(start, out[pn.BIAS_LOADED])
    if gaps[5] > gaps[0]:
        start, end, first = drain_with_gaps(state, row, start, machine, gaps)
        last = state[pn.SCALARS, pn.CROSSED + pn.OFMAP]
    else:
        end, ready = start + row[cmd.OUTPUT_ROWS], start + machine[mc.OUTPUT_LATENCY]
        first = ready + row_of_word(row, 0, machine)
        last = ready + row_of_word(row, row[cmd.OUTPUT_WORDS] - 1, machine)
    out[pn.DRAIN_START] = start
    out[pn.DRAIN_END] = end
    if row[cmd.OUTPUT_WORDS] > 0:
        out[pn.FIRST_OUT], out[pn.LAST_OUT] = first, last
    state[pn.SCALARS, pn.IDLE + pn.OFMAP] = end
    state[pn.FREE + pn.OFMAP, state[pn.SCALARS, pn.OUTPUTS] + 2] = end
    state[pn.SCALARS, pn.OUTPUTS] += 1


@inlined
def _finish(
    state: IntArray, row: IntArray, out: IntArray, machine: IntArray, gaps: IntArray
) -> None:
    """Bring an output tile's biases, and drain it."""
    if row[cmd.HAS_BIAS] == 1:
        words, visible = row[cmd.BIAS_WORDS], out[pn.DISPATCH] + 1
        _allow(state, pn.BIAS)
        out[pn.BIAS_SENT] = send(state, pn.BIAS, 0, words)
        out[pn.BIAS_PIECE] = words
        ready, first, loaded = _take_load(state, pn.BIAS, words, visible, machine, gaps)
        out[pn.BIAS_READY], out[pn.BIAS_FIRST], out[pn.BIAS_LOADED] = ready, first, loaded
    _drain(state, row, out, machine, gaps)
    if row[cmd.HAS_BIAS] == 1:
        state[pn.FREE + pn.BIAS, state[pn.SCALARS, pn.HALVES + pn.BIAS] + 1] = out[pn.DRAIN_END]


@kernel("i8.2, i8.1, i8.2, i8.1")
def schedule(tiles: IntArray, machine: IntArray, services: IntArray, gaps: IntArray) -> IntArray:
    """The cycles of every tile: [tiles, PLAN_COLUMNS] from commands [tiles, WALK_COLUMNS].

    services: [5, SERVICE_COLUMNS] of the ports.  gaps: explicit ones, see `join_gaps`; with them
    no port has a channel.
    """
    out = np.full((len(tiles), pn.PLAN_COLUMNS), -1, np.int64)
    state = _initial(len(tiles), machine, services, gaps)
    for slot in range(len(tiles) + OUTPUT_SLOTS):
        if slot < len(tiles):
            out[slot, pn.DISPATCH] = _dispatch(state, tiles[slot], machine)
            span = fold_span(tiles[slot], machine)
            swapped = _ifmap_first(tiles[slot], machine, span[2])
            for second in range(2):
                port = pn.IFMAP if (second == 0) == swapped else pn.WEIGHT
                _send_operand(state, tiles, out, slot, port)
                _take_operand(state, tiles, out, machine, gaps, (slot, port))
            _compute(state, tiles[slot], out[slot], machine, span)
        tile = slot - 1
        if 0 <= tile < len(tiles) and tiles[tile, cmd.LAST_K] == 1:
            _finish(state, tiles[tile], out[tile], machine, gaps)
        tile = slot - OUTPUT_SLOTS
        if tile >= 0 and tiles[tile, cmd.OUTPUT_WORDS] > 0:
            out[tile, pn.WRITTEN] = write_back(state, tiles[tile], out[tile], machine)
    return out
