"""Passes for the SCNN core, and what crosses its ports: the stepped oracle's words and cycles."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scnn_oracle import Oracle, Vector, make_list

from archsim.core.problem import Problem
from archsim.designs.scnn import Scnn
from archsim.errors import require
from archsim.sparse.mapping import map_plane
from archsim.sparse.scnn_command import Output, command_fields, command_values

PORTS = ("command", "ifmap", "weight", "bias", "ofmap")
MOST_WORDS = 2_000
"""At a port in a pass with gaps."""
Gaps = dict[str, list[int]]


@dataclass(frozen=True, kw_only=True, eq=False)
class LayerPass:
    """ifmap [H, W, C], weight [K, R, S, C], bias [K]; gaps: idle cycles before words, by port."""

    design: Scnn
    problem: Problem
    operands: tuple[Any, Any, Any]
    scaling: tuple[int, int]
    gaps: Gaps = field(default_factory=dict)


class BiasedOracle(Oracle):
    """The oracle, with the bias port and what waits for it."""

    def __init__(self, layer: LayerPass) -> None:
        super().__init__(
            layer.design, layer.problem, layer.operands, layer.scaling, layer.gaps or None
        )
        self.bias_cycles: list[int] = []
        self.words = layer.problem.filters if layer.problem.has_bias else 0
        self.depth = 2 * layer.design.filter_group
        self.freed: list[int] = []

    def choose_group(self) -> int:
        size = super().choose_group()
        require(size > 0, "the sums or weights of one filter do not fit")
        return size

    def step(self) -> None:
        super().step()
        n = len(self.bias_cycles)
        if n == self.words or self.cycle == 0:
            return
        held = n - sum(cycle <= self.cycle for cycle in self.freed)
        earliest = (self.bias_cycles[-1] if n else -1) + self.interval("bias", n)
        if held < self.depth and self.cycle >= earliest:
            self.bias_cycles.append(self.cycle)

    def drain(self) -> None:
        needed = sum(map(len, self.groups[: len(self.finished) + 1]))
        if self.draining is None and self.words:
            here = sum(cycle + 2 <= self.cycle for cycle in self.bias_cycles)
            if here < needed:
                return
        super().drain()

    def drain_cycles(self, group: int) -> Iterator[None]:
        rows, columns = self.rows, self.columns
        across = sum(columns.most_away(by) for by in (-1, 1)) * rows.longest()
        along = sum(rows.most_away(by) for by in (-1, 1)) * columns.own
        filters, each = len(self.groups[group]), rows.own * columns.own + 1
        first = self.cycle + 2 * filters * (across + along)
        self.freed += [first + (k + 1) * each for k in range(filters)]
        return super().drain_cycles(group)


@dataclass(frozen=True, kw_only=True, eq=False)
class Expected:
    """What crosses each port: (cycle from the command, word); and the counts."""

    cycles: dict[str, list[int]]
    words: dict[str, list[int]]
    counts: dict[str, int]


def _words(design: Scnn, lists: list[list[Vector]]) -> list[int]:
    """Vectors of lists as port words."""
    lane_bits = design.operand_bits + design.index_bits
    mask = (1 << design.operand_bits) - 1
    words: list[int] = []
    for vectors in lists:
        for number, vector in enumerate(vectors):
            word = int(number == len(vectors) - 1) << (lane_bits * len(vector))
            for lane, (value, index, _) in enumerate(vector):
                word |= (value & mask | index << design.operand_bits) << (lane * lane_bits)
            words.append(word)
    return words


def _command(layer: LayerPass, group_size: int) -> int:
    problem, design = layer.problem, layer.design
    multiplier, shift = layer.scaling
    mapping = map_plane(design, problem, group_size)
    output = Output(
        has_bias=bool(problem.has_bias),
        relu=bool(problem.relu),
        multiplier=multiplier,
        shift=shift,
    )
    word, at = 0, 0
    values = command_values(design, mapping, output)
    for entry, value in zip(command_fields(design), values, strict=True):
        word |= (value & ((1 << entry.bits) - 1)) << at
        at += entry.bits
    return word


def _outputs(design: Scnn, problem: Problem, oracle: Oracle) -> list[list[Vector]]:
    """The lists that leave: of each PE with outputs, for each filter."""
    lists: list[list[Vector]] = []
    for pe in oracle.pes:
        for k in range(problem.filters) if pe.outputs else ():
            cells = [(n, value, ()) for n, value in enumerate(pe.outputs[k])]
            lists.append(make_list(cells, design.ifmap_lanes, design.index_bits, False))
        held = sum(map(len, lists[-problem.filters :]))
        require(held <= design.oaram_vectors, f"{held} vectors do not fit OARAM")
    return lists


def expected(layer: LayerPass) -> Expected:
    """What the contract says, by the oracle.  Raises `InputError` for a pass that does not fit."""
    design, problem = layer.design, layer.problem
    oracle = BiasedOracle(layer)
    for pe in oracle.pes:
        held = sum(map(len, pe.lists.values()))
        require(held <= design.iaram_vectors, f"{held} vectors do not fit IARAM")
    answer = oracle.run()
    ofmap = _outputs(design, problem, oracle)
    bias_mask = (1 << design.accumulator_bits) - 1
    bias = [int(value) & bias_mask for value in layer.operands[2]] if problem.has_bias else []
    words = {
        "command": [_command(layer, oracle.kc)],
        "ifmap": _words(design, [one for pe in oracle.pes for one in pe.lists.values()]),
        "weight": _words(design, oracle.streams),
        "bias": bias,
        "ofmap": _words(design, ofmap),
    }
    gaps = layer.gaps.get("ofmap", [0] * len(words["ofmap"]))
    first = answer["drained"][-1] + design.ofmap_latency_cycles
    waits = np.cumsum([gap + (n > 0) for n, gap in enumerate(gaps[: len(words["ofmap"])])])
    cycles = {
        "command": [0],
        "ifmap": answer["ifmap_cycles"],
        "weight": answer["weight_cycles"],
        "bias": oracle.bias_cycles,
        "ofmap": [first + int(wait) for wait in waits],
    }
    figures = {name: sum(of_pes) for name, of_pes in answer["pes"].items()}
    counts = {
        "pair": figures["pairs"],
        "product": figures["products"],
        "conflict_cycle": figures["conflict"],
        "skip": figures["skip"],
        "iaram_read": figures["ifmap_reads"],
        "halo_sum": figures["halo_sums"],
        "weight_write": len(words["weight"]),
        "oaram_write": len(words["ofmap"]),
    }
    return Expected(cycles=cycles, words=words, counts=counts)


@dataclass(frozen=True, kw_only=True)
class Shape:
    """Of a layer: plane, channels and filters, and along both axes kernel, stride and pad."""

    plane: tuple[int, int]
    channels: int = 1
    filters: int = 1
    kernel: tuple[int, int] = (1, 1)
    stride: tuple[int, int] = (1, 1)
    pad: tuple[int, int] = (0, 0)
    has_bias: bool = False
    relu: bool = False

    @property
    def problem(self) -> Problem:
        outputs = [
            (size + 2 * pad - kernel) // stride + 1
            for size, pad, kernel, stride in zip(
                self.plane, self.pad, self.kernel, self.stride, strict=True
            )
        ]
        return Problem(
            images=1, groups=1, channels=self.channels, height=self.plane[0], width=self.plane[1],
            kernel_height=self.kernel[0], kernel_width=self.kernel[1],
            stride_height=self.stride[0], stride_width=self.stride[1],
            dilation_height=1, dilation_width=1, pad_top=self.pad[0], pad_left=self.pad[1],
            out_height=outputs[0], out_width=outputs[1], filters=self.filters,
            has_bias=int(self.has_bias), relu=int(self.relu),
        )  # fmt: skip


def random_pass(
    design: Scnn,
    shape: Shape,
    seed: int,
    *,
    density: tuple[float, float] = (0.6, 0.6),
    longest_gap: int = 0,
) -> LayerPass:
    """Random operands; a channel without activations now and then; gaps on every port.

    Either large operands, of whose sums the upper bits are seen, or small ones: the lower bits.
    """
    rng = np.random.default_rng(seed)
    problem = shape.problem
    limit = 1 << (design.operand_bits - 1)
    sizes = (
        (problem.height, problem.width, problem.channels),
        (problem.filters, problem.kernel_height, problem.kernel_width, problem.channels),
    )
    ifmap, weight = (
        rng.integers(-limit, limit, size) * (rng.random(size) < share)
        for size, share in zip(sizes, density, strict=True)
    )
    ifmap *= rng.random(problem.channels) < 0.85
    accumulators = 1 << (design.accumulator_bits - 1)
    bias = rng.integers(-accumulators, accumulators, problem.filters) * problem.has_bias
    gaps: Gaps = {}
    if longest_gap:
        for name in PORTS[1:]:
            waits = rng.random(MOST_WORDS) < rng.random()
            each = rng.integers(0, longest_gap + 1, MOST_WORDS) * waits
            gaps[name] = each.tolist()
    multiplier = int(rng.integers(1, 1 << 8))
    spare = design.accumulator_bits + multiplier.bit_length() - design.operand_bits
    scaling = multiplier, max(0, spare - int(rng.integers(0, 4)))
    if rng.random() < 0.5:
        small = max(0, design.operand_bits - 4)
        ifmap, weight, bias, scaling = ifmap >> small, weight >> small, bias >> 12, (1, 0)
    return LayerPass(
        design=design, problem=problem, operands=(ifmap, weight, bias), scaling=scaling, gaps=gaps
    )
