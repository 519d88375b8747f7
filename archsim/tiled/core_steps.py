"""What each unit of the core does for a tile, as the scan goes over them: from times to times.

`at` is the row of what the tile asks of the units (`archsim.tiled.work`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from archsim.kernels import inlined, kernel
from archsim.memory.ticks import TICK_BITS
from archsim.numbers import IntArray
from archsim.tiled import machine_vector as mc
from archsim.tiled import plan as pn
from archsim.tiled import work as wk
from archsim.tiled.channel import send

OUTPUT_SLOTS = 3
"""Slots behind a tile's own in which its outputs go."""


class Core(NamedTuple):
    """What the steps read and write.

    state: times (`archsim.tiled.plan`); places: what the scan keeps beside them; works:
    [·, WORK_COLUMNS]; machine: the design's vector; services: [5, SERVICE_COLUMNS] of the ports.
    """

    state: IntArray
    places: IntArray
    works: IntArray
    machine: IntArray
    services: IntArray


@kernel
def new_state(machine: IntArray, command: int) -> IntArray:
    """Times before the first tile; command: the cycle in which the layer's command crosses."""
    state = np.zeros(pn.POPS + pn.QUEUES * machine[mc.COMMAND_QUEUE], np.int64)
    for at in range(pn.POPS, len(state)):
        state[at] = -1
    for port in range(5):
        state[pn.CROSSED + port] = -1
    # the layer's command crosses as soon as it is offered; its tiles follow from there
    state[pn.CROSSED + pn.COMMAND] = state[pn.ASKED] = command
    return state


@inlined
def _pop(core: Core, queue: int, cycle: int) -> None:
    state, places, machine = core.state, core.places, core.machine
    depth, head = machine[mc.COMMAND_QUEUE], places[pn.HEAD + queue]
    state[pn.POPS + queue * depth + head] = cycle
    head += 1
    places[pn.HEAD + queue] = 0 if head == depth else head


@inlined
def dispatch(core: Core, at: int) -> int:
    """The cycle in which a tile command is taken: it is made, and every queue has room."""
    state, places, works, machine = core.state, core.places, core.works, core.machine
    depth = machine[mc.COMMAND_QUEUE]
    cycle = state[pn.CROSSED + pn.COMMAND] + machine[mc.TILE_INTERVAL]
    for queue in range(pn.QUEUES):
        # the entry `depth` before this one must be given up
        oldest = places[pn.HEAD + queue] + places[pn.LAG + queue]
        oldest = oldest - depth if oldest >= depth else oldest
        cycle = max(cycle, state[pn.POPS + queue * depth + oldest] + 1)
    state[pn.CROSSED + pn.COMMAND] = cycle
    places[pn.LAG + pn.DRAIN_QUEUE] = works[at, wk.LAST_K]
    places[pn.LAG + pn.BIAS_QUEUE] = works[at, wk.HAS_BIAS]
    state[pn.VISIBLE] = cycle + 1
    return cycle


@inlined
def send_part(core: Core, port: int, words: int, part: tuple[int, int]) -> tuple[int, int]:
    """What goes through the channel with a slot: an even part of the port's next load.

    part: which, and of how many.  The first asks for it: it may come once a half is free, and the
    latency behind the command.  Returns the ticks at which it begins, and its words, of which there
    may be none.
    """
    state, services = core.state, core.services
    sent, until = 0, words
    if part[1] > 1:
        sent = words * part[0] // part[1]
        until = words * (part[0] + 1) // part[1]
    if until == sent:
        return -1, 0
    if sent == 0:
        asked = state[pn.ASKED] + services[port, pn.LATENCY]
        state[pn.ALLOWED + port] = max(state[pn.FREE + port], asked) << TICK_BITS
    return send(state, services, port, sent, until - sent), until - sent


@inlined
def load_ready(core: Core, port: int, visible: int) -> int:
    """A loader takes its command: the first cycle in which it may take a word."""
    state = core.state
    popped = max(visible, state[pn.IDLE + port])
    _pop(core, port, popped)
    return max(popped + 1, state[pn.FREE + port])


@inlined
def load_taken(core: Core, port: int) -> None:
    """All words of a load have crossed; the walkers will see the tile."""
    state, machine = core.state, core.machine
    after = state[pn.CROSSED + port] + 1
    state[pn.IDLE + port] = after
    state[pn.FREE + port] = state[pn.FREE_NEXT + port]
    state[pn.LOADED + port] = after + machine[mc.IFMAP_WRITE_LATENCY + port - pn.IFMAP]


@inlined
def _stream_start(core: Core, popped: int, filled: int, released: int) -> int:
    """When the tile's stream begins, and what the array waited for until then."""
    state, places = core.state, core.places
    at = state[pn.STREAM_ENDED]
    until = max(at, popped + 1)
    places[pn.WAITS] = until - at
    at = max(until, state[pn.LOADED + pn.IFMAP])
    places[pn.WAITS + 1] = at - until
    until = max(at, state[pn.LOADED + pn.WEIGHT])
    places[pn.WAITS + 2] = until - at
    at = max(until, filled)
    places[pn.WAITS + 3] = at - until
    until = max(at, released)
    places[pn.WAITS + 4] = until - at
    return until


@inlined
def _stream_folds(core: Core, at: int, start: int, stationary: int) -> None:
    """Run a tile's folds, the stream from `start`, the stationary loads from `stationary`."""
    state, works = core.state, core.works
    moving, first, total = works[at, wk.MOVING], works[at, wk.FIRST_LOAD], works[at, wk.TOTAL]
    now = state[pn.STREAM_ENDED]
    if stationary < 0:
        earlier, ended, loads = now, start + total, start + total
    elif works[at, wk.FOLDS] == 1:
        earlier, ended, loads = now, start + moving, stationary + first
    else:
        second = works[at, wk.SECOND_LOAD]
        load = max(stationary + first, now)
        begin = max(start + moving, load + second)
        if works[at, wk.FOLDS] == 2:
            earlier, ended, loads = start + moving, begin + moving, load + second
        else:
            # now a load begins when the fold before it starts: a fold takes the longer of both
            last = works[at, wk.LAST_LOAD]
            final = begin + total - max(moving, first) - max(moving, second)
            before = final - max(moving, last)
            earlier, ended, loads = before + moving, final + moving, before + last
    state[pn.EARLIER_ENDED] = earlier
    state[pn.STREAM_ENDED] = ended
    state[pn.STATIONARY_ENDED] = loads


@inlined
def compute(core: Core, at: int) -> tuple[int, int, int]:
    """The folds of a tile: when its stationary loads begin (−1: none), when the stream's command is
    taken, and when the stream begins."""
    state, places, works, machine = core.state, core.places, core.works, core.machine
    visible, stationary, filled, released = state[pn.VISIBLE], -1, 0, 0
    popped = max(visible, state[pn.STREAM_ENDED])
    _pop(core, pn.STREAM_QUEUE, popped)
    if machine[mc.DATAFLOW] != mc.OUTPUT_STATIONARY:
        operand = pn.IFMAP if machine[mc.DATAFLOW] == mc.INPUT_STATIONARY else pn.WEIGHT
        load_popped = max(visible, state[pn.STATIONARY_ENDED])
        _pop(core, pn.LOAD_QUEUE, load_popped)
        stationary = max(load_popped + 1, state[pn.EARLIER_ENDED])
        stationary = max(stationary, state[pn.LOADED + operand])
        filled = stationary + works[at, wk.FIRST_LOAD]
    if works[at, wk.FIRST_K] == 1:
        released = state[pn.FREE + pn.OFMAP]
    start = _stream_start(core, popped, filled, released)
    _stream_folds(core, at, start, stationary)
    ended = state[pn.STREAM_ENDED]
    places[pn.BUBBLES] = ended - start - works[at, wk.MOVING_WORDS]
    state[pn.SUMS_DONE] = ended + machine[mc.RESULT_LATENCY] + works[at, wk.TAIL]
    return stationary, popped, start


@inlined
def free_operands(core: Core, ifmap: bool, weight: bool) -> None:
    """Free the operand tiles that the next tile does not need."""
    state, machine = core.state, core.machine
    ended, loads = state[pn.STREAM_ENDED], state[pn.STATIONARY_ENDED]
    moving_weights = machine[mc.DATAFLOW] == mc.INPUT_STATIONARY
    if ifmap:
        last = loads if moving_weights else ended
        state[pn.FREE_NEXT + pn.IFMAP] = last + machine[mc.IFMAP_READ_WAIT]
    if weight:
        last = ended if moving_weights else loads
        state[pn.FREE_NEXT + pn.WEIGHT] = last + machine[mc.WEIGHT_READ_WAIT]


@inlined
def drain_start(core: Core, at: int) -> int:
    """The cycle from which on the accumulators of the tile before may be read."""
    state, works = core.state, core.works
    popped = max(state[pn.VISIBLE_BEFORE], state[pn.IDLE + pn.OFMAP])
    _pop(core, pn.DRAIN_QUEUE, popped)
    start = max(popped + 1, state[pn.SUMS_DONE_BEFORE])
    if works[at, wk.HAS_BIAS] == 1:
        start = max(start, state[pn.LOADED + pn.BIAS])
    return start


@inlined
def drained(core: Core, at: int, end: int) -> None:
    """The accumulators of the tile before have been read, the last in the cycle before `end`."""
    state, works = core.state, core.works
    state[pn.IDLE + pn.OFMAP] = end
    state[pn.FREE + pn.OFMAP] = end
    if works[at, wk.HAS_BIAS] == 1:
        state[pn.FREE_NEXT + pn.BIAS] = end


@inlined
def next_slot(core: Core) -> None:
    """Every tile is another slot behind."""
    state = core.state
    state[pn.VISIBLE_BEFORE] = state[pn.VISIBLE]
    state[pn.SUMS_DONE_BEFORE] = state[pn.SUMS_DONE]
    state[pn.FIRST_OUT_3] = state[pn.FIRST_OUT_2]
    state[pn.FIRST_OUT_2] = state[pn.FIRST_OUT_1]
    state[pn.LAST_OUT_3] = state[pn.LAST_OUT_2]
    state[pn.LAST_OUT_2] = state[pn.LAST_OUT_1]
