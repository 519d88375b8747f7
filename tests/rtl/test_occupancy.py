"""Which PE multiplies what in which cycle: the model's counts against the RTL's own signals.

Operands are all 1 and layers have no padding, so that a product is 1 where two operands of the
layer meet, and 0 where a lane is filled up or two groups meet.  The RTL says in which cycles words
are issued; a PE sees a word a fixed number of cycles behind, and r + c more in a systolic array.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from amaranth.hdl import Cat, Value
from amaranth.sim import Simulator

from archsim.layer.problem import Tiling
from archsim.machines.systolic.design import DATAFLOWS, Systolic
from archsim.machines.tensorcore.design import TensorCore
from archsim.machines.vsq.design import Vsq
from archsim.memory import Plain
from archsim.numbers import IntArray
from archsim.tiled.design import CoreDesign
from archsim.tiled.occupancy import layer_products
from archsim.tiled.timing import plan_tiling
from rtl.benches import amaranth_bench
from rtl.benches.bench import RESET_CYCLES
from rtl.conformance import bench_of, judge
from rtl.core.pe import AccumulatingPE, StationaryPE
from rtl.core.tensor_array import TensorUnit
from rtl.core.vector_lane import VectorLane
from rtl.registry import core_of
from rtl.tile_conformance import TileCase, free_services
from workloads.layers import Conv2d, MatMul
from workloads.operands import Operands, synthetic

SMALL = Plain(capacity_bytes=1024)

LAYERS = (
    Conv2d(name="conv", channels=5, filters=7, ifmap_height=5, ifmap_width=6, kernel_height=2,
           kernel_width=3, stride_width=2),
    Conv2d(name="dilated", channels=3, filters=2, ifmap_height=4, ifmap_width=6, kernel_height=2,
           kernel_width=2, dilation_width=2, batch=2),
    MatMul(name="product", m=11, n=6, k=10),
)  # fmt: skip
GROUPED = Conv2d(
    name="grouped", channels=10, filters=5, ifmap_height=3, ifmap_width=4, kernel_height=2,
    kernel_width=2, groups=5,
)  # fmt: skip
SIDE_BY_SIDE = Tiling(pixel_rows=2, pixel_columns=2, filters=3, channels=6, groups=3)


def ones(layer: Conv2d | MatMul) -> Operands:
    drawn = synthetic(layer, bits=8, seed=1)
    return replace(drawn, ifmap=np.ones_like(drawn.ifmap), weight=np.ones_like(drawn.weight))


def watched(
    monkeypatch: pytest.MonkeyPatch, case: TileCase, kind: Any, look: Callable[[Any], Value]
) -> tuple[IntArray, IntArray]:
    """Run a case: whether a moving word is issued [cycles], and what `look` sees in every
    component of a kind, in the order in which they are made, [cycles, components]."""
    found: list[Any] = []
    seen: list[tuple[int, ...]] = []
    core: Any = core_of(case.design)
    elaborate: Any = kind.elaborate

    def noticed(self: Any, platform: object) -> Any:
        found.append(self)
        return elaborate(self, platform)

    class Watching(Simulator):
        def add_process(self, process: Any) -> None:
            async def watch(ctx: Any) -> None:
                issue = core.stream_walk.issue
                async for _, _, *values in ctx.tick().sample(issue, *map(look, found)):
                    seen.append(tuple(values))

            super().add_process(process)
            super().add_testbench(watch, background=True)

    monkeypatch.setattr(kind, "elaborate", noticed)
    monkeypatch.setattr(amaranth_bench, "Simulator", Watching)
    expected = case.answer()
    outcome = amaranth_bench.run_amaranth(core, bench_of(case, expected))
    assert judge(case, expected, outcome).equal
    signals = np.array(seen[RESET_CYCLES:], dtype=object)
    return signals[:, 0].astype(np.int64), signals[:, 1:]


def rises(design: CoreDesign, case: TileCase, cycles: int) -> IntArray:
    """Products of each PE in each cycle, as the model says: [cycles, rows, columns]."""
    products = layer_products(design, case.layer, case.tiling)
    return np.diff([products.until(cycle) for cycle in range(cycles + 1)], axis=0)


def case_of(design: CoreDesign, layer: Conv2d | MatMul, tiling: Tiling | None) -> TileCase:
    return TileCase(
        design=design,
        layer=layer,
        tiling=plan_tiling(design, layer, tiling),
        operands=ones(layer),
        services=free_services(),
    )


@pytest.mark.parametrize("dataflow", DATAFLOWS)
@pytest.mark.parametrize("number", range(4))
def test_pes_of_a_systolic_array(
    monkeypatch: pytest.MonkeyPatch, dataflow: Any, number: int
) -> None:
    design = Systolic(
        rows=4, columns=3, dataflow=dataflow, ifmap_memory=SMALL, accumulator_memory=SMALL
    )
    layer, tiling = (*((one, None) for one in LAYERS), (GROUPED, SIDE_BY_SIDE))[number]
    case = case_of(design, layer, tiling)
    if dataflow == "output_stationary":
        issued, seen = watched(
            monkeypatch, case, AccumulatingPE, lambda pe: Cat(pe.ifmap_i != 0, pe.weight_i != 0)
        )
        useful = seen == 3
    else:
        issued, seen = watched(
            monkeypatch, case, StationaryPE, lambda pe: Cat(pe.psum_i, pe.psum_o)
        )
        bits = design.accumulator_bits
        useful = (seen[1:] >> bits) != (seen[:-1] & ((1 << bits) - 1))
    wanted, found = rises(design, case, len(issued)), np.zeros((len(issued), 4, 3), np.int64)
    for pe in range(12):
        row, column = divmod(pe, 3)
        behind = design.operand_latency_cycles + row + column
        count = min(len(issued), len(useful) - behind)
        found[:count, row, column] = useful[behind : behind + count, pe] & issued[:count]
    assert np.array_equal(found, wanted)
    assert found.sum() == layer.macs


@pytest.mark.parametrize("number", range(4))
def test_units_of_a_tensor_core(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    design = TensorCore(
        octets=1, group_columns=2, rows=4, length=3, operand="int8", accumulator="int32",
        ifmap_memory=SMALL, accumulator_memory=SMALL,
    )  # fmt: skip
    layer, tiling = (*((one, None) for one in LAYERS), (GROUPED, SIDE_BY_SIDE))[number]
    case = case_of(design, layer, tiling)
    issued, seen = watched(monkeypatch, case, TensorUnit, lambda unit: Cat(unit.a, unit.b))
    wanted, found = rises(design, case, len(issued)), np.zeros((len(issued), 3, 4), np.int64)
    period = design.array.set_cycles
    slots = np.where(issued, (np.cumsum(issued) - 1) % period, period)
    behind = design.operand_latency_cycles + period + design.array.collect_cycles - 1
    for unit in range(4):
        group, number = divmod(unit, 2)  # the RTL's order; one octet
        for element in range(3):
            a, b = seen[:, unit] >> 8 * element & 255, seen[:, unit] >> 8 * (3 + element) & 255
            useful = ((a != 0) & (b != 0))[behind:]
            at = slots[: len(useful)] < design.rows
            found[: len(useful), element, 2 * group + number] = useful & at
    assert np.array_equal(found, wanted)
    assert found.sum() == layer.macs


@pytest.mark.parametrize("number", range(3))
def test_multipliers_of_vector_lanes(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    design = Vsq(lanes=2, vector=4, hold_cycles=5, ifmap_memory=SMALL, accumulator_memory=SMALL)
    case = case_of(design, LAYERS[number], None)
    issued, seen = watched(
        monkeypatch, case, VectorLane, lambda lane: Cat(lane.weight, lane.activation)
    )
    wanted, found = rises(design, case, len(issued)), np.zeros((len(issued), 4, 2), np.int64)
    behind = design.operand_latency_cycles
    for lane in range(2):
        for product in range(4):
            w, a = (seen[:, lane] >> 4 * (product + at) & 15 for at in (0, 4))
            useful = ((w != 0) & (a != 0))[behind:]
            found[: len(useful), product, lane] = useful & issued[: len(useful)]
    assert np.array_equal(found, wanted)
    assert found.sum() == LAYERS[number].macs
