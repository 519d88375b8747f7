"""The dot-product unit without a second factor: the unit with ones, and faults are caught."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

# The stubs leave rtlil out.
from amaranth.back import rtlil  # pyright: ignore[reportAttributeAccessIssue]
from amaranth.hdl import Module
from amaranth.sim import Simulator
from dot_product_bench import E2M1, E3M2, late_line
from faults import Patch
from float_strategies import any_format, any_rules
from hypothesis import given, settings
from hypothesis import strategies as st

from archsim.arithmetic.cases import RULES, random_operands
from archsim.arithmetic.dot_product import DotProduct
from archsim.arithmetic.float_datapath import FloatRules
from archsim.arithmetic.float_sum import FloatOutput, adder, one_of
from archsim.arithmetic.formats import FP16, FP32, FloatFormat
from archsim.numbers import IntArray
from rtl.core.dot_product import FloatDotProduct


def sums_of_operands(design: DotProduct, a: IntArray, c: IntArray) -> dict[str, list[int]]:
    """o in every cycle of two units, of operands that come one a cycle: with ones, and by one."""
    m = Module()
    ones: Any = FloatDotProduct(design=design)
    by_one: Any = FloatDotProduct(design=design, by_one=True)
    m.submodules.ones, m.submodules.by_one = ones, by_one
    bits, lanes = design.operand.bits, range(design.length)
    one = one_of(design.datapath.operand)
    factors = sum(one << (lane * bits) for lane in lanes)
    m.d.comb += [ones.a.eq(by_one.a), ones.b.eq(factors), ones.c.eq(by_one.c)]
    shown: dict[str, list[int]] = {"ones": [], "by_one": []}

    async def bench(context: Any) -> None:
        for cycle in range(len(c) + design.latency_cycles):
            n = min(cycle, len(c) - 1)
            word = sum(int(a[n, lane]) << (lane * bits) for lane in lanes)
            context.set(by_one.a, word)
            context.set(by_one.c, int(c[n]))
            shown["ones"].append(context.get(ones.o))
            shown["by_one"].append(context.get(by_one.o))
            await context.tick()

    simulator = Simulator(m)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return shown


def check_by_one(design: DotProduct, a: IntArray, c: IntArray) -> None:
    """By one it is the unit with ones in every cycle, and both are the model."""
    shown = sums_of_operands(design, a, c)
    ones = np.full(a.shape, one_of(design.datapath.operand))
    assert shown["by_one"] == shown["ones"]
    assert shown["by_one"][design.latency_cycles :] == design.compute(a, ones, c).tolist()


def by_one_operands(design: DotProduct, count: int, seed: int) -> tuple[IntArray, IntArray]:
    """a and c: a third cancel, c being the negative of lane 0 as near as it goes; then every pair
    of 0, 1, ∞ and NaN of both signs, in lane 0 alone and in c."""
    made = random_operands(design, count, seed)
    rng, c = np.random.default_rng(seed), made.c.copy()
    operand, accumulator = design.datapath.operand, design.datapath.accumulator
    with np.errstate(all="ignore"):
        opposite = accumulator.encode(-operand.decode(made.a[:, 0]))
    chosen = rng.integers(0, 3, len(c)) == 0
    c[chosen] = (opposite ^ rng.integers(0, 4, len(c)))[chosen]
    lanes, added = np.meshgrid(*(_special(form) for form in (operand, accumulator)))
    pairs = np.zeros((lanes.size, design.length), np.int64)
    pairs[:, 0] = lanes.reshape(-1)
    return np.concatenate([made.a, pairs]), np.concatenate([c, added.reshape(-1)])


def _special(form: FloatFormat) -> IntArray:
    positive = np.array([0, one_of(form), form.infinity, form.nan])
    return np.concatenate([positive, positive | form.sign_mask])


@settings(max_examples=20)
@given(
    operand=any_format(15), accumulator=any_format(23), rules=any_rules, length=st.integers(1, 9)
)
def test_by_one_is_the_unit_with_ones(
    operand: FloatFormat, accumulator: FloatFormat, rules: FloatRules, length: int
) -> None:
    design = DotProduct(length=length, operand=operand, accumulator=accumulator, rules=rules)
    check_by_one(design, *by_one_operands(design, 6, seed=length))


@pytest.mark.parametrize("rules", RULES)
def test_by_one_every_pattern_of_a_small_format(rules: FloatRules) -> None:
    """All 2^10 pairs of an operand and what it is added to."""
    design = DotProduct(length=1, operand=E3M2, accumulator=E2M1, rules=rules)
    every = np.arange(1 << 10)
    check_by_one(design, every[:, None] & 63, every >> 6)


ADDERS = {
    "adder": adder(FP32, FloatRules()),
    "narrowing": FloatOutput(accumulator=FP32, ofmap=FP16).unit,
    "late": DotProduct(length=3, rules=FloatRules(accumulator_joins=False)),
}
"""As a core has them, and one whose accumulator joins late."""


@pytest.mark.parametrize("name", ADDERS)
def test_by_one_in_a_core(name: str) -> None:
    check_by_one(ADDERS[name], *by_one_operands(ADDERS[name], 60, seed=4))


def test_by_one_has_no_second_factor() -> None:
    """Neither a port nor, anywhere in it, a multiplication."""
    for by_one in (False, True):
        unit = FloatDotProduct(design=ADDERS["narrowing"], by_one=by_one)
        text = rtlil.convert(unit, name="top", emit_src=False)
        assert ("b" in unit.signature.members) != by_one
        assert ("$mul" in text) != by_one


def _term(change: Callable[[Any], Any]) -> Patch:
    """Another output of the operands taken apart, by name, and not of the accumulator."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        plain = FloatDotProduct._term

        def mutated(self: Any, m: Module, lane: int) -> Any:
            term = plain(self, m, lane)
            elaborate = term.elaborate

            def changed(platform: object) -> Module:
                within = elaborate(platform)
                within.d.comb += change(term)
                return within

            term.elaborate = changed
            return term

        monkeypatch.setattr(FloatDotProduct, "_term", mutated)

    return patch


def _fraction_of_a_product(monkeypatch: pytest.MonkeyPatch) -> None:
    """Operands are aligned as if their significands had the fraction bits of products."""
    plain = FloatDotProduct._aligned

    def mutated(self: Any, m: Module, name: str, term: Any, largest: Any) -> Any:
        if name == "align_0":
            term = replace(term, fraction_bits=term.fraction_bits + 1)
        return plain(self, m, name, term, largest)

    monkeypatch.setattr(FloatDotProduct, "_aligned", mutated)


BY_ONE_FAULTS: dict[str, Patch] = {
    "an operand one cycle late": late_line("term_0", 1),
    "infinities one cycle early": late_line("specials_delay", -1),
    "an exponent one too large": _term(lambda term: term.exponent[0].eq(1)),
    "an exponent without its offset": _term(
        lambda term: term.exponent.eq(term.i[term.form.fraction_bits : -1])
    ),
    "a significand without its lowest bit": _term(lambda term: term.significand[0].eq(0)),
    "a significand without its leading one": _term(lambda term: term.significand[-1].eq(0)),
    "a sign ignored": _term(lambda term: term.negative.eq(0)),
    "an infinity ignored": _term(lambda term: term.infinite.eq(0)),
    "a NaN ignored": _term(lambda term: term.nan.eq(0)),
    "fraction bits of another width": _fraction_of_a_product,
}


@pytest.mark.parametrize("name", BY_ONE_FAULTS)
@pytest.mark.parametrize("unit", ["adder", "narrowing"])
def test_a_fault_by_one_is_caught(name: str, unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a fault the same operands show none: `test_by_one_in_a_core`."""
    BY_ONE_FAULTS[name](monkeypatch)
    design = ADDERS[unit]
    with pytest.raises(AssertionError):
        check_by_one(design, *by_one_operands(design, 60, seed=4))
