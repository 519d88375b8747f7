"""The cycles of a layer in a tiling, and nothing else: the scan without a row for every tile.

It takes the steps of `archsim.tiled.schedule` over the loops of the nest (`archsim.tiled.nest`),
with what tiles of a kind ask for found once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from archsim.kernels import inlined, kernel
from archsim.layer import problem as pb
from archsim.memory.ticks import TICK_BITS
from archsim.numbers import IntArray
from archsim.tiled import commands as cmd
from archsim.tiled import machine_vector as mc
from archsim.tiled import nest as ns
from archsim.tiled import plan as pn
from archsim.tiled import work as wk
from archsim.tiled.bound import (
    BEHIND_FOLDS,
    BEHIND_LOADING,
    BEHIND_STREAM,
    BOUND_COLUMNS,
    BY_CHANNEL,
    IFMAP_WRITES,
)
from archsim.tiled.channel import take, write_back
from archsim.tiled.channel_runs import run_tiles
from archsim.tiled.core_steps import (
    OUTPUT_SLOTS,
    Core,
    compute,
    dispatch,
    drain_start,
    drained,
    free_operands,
    load_ready,
    load_taken,
    new_state,
    next_slot,
    send_part,
)
from archsim.tiled.nest import (
    fill_kind,
    ifmap_words,
    kind_of,
    levels,
    load_intervals,
    make_nest,
    most_runs,
    step,
    tiles_in,
)
from archsim.tiled.traffic import services_of
from archsim.tiled.work import fill_outputs

(
    SENT,  # ticks of what went over the shared channel
    STREAM_BEHIND,  # cycles from the end of the stream on, at least, and from that of the
    LOADING_BEHIND,  # stationary loads on (`archsim.tiled.bound`)
    FOLDS_BEHIND,  # and from the later of the last fold's loads and the stream before it on
    COMING,  # + operand: words of the next load
    BEGUN,  # units of an ofmap word that tiles before have begun
    KIND_1,  # the kind of the tile before; -1 where it has no outputs
    WORDS_1,  # ofmap words that leave with the tiles 1, 2 and 3 before
    WORDS_2,
    WORDS_3,
    LEAD_1,  # of these words (`archsim.tiled.channel.leave`)
    LEAD_2,
    LEAD_3,
    FIRST_ROW_1,  # rows of the tile before that complete its first and its last word
    LAST_ROW_1,
    EVERY,  # + operand: tiles from one load to the next
    TURN,  # + operand: tiles since the last load
    FLOW_COLUMNS,
) = (0, 1, 2, 3, 4, *range(6, 17), 18, 20)
"""What the scan carries from tile to tile beside times."""


ANY = 1 << 62
"""Above all cycles."""


FEWEST_ALIKE = 5
"""Of fewer tiles alike one by one takes less time."""


class Loops(NamedTuple):
    """The loops over a layer's tiles, where they are, and what is known of the kinds.

    nest, runs: `archsim.tiled.nest`; ahead: [NEST_COLUMNS] and row: [WALK_COLUMNS], to work with;
    known: [kinds], whether the works are filled in; flow: [FLOW_COLUMNS].
    """

    nest: IntArray
    ahead: IntArray
    runs: IntArray
    row: IntArray
    known: IntArray
    flow: IntArray
    problem: IntArray
    tiling: IntArray


@inlined
def _find_kind(core: Core, loops: Loops, kind: int) -> None:
    """What tiles of a kind ask for, unless it is known."""
    if loops.known[kind] == 0:
        layer = loops.problem, loops.tiling, core.machine
        fill_kind(core.works, kind, loops.nest, loops.runs, loops.row, layer)
        loops.known[kind] = 1


@kernel
def _find_coming(core: Core, loops: Loops, at: int) -> None:
    """Find the words of an operand's next load, where it is tiles ahead; 0 if there is none."""
    nest, ahead, flow, order = loops.nest, loops.ahead, loops.flow, levels(loops.tiling)
    for column in range(ns.NEST_COLUMNS):
        ahead[column] = nest[column]
    flow[COMING + at] = 0
    for level in range(ns.AXES - 1, -1, -1):
        axis = order[level]
        if nest[ns.INSIDE + axis] < flow[EVERY + at] or nest[ns.COUNT + axis] == 1:
            ahead[ns.PLACE + axis] = ahead[ns.RUN + axis] = 0
        elif step(ahead, loops.runs, axis):
            kind = kind_of(ahead)
            _find_kind(core, loops, kind)
            flow[COMING + at] = core.works[kind, wk.IFMAP_WORDS + at]
            break


@inlined
def _shared_ticks(core: Core, port: int, words: int) -> int:
    """Ticks that so many words of a port take of the channel that ports share."""
    if core.services[port, pn.CHANNEL] != pn.COMMAND:
        return 0
    return words * core.services[port, pn.WORD_TICKS]


@inlined
def _load_operand(core: Core, loops: Loops, kind: int, port: int, first: bool) -> None:
    """A tile's part of the next load of a port; every so many tiles the load crosses the port.

    first: it is the layer's first tile.
    """
    at, flow = port - pn.IFMAP, loops.flow
    turn, every = flow[TURN + at], flow[EVERY + at]
    if turn == 1:
        _find_coming(core, loops, at)
    words, part = flow[COMING + at], (turn - 1, every)
    if turn == 0:
        words = core.works[kind, wk.IFMAP_WORDS + at]
        part = (0, 1) if first else (every - 1, every)
    if words > 0:
        _, piece = send_part(core, port, words, part)
        flow[SENT] += _shared_ticks(core, port, piece)
    if turn == 0:
        take(core.state, port, words, load_ready(core, port, core.state[pn.VISIBLE]))
        load_taken(core, port)


@inlined
def _start_tile(core: Core, loops: Loops, kind: int, first: bool, last: bool) -> None:
    """A tile's command, its loads, and its folds."""
    dispatch(core, kind)
    for second in range(2):
        ifmap = (second == 0) == (core.works[kind, wk.IFMAP_FIRST] == 1)
        _load_operand(core, loops, kind, pn.IFMAP if ifmap else pn.WEIGHT, first)
    compute(core, kind)
    loops.flow[STREAM_BEHIND] -= core.works[kind, wk.LEAST_STREAM] + 1
    loops.flow[LOADING_BEHIND] -= core.works[kind, wk.LEAST_LOADING] + 1
    loops.flow[FOLDS_BEHIND] -= core.works[kind, wk.TOTAL]
    ifmap, weight = _turn(loops.flow, 0), _turn(loops.flow, 1)
    free_operands(core, ifmap or last, weight or last)


@inlined
def _turn(flow: IntArray, at: int) -> bool:
    """One tile on: whether the next one loads the operand."""
    flow[TURN + at] += 1
    if flow[TURN + at] == flow[EVERY + at]:
        flow[TURN + at] = 0
        return True
    return False


@inlined
def _finish(core: Core, flow: IntArray) -> None:
    """The outputs of the tile before: its biases, and the way to the ofmap port."""
    kind, state = flow[KIND_1], core.state
    if core.works[kind, wk.HAS_BIAS] == 1:
        words = core.works[kind, wk.BIAS_WORDS]
        send_part(core, pn.BIAS, words, (0, 1))
        flow[SENT] += _shared_ticks(core, pn.BIAS, words)
        take(state, pn.BIAS, words, load_ready(core, pn.BIAS, state[pn.VISIBLE_BEFORE]))
        load_taken(core, pn.BIAS)
    start = drain_start(core, kind)
    drained(core, kind, start + core.works[kind, wk.OUTPUT_ROWS])
    ready = start + core.machine[mc.OUTPUT_LATENCY]
    state[pn.FIRST_OUT_1] = ready + flow[FIRST_ROW_1]
    state[pn.LAST_OUT_1] = ready + flow[LAST_ROW_1]


@inlined
def _pass_on(flow: IntArray) -> None:
    """Every tile is another slot behind."""
    flow[WORDS_3], flow[LEAD_3] = flow[WORDS_2], flow[LEAD_2]
    flow[WORDS_2], flow[LEAD_2] = flow[WORDS_1], flow[LEAD_1]
    flow[WORDS_1], flow[KIND_1] = 0, -1


@kernel
def _count_outputs(core: Core, loops: Loops, kind: int, last: bool) -> None:
    """What leaves with tiles of a kind behind as much of a word as has begun."""
    works, row, begun = core.works, loops.row, loops.flow[BEGUN]
    words, left = divmod(begun + works[kind, wk.UNITS], core.machine[mc.OUTPUT_WORD_UNITS])
    row[cmd.TILE_FILTERS], row[cmd.PIXELS] = works[kind, wk.FILTERS], works[kind, wk.PIXELS]
    row[cmd.BEGUN_UNITS] = begun
    row[cmd.OUTPUT_WORDS] = words + 1 if last and left > 0 else words
    fill_outputs(works, kind, row, core.machine, core.services[pn.OFMAP, pn.WORD_TICKS])
    works[kind, wk.BEGUN], works[kind, wk.LEFT] = begun, left


@inlined
def _end_tile(core: Core, loops: Loops, kind: int, last: bool) -> None:
    """The outputs of a tile are known; its slot is over."""
    works, flow = core.works, loops.flow
    if works[kind, wk.LAST_K] == 1:
        if flow[BEGUN] != works[kind, wk.BEGUN] or last:
            _count_outputs(core, loops, kind, last)
        flow[BEGUN], flow[KIND_1] = works[kind, wk.LEFT], kind
        flow[WORDS_1], flow[LEAD_1] = works[kind, wk.OUTPUT_WORDS], works[kind, wk.LEAD]
        flow[FIRST_ROW_1], flow[LAST_ROW_1] = works[kind, wk.FIRST_ROW], works[kind, wk.LAST_ROW]


@kernel
def _new_loops(problem: IntArray, tiling: IntArray) -> Loops:
    """The loops of a layer, at its first tile."""
    runs = np.empty((most_runs(problem, tiling), ns.RUN_COLUMNS), np.int64)
    nest, flow = make_nest(problem, tiling, runs), np.zeros(FLOW_COLUMNS, np.int64)
    flow[EVERY], flow[EVERY + 1] = load_intervals(nest, tiling)
    flow[KIND_1] = -1
    row, known = np.zeros(cmd.WALK_COLUMNS, np.int64), np.zeros(nest[ns.KINDS], np.int64)
    return Loops(nest, np.empty_like(nest), runs, row, known, flow, problem, tiling)


@inlined
def _run_ahead(core: Core, loops: Loops, kind: int, taken: IntArray) -> int:
    """Tiles alike from this one on that load both operands and have no outputs, which are then
    behind; 0 if they are fewer than FEWEST_ALIKE, or outputs of others go with them."""
    nest, runs, flow = loops.nest, loops.runs, loops.flow
    if nest[ns.COUNT + ns.CHANNEL] < 3 or nest[ns.RUN + ns.CHANNEL] != 1 or flow[KIND_1] >= 0:
        return 0
    count = runs[nest[ns.RUNS + ns.CHANNEL] + 1, ns.RUN_END] - nest[ns.PLACE + ns.CHANNEL]
    if count < FEWEST_ALIKE or flow[WORDS_3] > 0 or flow[WORDS_2] > 0:
        return 0
    run_tiles(core, kind, count, taken)
    nest[ns.PLACE + ns.CHANNEL] += count - 1
    works = core.works
    for port in range(pn.IFMAP, pn.WEIGHT + 1):
        words = count * works[kind, wk.IFMAP_WORDS + port - pn.IFMAP]
        flow[SENT] += _shared_ticks(core, port, words)
    flow[STREAM_BEHIND] -= count * (works[kind, wk.LEAST_STREAM] + 1)
    flow[LOADING_BEHIND] -= count * (works[kind, wk.LEAST_LOADING] + 1)
    flow[FOLDS_BEHIND] -= count * works[kind, wk.TOTAL]
    for _ in range(min(count - 1, OUTPUT_SLOTS)):
        next_slot(core)
        _pass_on(flow)
    return count


@inlined
def _by_channel(core: Core, loops: Loops, bounds: IntArray) -> int:
    """Cycles by the path over the channel at least, with the words that tiles load of the ifmap.

    The bound counts them as if they were packed across tiles.
    """
    layer, services = (loops.problem, loops.tiling, core.machine), core.services
    gathers = core.machine[mc.GATHER_BITS] > 0 and loops.problem[pb.ROW_UNITS] > 0
    if bounds[BY_CHANNEL] == 0 or gathers:
        return bounds[BY_CHANNEL]
    more = ifmap_words(loops.nest, loops.runs, layer) - bounds[IFMAP_WRITES]
    return bounds[BY_CHANNEL] + (more * services[pn.IFMAP, pn.WORD_TICKS] >> TICK_BITS)


@inlined
def _least(core: Core, flow: IntArray, by_channel: int) -> int:
    """What the layer takes at least: by the bound's paths, from where each unit is."""
    state, latency = core.state, core.services[pn.IFMAP, pn.LATENCY] << TICK_BITS
    idle = state[pn.CHANNEL_FREE + pn.COMMAND] - flow[SENT] - latency
    by_array = max(
        state[pn.STREAM_ENDED] + flow[STREAM_BEHIND],
        state[pn.STATIONARY_ENDED] + flow[LOADING_BEHIND],
    )
    by_folds = max(state[pn.EARLIER_ENDED], state[pn.STATIONARY_ENDED]) + flow[FOLDS_BEHIND]
    return max(by_channel + (idle >> TICK_BITS), max(by_array, by_folds))


@kernel("i8.1, i8.1, i8.1, i8.1, int", answer="int")
def cycles_within(
    problem: IntArray, tiling: IntArray, machine: IntArray, bounds: IntArray, most: int
) -> int:
    """The cycles of a layer, or of one that takes more than `most` some number above that.

    bounds: of the tiling (`archsim.tiled.bound_paths.bound`).
    """
    loops, order = _new_loops(problem, tiling), levels(tiling)
    works = np.empty((loops.nest[ns.KINDS], wk.WORK_COLUMNS), np.int64)
    places, services = np.zeros(pn.PLACES_COLUMNS, np.int64), services_of(machine)
    core, flow = Core(new_state(machine, 0), places, works, machine, services), loops.flow
    flow[STREAM_BEHIND], flow[LOADING_BEHIND] = bounds[BEHIND_STREAM], bounds[BEHIND_LOADING]
    flow[FOLDS_BEHIND] = bounds[BEHIND_FOLDS]
    least = _by_channel(core, loops, bounds)
    if least > most:
        return least
    by_channel = least
    taken = np.empty((2, machine[mc.COMMAND_QUEUE]), np.int64)
    total, cycles, slot = tiles_in(loops.nest), 0, 0
    while slot < total + OUTPUT_SLOTS:
        kind, last = kind_of(loops.nest), slot == total - 1
        if slot < total:
            _find_kind(core, loops, kind)
            ahead = _run_ahead(core, loops, kind, taken)
            if ahead == 0:
                _start_tile(core, loops, kind, slot == 0, last)
            else:
                slot += ahead - 1
        if flow[KIND_1] >= 0:
            _finish(core, flow)
        if flow[WORDS_3] > 0:
            cycles = write_back(core.state, services, flow[WORDS_3], flow[LEAD_3])
            flow[SENT] += _shared_ticks(core, pn.OFMAP, flow[WORDS_3])
        next_slot(core)
        _pass_on(flow)
        if slot < total - 1:
            least = _least(core, flow, by_channel)
            if least > most:
                return least
        if slot < total:
            _end_tile(core, loops, kind, last)
            for level in range(ns.AXES - 1, -1, -1):
                if step(loops.nest, loops.runs, order[level]):
                    break
        slot += 1
    return cycles


@kernel
def cycles_of(problem: IntArray, tiling: IntArray, machine: IntArray) -> int:
    """The cycles of a layer: of `problem` in a tiling that fits, blocks of groups being its groups.

    As many as the plan of `archsim.tiled.schedule` has, for the off-chip memory of the machine.
    """
    nothing = np.zeros(BOUND_COLUMNS, np.int64)
    return cycles_within(problem, tiling, machine, nothing, ANY)
