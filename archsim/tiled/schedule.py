"""The timing of a layer: one pass over its tiles, exact to the cycle, without a clock.

Every unit of the core answers with the cycles at which it takes and gives up what it needs;
`docs/contracts/systolic.md` names each term and the test that pins it.  The folds inside a tile
are summed in closed form (`archsim.tiled.folds`), so the cost is a few operations a tile.

The scan goes over slots, in the order in which the off-chip channel serves transfers: with slot s
go the operands of tile s, an even part of each that a later tile needs next, then the biases of
tile s − 1 and the outputs of tile s − 3 (`docs/adr/0012-one-channel.md`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from archsim.kernels import inlined, kernel
from archsim.numbers import IntArray
from archsim.tiled import commands as cmd
from archsim.tiled import machine_vector as mc
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
from archsim.tiled.gaps import cross, drain_with_gaps, finish_time
from archsim.tiled.work import fill_outputs, fill_work

RING = 4
"""Tiles whose work is kept: those of a slot, and of three before."""


@kernel
def _next_loads(tiles: IntArray) -> IntArray:
    """Of ifmap and weights, [tiles + 1, 2] the first tile from each on that loads; the last row is
    the number of tiles."""
    found = np.empty((len(tiles) + 1, 2), np.int64)
    found[len(tiles)] = len(tiles)
    for tile in range(len(tiles) - 1, -1, -1):
        for at in range(2):
            loads = tiles[tile, cmd.LOAD_IFMAP + 2 * at] == 1
            found[tile, at] = tile if loads else found[tile + 1, at]
    return found


class _Layer(NamedTuple):
    """A layer's commands, the tiles that load next (`_next_loads`), the plan that is made, explicit
    gaps, and the crossings of the last ofmap words, [depth of the output queue]."""

    tiles: IntArray
    loads: IntArray
    out: IntArray
    gaps: IntArray
    crossed: IntArray


@inlined
def _take_load(core: Core, gaps: IntArray, load: tuple[int, int, int]) -> tuple[int, int]:
    """A loader takes its command and the words, all of which have been sent.

    load: the port, the words, when the command is visible.  Returns the first cycle in which it may
    take one, and that of the first.
    """
    port, words, visible = load
    ready = load_ready(core, port, visible)
    if gaps[5] > gaps[0]:
        first = cross(core.state, core.places, (port, words, ready), gaps)
    else:
        first = take(core.state, port, words, ready)
    load_taken(core, port)
    return ready, first


@inlined
def _load_operand(core: Core, layer: _Layer, slot: int, port: int) -> None:
    """A slot's part of the next load of a port; in its tile's own slot the load crosses the port.

    A load is spread over the slots behind the first that used the load before, until its tile's
    own: the next one may be sent from the slot after on.
    """
    out, at = layer.out, port - pn.IFMAP
    tile = layer.loads[slot, at]
    if tile == len(layer.tiles):
        return
    begin = core.places[pn.FIRST_SLOT + port]
    words, part = layer.tiles[tile, cmd.IFMAP_WORDS + at], (slot - begin, tile - begin + 1)
    sent, piece = send_part(core, port, words, part)
    if piece > 0:
        out[slot, pn.IFMAP_SENT + at], out[slot, pn.IFMAP_PIECE + at] = sent, piece
    if tile == slot:
        ready, first = _take_load(core, layer.gaps, (port, words, core.state[pn.VISIBLE]))
        out[slot, pn.IFMAP_READY + 2 * at], out[slot, pn.IFMAP_FIRST + at] = ready, first
        out[slot, pn.IFMAP_LOADED + 2 * at] = core.state[pn.LOADED + port]
        core.places[pn.FIRST_SLOT + port] = slot + 1


@inlined
def _compute(core: Core, layer: _Layer, slot: int) -> None:
    """The folds of a tile."""
    out, row = layer.out, layer.tiles[slot]
    stationary, popped, start = compute(core, slot % RING)
    free_operands(core, row[cmd.FREE_IFMAP] == 1, row[cmd.FREE_WEIGHT] == 1)
    out[slot, pn.STATIONARY_START] = stationary
    out[slot, pn.POPPED] = popped
    out[slot, pn.STREAM_START] = start
    out[slot, pn.STREAM_END] = core.state[pn.STREAM_ENDED]
    for cause in range(5):
        out[slot, pn.WAIT_CONTROL + cause] = core.places[pn.WAITS + cause]
    out[slot, pn.BUBBLE] = core.places[pn.BUBBLES]
    if row[cmd.LAST_K] == 1:
        out[slot, pn.SUMMED] = core.state[pn.SUMS_DONE]


@inlined
def _drain(core: Core, layer: _Layer, tile: int) -> None:
    """Read an output tile's accumulators through the output stage and the ofmap port.

    The off-chip memory takes a word a cycle, and the queue holds more words than the stage has
    cycles, so that only explicit gaps push back.
    """
    at, row, out, state = tile % RING, layer.tiles[tile], layer.out, core.state
    start = drain_start(core, at)
    if layer.gaps[5] > layer.gaps[0]:
        word = core.places[pn.WORDS + pn.OFMAP]
        begun = start, word, state[pn.CROSSED + pn.OFMAP]
        start, end, first, last = drain_with_gaps(
            row, begun, layer.crossed, core.machine, layer.gaps
        )
        core.places[pn.WORDS + pn.OFMAP] = word + row[cmd.OUTPUT_WORDS]
        state[pn.CROSSED + pn.OFMAP] = last
    else:
        end, ready = start + row[cmd.OUTPUT_ROWS], start + core.machine[mc.OUTPUT_LATENCY]
        first, last = ready + core.works[at, wk.FIRST_ROW], ready + core.works[at, wk.LAST_ROW]
    drained(core, at, end)
    state[pn.FIRST_OUT_1], state[pn.LAST_OUT_1] = first, last
    out[tile, pn.DRAIN_START], out[tile, pn.DRAIN_END] = start, end
    if row[cmd.OUTPUT_WORDS] > 0:
        out[tile, pn.FIRST_OUT], out[tile, pn.LAST_OUT] = first, last


@inlined
def _load_bias(core: Core, layer: _Layer, tile: int) -> None:
    """Bring an output tile's biases."""
    words, out = layer.tiles[tile, cmd.BIAS_WORDS], layer.out
    out[tile, pn.BIAS_SENT], _ = send_part(core, pn.BIAS, words, (0, 1))
    out[tile, pn.BIAS_PIECE] = words
    load = pn.BIAS, words, core.state[pn.VISIBLE_BEFORE]
    ready, first = _take_load(core, layer.gaps, load)
    out[tile, pn.BIAS_READY], out[tile, pn.BIAS_FIRST] = ready, first
    out[tile, pn.BIAS_LOADED] = core.state[pn.LOADED + pn.BIAS]


@kernel("i8.2, i8.1, i8.2, i8.1")
def schedule(tiles: IntArray, machine: IntArray, services: IntArray, gaps: IntArray) -> IntArray:
    """The cycles of every tile: [tiles, PLAN_COLUMNS] from commands [tiles, WALK_COLUMNS].

    services: [5, SERVICE_COLUMNS] of the ports.  gaps: explicit ones, see `join_gaps`; with them
    no port has a channel.
    """
    out = np.full((len(tiles), pn.PLAN_COLUMNS), -1, np.int64)
    state = new_state(machine, finish_time(0, pn.COMMAND, gaps) - 1)
    places, works = (
        np.zeros(pn.PLACES_COLUMNS, np.int64),
        np.zeros((RING, wk.WORK_COLUMNS), np.int64),
    )
    crossed = np.full(machine[mc.OUTPUT_QUEUE], -1, np.int64)
    core = Core(state, places, works, machine, services)
    layer = _Layer(tiles, _next_loads(tiles), out, gaps, crossed)
    for slot in range(len(tiles) + OUTPUT_SLOTS):
        if slot < len(tiles):
            at = slot % RING
            fill_work(works, at, tiles[slot], machine)
            fill_outputs(works, at, tiles[slot], machine, services[pn.OFMAP, pn.WORD_TICKS])
            out[slot, pn.DISPATCH] = dispatch(core, at)
            for second in range(2):
                ifmap = (second == 0) == (works[at, wk.IFMAP_FIRST] == 1)
                _load_operand(core, layer, slot, pn.IFMAP if ifmap else pn.WEIGHT)
            _compute(core, layer, slot)
        tile = slot - 1
        if 0 <= tile < len(tiles) and tiles[tile, cmd.LAST_K] == 1:
            if tiles[tile, cmd.HAS_BIAS] == 1:
                _load_bias(core, layer, tile)
            _drain(core, layer, tile)
        tile = slot - OUTPUT_SLOTS
        if tile >= 0 and tiles[tile, cmd.OUTPUT_WORDS] > 0:
            words, lead = tiles[tile, cmd.OUTPUT_WORDS], works[tile % RING, wk.LEAD]
            out[tile, pn.WRITTEN] = write_back(state, services, words, lead)
        next_slot(core)
    return out
