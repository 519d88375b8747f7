"""The cycles of a layer in a tiling, and nothing else: the scan without a row for every tile.

It takes the steps of `archsim.tiled.schedule` over the loops of the nest (`archsim.tiled.nest`),
with what tiles of a kind ask for found once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from archsim.kernels import inlined, kernel
from archsim.numbers import IntArray
from archsim.tiled import commands as cmd
from archsim.tiled import machine_vector as mc
from archsim.tiled import nest as ns
from archsim.tiled import plan as pn
from archsim.tiled import work as wk
from archsim.tiled.channel import take, write_back
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
    EVERY,  # + operand: tiles from one load to the next
    TURN,  # + operand: tiles since the last load
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
    FLOW_COLUMNS,
) = (0, 2, 4, *range(6, 17))
"""What the scan carries from tile to tile beside times."""


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
        send_part(core, port, words, part)
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


@kernel("i8.1, i8.1, i8.1", answer="int")
def cycles_of(problem: IntArray, tiling: IntArray, machine: IntArray) -> int:
    """The cycles of a layer: of `problem` in a tiling that fits, blocks of groups being its groups.

    As many as the plan of `archsim.tiled.schedule` has, for the off-chip memory of the machine.
    """
    loops, order = _new_loops(problem, tiling), levels(tiling)
    works = np.empty((loops.nest[ns.KINDS], wk.WORK_COLUMNS), np.int64)
    places, services = np.zeros(pn.PLACES_COLUMNS, np.int64), services_of(machine)
    core, flow = Core(new_state(machine, 0), places, works, machine, services), loops.flow
    total, cycles = tiles_in(loops.nest), 0
    for slot in range(total + OUTPUT_SLOTS):
        kind, last = kind_of(loops.nest), slot == total - 1
        if slot < total:
            _find_kind(core, loops, kind)
            _start_tile(core, loops, kind, slot == 0, last)
        if flow[KIND_1] >= 0:
            _finish(core, flow)
        if flow[WORDS_3] > 0:
            cycles = write_back(core.state, services, flow[WORDS_3], flow[LEAD_3])
        next_slot(core)
        _pass_on(flow)
        if slot < total:
            _end_tile(core, loops, kind, last)
            for level in range(ns.AXES - 1, -1, -1):
                if step(loops.nest, loops.runs, order[level]):
                    break
    return cycles
