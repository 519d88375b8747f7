"""The dot-product unit's RTL: bit for bit and cycle for cycle the model."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from amaranth.sim import Simulator
from dot_product_bench import E2M1, E3M2, compiled, differences, simulated
from float_strategies import any_format, any_rules
from hypothesis import given, settings
from hypothesis import strategies as st

from archsim.arithmetic.cases import RULES, every_operand, random_operands
from archsim.arithmetic.dot_product import INT8_DOT, VOLTA_FP16, VOLTA_FP32, DotProduct
from archsim.arithmetic.float_datapath import FloatRules
from archsim.arithmetic.formats import BF16, FP16, FP32, INT4, FloatFormat, IntegerFormat
from rtl.core.dot_product import DotProductUnit


@pytest.mark.parametrize("rules", RULES)
def test_every_pattern_of_a_small_format(rules: FloatRules) -> None:
    design = DotProduct(length=1, operand=E2M1, accumulator=E2M1, rules=rules)
    assert differences(design, every_operand(design), simulated(design)) == []


@pytest.mark.parametrize("accumulator", [FP16, FP32])
@pytest.mark.parametrize("rules", RULES)
def test_random_operands_aimed_at_corners(rules: FloatRules, accumulator: FloatFormat) -> None:
    design = DotProduct(accumulator=accumulator, rules=rules)
    operands = random_operands(design, 25, seed=1)
    assert differences(design, operands, simulated(design)) == []


@pytest.mark.parametrize("length", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("design", [VOLTA_FP32, VOLTA_FP16, INT8_DOT])
def test_any_length(design: DotProduct, length: int) -> None:
    design = replace(design, length=length)
    operands = random_operands(design, 12, seed=length)
    assert differences(design, operands, simulated(design), gaps=3) == []


@pytest.mark.parametrize(("operand", "accumulator"), [(BF16, FP32), (E3M2, FP16), (FP16, E3M2)])
def test_other_floats(operand: FloatFormat, accumulator: FloatFormat) -> None:
    for rounding in ("truncate", "nearest_even"):
        rules = FloatRules(aligned_fraction_bits=25, rounding=rounding)
        design = DotProduct(length=2, operand=operand, accumulator=accumulator, rules=rules)
        operands = random_operands(design, 40, seed=2)
        assert differences(design, operands, simulated(design)) == []


@settings(max_examples=30)
@given(
    operand=any_format(10), accumulator=any_format(23), rules=any_rules, length=st.integers(1, 9)
)
def test_any_formats_and_rules(
    operand: FloatFormat, accumulator: FloatFormat, rules: FloatRules, length: int
) -> None:
    design = DotProduct(length=length, operand=operand, accumulator=accumulator, rules=rules)
    operands = random_operands(design, 8, seed=length)
    assert differences(design, operands, simulated(design)) == []


@pytest.mark.parametrize("bits", [6, 32])
def test_integers_wrap(bits: int) -> None:
    accumulator = IntegerFormat(bits=bits)
    design = DotProduct(length=4, operand=INT4, accumulator=accumulator, rules=None)
    operands = random_operands(design, 200, seed=bits)
    assert differences(design, operands, simulated(design)) == []


@pytest.mark.slow
@pytest.mark.parametrize("length", [1, 2])
@pytest.mark.parametrize("rules", RULES)
def test_every_pattern_at_full_speed(rules: FloatRules, length: int) -> None:
    """All 2^18 or 2^20 combinations, in the emitted Verilog."""
    accumulator = E3M2 if length == 1 else E2M1
    operand = E3M2 if length == 1 else E2M1
    design = DotProduct(length=length, operand=operand, accumulator=accumulator, rules=rules)
    assert differences(design, every_operand(design), compiled(design)) == []


@pytest.mark.slow
@pytest.mark.parametrize("design", [VOLTA_FP32, VOLTA_FP16, INT8_DOT, replace(INT8_DOT, length=16)])
def test_many_random_operands(design: DotProduct) -> None:
    """700,000 floats or 200,000 integers, in the emitted Verilog."""
    operands = random_operands(design, 100_000, seed=5)
    assert differences(design, operands, compiled(design), gaps=1) == []


@pytest.mark.parametrize("length", [1, 4, 6])
@pytest.mark.parametrize("design", [VOLTA_FP32, INT8_DOT])
def test_the_result_is_there_at_its_latency_and_no_cycle_before(
    design: DotProduct, length: int
) -> None:
    """Operands of 1 for one cycle, of 0 otherwise: what o shows, whatever valid says."""
    design = replace(design, length=length)
    unit = DotProductUnit(design=design)
    shown: list[int] = []
    one = 1 if design.rules is None else 0x3C00
    ones = sum(one << (lane * design.operand.bits) for lane in range(length))
    start = 3

    async def bench(context: Any) -> None:
        for cycle in range(20):
            context.set(unit.a, ones if cycle == start else 0)
            context.set(unit.b, ones if cycle == start else 0)
            shown.append(context.get(unit.o))
            await context.tick()

    simulator = Simulator(unit)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    total = length if design.rules is None else int(FP32.encode(np.array([float(length)]))[0])
    assert [(cycle, o) for cycle, o in enumerate(shown) if o] == [
        (start + design.latency_cycles, total)
    ]
