"""Faults put into the dot-product unit's RTL are caught."""

from collections.abc import Callable
from typing import Any

import pytest
from amaranth.hdl import C, Cat, Module
from dot_product_bench import differences, late_line, simulated
from faults import Patch, after, drive

from archsim.arithmetic.cases import random_operands
from archsim.arithmetic.dot_product import INT8_DOT, VOLTA_FP16, VOLTA_FP32, DotProduct
from rtl.core.adder_tree import AdderTree
from rtl.core.float_align import Align, MaximumExponent
from rtl.core.float_product import FloatAddend, FloatProduct, FloatUnpack
from rtl.core.float_round import FloatRound, LeadingZeros


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
    "valid one cycle late": (VOLTA_FP32, late_line("valid_delay", 1)),
    "valid one cycle early": (VOLTA_FP32, late_line("valid_delay", -1)),
    "a product one cycle late": (VOLTA_FP32, late_line("term_2", 1)),
    "the accumulator one cycle late": (VOLTA_FP32, late_line("addend_delay", 1)),
    "the largest exponent one cycle late": (VOLTA_FP32, late_line("largest_delay", 1)),
    "infinities one cycle early": (VOLTA_FP32, late_line("specials_delay", -1)),
    "an integer accumulator one cycle late": (INT8_DOT, late_line("c_delay", 1)),
    "a bit dropped in the alignment": (
        VOLTA_FP32,
        after(Align, lambda self, m: drive(m, self.o[0], 0)),
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
        after(FloatProduct, lambda self, m: drive(m, self.nan, 0)),
    ),
    "an infinite accumulator ignored": (
        VOLTA_FP32,
        after(FloatAddend, lambda self, m: drive(m, self.infinite, 0)),
    ),
    "odd shifts of the normaliser": (
        VOLTA_FP32,
        after(LeadingZeros, lambda self, m: drive(m, self.o[0], 0)),
    ),
    "a sign lost in the tree": (
        VOLTA_FP32,
        after(AdderTree, lambda self, m: drive(m, self.o[-1], 0)),
    ),
}


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
