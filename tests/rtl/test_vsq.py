"""The vector MAC core passes the conformance suite; faults in it are caught."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from amaranth.hdl import Module, Signal, Value
from faults import Patch, after, caught, delay, few_or_all_cases, ignored_credit, model_column
from unusual_layers import UNUSUAL_LAYERS
from vsq_designs import random_design

from archsim.layer.intake import Drawing
from archsim.machines.vsq.design import Vsq
from archsim.memory import OffChip, Plain
from archsim.tiled.timing import plan_tiling
from rtl.cases import LONGEST_WORDS, Draw
from rtl.conformance import check
from rtl.core.sequencer import Sequencer
from rtl.core.tokens import SlotTokens
from rtl.core.vector_array import VectorArray
from rtl.core.vector_lane import Collector, ScaleRound
from rtl.core.vector_output_stage import VectorOutputStage
from rtl.simulators import runner
from rtl.suite import DesignConformance, assert_equal
from rtl.tile_conformance import TileCase, free_services
from workloads.layers import Conv2d, MatMul

SMALL = Plain(capacity_bytes=4096)
SCALED = Vsq(lanes=2, vector=6, hold_cycles=3, ifmap_memory=SMALL, weight_memory=SMALL)
"""Vectors of three rows of two lanes."""


class TestVsq(DesignConformance):
    """In Verilog: vectors of several rows and several to a row, a gated data path, no scales."""

    designs = (
        SCALED,
        Vsq(
            lanes=6, vector=3, hold_cycles=5, scale_product_bits=4, gated=True,
            collector_bits=16, activation_signed=False, weight_memory=SMALL,
        ),
        Vsq(
            lanes=3, vector=5, hold_cycles=4, weight_bits=8, activation_bits=8,
            weight_scale_bits=0, activation_scale_bits=0, weight_memory=SMALL,
        ),
    )  # fmt: skip

    amaranth_cases = 16
    amaranth_words = 600

    def random_design(self, draw: Draw) -> Vsq:
        return random_design(draw)


@pytest.mark.slow
class TestVsqAtLength(TestVsq):
    """More designs, longer cases."""

    amaranth_cases = 36
    amaranth_words = LONGEST_WORDS
    verilator_cases = 200


@pytest.mark.parametrize("layer", UNUSUAL_LAYERS, ids=lambda layer: layer.name)
def test_unusual_layers(layer: Conv2d | MatMul) -> None:
    """Each shape, in its automatic tiling, with ports that never wait."""
    _whole_layer(SCALED, layer)


def _whole_layer(design: Vsq, layer: Conv2d | MatMul) -> None:
    case = TileCase(
        design=design,
        layer=layer,
        tiling=plan_tiling(design, layer, None),
        operands=design.numerics.synthetic(layer, Drawing(seed=5)),
        services=free_services(),
    )
    assert_equal(check(case, runner(design, "amaranth")))


def test_the_off_chip_memory_replayed() -> None:
    """What `simulate` times is what the RTL takes, with the off-chip model at its ports."""
    from archsim.tiled.timing import time_layer

    design = Vsq(
        lanes=4, vector=4, hold_cycles=4, ifmap_memory=SMALL, weight_memory=SMALL,
        accumulator_memory=SMALL,
        off_chip=OffChip(bytes_per_cycle=2.7, latency_cycles=23, burst_bytes=16),
    )  # fmt: skip
    layer = Conv2d(
        name="c", channels=10, filters=9, ifmap_height=6, ifmap_width=6, kernel_height=3,
        kernel_width=3, bias=True,
    )  # fmt: skip
    operands = design.numerics.synthetic(layer, Drawing(seed=2))
    tiling = plan_tiling(design, layer, None)
    case = TileCase(design=design, layer=layer, tiling=tiling, operands=operands)
    assert_equal(check(case, runner(design, "amaranth")))
    assert case.answer().cycles == time_layer(design, layer, tiling).cycles


def _stuck_slot(self: Any, m: Module) -> None:
    m.d.comb += self.slot_counts.eq(0)


def _dropped_scale_bit(self: Any, m: Module) -> None:
    m.d.comb += self.o[0].eq(0)


def _always_first(self: Any, m: Module) -> None:
    for number in range(self.lanes):
        m.d.comb += m.submodules[f"lane_{number}"].first.eq(1)


def _other_address(self: Any, m: Module) -> None:
    m.d.comb += self.token.address.eq(0)


def _wrong_half(self: Any, m: Module) -> None:
    m.d.sync += self.read_half.eq(0)


def _unlimited(self: Any, m: Module, total: Any) -> Any:
    return total[: self.bits]


MUTATIONS: dict[str, Patch] = {
    "sums one cycle late": delay("token_delay", 1),
    "sums one cycle early": delay("token_delay", -1),
    "steps one cycle late": delay("step_delay", 1),
    "steps one cycle early": delay("step_delay", -1),
    "pixels are masked": after(Sequencer, _stuck_slot),
    "a bit of the scale product dropped": after(ScaleRound, _dropped_scale_bit),
    "sums always begin anew": after(VectorArray, _always_first),
    "rows of sums in one place": after(SlotTokens, _other_address),
    "accumulators read from one half": after(VectorOutputStage, _wrong_half),
    "tiles are always loaded": ignored_credit(0, 2),
    "halves are always free": ignored_credit(2, 2),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_fault_in_the_rtl_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    MUTATIONS[name](monkeypatch)
    assert caught(_design())


def test_collectors_that_do_not_saturate_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fifteen vectors of the largest values, of which five are as much as a collector holds."""
    design, layer = _design(), MatMul(name="large", m=3, n=4, k=60)
    drawn = design.numerics.synthetic(layer, Drawing())
    operands = replace(
        drawn,
        ifmap=np.full_like(drawn.ifmap, 1000),
        weight=np.full_like(drawn.weight, 1000),
        ofmap_scale=1e4,
    )
    case = TileCase(
        design=design,
        layer=layer,
        tiling=plan_tiling(design, layer, None),
        operands=operands,
        services=free_services(),
    )
    assert_equal(check(case, runner(design, "amaranth")))
    monkeypatch.setattr(Collector, "_limited", _unlimited)
    assert not check(case, runner(design, "amaranth")).equal


def _design() -> Vsq:
    return Vsq(
        lanes=2, vector=4, hold_cycles=3, weight_scale_bits=2, activation_scale_bits=2,
        collector_bits=14, weight_memory=SMALL, ifmap_memory=SMALL,
    )  # fmt: skip


@few_or_all_cases
def test_the_untouched_design_passes(cases: int) -> None:
    assert not caught(_design(), cases)


@pytest.mark.parametrize("change", [-1, 1])
@pytest.mark.parametrize("column", ["RESULT_LATENCY", "OUTPUT_LATENCY", "OUTPUT_QUEUE", "ROWS"])
def test_every_latency_of_the_model_is_tight(
    column: str, change: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model that believes one cycle (or place, or pixel) more or less differs from the RTL."""
    model_column(Vsq, column, change)(monkeypatch)
    assert caught(_design(), 60)


def test_a_stage_without_bursts_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first row of a vector waits for the places of all: under back-pressure that shows."""
    design = Vsq(lanes=2, vector=6, hold_cycles=3, weight_memory=SMALL, ifmap_memory=SMALL)
    assert not caught(design, 20)
    plain = VectorOutputStage._room

    def mutated(self: Any, m: Module, vector_units: Value) -> tuple[Signal, Value]:
        places, _ = plain(self, m, vector_units)
        return places, places != 0

    monkeypatch.setattr(VectorOutputStage, "_room", mutated)
    assert caught(design, 60)
