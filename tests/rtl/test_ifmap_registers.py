"""A register behind the ifmap scratchpad: operands come a cycle later, in model and RTL alike."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from amaranth.hdl import Const, Module, Value
from faults import caught, delay, model_column, seen_input
from systolic_designs import random_design
from unusual_layers import UNUSUAL_LAYERS

from archsim.errors import InputError
from archsim.machine.registry import load_design, with_settings
from archsim.machines.systolic.design import DATAFLOWS, Dataflow, Systolic
from archsim.machines.tensorcore.design import TensorCore
from archsim.machines.vsq.design import Vsq
from archsim.memory import Plain
from archsim.tiled.design import CoreDesign
from archsim.tiled.timing import plan_tiling
from rtl.cases import Draw
from rtl.conformance import check
from rtl.core.align import AlignedBanks
from rtl.core.weights import WeightReader
from rtl.simulators import runner
from rtl.suite import DesignConformance, assert_equal, check_random_cases
from rtl.tile_conformance import TileCase, free_services
from workloads.layers import Conv2d, MatMul
from workloads.operands import synthetic

SMALL = Plain(capacity_bytes=2048)
MEMORIES: dict[str, Any] = {"ifmap_memory": SMALL, "weight_memory": SMALL}
FAULTY = "kind=faulty {}_memory.rate=0.01"
OTHERS = {
    "faulty ifmap": [f"ifmap_memory.{FAULTY.format('ifmap')}"],
    "faulty weights and ifmap": [f"{name}_memory.{FAULTY.format(name)}" for name in
                                 ("ifmap", "weight")],
    "check bits over a faulty ifmap": [
        f"ifmap_memory.{FAULTY.format('ifmap')} ifmap_memory.kind=secded"],
    "Boveda ifmap": ["ifmap_memory.kind=boveda ifmap_memory.group=2"],
    "Boveda weights": ["weight_memory.kind=boveda weight_memory.group=2"],
    "both Boveda": [f"{name}_memory.kind=boveda {name}_memory.group=2" for name in
                    ("ifmap", "weight")],
    "faulty Boveda ifmap": [
        f"ifmap_memory.kind=boveda ifmap_memory.group=2 ifmap_memory.{FAULTY.format('ifmap')}"],
    "gather unit": ["gather_units=40"],
}  # fmt: skip


class TestIfmapRegisters(DesignConformance):
    """Each dataflow, random sizes and memories."""

    designs = (Systolic(rows=3, columns=5, ifmap_registers=1, **MEMORIES),)
    amaranth_cases = 6
    amaranth_words = 500
    cocotb_cases = 1

    def random_design(self, draw: Draw) -> Systolic:
        return replace(random_design(draw), ifmap_registers=1)


def _equal(design: CoreDesign, seed: int, cases: int = 2, words: int = 500) -> None:
    check_random_cases(design, "amaranth", seed=seed, cases=cases, longest_words=words)


@pytest.mark.parametrize("dataflow", DATAFLOWS)
def test_operands_come_a_cycle_later(dataflow: Dataflow) -> None:
    """Weights are asked for a cycle later, so that both arrive together."""
    plain, design = (
        Systolic(rows=3, columns=2, dataflow=dataflow, ifmap_registers=n, **MEMORIES)
        for n in (0, 1)
    )
    assert design.operand_latency_cycles == plain.operand_latency_cycles + 1
    assert design.result_latency_cycles == plain.result_latency_cycles + 1
    waits = [(one.read_wait_cycles("ifmap"), one.read_wait_cycles("weight"))
             for one in (plain, design)]  # fmt: skip
    assert waits == [(0, 0), (0, 1)]
    _equal(design, 23)


@pytest.mark.parametrize("dataflow", DATAFLOWS)
@pytest.mark.parametrize("rows", [1, 7])
def test_arrays_of_one_and_of_prime_sizes(rows: int, dataflow: Dataflow) -> None:
    columns = 1 if rows == 1 else 5
    _equal(Systolic(rows=rows, columns=columns, dataflow=dataflow, ifmap_registers=1), 29)


@pytest.mark.parametrize("dataflow", DATAFLOWS)
@pytest.mark.parametrize("layer", UNUSUAL_LAYERS, ids=lambda layer: layer.name)
def test_unusual_layers(layer: Conv2d | MatMul, dataflow: Dataflow) -> None:
    design = Systolic(rows=4, columns=3, dataflow=dataflow, ifmap_memory=SMALL, ifmap_registers=1)
    case = TileCase(
        design=design,
        layer=layer,
        tiling=plan_tiling(design, layer, None),
        operands=synthetic(layer, bits=8, seed=5),
        services=free_services(),
    )
    assert_equal(check(case, runner(design, "amaranth")))


@pytest.mark.parametrize(
    ("name", "dataflow"),
    [
        pytest.param(name, dataflow, marks=() if (n + k) % 3 == 0 else pytest.mark.slow)
        for n, name in enumerate(OTHERS)
        for k, dataflow in enumerate(DATAFLOWS)
    ],
)
def test_other_memories(name: str, dataflow: Dataflow) -> None:
    """Of cells that fail, and of memories whose words take longer than the register's."""
    design: Any = Systolic(rows=4, columns=2, dataflow=dataflow, ifmap_registers=1, **MEMORIES)
    settings = " ".join(OTHERS[name]).split()
    changed: Any = with_settings(design, settings)
    _equal(changed, 31)


@pytest.mark.parametrize(
    "design",
    [
        TensorCore(octets=1, group_columns=2, rows=4, operand="int8", accumulator="int32",
                   ifmap_registers=1, **MEMORIES),
        TensorCore(octets=1, group_columns=1, rows=4, length=2, ifmap_registers=1, **MEMORIES),
        Vsq(lanes=2, vector=6, hold_cycles=3, ifmap_registers=1, **MEMORIES),
    ],
    ids=["tensor core of integers", "of floats", "vector lanes"],
)  # fmt: skip
def test_other_cores(design: CoreDesign) -> None:
    """The same scratchpads, and so the same register."""
    plain: Any = replace(design, ifmap_registers=0)
    assert design.operand_latency_cycles == plain.operand_latency_cycles + 1
    _equal(design, 37)


def test_who_has_it() -> None:
    edge: Any = load_design("edge-16")
    assert (edge.ifmap_registers, edge.for_fpga().ifmap_registers) == (0, 1)
    boveda: Any = with_settings(edge, ["ifmap_memory.kind=boveda"])
    assert boveda.for_fpga().ifmap_registers == 0
    assert repr(replace(edge, ifmap_registers=0)) == repr(edge)
    for value in (2, -1, True, 1.0):
        with pytest.raises(InputError, match="ifmap_registers must be 0 or 1, not"):
            replace(edge, ifmap_registers=value)


def _no_register(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(AlignedBanks, "_registered", lambda self, m, lanes: lanes)


def _one_lane_without(patch: pytest.MonkeyPatch) -> None:
    plain = AlignedBanks._registered

    def mutated(self: Any, m: Module, lanes: list[Value]) -> list[Value]:
        return [*plain(self, m, lanes)[:-1], lanes[-1]]

    patch.setattr(AlignedBanks, "_registered", mutated)


BROKEN: dict[str, Callable[[pytest.MonkeyPatch], Any]] = {
    "no register": _no_register,
    "a lane without": _one_lane_without,
    "weights do not wait": delay("weight_walk_delay", -1),
    "weights are freed late": delay("weight_free_delay", 1),
    "a weight that is never read": seen_input(WeightReader, "read", lambda *_: Const(0, 1)),
    "the model knows of no register": model_column(Systolic, "RESULT_LATENCY", -1),
    "the model's weights do not wait": model_column(Systolic, "WEIGHT_READ_WAIT", -1),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_fault_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    BROKEN[name](monkeypatch)
    assert caught(Systolic(rows=4, columns=3, ifmap_registers=1))
