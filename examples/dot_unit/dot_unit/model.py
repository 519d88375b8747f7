"""When every word crosses, and what the sums are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from archsim.causes import CAUSES
from archsim.errors import InputError
from archsim.machine.interval import ARRAY, LAYERS, Interval, Track
from archsim.machine.model import Answer, MachineModel, MatrixLayer, OperandsOf, Options
from archsim.numbers import IntArray, wrap
from archsim.ports import Port, Transfers
from archsim.result import Actions, LayerResult
from dot_unit.design import DotUnit
from workloads.layers import MatMul, Network

PORTS = ("command", "ifmap", "weight", "ofmap")


def shape_of(layer: MatrixLayer, lanes: int) -> tuple[int, int]:
    """(sums, steps of each) of a layer."""
    if isinstance(layer, MatMul):
        sums, depth = layer.batch * layer.m * layer.n, layer.k
    else:
        sums = layer.batch * layer.filters * layer.ofmap_height * layer.ofmap_width
        depth = layer.channels // layer.groups * layer.kernel_height * layer.kernel_width
    return sums, -(-depth // lanes)


def vectors(layer: MatrixLayer, operands: Any) -> tuple[IntArray, IntArray, tuple[int, ...]]:
    """Of each sum the ifmap's and the weights' values, [sums, depth], and the ofmap's shape."""
    ifmap, weight = (one.astype(np.int64) for one in (operands.ifmap, operands.weight))
    if isinstance(layer, MatMul):
        shape = (layer.batch, layer.m, layer.n)
        left = np.broadcast_to(ifmap[:, :, None, :], (*shape, layer.k))
        right = np.broadcast_to(weight.transpose(0, 2, 1)[:, None], (*shape, layer.k))
        return left.reshape(-1, layer.k), right.reshape(-1, layer.k), shape
    pads = ((layer.pad_top, layer.pad_bottom), (layer.pad_left, layer.pad_right))
    padded = np.pad(ifmap, ((0, 0), (0, 0), *pads))
    down, across = layer.dilation_height, layer.dilation_width
    reach = ((layer.kernel_height - 1) * down + 1, (layer.kernel_width - 1) * across + 1)
    seen = np.lib.stride_tricks.sliding_window_view(padded, reach, axis=(2, 3))
    seen = seen[:, :, :: layer.stride_height, :: layer.stride_width, ::down, ::across]
    groups, filters = layer.groups, layer.filters // layer.groups
    images, _, rows, columns = seen.shape[:4]
    seen = seen.reshape(images, groups, 1, -1, rows, columns, *seen.shape[4:])
    seen = seen.transpose(0, 1, 2, 4, 5, 3, 6, 7)
    kernel = weight.reshape(groups, filters, 1, 1, *weight.shape[1:])
    shape = (images, groups, filters, rows, columns, *kernel.shape[4:])
    depth = int(np.prod(kernel.shape[4:]))
    left, right = (np.broadcast_to(one, shape).reshape(-1, depth) for one in (seen, kernel))
    return left, right, (images, layer.filters, rows, columns)


@dataclass(frozen=True, kw_only=True, eq=False)
class DotAnswer(Answer):
    """A layer.  gaps: by port, idle cycles of the memory side before each word; none by default."""

    design: DotUnit
    layer: MatrixLayer
    operands: Any
    gaps: Mapping[str, IntArray] = field(default_factory=dict[str, IntArray])

    @property
    def steps(self) -> int:
        return 1

    @property
    def cycles(self) -> int:
        if self.gaps:
            return int(self._crossed["ofmap"][-1]) + 1
        sums, steps = shape_of(self.layer, self.design.lanes)
        return sums * steps + 2

    @property
    def actions(self) -> Mapping[str, int]:
        sums, steps = shape_of(self.layer, self.design.lanes)
        return {"pair": sums * steps, "sum": sums}

    @cached_property
    def words(self) -> dict[str, IntArray]:
        """What crosses each port, [words, lanes]; the last step of a sum is filled with zeros."""
        if self.operands is None:
            raise InputError(f"{self.layer.name}: words depend on the operands; give some")
        taken = self.design.intake.take(self.layer, self.operands)
        lanes, (sums, steps) = self.design.lanes, shape_of(self.layer, self.design.lanes)
        left, right, _ = vectors(self.layer, taken)
        fill = ((0, 0), (0, steps * lanes - left.shape[1]))
        total = wrap((left * right).sum(axis=1), self.design.accumulator_bits)
        return {
            "command": np.array([[sums, steps]], np.int64),
            "ifmap": np.pad(left, fill).reshape(-1, lanes),
            "weight": np.pad(right, fill).reshape(-1, lanes),
            "ofmap": total[:, None],
        }

    @cached_property
    def _crossed(self) -> dict[str, IntArray]:
        """The cycles in which words cross: see the contract."""
        sums, steps = shape_of(self.layer, self.design.lanes)
        idle = {"command": 1, "ifmap": sums * steps, "weight": sums * steps, "ofmap": sums}
        wait = {port: self.gaps.get(port, np.zeros(idle[port], np.int64)) for port in PORTS}
        both = np.maximum(wait["ifmap"], wait["weight"]).tolist()
        command = int(wait["command"][0])
        pair, left, pairs, out = -1, -1, [], []
        for step, gap in enumerate(both):
            pair = max(pair + 1 + gap, command + 1)
            if step % steps == steps - 1:
                pair = max(pair, left)
                left = max(pair + 1, left + 1 + int(wait["ofmap"][len(out)]))
                out.append(left)
            pairs.append(pair)
        taken = np.array(pairs, np.int64)
        return {
            "command": np.array([command]),
            "ifmap": taken,
            "weight": taken,
            "ofmap": np.array(out, np.int64),
        }

    @property
    def transfers(self) -> Mapping[str, Transfers]:
        return {
            port: Transfers(cycle=self._crossed[port], payload=self.words[port]) for port in PORTS
        }

    @property
    def earliest(self) -> Mapping[str, IntArray]:
        return {port: np.zeros(len(self.words[port]), np.int64) for port in PORTS}

    def intervals(self, start_cycle: int = 0) -> Iterator[Interval]:
        ends = {LAYERS: self.cycles, ARRAY: self.cycles - 1}
        for unit, what, first in ((LAYERS, self.layer.name, 0), (ARRAY, "sum", 1)):
            yield Interval(
                unit=unit, what=what, layer=self.layer.name,
                start_cycle=start_cycle + first, end_cycle=start_cycle + ends[unit],
            )  # fmt: skip

    @property
    def result(self) -> LayerResult:
        """As the figures that every result has."""
        design, pairs = self.design, self.actions["pair"]
        operand_bytes = pairs * -(-design.word_bits("ifmap") // 8)
        found = LayerResult(
            name=self.layer.name,
            kind="matmul" if isinstance(self.layer, MatMul) else "conv2d",
            macs=self.layer.macs,
            macs_per_cycle=design.macs_per_cycle,
            cycles=self.cycles,
            serial_cycles=self.cycles,
            where=dict.fromkeys(CAUSES, 0) | {"computing": pairs, "control": 1, "draining": 1},
            bytes_moved={
                "ifmap": operand_bytes,
                "weight": operand_bytes,
                "bias": 0,
                "ofmap": self.actions["sum"] * -(-design.accumulator_bits // 8),
            },
            actions=Actions(self.actions),
            tiles=1,
        )
        if self.operands is None:
            return found
        taken = design.intake.take(self.layer, self.operands)
        left, right, shape = vectors(self.layer, taken)
        total = wrap(np.einsum("sd,sd->s", left, right), design.accumulator_bits)
        return replace(found.with_operands(taken), ofmap=total.reshape(shape))


@dataclass(frozen=True, kw_only=True)
class DotRun:
    """A network: every layer by itself."""

    design: DotUnit
    operands: OperandsOf
    inside: frozenset[str] = frozenset()

    def result(self, layer: MatrixLayer) -> LayerResult:
        return DotAnswer(design=self.design, layer=layer, operands=self.operands(layer)).result


class DotModel(MachineModel):
    """The model of a dot-product unit."""

    design: DotUnit
    steps_are = "layers"

    @property
    def ports(self) -> tuple[Port, ...]:
        return self.design.ports

    @property
    def tracks(self) -> tuple[Track, ...]:
        return (Track(unit=LAYERS), Track(unit=ARRAY, does=("sum",)))

    def run(self, network: Network, operands: OperandsOf, options: Options) -> DotRun:
        return DotRun(design=self.design, operands=operands)

    def answer(self, layer: MatrixLayer, operands: Any, options: Options) -> DotAnswer:
        return DotAnswer(design=self.design, layer=layer, operands=operands)
