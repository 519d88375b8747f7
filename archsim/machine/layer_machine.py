"""A machine that computes layer after layer, each by itself: what models of such machines share.

The model is a subclass of `LayerAnswer`, which says of one layer how many words cross each port,
which, in which cycles, and what the ofmap is; and one of `LayerMachine` that names it.  Results,
traces, waves, reports and the conformance suite (`rtl.layer_verification`) follow from that.
`examples/own_parts` has a whole one.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from archsim.causes import CAUSES
from archsim.errors import InputError
from archsim.machine.interval import ARRAY, LAYERS, Interval, Track
from archsim.machine.model import Answer, MachineModel, MatrixLayer, OperandsOf
from archsim.machine.option import Options
from archsim.numbers import IntArray
from archsim.ports import Port, Transfers
from archsim.result import TRAFFIC, Actions, LayerResult
from workloads.layers import MatMul, Network


@dataclass(frozen=True, kw_only=True, eq=False)
class LayerAnswer(Answer):
    """One layer in full, from the cycle in which its first word may cross.

    operands: None where no word is asked for.  options: what a user chose.  gaps: by port, idle
    cycles of the memory side before each word [words]; a port that is not there never waits.
    """

    design: Any
    layer: MatrixLayer
    operands: Any = None
    options: Options = field(default_factory=dict[str, Any])
    gaps: Mapping[str, IntArray] = field(default_factory=dict[str, IntArray])

    does: ClassVar[str] = "compute"
    """What the array does, in a word."""

    @property
    @abstractmethod
    def counts(self) -> Mapping[str, int]:
        """Words that cross each port."""

    @cached_property
    @abstractmethod
    def crossed(self) -> Mapping[str, IntArray]:
        """By port, the cycle in which each word crosses [words], with `waits` for every port."""

    @cached_property
    @abstractmethod
    def words(self) -> Mapping[str, IntArray]:
        """By port, what crosses it [words, lanes], of `taken`."""

    @property
    @abstractmethod
    def ofmap(self) -> IntArray:
        """The layer's output, [N, K, P, Q] or [b, M, N], of `taken`."""

    @property
    @abstractmethod
    def where(self) -> Mapping[str, int]:
        """Cycles by cause (`archsim.causes`) without gaps: those not named are 0."""

    @property
    def steps(self) -> int:
        """One, unless a machine cuts its layers."""
        return 1

    @property
    def taken(self) -> Any:
        """The operands as the machine takes them.  Raises `InputError` where there are none."""
        if self.operands is None:
            raise InputError(f"{self.layer.name}: words depend on the operands; give some")
        return self.design.intake.take(self.layer, self.operands)

    def waits(self, port: str) -> IntArray:
        """Idle cycles of the memory side before each word of a port, [words]."""
        return self.gaps.get(port, np.zeros(self.counts[port], np.int64))

    @property
    def transfers(self) -> Mapping[str, Transfers]:
        """What crossed each port, and when."""
        words, crossed = self.words, self.crossed
        return {port: Transfers(cycle=crossed[port], payload=words[port]) for port in words}

    @property
    def earliest(self) -> Mapping[str, IntArray]:
        """Off-chip memory that offers a word a cycle."""
        return {port: np.zeros(count, np.int64) for port, count in self.counts.items()}

    def intervals(self, start_cycle: int = 0) -> Iterator[Interval]:
        """The layer, and the array while it computes."""
        first = self.where.get("control", 0)
        spans = ((LAYERS, self.layer.name, 0, self.cycles),
                 (ARRAY, self.does, first, first + self.where["computing"]))  # fmt: skip
        for unit, what, start, end in spans:
            yield Interval(
                unit=unit,
                what=what,
                layer=self.layer.name,
                start_cycle=start_cycle + start,
                end_cycle=start_cycle + end,
            )

    @property
    def result(self) -> LayerResult:
        """The figures that every result has; with operands, the output."""
        found = LayerResult(
            name=self.layer.name,
            kind="matmul" if isinstance(self.layer, MatMul) else "conv2d",
            macs=self.layer.macs,
            macs_per_cycle=self.design.macs_per_cycle,
            cycles=self.cycles,
            serial_cycles=self.cycles,
            where=dict.fromkeys(CAUSES, 0) | dict(self.where),
            bytes_moved={
                port: self.counts.get(port, 0) * -(-self.design.word_bits(port) // 8)
                for port in TRAFFIC
            },
            actions=Actions(self.actions),
            tiles=self.steps,
        )
        if self.operands is None:
            return found
        return replace(found.with_operands(self.taken), ofmap=self.ofmap)


@dataclass(frozen=True, kw_only=True)
class LayerRun:
    """A network, every layer by itself."""

    model: LayerMachine
    operands: OperandsOf
    options: Options
    inside: frozenset[str] = frozenset()

    def result(self, layer: MatrixLayer) -> LayerResult:
        """As `LayerAnswer.result`."""
        return self.model.answer(layer, self.operands(layer), self.options).result


class LayerMachine(MachineModel):
    """The model; the design has `ports`."""

    answers: ClassVar[type[LayerAnswer]]
    """What answers for a layer."""
    steps_are = "layers"

    @property
    def ports(self) -> tuple[Port, ...]:
        return self.design.ports

    @property
    def tracks(self) -> tuple[Track, ...]:
        return (Track(unit=LAYERS), Track(unit=ARRAY, does=(self.answers.does,)))

    def run(self, network: Network, operands: OperandsOf, options: Options) -> LayerRun:
        return LayerRun(model=self, operands=operands, options=options)

    def answer(self, layer: MatrixLayer, operands: Any, options: Options) -> LayerAnswer:
        return self.answers(design=self.design, layer=layer, operands=operands, options=options)


__all__ = ["LayerAnswer", "LayerMachine", "LayerRun"]
