"""Layers for the SCNN core, and what the stepped oracle says of every port."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scnn_lists import Vector, words
from scnn_oracle import Oracle
from scnn_strips import first_outputs, windows_in

from archsim.errors import require
from archsim.layer import layout
from archsim.layer.problem import problem_of
from archsim.machines.scnn.answer import SparseAnswer
from archsim.machines.scnn.design import Scnn
from archsim.machines.scnn.layer import layer_values
from archsim.machines.scnn.words import PORTS, LayerRun, PassWords, word_counts
from archsim.numbers import IntArray
from archsim.ports import Transfers
from rtl.sparse_conformance import SparseCase
from workloads.layers import Conv2d
from workloads.operands import Operands
from workloads.pooling import MaxPool


def tensors_of(one: PassWords) -> tuple[Any, Any, Any]:
    """What a pass computes with: ifmap [H, W, C], weight [K, R, S, C], bias [K]."""
    layer, operands, strip = one.run.layer, one.run.operands, one.strip
    whole, part = problem_of(layer), strip.problem
    ifmap = layout.split_ifmap(layer, whole, operands.ifmap)[one.image, one.group]
    weight = layout.split_weight(layer, whole, operands.weight)[one.group]
    bias = np.zeros((whole.groups, whole.filters), np.int64)
    if operands.bias is not None:
        bias = layout.split_bias(layer, whole, operands.bias.astype(np.int64))
    first = first_outputs(one.run.pool, strip)
    y = max(first[0] * whole.stride_height - whole.pad_top, 0)
    x = max(first[1] * whole.stride_width - whole.pad_left, 0)
    y, x = min(y, whole.height - 1), min(x, whole.width - 1)
    return ifmap[y : y + part.height, x : x + part.width], weight, bias[one.group]


class BiasedOracle(Oracle):
    """The oracle, with the bias port and what waits for it.  gaps: of the pass, by port."""

    def __init__(self, design: Scnn, one: PassWords, gaps: dict[str, list[int]]) -> None:
        operands, problem = one.run.operands, one.strip.problem
        scaling = operands.multiplier, operands.shift
        windows = windows_in(one.run.pool, one.strip)
        super().__init__(design, problem, tensors_of(one), scaling, gaps, windows)
        self.ifmap_kept = one.strip.mapping.ifmap_kept
        self.keep_ofmap = one.strip.mapping.keep_ofmap
        self.bias_cycles: list[int] = []
        self.words = problem.filters if problem.has_bias else 0
        self.depth = 2 * max(design.filter_group, self.kc)
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
        along = sum(rows.most_away(by) for by in (-1, 1)) * columns.most_owned()
        copies = sum(columns.most_copied(by) for by in (-1, 1)) * rows.most_owned()
        copies += sum(rows.most_copied(by) for by in (-1, 1)) * columns.most_held()
        filters, each = len(self.groups[group]), self.list_cycles()
        first = self.cycle + 2 * filters * (across + along + copies)
        self.freed += [first + (k + 1) * each for k in range(filters)]
        return super().drain_cycles(group)


def _payload(lists: list[list[Vector]], *, stays: bool = False) -> IntArray:
    """Value and index of each lane, and `last`; of an operand that stays, nothing."""
    rows = [
        [*(part for value, index, _ in vector for part in (value, index)), int(vector is one[-1])]
        for one in lists
        for vector in one
    ]
    return np.array(rows, np.int64)[: 0 if stays else None]


@dataclass(frozen=True, kw_only=True, eq=False)
class OracleAnswer:
    """`archsim.ports.PortAnswer`, by the oracle."""

    transfers: dict[str, Transfers]
    earliest: dict[str, IntArray]
    gaps: dict[str, IntArray]
    actions: dict[str, int]

    @property
    def cycles(self) -> int:
        return int(self.transfers["ofmap"].cycle[-1]) + 1


COUNTED = {
    "pair": "pairs", "product": "products", "conflict_cycle": "conflict", "skip": "skip",
    "iaram_read": "ifmap_reads", "halo_sum": "halo_sums", "copy_sum": "copy_sums",
    "window_read": "window_reads", "weight_read": "pairs", "accumulator_update": "products",
}  # fmt: skip
"""Counters of the core, and the oracle's figures."""

EVENTS = {
    "fifo_write": "fifo_writes", "output": "outputs", "zeroed": "zeroed", "cleared": "cleared",
}  # fmt: skip


def oracle_answer(case: SparseCase) -> OracleAnswer:
    """What the contract says of a case's passes, stepped cycle by cycle."""
    design, begin, taken = case.design, case.design.bank_entries, 0
    parts: dict[str, list[list[IntArray]]] = {port: [] for port in PORTS}
    stayed: list[list[Vector]] = []
    figures = dict.fromkeys((*COUNTED, *EVENTS, "oaram_write"), 0)
    at: dict[str, int] = dict.fromkeys(PORTS, 0)
    for one in case.passes:
        own = dict[str, IntArray]()
        for port, count in word_counts([one]).items():
            idle = (case.idle or {}).get(port)
            own[port] = np.zeros(count, np.int64)
            if idle is not None:
                own[port] = idle[at[port] : at[port] + count].copy()
            at[port] += count
        begin = max(begin, taken + int(own["command"][0]))
        taken = begin + 1
        oracle = BiasedOracle(design, one, {port: own[port].tolist() for port in PORTS})
        found = oracle.run()
        rows = _rows(one, oracle)
        loads = _loads(oracle)
        assert not oracle.ifmap_kept or [words(some) for some in loads] == [
            words(some) for some in stayed
        ], "what stays is not what the next pass needs"
        stayed = oracle.output_lists()
        times: dict[str, Any] = {"command": [0], "bias": oracle.bias_cycles}
        times |= {port: found[f"{port}_cycles"] for port in ("ifmap", "weight", "ofmap")}
        for port in PORTS:
            earliest = np.zeros(len(own[port]), np.int64)
            if port != "command" and own[port][:1].any():
                earliest[0] = begin + own[port][0]
            if port != "command":
                own[port][:1] = 0
            cycles = begin + np.array(times[port], np.int64)
            parts[port].append([cycles, rows[port], earliest, own[port]])
        for name, figure in COUNTED.items():
            figures[name] += sum(found["pes"][figure])
        for name, figure in EVENTS.items():
            figures[name] += found["events"][figure]
        figures["oaram_write"] += oracle.list_writes()
        begin += found["cycles"]
    joined = {port: [np.concatenate(some) for some in zip(*parts[port], strict=True)]
              for port in PORTS}  # fmt: skip
    counts = {
        "weight_write": at["weight"], "oaram_read": at["ofmap"], "iaram_write": at["ifmap"],
    }  # fmt: skip
    return OracleAnswer(
        transfers={
            port: Transfers(cycle=some[0], payload=some[1]) for port, some in joined.items()
        },
        earliest={port: some[2] for port, some in joined.items()},
        gaps={port: some[3] for port, some in joined.items()},
        actions=figures | counts,
    )


def _loads(oracle: Oracle) -> list[list[Vector]]:
    """Lists of the ifmap, PE by PE."""
    return [some for pe in oracle.pes for some in pe.lists.values()]


def _rows(one: PassWords, oracle: BiasedOracle) -> dict[str, IntArray]:
    """The payloads of a pass: lists as the oracle makes them."""
    bias = oracle.bias.reshape(-1, 1)[: oracle.words]
    return {
        "command": one.words["command"],
        "ifmap": _payload(_loads(oracle), stays=oracle.ifmap_kept),
        "weight": _payload(oracle.streams),
        "bias": bias.astype(np.int64),
        "ofmap": _payload(oracle.output_lists(), stays=oracle.keep_ofmap),
    }


class OracleCase(SparseCase):
    """A case whose answer is the oracle's: also where biases hold a drain back."""

    def answer(self) -> SparseAnswer:
        found: Any = oracle_answer(self)
        return found


@dataclass(frozen=True, kw_only=True)
class Shape:
    """Of a layer: plane, channels and filters, and along both axes kernel, stride and pad; pool:
    behind it."""

    plane: tuple[int, int]
    channels: int = 1
    filters: int = 1
    kernel: tuple[int, int] = (1, 1)
    stride: tuple[int, int] = (1, 1)
    pad: tuple[int, int] = (0, 0)
    has_bias: bool = False
    relu: bool = False
    pool: MaxPool | None = None

    @property
    def layer(self) -> Conv2d:
        return Conv2d(
            name="layer", channels=self.channels, filters=self.filters,
            ifmap_height=self.plane[0], ifmap_width=self.plane[1],
            kernel_height=self.kernel[0], kernel_width=self.kernel[1],
            stride_height=self.stride[0], stride_width=self.stride[1],
            pad_top=self.pad[0], pad_left=self.pad[1],
            pad_bottom=self.pad[0], pad_right=self.pad[1],
            bias=self.has_bias, relu=self.relu,
        )  # fmt: skip


def random_run(
    design: Scnn, shape: Shape, seed: int, *, density: tuple[float, float] = (0.6, 0.6)
) -> LayerRun:
    """Random operands of all bits; a channel without activations now and then.

    Either large operands, of whose sums the upper bits are seen, or small ones: the lower bits.
    """
    rng = np.random.default_rng(seed)
    layer = shape.layer
    limit = 1 << (design.operand_bits - 1)
    sizes = (
        (1, layer.channels, layer.ifmap_height, layer.ifmap_width),
        (layer.filters, layer.channels, layer.kernel_height, layer.kernel_width),
    )
    ifmap, weight = (
        rng.integers(-limit, limit, size) * (rng.random(size) < share)
        for size, share in zip(sizes, density, strict=True)
    )
    ifmap *= (rng.random(layer.channels) < 0.85)[:, None, None]
    accumulators = 1 << (design.accumulator_bits - 1)
    bias = rng.integers(-accumulators, accumulators, layer.filters)
    multiplier = int(rng.integers(1, 1 << 8))
    spare = design.accumulator_bits + multiplier.bit_length() - design.operand_bits
    scaling = multiplier, max(0, spare - int(rng.integers(0, 4)))
    if rng.random() < 0.5:
        small = max(0, design.operand_bits - 4)
        ifmap, weight, bias, scaling = ifmap >> small, weight >> small, bias >> 12, (1, 0)
    operands = Operands(
        ifmap=ifmap.astype(np.int16), weight=weight.astype(np.int16),
        bias=bias.astype(np.int32) if layer.bias else None,
        multiplier=scaling[0], shift=scaling[1], scheme="random",
        ifmap_scale=1.0, weight_scale=1.0, ofmap_scale=1.0,
    )  # fmt: skip
    return LayerRun(layer=layer, operands=operands, pool=shape.pool)


def chained(
    design: Scnn, shapes: Sequence[Shape], keeps: Sequence[bool], seed: int
) -> tuple[LayerRun, ...]:
    """Layers of random operands, each with the ofmap before as its ifmap; keeps: of each but the
    last, whether its ofmap stays."""
    runs: list[LayerRun] = []
    for shape, keep in zip(shapes, (*keeps, False), strict=True):
        run = random_run(design, shape, seed)
        if runs:
            ofmap = layer_values(design, runs[-1].layer, runs[-1].operands, runs[-1].pool)
            run = replace(run, operands=replace(run.operands, ifmap=ofmap.astype(np.int16)))
        runs.append(replace(run, keep_ofmap=keep))
    return tuple(runs)


def with_gaps(case: SparseCase, seed: int, longest: int) -> dict[str, IntArray]:
    """Up to so many idle cycles before some of the words of every port of data."""
    rng = np.random.default_rng(seed)
    return {
        port: rng.integers(0, longest + 1, count) * (rng.random(count) < rng.random())
        for port, count in word_counts(case.passes).items()
        if port != "command"
    }
