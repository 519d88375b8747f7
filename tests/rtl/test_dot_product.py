"""The dot-product unit's RTL: bit for bit and cycle for cycle the model, and faults are caught."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

# The stubs leave rtlil out.
from amaranth.back import rtlil  # pyright: ignore[reportAttributeAccessIssue]
from amaranth.back.verilog import (
    _convert_rtlil_text as rtlil_to_verilog,  # pyright: ignore[reportAttributeAccessIssue]
)
from amaranth.hdl import C, Cat, Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator
from faults import Patch, after
from hypothesis import given, settings
from hypothesis import strategies as st

from archsim.arithmetic.cases import RULES, Operands, every_operand, random_operands
from archsim.arithmetic.dot_product import INT8_DOT, VOLTA_FP16, VOLTA_FP32, DotProduct
from archsim.arithmetic.float_datapath import FloatRules
from archsim.arithmetic.float_sum import FloatOutput, adder, one_of
from archsim.arithmetic.formats import BF16, FP16, FP32, INT4, FloatFormat, IntegerFormat
from archsim.numbers import IntArray, pack_lanes
from rtl.benches.amaranth_bench import run_amaranth
from rtl.benches.bench import Bench, Outcome, Stimulus, StreamPort
from rtl.benches.verilated import Verilated
from rtl.benches.words import unpack_words
from rtl.core import dot_product
from rtl.core.adder_tree import AdderTree
from rtl.core.dot_product import DotProductUnit, FloatDotProduct
from rtl.core.float_align import Align, MaximumExponent
from rtl.core.float_product import FloatAddend, FloatProduct, FloatUnpack
from rtl.core.float_round import FloatRound, LeadingZeros
from rtl.hierarchy import place, sharing

E2M1 = FloatFormat(exponent_bits=2, fraction_bits=1)
E3M2 = FloatFormat(exponent_bits=3, fraction_bits=2)


class Streamed(wiring.Component):
    """The unit between two streams: it takes a word {c, b, a} whenever there is one.

    What comes out must be accepted at once, since the unit never stalls.
    """

    def __init__(self, design: DotProduct) -> None:
        self.design = design
        bits = 2 * design.length * design.operand.bits + design.accumulator.bits
        super().__init__(
            {
                "i": In(stream.Signature(bits)),
                "o": Out(stream.Signature(design.accumulator.bits)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        unit = place(m, "unit", DotProductUnit, design=self.design)
        ports: Any = self
        lanes = len(unit.a)
        m.d.comb += [
            ports.i.ready.eq(1),
            unit.valid_i.eq(ports.i.valid),
            unit.a.eq(ports.i.payload[:lanes]),
            unit.b.eq(ports.i.payload[lanes : 2 * lanes]),
            unit.c.eq(ports.i.payload[2 * lanes :]),
            ports.o.valid.eq(unit.valid_o),
            ports.o.payload.eq(unit.o),
        ]
        return m


Run = Callable[[Bench], Outcome]


def simulated(design: DotProduct) -> Run:
    return lambda bench: run_amaranth(Streamed(design), bench)


def compiled(design: DotProduct) -> Run:
    """What is emitted: each repeated module once."""
    with sharing() as library:
        top = rtlil.convert(Streamed(design), name="top", emit_src=False)
    return Verilated(rtlil_to_verilog("\n".join([top, *library.texts.values()]))).run


def differences(design: DotProduct, operands: Operands, run: Run, gaps: int = 0) -> list[str]:
    """What differs between RTL and model: words, or the cycles from operands to result."""
    lane_bits = (design.operand.bits,) * (2 * design.length) + (design.accumulator.bits,)
    words = pack_lanes(np.column_stack(operands), lane_bits)
    n = len(words)
    waits = np.random.default_rng(n).integers(0, gaps + 1, n)
    bench = Bench(
        ports=(
            StreamPort(name="i", direction="i", bits=sum(lane_bits)),
            StreamPort(name="o", direction="o", bits=lane_bits[-1]),
        ),
        stimuli={"i": Stimulus.offer(words, gaps=waits), "o": Stimulus.accept(n)},
        max_cycles=(n + 20) * (gaps + 2),
        tail_cycles=8,
    )
    outcome = run(bench)
    into, out = outcome.crossings["i"], outcome.crossings["o"]
    found: list[str] = []
    if not np.array_equal(out.cycles, into.cycles + design.latency_cycles):
        found.append("cycles")
    if not np.array_equal(unpack_words(out.words), design.compute(*operands)):
        found.append("words")
    return found


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


any_rules = st.builds(
    FloatRules,
    aligned_fraction_bits=st.integers(0, 40),
    rounding=st.sampled_from(["truncate", "nearest_even"]),
    accumulator_joins=st.booleans(),
    subnormal_inputs=st.booleans(),
    subnormal_outputs=st.booleans(),
)


def any_format(fraction_bits: int) -> st.SearchStrategy[FloatFormat]:
    """Formats of up to so many bits of fraction."""
    return st.builds(
        FloatFormat, exponent_bits=st.integers(2, 8), fraction_bits=st.integers(1, fraction_bits)
    )


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


def _delay(name: str, change: int) -> Patch:
    """The named delay line takes some cycles more."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        plain = dot_product._delayed

        def mutated(m: Module, line: str, value: Any, cycles: int) -> Any:
            return plain(m, line, value, cycles + change * (line == name))

        monkeypatch.setattr(dot_product, "_delayed", mutated)

    return patch


def _ignored_lane(lane: int) -> Patch:
    """The tree of exponents does not look at a lane."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        plain = MaximumExponent.elaborate

        def mutated(self: Any, platform: object) -> Module:
            low, high = lane * self.bits, (lane + 1) * self.bits
            self.i = Cat(self.i[:low], C(0, self.bits), self.i[high:])
            return plain(self, platform)

        monkeypatch.setattr(MaximumExponent, "elaborate", mutated)

    return patch


def _rounding(method: Callable[[Any, Any, int], Any]) -> Patch:
    """Rounding up by another rule: of the unit, the significand and how many bits are dropped."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        def mutated(self: Any, significand: Any) -> Any:
            return method(self, significand, len(significand) - self.datapath.accumulator_bits)

        monkeypatch.setattr(FloatRound, "_rounded", mutated)

    return patch


def _exponent_of_zero(self: Any, m: Module) -> None:
    m.d.comb += self.exponent[0].eq(1)


def _exponent_of_subnormals(self: Any, m: Module) -> None:
    m.d.comb += self.exponent.eq(self.i[self.form.fraction_bits : -1])


MUTATIONS: dict[str, tuple[DotProduct, Patch]] = {
    "valid one cycle late": (VOLTA_FP32, _delay("valid_delay", 1)),
    "valid one cycle early": (VOLTA_FP32, _delay("valid_delay", -1)),
    "a product one cycle late": (VOLTA_FP32, _delay("term_2", 1)),
    "the accumulator one cycle late": (VOLTA_FP32, _delay("addend_delay", 1)),
    "the largest exponent one cycle late": (VOLTA_FP32, _delay("largest_delay", 1)),
    "infinities one cycle early": (VOLTA_FP32, _delay("specials_delay", -1)),
    "an integer accumulator one cycle late": (INT8_DOT, _delay("c_delay", 1)),
    "a bit dropped in the alignment": (
        VOLTA_FP32,
        after(Align, lambda self, m: _set(m, self.o[0], 0)),
    ),
    "rounding without a sticky bit": (
        VOLTA_FP16,
        _rounding(lambda self, s, dropped: s[dropped - 1] & s[dropped]),
    ),
    "ties rounded up": (VOLTA_FP16, _rounding(lambda self, s, dropped: s[dropped - 1])),
    "ties rounded down": (
        VOLTA_FP16,
        _rounding(lambda self, s, dropped: s[dropped - 1] & s[: dropped - 1].any()),
    ),
    "the accumulator's exponent ignored": (VOLTA_FP32, _ignored_lane(4)),
    "lane 0's exponent ignored": (VOLTA_FP32, _ignored_lane(0)),
    "subnormals a power of two too small": (
        VOLTA_FP16,
        after(FloatUnpack, _exponent_of_subnormals),
    ),
    "a zero product with an exponent": (VOLTA_FP32, after(FloatProduct, _exponent_of_zero)),
    "0 · ∞ is no NaN": (
        VOLTA_FP32,
        after(FloatProduct, lambda self, m: _set(m, self.nan, 0)),
    ),
    "an infinite accumulator ignored": (
        VOLTA_FP32,
        after(FloatAddend, lambda self, m: _set(m, self.infinite, 0)),
    ),
    "odd shifts of the normaliser": (
        VOLTA_FP32,
        after(LeadingZeros, lambda self, m: _set(m, self.o[0], 0)),
    ),
    "a sign lost in the tree": (
        VOLTA_FP32,
        after(AdderTree, lambda self, m: _set(m, self.o[-1], 0)),
    ),
}


def _set(m: Module, target: Any, value: int) -> None:
    m.d.comb += target.eq(value)


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
    "an operand one cycle late": _delay("term_0", 1),
    "infinities one cycle early": _delay("specials_delay", -1),
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


def test_by_one_has_no_second_factor() -> None:
    """Neither a port nor, anywhere in it, a multiplication."""
    for by_one in (False, True):
        unit = FloatDotProduct(design=ADDERS["narrowing"], by_one=by_one)
        text = rtlil.convert(unit, name="top", emit_src=False)
        assert ("b" in unit.signature.members) != by_one
        assert ("$mul" in text) != by_one


def _caught(design: DotProduct) -> bool:
    return differences(design, random_operands(design, 30, seed=8), simulated(design)) != []


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_fault_in_the_rtl_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    design, patch = MUTATIONS[name]
    patch(monkeypatch)
    assert _caught(design)


@pytest.mark.parametrize("design", [VOLTA_FP32, VOLTA_FP16, INT8_DOT])
def test_the_untouched_unit_passes(design: DotProduct) -> None:
    """The same operands show no difference without a fault, so the tests above mean something."""
    assert not _caught(design)


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
