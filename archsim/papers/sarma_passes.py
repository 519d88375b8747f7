"""What a training step takes on a machine, by pass, and where a sparse machine's cycles go."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from archsim.energy import action_counts, price_design
from archsim.errors import InputError
from archsim.machine.design import Design
from archsim.machine.registry import load_design, with_settings
from archsim.machines.sparsetrain.block_work import LEAST, PRODUCTS
from archsim.papers.sarma_steps import step_at
from archsim.result import LayerResult
from workloads.layers import Conv2d, MatMul, Network
from workloads.training.drawn import DrawnStep

if TYPE_CHECKING:
    from archsim.machines.sparsetrain.design import SparseTrain
    from archsim.machines.sparsetrain.model import SparseTrainAnswer

MACHINE = "sparsetrain"

DENSE = ("look_ahead=0", "look_aside=0", "skip_outputs=false")
"""Of a machine as it is, one with as many multipliers that skips nothing."""

TECHNOLOGY = "45nm"

LOSSES = ("products", "ends", "window", "imbalance", "loads", "control")
"""Where cycles go: those that products take if every multiplier always has one; what ends of dot
products leave empty, with a window without bounds; what the window does not reach; PEs that wait
for the longest; for operands and for the ofmap; pipelines that fill."""


@dataclass
class Taken:
    """Of one pass.  macs: of the layers that the machine takes; bytes that cross its ports; energy
    in all, without the off-chip memory, and without any memory; where: cycles by `LOSSES`."""

    cycles: int = 0
    macs: int = 0
    bytes_moved: int = 0
    energy_pj: float = 0.0
    on_chip_pj: float = 0.0
    logic_pj: float = 0.0
    where: dict[str, float] = field(default_factory=lambda: dict.fromkeys(LOSSES, 0.0))

    def add(self, other: Taken) -> None:
        """Another one's beside this one's."""
        self.cycles += other.cycles
        self.macs += other.macs
        self.bytes_moved += other.bytes_moved
        self.energy_pj += other.energy_pj
        self.on_chip_pj += other.on_chip_pj
        self.logic_pj += other.logic_pj
        for name in LOSSES:
            self.where[name] += other.where[name]


@dataclass(frozen=True)
class Step:
    """A step on a machine: layers by name; refused: why, of each that the machine does not take."""

    passes: Mapping[str, str]
    layers: Mapping[str, Taken]
    refused: Mapping[str, str]
    area_um2: float

    def of(self, passes: Sequence[str], names: frozenset[str] | None = None) -> Taken:
        """Of some passes together, of all layers or of those named."""
        found = Taken()
        for name, one in self.layers.items():
            if self.passes[name] in passes and (names is None or name in names):
                found.add(one)
        return found


def drawn_of(step: Network, bits: int) -> DrawnStep:
    """The operands of a step of measured densities, with masks drawn with them."""
    training = step.training
    assert training is not None and training.step is not None
    activity = training.step.activity
    assert activity is not None
    return DrawnStep(step=training.step, activity=activity, bits=bits)


@cache
def sparse_step(network: str, when: str, settings: tuple[str, ...] = ()) -> Step:
    """A network's step with the densities measured then, one image, masks drawn with them, on the
    sparse machine; and where its cycles go."""
    machine = cast("SparseTrain", with_settings(load_design(MACHINE), list(settings)))
    model, price = machine.machine_model(), _Price(machine)

    def taken(layer: Conv2d | MatMul, operands: Any) -> Taken:
        answer = model.answer(layer, operands, {})
        return price.taken(answer.result, _where(answer))

    return _step(step_at(network, when), machine, price.area_um2, taken)


@cache
def step_on(network: str, when: str, design: str, settings: tuple[str, ...] = ()) -> Step:
    """The same on any machine, without where its cycles go."""
    return step_taken(step_at(network, when), with_settings(load_design(design), list(settings)))


def step_taken(step: Network, machine: Design) -> Step:
    """A training step with drawn operands on any machine."""
    model, price = machine.machine_model(), _Price(machine)

    def taken(layer: Conv2d | MatMul, operands: Any) -> Taken:
        run = model.run(step, lambda _: operands, {})
        return price.taken(run.result(layer), {})

    return _step(step, machine, price.area_um2, taken)


def _step(
    step: Network,
    machine: Design,
    area_um2: float,
    taken: Callable[[Conv2d | MatMul, Any], Taken],
) -> Step:
    """What a machine takes of each layer, and why it refuses the others."""
    training, source = step.training, drawn_of(step, machine.intake.source_bits)
    assert training is not None
    needs_values = machine.machine_model().timed_by_values
    layers: dict[str, Taken] = {}
    refused: dict[str, str] = {}
    for layer in step.matrix_layers:
        operands = source(layer) if needs_values else None
        try:
            layers[layer.name] = taken(layer, operands)
        except InputError as error:
            refused[layer.name] = str(error)
    return Step(training.passes, layers, refused, area_um2)


class _Price:
    """What a machine's layers cost."""

    def __init__(self, machine: Design) -> None:
        self._machine = machine
        self._list = price_design(machine, TECHNOLOGY)
        kinds = [one.kind for one in self._list.components]
        self._on_chip = np.array([kind != "dram" for kind in kinds])
        self._logic = np.array([kind not in ("dram", "sram") for kind in kinds])

    @property
    def area_um2(self) -> float:
        """Of the machine, without the off-chip memory."""
        return float(np.nansum(self._list.area_um2[self._on_chip]))

    def taken(self, result: LayerResult, where: Mapping[str, float]) -> Taken:
        """Of a layer."""
        dynamic = self._list.energy([action_counts(result, self._machine)])[0]
        static = float(self._list.static_pj([result.cycles / self._machine.clock_hz]).sum())
        return Taken(
            cycles=result.cycles,
            macs=result.macs,
            bytes_moved=result.total_bytes,
            energy_pj=float(dynamic.sum()) + static,
            on_chip_pj=float(dynamic[self._on_chip].sum()) + static,
            logic_pj=float(dynamic[self._logic].sum()),
            where=dict.fromkeys(LOSSES, 0.0) | dict(where),
        )


def _where(answer: SparseTrainAnswer) -> dict[str, float]:
    """A layer's cycles by `LOSSES`."""
    design, cause = answer.design, answer.where
    if not answer.cycles:
        return {}
    total = answer.work.work.sum(axis=0)
    products = float(total[PRODUCTS]) / design.macs_per_cycle
    least = float(total[LEAST]) / design.pes
    return {
        "products": products,
        "ends": least - products,
        "window": cause["computing"] - least,
        "imbalance": float(cause["barrier"]),
        "loads": float(cause["wait_ifmap"] + cause["wait_weight"] + cause["wait_output"]),
        "control": float(cause["control"] + cause["draining"]),
    }


__all__ = ["DENSE", "LOSSES", "MACHINE", "Step", "Taken", "drawn_of", "sparse_step", "step_on"]
