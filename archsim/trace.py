"""What crosses every port, and when: the model's answer in full."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from archsim.core import commands as cmd
from archsim.core import schedule as sc
from archsim.core.actions import count_actions
from archsim.core.compressed_rows import stored_actions
from archsim.core.core_design import CoreDesign
from archsim.core.layer_command import describe
from archsim.core.numerics import TiledLayer
from archsim.core.problem import Problem, Tiling
from archsim.core.walk import walk
from archsim.numbers import IntArray
from archsim.ports import Transfers
from archsim.timing import Service, crossings
from workloads.layers import Conv2d, MatMul

PORTS = ("command", "ifmap", "weight", "bias", "ofmap")


def command_words(
    name: str, problem: Problem, tiling: Tiling, machine: IntArray, scaling: tuple[int, int]
) -> IntArray:
    """The command stream of a layer: [1, fields]; scaling is (multiplier, shift)."""
    fields = describe(name, problem, tiling, machine, scaling)
    return np.array([list(fields.values())], np.int64)


def _ready(rows: IntArray, starts: IntArray, words: int, *, rising: bool) -> IntArray:
    """The earliest cycle of every word: its tile's start, one later a word if `rising`."""
    counts = rows[:, words]
    ready = np.repeat(starts, counts)
    if rising:
        first = np.repeat(np.cumsum(counts) - counts, counts)
        ready = ready + np.arange(len(ready)) - first
    return ready


def port_ready(
    design: CoreDesign, tiles: IntArray, plan: IntArray, services: tuple[Service, ...]
) -> dict[str, IntArray]:
    """The earliest cycle at which each word may cross, before the port's own service: [words]."""

    def select(flag: int, start: int, words: int, delay: int, rising: bool = False) -> IntArray:
        chosen = tiles[:, flag] == 1
        return _ready(tiles[chosen], plan[chosen, start] + delay, words, rising=rising)

    latency = [service.latency_cycles for service in services]
    return {
        "command": np.zeros(1, np.int64),
        "ifmap": select(cmd.LOAD_IFMAP, sc.IFMAP_READY, cmd.IFMAP_WORDS, latency[sc.IFMAP]),
        "weight": select(cmd.LOAD_WEIGHT, sc.WEIGHT_READY, cmd.WEIGHT_WORDS, latency[sc.WEIGHT]),
        "bias": select(cmd.HAS_BIAS, sc.BIAS_READY, cmd.BIAS_WORDS, latency[sc.BIAS]),
        "ofmap": select(
            cmd.LAST_K, sc.DRAIN_START, cmd.OUTPUT_WORDS, design.output_latency_cycles, rising=True
        ),
    }


def transfers(
    design: CoreDesign,
    tiles: IntArray,
    plan: IntArray,
    services: tuple[Service, ...],
    words: dict[str, IntArray],
) -> dict[str, Transfers]:
    """What crosses every port, and when, from the schedule `plan` and the ports' words."""
    ready = port_ready(design, tiles, plan, services)
    return {
        name: Transfers(
            cycle=crossings(ready[name], service.finish_times(len(ready[name]))),
            payload=words[name],
        )
        for name, service in zip(PORTS, services, strict=True)
    }


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The model's answer for a layer: what crosses every port and when, and the actions.

    earliest: for each port, the cycle before which the memory side does not offer each word;
    0 where only the services' gaps hold words back.
    """

    tiles: IntArray
    plan: IntArray
    transfers: dict[str, Transfers]
    actions: dict[str, int]
    earliest: dict[str, IntArray]

    @property
    def cycles(self) -> int:
        """From the first command to the last ofmap word."""
        return int(self.plan[-1, sc.LAST_OUT]) + 1


def answer(
    design: CoreDesign,
    layer: Conv2d | MatMul,
    tiling: Tiling,
    operands: Any,
    services: tuple[Service, ...],
) -> Answer:
    """The exact answer for a layer under given services of the ports (in the order of PORTS).

    operands: `workloads.operands.Operands`, or what the design's numerics makes of them.
    Raises `InputError` for operands that are not of the layer's shapes or the design's widths.
    """
    numerics = design.numerics
    problem, taken = numerics.problem(layer), numerics.take(layer, operands)
    tiles = walk(problem.vector(), tiling.vector(), design.machine)
    words = {
        "command": command_words(
            layer.name, problem, tiling, design.machine, numerics.scaling(taken)
        ),
        **numerics.words(
            TiledLayer(layer=layer, problem=problem, tiling=tiling, tiles=tiles), taken
        ),
    }
    vectors = np.stack([service.vector() for service in services])
    gaps = sc.join_gaps([service.cumulative for service in services])
    plan = sc.schedule(tiles, design.machine, vectors, gaps)
    crossed = transfers(design, tiles, plan, services, words)
    ready = port_ready(design, tiles, plan, services)
    earliest = {
        name: ready[name] if service.latency_cycles else np.zeros(len(ready[name]), np.int64)
        for name, service in zip(PORTS, services, strict=True)
    }
    return Answer(
        tiles=tiles,
        plan=plan,
        transfers=crossed,
        actions=count_actions(tiles, design.machine, design.stores)
        | stored_actions(design, layer, (problem, tiling), taken),
        earliest=earliest,
    )
