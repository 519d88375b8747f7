"""Runs of tiles of one output tile that are alike: of all channels but the first and the last.

Each loads both operands, none brings or reads sums.  So few times move, and they are kept apart
from the scan's state while tile follows tile: the same steps (`archsim.tiled.core_steps`,
`archsim.tiled.channel`) in a fraction of the time.
"""

from __future__ import annotations

from typing import NamedTuple

from archsim.kernels import inlined
from archsim.memory.ticks import TICK, TICK_BITS, whole_cycles
from archsim.numbers import IntArray
from archsim.tiled import machine_vector as mc
from archsim.tiled import plan as pn
from archsim.tiled import work as wk
from archsim.tiled.core_steps import Core

BLOCK = 16
"""Tiles behind which it is looked whether times repeat: where a channel's words begin at sixteenths
of a cycle, as many are alike."""


class _Load(NamedTuple):
    """What a load of a port takes.

    ticks: of all words, of its first burst; short: of the words behind the last but one burst,
    which are full and before; asked: before this cycle none begins; slow: whether a word takes
    more than a cycle of the channel.  waits: cycles from the last word to the credit, and by which
    its half is read later.  kept: whether the operand is the stationary one.
    """

    port: int
    words: int
    ticks: int
    first_ticks: int
    short: int
    full: int
    before: int
    asked: int
    slow: bool
    waits: tuple[int, int]
    kept: bool


class _Port(NamedTuple):
    """Times of a port: those of the scan's state (`archsim.tiled.plan`) by the same names; over:
    until when its channel is taken, in ticks."""

    free: int
    free_next: int
    crossed: int
    loaded: int
    over: int


class _Times(NamedTuple):
    """All that moves: of the array, the command that was dispatched last, and the ports in the
    order in which loads go."""

    ended: int
    earlier: int
    loads: int
    command: int
    first: _Port
    second: _Port


class _Run(NamedTuple):
    """What is the same for all tiles of a run.

    together: whether the operands share a channel.  folds: how many, and their moving words,
    stationary loads and total (`archsim.tiled.folds`).
    """

    first: _Load
    second: _Load
    together: bool
    stationary: bool
    interval: int
    folds: tuple[int, int, int, int, int, int]


@inlined
def _load_of(core: Core, kind: int, port: int) -> _Load:
    """Of tiles of a kind."""
    services, machine, at = core.services, core.machine, port - pn.IFMAP
    words = core.works[kind, wk.IFMAP_WORDS + at]
    ticks, burst = services[port, pn.WORD_TICKS], words
    if ticks > 0:
        burst = min(words, services[port, pn.BURST_WORDS])
    full = (words - 1) // burst * burst
    return _Load(
        port, words, words * ticks, burst * ticks, (words - full) * ticks, full, full - burst,
        core.state[pn.ASKED] + services[port, pn.LATENCY], ticks > TICK,
        (machine[mc.IFMAP_WRITE_LATENCY + at], machine[mc.IFMAP_READ_WAIT + at]),
        (machine[mc.DATAFLOW] == mc.INPUT_STATIONARY) == (port == pn.IFMAP),
    )  # fmt: skip


@inlined
def _run_of(core: Core, kind: int) -> _Run:
    """Of tiles of a kind."""
    services, works, machine = core.services, core.works, core.machine
    folds = (
        works[kind, wk.FOLDS], works[kind, wk.MOVING], works[kind, wk.FIRST_LOAD],
        works[kind, wk.SECOND_LOAD], works[kind, wk.LAST_LOAD], works[kind, wk.TOTAL],
    )  # fmt: skip
    first = pn.IFMAP if works[kind, wk.IFMAP_FIRST] == 1 else pn.WEIGHT
    return _Run(
        _load_of(core, kind, first), _load_of(core, kind, pn.IFMAP + pn.WEIGHT - first),
        services[pn.IFMAP, pn.CHANNEL] == services[pn.WEIGHT, pn.CHANNEL],
        machine[mc.DATAFLOW] != mc.OUTPUT_STATIONARY, machine[mc.TILE_INTERVAL], folds,
    )  # fmt: skip


@inlined
def _loaded(load: _Load, port: _Port, over: int, visible: int) -> _Port:
    """A load goes through the channel, which is taken until `over`, and crosses its port."""
    start = max(port.free, load.asked) << TICK_BITS
    if load.ticks > 0:
        start = max(start, over)
    end = start + load.ticks
    late = whole_cycles(start + load.first_ticks)
    if load.slow:
        late = max(late, whole_cycles(end) - load.full)
        if load.full > 0:
            late = max(late, whole_cycles(end - load.short) - load.before)
    # the unit behind the port is idle in the cycle after its last crossing
    ready = max(max(visible, port.crossed + 1) + 1, port.free)
    crossed = max(ready, late) + load.words - 1
    return _Port(port.free_next, port.free_next, crossed, crossed + 1 + load.waits[0], end)


@inlined
def _streamed(run: _Run, times: _Times, visible: int) -> tuple[int, int, int, int]:
    """The folds of a tile: the ends of its stream, of the one before it and of its stationary
    loads, and when the later of both commands was taken."""
    count, moving, first, second, last, total = run.folds
    taken = max(visible, times.ended)
    start = max(max(taken + 1, times.first.loaded), times.second.loaded)
    if not run.stationary:
        return start + total, times.ended, start + total, taken
    load_taken = max(visible, times.loads)
    operand = times.first.loaded if run.first.kept else times.second.loaded
    loads = max(max(load_taken + 1, times.earlier), operand) + first
    start, earlier, taken = max(start, loads), times.ended, max(taken, load_taken)
    ended = start + moving
    if count > 1:
        loads = max(loads, times.ended) + second
        earlier, ended = ended, max(ended, loads) + moving
        if count > 2:
            # from here on a fold takes the longer of both
            ended += total - max(moving, first) - max(moving, second)
            before = ended - moving - max(moving, last)
            earlier, loads = before + moving, before + last
    return ended, earlier, loads, taken


@inlined
def _freed(load: _Load, port: _Port, times: tuple[int, int], over: int) -> _Port:
    """The half that a tile has read is free for the load after the next; times: the ends of its
    stream and of its stationary loads."""
    by = times[1] if load.kept else times[0]
    return _Port(port.free, by + load.waits[1], port.crossed, port.loaded, over)


@inlined
def _tile(run: _Run, times: _Times, oldest: int) -> tuple[_Times, int]:
    """One tile; oldest: when the last unit took the command so many tiles before as queues hold.

    Returns when the last unit took this one's.
    """
    command = max(times.command + run.interval, oldest + 1)
    visible = command + 1
    taken = max(visible, max(times.first.crossed, times.second.crossed) + 1)
    first = _loaded(run.first, times.first, times.first.over, visible)
    second = _loaded(run.second, times.second, first.over if run.together else times.second.over,
                     visible)  # fmt: skip
    loaded = _Times(times.ended, times.earlier, times.loads, command, first, second)
    ended, earlier, loads, popped = _streamed(run, loaded, visible)
    ends, over = (ended, loads), second.over if run.together else first.over
    return _Times(
        ended, earlier, loads, command,
        _freed(run.first, first, ends, over), _freed(run.second, second, ends, second.over),
    ), max(taken, popped)  # fmt: skip


@inlined
def _port_later(port: _Port, cycles: int) -> _Port:
    """So many cycles later."""
    return _Port(
        port.free + cycles, port.free_next + cycles, port.crossed + cycles, port.loaded + cycles,
        port.over + (cycles << TICK_BITS),
    )  # fmt: skip


@inlined
def _later(times: _Times, cycles: int) -> _Times:
    """So many cycles later."""
    return _Times(
        times.ended + cycles, times.earlier + cycles, times.loads + cycles, times.command + cycles,
        _port_later(times.first, cycles), _port_later(times.second, cycles),
    )  # fmt: skip


@inlined
def _growth(run: _Run, now: _Times, before: _Times) -> int:
    """The cycles by which all times have grown; 0 if they have not by the same.

    Nor where loads may still wait for the request, which does not move.
    """
    more = now.command - before.command
    asked = before.first.free < run.first.asked or before.second.free < run.second.asked
    return 0 if asked or now != _later(before, more) else more


@inlined
def _oldest(core: Core, behind: int) -> int:
    """When the last unit took the command that is so many behind the oldest in the queues."""
    depth, last = core.machine[mc.COMMAND_QUEUE], -1
    for queue in range(pn.IFMAP_QUEUE, pn.QUEUES):
        if queue != pn.BIAS_QUEUE:
            at = core.places[pn.HEAD + queue] + behind
            at = at - depth if at >= depth else at
            last = max(last, int(core.state[pn.POPS + queue * depth + at]))
    return last


@inlined
def _put_taken(core: Core, taken: IntArray, first: int) -> None:
    """When commands were taken, the oldest at `first`: what counts is the last of all units."""
    state, places, depth = core.state, core.places, taken.shape[1]
    for queue in range(pn.IFMAP_QUEUE, pn.QUEUES):
        idle = core.machine[mc.DATAFLOW] == mc.OUTPUT_STATIONARY and queue == pn.LOAD_QUEUE
        if queue != pn.BIAS_QUEUE and not idle:
            places[pn.HEAD + queue] = 0
            for at in range(depth):
                behind = first + at - depth if first + at >= depth else first + at
                state[pn.POPS + queue * depth + at] = taken[0, behind]


@inlined
def _waited(core: Core, kind: int) -> int:
    """When the units of outputs took the command for which the next one waits."""
    state, places, works = core.state, core.places, core.works
    depth, last = core.machine[mc.COMMAND_QUEUE], -1
    for queue in range(pn.QUEUES):
        if queue in (pn.DRAIN_QUEUE, pn.BIAS_QUEUE):
            at = places[pn.HEAD + queue] + places[pn.LAG + queue]
            at = at - depth if at >= depth else at
            last = max(last, int(state[pn.POPS + queue * depth + at]))
    places[pn.LAG + pn.DRAIN_QUEUE] = works[kind, wk.LAST_K]
    places[pn.LAG + pn.BIAS_QUEUE] = works[kind, wk.HAS_BIAS]
    return last


@inlined
def _port_of(core: Core, port: int) -> _Port:
    """From the scan's state."""
    state, way = core.state, core.services[port, pn.CHANNEL]
    return _Port(
        state[pn.FREE + port], state[pn.FREE_NEXT + port], state[pn.CROSSED + port],
        state[pn.LOADED + port], int(state[pn.CHANNEL_FREE + way]),
    )  # fmt: skip


@inlined
def _put_port(core: Core, port: int, times: _Port) -> None:
    """Into the scan's state.  What it has of the load itself is of no use behind it."""
    state, way = core.state, core.services[port, pn.CHANNEL]
    state[pn.FREE + port], state[pn.FREE_NEXT + port] = times.free, times.free_next
    state[pn.CROSSED + port], state[pn.IDLE + port] = times.crossed, times.crossed + 1
    state[pn.LOADED + port], state[pn.CHANNEL_FREE + way] = times.loaded, times.over


@inlined
def _put_times(core: Core, kind: int, run: _Run, times: _Times) -> None:
    """Into the scan's state."""
    state = core.state
    _put_port(core, run.first.port, times.first)
    _put_port(core, run.second.port, times.second)
    state[pn.STREAM_ENDED], state[pn.EARLIER_ENDED] = times.ended, times.earlier
    state[pn.STATIONARY_ENDED], state[pn.CROSSED + pn.COMMAND] = times.loads, times.command
    state[pn.VISIBLE] = times.command + 1
    tail = core.machine[mc.RESULT_LATENCY] + core.works[kind, wk.TAIL]
    state[pn.SUMS_DONE] = times.ended + tail


@inlined
def _taken_alike(taken: IntArray, first: int, more: int) -> bool:
    """Whether all in a ring has grown by as much since it was marked."""
    depth, alike = taken.shape[1], True
    for at in range(depth):
        alike = alike and taken[0, (first + at) % depth] - taken[1, at] == more
    return alike


@inlined
def run_tiles(core: Core, kind: int, count: int, taken: IntArray) -> None:
    """So many tiles of a kind, without outputs, each of which loads both operands.

    taken: [2, depth of the queues], to work with.
    """
    run, depth, first, done, state = _run_of(core, kind), taken.shape[1], 0, 0, core.state
    times = _Times(
        state[pn.STREAM_ENDED], state[pn.EARLIER_ENDED], state[pn.STATIONARY_ENDED],
        state[pn.CROSSED + pn.COMMAND],
        _port_of(core, run.first.port), _port_of(core, run.second.port),
    )  # fmt: skip
    for at in range(depth):
        taken[0, at] = _oldest(core, at)
    taken[0, 0] = max(taken[0, 0], _waited(core, kind))
    before = times
    while done < count:
        times, taken[0, first] = _tile(run, times, taken[0, first])
        first = 0 if first + 1 == depth else first + 1
        done += 1
        blocks = (count - done) // BLOCK
        if done % BLOCK == 0 and blocks > 0:
            more = _growth(run, times, before) if done > BLOCK else 0
            if more > 0 and _taken_alike(taken, first, more):
                times = _later(times, more * blocks)
                for at in range(depth):
                    taken[0, at] += more * blocks
                done += blocks * BLOCK
            before = times
            for at in range(depth):
                taken[1, at] = taken[0, (first + at) % depth]
    _put_taken(core, taken, first)
    _put_times(core, kind, run, times)


__all__ = ["run_tiles"]
