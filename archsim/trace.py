"""What crosses every port, and when: the model's answer in full."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from archsim.core import commands as cmd
from archsim.core import layout
from archsim.core import schedule as sc
from archsim.core.actions import count_actions
from archsim.core.layer_command import describe
from archsim.core.problem import Problem, Tiling, problem_of
from archsim.core.values import compute, requantize
from archsim.core.walk import walk
from archsim.designs.systolic import Systolic
from archsim.numbers import IntArray
from archsim.operand_check import check_operands
from archsim.ports import Transfers
from archsim.timing import Service, crossings
from workloads.layers import Conv2d, MatMul
from workloads.operands import Operands

PORTS = ("command", "ifmap", "weight", "bias", "ofmap")


def command_words(
    layer: Conv2d | MatMul, tiling: Tiling, machine: IntArray, operands: Operands
) -> IntArray:
    """The command stream of a layer: [1, fields]."""
    scaling = (operands.multiplier, operands.shift)
    fields = describe(layer.name, problem_of(layer), tiling, machine, scaling)
    return np.array([list(fields.values())], np.int64)


def _stack(rows: IntArray, words: Callable[[IntArray], IntArray], lanes: int) -> IntArray:
    """The words of the given tiles, one behind the other."""
    parts = [words(row) for row in rows]
    return np.concatenate(parts) if parts else np.zeros((0, lanes), np.int64)


def port_words(
    design: Systolic, layer: Conv2d | MatMul, problem: Problem, tiles: IntArray, operands: Operands
) -> dict[str, IntArray]:
    """The payload of every port of data, in order: [words, lanes] each."""
    ifmap = layout.split_ifmap(layer, problem, operands.ifmap.astype(np.int64))
    weight = layout.split_weight(layer, problem, operands.weight.astype(np.int64))
    bias = None
    if operands.bias is not None:
        bias = layout.split_bias(layer, problem, operands.bias.astype(np.int64))
    scaling = (operands.multiplier, operands.shift)
    widths = (design.operand_bits, design.accumulator_bits)
    ofmap = compute(problem, (ifmap, weight, bias), scaling, widths)
    moving = design.dataflow == "input_stationary"
    padding = None
    if moving:
        nothing = np.zeros((problem.groups, problem.filters), np.int64)
        padding = requantize(
            nothing, 0 if bias is None else bias, scaling, bool(problem.relu), widths[0]
        )
    lanes, columns = design.ifmap_lanes, design.columns
    out = tiles[tiles[:, cmd.LAST_K] == 1]
    biased = tiles[tiles[:, cmd.HAS_BIAS] == 1]
    new_ifmap = tiles[tiles[:, cmd.LOAD_IFMAP] == 1]
    new_weight = tiles[tiles[:, cmd.LOAD_WEIGHT] == 1]
    width, bias_lanes = design.weight_lanes, design.bias_lanes
    offsets = np.zeros((problem.groups, problem.filters), np.int64) if bias is None else bias
    return {
        "ifmap": _stack(new_ifmap, lambda row: layout.ifmap_words(row, ifmap, lanes), lanes),
        "weight": _stack(
            new_weight, lambda row: layout.weight_words(row, weight, width, moving=moving), width
        ),
        "bias": _stack(biased, lambda row: layout.bias_words(row, offsets, bias_lanes), bias_lanes),
        "ofmap": _stack(out, lambda row: layout.ofmap_words(row, ofmap, columns, padding), columns),
    }


def _ready(rows: IntArray, starts: IntArray, words: int, *, rising: bool) -> IntArray:
    """The earliest cycle of every word: its tile's start, one later a word if `rising`."""
    counts = rows[:, words]
    ready = np.repeat(starts, counts)
    if rising:
        first = np.repeat(np.cumsum(counts) - counts, counts)
        ready = ready + np.arange(len(ready)) - first
    return ready


def port_ready(
    design: Systolic, tiles: IntArray, plan: IntArray, services: tuple[Service, ...]
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
    design: Systolic,
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
    design: Systolic,
    layer: Conv2d | MatMul,
    tiling: Tiling,
    operands: Operands,
    services: tuple[Service, ...],
) -> Answer:
    """The exact answer for a layer under given services of the ports (in the order of PORTS).

    Raises `InputError` for operands that are not of the layer's shapes or the design's widths.
    """
    check_operands(design, layer, operands)
    problem = problem_of(layer)
    tiles = walk(problem.vector(), tiling.vector(), design.machine)
    words = {
        "command": command_words(layer, tiling, design.machine, operands),
        **port_words(design, layer, problem, tiles, operands),
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
        actions=count_actions(tiles, design.machine),
        earliest=earliest,
    )
