"""The tensor core's core passes the conformance suite; faults in it are caught."""

from dataclasses import replace
from typing import Any

import pytest
from amaranth.hdl import Module
from faults import Patch, after, caught, delay, few_or_all_cases, ignored_credit, model_column
from tensorcore_designs import random_design
from unusual_layers import UNUSUAL_LAYERS

from archsim.errors import InputError
from archsim.layer.intake import Drawing
from archsim.machines.tensorcore.design import VOLTA, TensorCore
from archsim.memory import OffChip, Plain
from rtl.cases import LONGEST_WORDS, Draw, random_case
from rtl.conformance import check
from rtl.core.float_accumulators import FloatAccumulators
from rtl.core.float_output import FloatRequantize
from rtl.core.sequencer import Sequencer
from rtl.core.tensor_array import TensorArray
from rtl.core.window import Window
from rtl.simulators import runner
from rtl.suite import DesignConformance, assert_equal, check_random_cases
from rtl.tile_conformance import TileCase, free_services
from workloads.layers import Conv2d, MatMul

SMALL = Plain(capacity_bytes=4096)
INTEGERS = TensorCore(
    octets=1, group_columns=2, rows=4, operand="int8", accumulator="int32", ifmap_memory=SMALL,
    weight_memory=SMALL,
)  # fmt: skip
"""Four rows, and a chain of ten cycles: six slots of a set bring nothing."""


class TestTensorCore(DesignConformance):
    """In Verilog: integers and both kinds of floating sums, sets with empty slots and without."""

    designs = (
        INTEGERS,
        replace(INTEGERS, rows=12, length=3, operand="fp16", accumulator="fp32"),
        replace(INTEGERS, group_columns=1, octets=2, operand="fp16", accumulator="fp16"),
    )
    verilator_cases = 40

    amaranth_cases = 8
    amaranth_words = 600

    def random_design(self, draw: Draw) -> TensorCore:
        return random_design(draw)


@pytest.mark.slow
class TestTensorCoreAtLength(TestTensorCore):
    """More designs, longer cases."""

    amaranth_cases = 36
    amaranth_words = LONGEST_WORDS
    verilator_cases = 200


@pytest.mark.parametrize("layer", UNUSUAL_LAYERS, ids=lambda layer: layer.name)
def test_unusual_layers(layer: Conv2d | MatMul) -> None:
    """Each shape, in its automatic tiling, with ports that never wait."""
    from archsim.tiled.timing import plan_tiling

    case = TileCase(
        design=INTEGERS,
        layer=layer,
        tiling=plan_tiling(INTEGERS, layer, None),
        operands=INTEGERS.numerics.synthetic(layer, Drawing(seed=5)),
        services=free_services(),
    )
    assert_equal(check(case, runner(INTEGERS, "amaranth")))


@pytest.mark.parametrize("registers", [1, 2])
def test_output_registers(registers: int) -> None:
    """Words of integers leave as many cycles later, and back-pressure costs no throughput yet."""
    design = replace(INTEGERS, output_registers=registers)
    assert design.output_latency_cycles == INTEGERS.output_latency_cycles + registers
    assert design.output_queue_depth > design.output_latency_cycles
    check_random_cases(design, "amaranth", seed=13, cases=3, longest_words=700)


def test_output_registers_of_floats() -> None:
    """Are none: the field is refused, and left alone for an FPGA."""
    floats = replace(INTEGERS, operand="fp16", accumulator="fp32")
    memories: Any = {
        name: getattr(INTEGERS, name).for_fpga() for name in ("ifmap_memory", "weight_memory")
    }
    assert floats.for_fpga() == replace(floats, pipelined_control=True, **memories)
    assert INTEGERS.for_fpga() == replace(
        INTEGERS, pipelined_control=True, output_registers=2, **memories
    )
    with pytest.raises(InputError, match="output_registers must be 0 with floats, not 1"):
        replace(floats, output_registers=1)
    with pytest.raises(InputError, match="output_registers must be 0, 1 or 2, not 3"):
        replace(INTEGERS, output_registers=3)


@pytest.mark.slow
class TestOutputRegisters(DesignConformance):
    """In Verilog, under stalls of every port."""

    designs = (
        replace(INTEGERS, output_registers=1, pipelined_control=True),
        replace(INTEGERS, operand="int4", output_registers=2, rows=6),
    )
    amaranth_cases = 4

    def random_design(self, draw: Draw) -> TensorCore:
        design = random_design(draw)
        if design.floating:
            design = replace(design, operand="int8", accumulator="int32")
        return replace(design, output_registers=draw.whole(1, 2))


@pytest.mark.parametrize("seed", [6, 7])
def test_extreme_floats(seed: int) -> None:
    """Weights among the subnormals, and sums that overflow to infinities and NaNs."""
    design = replace(INTEGERS, operand="fp16", accumulator="fp32", length=2)
    case = random_case(seed, 0, design)
    words = case.answer().transfers["ofmap"].payload
    special = (words >> 10 & 31) == 31
    assert special.any() == (seed == 7)
    assert_equal(check(case, runner(design, "amaranth")))


def test_the_off_chip_memory_replayed() -> None:
    """What `simulate` times is what the RTL takes, with the off-chip model at its ports."""
    from archsim.tiled.timing import plan_tiling, time_layer

    design = replace(
        INTEGERS, off_chip=OffChip(bytes_per_cycle=2.7, latency_cycles=23, burst_bytes=16)
    )
    layer = Conv2d(
        name="c", channels=10, filters=9, ifmap_height=6, ifmap_width=6, kernel_height=3,
        kernel_width=3, bias=True,
    )  # fmt: skip
    operands = design.numerics.synthetic(layer, Drawing(seed=2))
    tiling = plan_tiling(design, layer, None)
    case = TileCase(design=design, layer=layer, tiling=tiling, operands=operands)
    assert_equal(check(case, runner(design, "amaranth")))
    assert case.answer().cycles == time_layer(design, layer, tiling).cycles


def test_volta() -> None:
    """Sixteen four-element units; a warp's multiply takes 54 cycles, 64 with FP16 sums; STEPs two
    cycles apart.  `tests/rtl/test_tensor_array.py` measures the same in the RTL."""
    mixed = replace(VOLTA.array, rows=8)
    narrow = replace(VOLTA, accumulator="fp16", rows=8).array
    assert VOLTA.columns == 16
    assert VOLTA.macs_per_cycle == 64
    assert mixed.step_passes == 2
    assert (mixed.wmma_cycles(16), narrow.wmma_cycles(16)) == (54, 64)
    assert VOLTA.array.set_cycles == VOLTA.rows


def _advancing(self: Any, m: Module) -> None:
    m.d.comb += self.slot_in_block.eq(1)


def _no_mask(self: Any, m: Module) -> None:
    m.d.sync += self.high.eq(self.lanes)


def _dropped_sum_bit(self: Any, m: Module) -> None:
    m.d.comb += self.sums[9].eq(0)


def _dropped_bit(self: Any, m: Module) -> None:
    m.d.comb += self.o[0].eq(0)


def _overwriting(self: Any, m: Module) -> None:
    for half in range(2):
        m.d.comb += m.submodules[f"half_{half}"].write_address.eq(0)


INTEGER_MUTATIONS: dict[str, Patch] = {
    "sums one cycle late": delay("token_delay", 1),
    "sums one cycle early": delay("token_delay", -1),
    "sets one cycle late": delay("flag_delay", 1),
    "sets one cycle early": delay("flag_delay", -1),
    "empty slots walk on": after(Sequencer, _advancing),
    "padding is not masked": after(Window, _no_mask),
    "a dropped bit of the sums": after(TensorArray, _dropped_sum_bit),
    "tiles are always loaded": ignored_credit(0, 2),
    "halves are always free": ignored_credit(2, 2),
    "back-pressure of the output ignored": ignored_credit(8, 8),
}

FLOAT_MUTATIONS: dict[str, Patch] = {
    "a dropped bit of the ofmap": after(FloatRequantize, _dropped_bit),
    "rows of sums in one place": after(FloatAccumulators, _overwriting),
    "sums one cycle late": delay("token_delay", 1),
}


@pytest.mark.parametrize("name", INTEGER_MUTATIONS)
def test_a_fault_in_the_rtl_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    INTEGER_MUTATIONS[name](monkeypatch)
    assert caught(INTEGERS, 60)


FLOATS = replace(INTEGERS, group_columns=1, operand="fp16", accumulator="fp32", length=2)


@pytest.mark.parametrize("name", FLOAT_MUTATIONS)
def test_a_fault_in_a_core_of_floats_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    FLOAT_MUTATIONS[name](monkeypatch)
    assert caught(FLOATS)


@few_or_all_cases
@pytest.mark.parametrize("design", [INTEGERS, FLOATS], ids=["integers", "floats"])
def test_the_untouched_design_passes(design: TensorCore, cases: int) -> None:
    assert not caught(design, cases)


@pytest.mark.parametrize("change", [-1, 1])
@pytest.mark.parametrize("column", ["RESULT_LATENCY", "SLOTS", "ROWS", "OUTPUT_LATENCY"])
def test_every_latency_of_the_model_is_tight(
    column: str, change: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model that believes one cycle (slot, or pixel) more or less differs from the RTL."""
    model_column(TensorCore, column, change)(monkeypatch)
    assert caught(INTEGERS, 60)
