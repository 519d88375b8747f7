"""What crosses every port, and when: the model's answer in full."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from archsim.layer.problem import Problem, Tiling
from archsim.memory.ticks import TICK_BITS
from archsim.numbers import IntArray
from archsim.ports import Transfers
from archsim.tiled.actions import count_actions
from archsim.tiled.commands import columns_of
from archsim.tiled.design import OPERANDS, CoreDesign
from archsim.tiled.gaps import NO_GAPS, join_gaps, ofmap_ready
from archsim.tiled.layer_command import describe
from archsim.tiled.layer_values import layer_words
from archsim.tiled.numerics import TiledLayer
from archsim.tiled.operand_fit import layer_actions
from archsim.tiled.plan import (
    PORTS,
    ServiceRecord,
    plan_columns,
    plan_row,
    service_records,
    service_table,
)
from archsim.tiled.schedule import schedule
from archsim.tiled.traffic import services_of
from archsim.tiled.walk import walk_layer
from archsim.timing import Service, crossings
from workloads.layers import Conv2d, MatMul


def command_words(
    name: str, problem: Problem, tiling: Tiling, machine: IntArray, scaling: tuple[int, int]
) -> IntArray:
    """The command stream of a layer: [1, fields]; scaling is (multiplier, shift)."""
    fields = describe(name, problem.side_by_side(tiling.groups), tiling, machine, scaling)
    return np.array([list(fields.values())], np.int64)


def _taken(tiles: IntArray, plan: IntArray, latencies: Mapping[str, int]) -> dict[str, IntArray]:
    """The cycle from which the core takes each word that a port brings in, and later by the port's
    latency: [words]."""
    found: dict[str, IntArray] = {}
    columns = columns_of(tiles)
    each = zip(columns.loads, columns.words, plan_columns(plan).ready, strict=True)
    for name, (loads, words, ready) in zip(OPERANDS, each, strict=True):
        chosen = loads == 1
        found[name] = np.repeat(ready[chosen] + latencies[name], words[chosen])
    return found


def arrivals(plan: IntArray, services: IntArray) -> dict[str, IntArray]:
    """The cycle from which each word that a port brings in is offered, by the channel: [words]."""
    found: dict[str, IntArray] = {}
    columns, served = plan_columns(plan), service_records(services)
    for name, piece, sent in zip(OPERANDS, columns.piece, columns.sent, strict=True):
        chosen, service = piece > 0, served[name]
        words = piece[chosen]
        index = np.arange(int(words.sum())) - np.repeat(np.cumsum(words) - words, words)
        burst = service.burst_words
        behind = np.minimum((index // burst + 1) * burst, np.repeat(words, words))
        start = np.repeat(sent[chosen], words)
        ticks = start + behind * service.word_ticks
        found[name] = -(-ticks >> TICK_BITS)
    return found


def transfers(
    ready: dict[str, IntArray], finish: dict[str, IntArray], words: dict[str, IntArray]
) -> dict[str, Transfers]:
    """What crosses every port, and when, from the ports' words.

    ready: the earliest cycle of each; finish: G of every port that has gaps.
    """
    return {
        name: Transfers(
            cycle=crossings(ready[name], finish.get(name, np.arange(len(ready[name])) + 1)),
            payload=words[name],
        )
        for name in PORTS
    }


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The model's answer for a layer: what crosses every port and when, and the actions.

    earliest: for each port, the cycle before which the memory side does not offer each word;
    0 where only gaps hold words back.
    """

    tiles: IntArray
    plan: IntArray
    transfers: dict[str, Transfers]
    actions: dict[str, int]
    earliest: dict[str, IntArray]

    @property
    def cycles(self) -> int:
        """From the first command to the last ofmap word, and its way to the off-chip memory."""
        return plan_row(self.plan, -1).written

    def halves(self, before: Mapping[str, int]) -> dict[str, int]:
        """Into which half each operand is loaded next, and sums are added, of where this layer
        began."""
        columns = columns_of(self.tiles)
        each = zip((*OPERANDS, "accumulator"), (*columns.loads, columns.last_k), strict=True)
        return {name: (before.get(name, 0) + int(one.sum())) % 2 for name, one in each}


def answer(
    design: CoreDesign,
    layer: Conv2d | MatMul,
    tiling: Tiling,
    operands: Any,
    services: tuple[Service, ...] | None = None,
    halves: Mapping[str, int] | None = None,
) -> Answer:
    """The exact answer for a layer under given services of the ports (in the order of PORTS).

    operands: `workloads.operands.Operands`, or what the design's numerics makes of them.
    services: None for those of the design's own off-chip memory.  halves: into which half each
    operand is loaded first, behind other layers (`Answer.halves`); None: the first of all.
    Raises `InputError` for operands that are not of the layer's shapes or the design's widths.
    """
    numerics = design.numerics
    problem, taken = numerics.problem(layer), numerics.take(layer, operands)
    tiles = walk_layer(problem, tiling, design.machine)
    words = {
        "command": command_words(
            layer.name, problem, tiling, design.machine, numerics.scaling(taken)
        ),
        **layer_words(
            design,
            TiledLayer(layer=layer, problem=problem, tiling=tiling, tiles=tiles),
            taken,
            halves,
        ),
    }
    plan, earliest, ready, finish = _planned(design, tiles, words, services)
    crossed = transfers(ready, finish, words)
    return Answer(
        tiles=tiles,
        plan=plan,
        transfers=crossed,
        actions=count_actions(tiles, design.machine, design.stores)
        | layer_actions(design, layer, (problem, tiling), taken, halves),
        earliest={name: np.zeros(len(words[name]), np.int64) for name in PORTS} | earliest,
    )


def _planned(
    design: CoreDesign,
    tiles: IntArray,
    words: dict[str, IntArray],
    services: tuple[Service, ...] | None,
) -> tuple[IntArray, dict[str, IntArray], dict[str, IntArray], dict[str, IntArray]]:
    """The plan; of words in, when they are offered, and when they may cross; G of ports' gaps."""
    if services is None:
        regular = services_of(design.machine)
        plan = schedule(tiles, design.machine, regular, NO_GAPS)
        offered = arrivals(plan, regular)
        taken = _taken(tiles, plan, dict.fromkeys(PORTS, 0))
        ready = {name: np.maximum(offered[name], taken[name]) for name in taken}
        return plan, offered, ready | _leaving(tiles, plan, design.machine, NO_GAPS), {}
    finish = {
        name: service.finish_times(len(words[name]))
        for name, service in zip(PORTS, services, strict=True)
    }
    latencies = {
        name: service.latency_cycles for name, service in zip(PORTS, services, strict=True)
    }
    vectors = service_table(
        {
            name: ServiceRecord(channel=0, word_ticks=0, burst_words=0, latency=latency)
            for name, latency in latencies.items()
        }
    )
    gaps = join_gaps(list(finish.values()))
    plan = schedule(tiles, design.machine, vectors, gaps)
    taken = _taken(tiles, plan, latencies)
    ready = taken | _leaving(tiles, plan, design.machine, gaps)
    return plan, taken if vectors.any() else {}, ready, finish


def _leaving(
    tiles: IntArray, plan: IntArray, machine: IntArray, gaps: IntArray
) -> dict[str, IntArray]:
    """When the words of the other two ports may cross: the command, and the ofmap."""
    return {
        "command": np.zeros(1, np.int64),
        "ofmap": ofmap_ready(tiles, plan, machine, gaps),
    }
