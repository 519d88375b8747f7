"""What is proved of the rounding of floats: the answer is the nearest number that there is.

The account knows what value a pattern stands for, and nothing of normalising.
"""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Assume, Const, Module, Mux, Signal, Value, signed
from unit_proofs import Proof

from archsim.arithmetic.float_datapath import FloatDatapath
from rtl.formal import claim, named


class FloatRoundProof(Proof):
    """Of a sum the pattern whose value is nearest, of two the even one; or, truncated, the largest
    that is not above it.  Behind the largest one stands infinity, where the next would be.

    Sums are those of terms: where they are not 0, the largest exponent is one that a term has, and
    they are never the lowest number of their bits.
    """

    def __init__(self, unit: Any, *, datapath: FloatDatapath) -> None:
        self.datapath = datapath
        super().__init__(
            unit, total=signed(datapath.sum_bits), largest=datapath.exponent_bits, nan=1, plus=1,
            minus=1,
        )  # fmt: skip

    def elaborate(self, platform: object) -> Module:
        m = Module()
        form, rules = self.datapath.accumulator, self.datapath.rules
        unit = self.unit.FloatRound(datapath=self.datapath)
        m.submodules.unit = unit
        free = self.free
        m.d.comb += [
            unit.total.eq(free.total), unit.largest.eq(free.largest), unit.nan.eq(free.nan),
            unit.plus_infinity.eq(free.plus), unit.minus_infinity.eq(free.minus),
            Assume((free.total == 0) | (free.largest >= self._least_exponent), "exponent"),
            Assume(free.total != -(1 << (self.datapath.sum_bits - 1)), "total"),
        ]  # fmt: skip
        size, found = named(m, "size", self._size(m)), unit.o[:-1]
        finite = ~(free.nan | free.plus | free.minus)
        below, here, above = (
            named(m, name, self._value(found + step))
            for name, step in (("below", -1), ("here", 0), ("above", 1))
        )
        largest = found == form.infinity
        if rules.rounding == "truncate":
            low, high = here <= size, size < above
        else:
            even = ~found[0]
            low = (2 * size > below + here) | ((2 * size == below + here) & even)
            high = (2 * size < here + above) | ((2 * size == here + above) & even)
        first = 1 << form.fraction_bits
        if not rules.subnormal_outputs:
            edge = self._value(Const(first, form.bits))
            if rules.rounding == "truncate":
                small = size < edge
            else:
                small = 2 * size < self._value(Const(first - 1, form.bits)) + edge
            m.d.comb += [
                claim(m, "zero", ~finite | ((found == 0) == small)),
                claim(m, "normal", ~finite | (found == 0) | (found >= first)),
            ]
            high |= found == 0
        sign = unit.o[-1] == (free.total < 0)
        no_number = free.nan | (free.plus & free.minus)
        infinite = Mux(free.minus, form.infinity | form.sign_mask, form.infinity)
        m.d.comb += [
            claim(m, "not_too_large", ~finite | (found == 0) | low),
            claim(m, "not_too_small", ~finite | largest | high),
            claim(m, "sign", ~finite | sign),
            claim(m, "limit", ~finite | (found <= form.infinity)),
            claim(m, "nan", ~no_number | (unit.o == form.nan)),
            claim(m, "infinite", finite | no_number | (unit.o == infinite)),
        ]
        return m

    @property
    def _least_exponent(self) -> int:
        datapath = self.datapath
        return min(2 + datapath.product_offset, 1 + datapath.accumulator_offset)

    @property
    def _scale(self) -> int:
        """Binary places between a step of the sum at exponent 0 and the least subnormal."""
        datapath, form = self.datapath, self.datapath.accumulator
        offset = form.bias + form.fraction_bits - 1
        return offset - datapath.common_bias - datapath.rules.aligned_fraction_bits

    def _size(self, m: Module) -> Value:
        """The sum without its sign, in steps of which subnormals are whole numbers."""
        magnitude = Signal(self.datapath.sum_bits)
        m.d.comb += magnitude.eq(abs(self.free.total))
        return (magnitude << self.free.largest) << max(self._scale, 0)

    def _value(self, pattern: Value) -> Value:
        """What a pattern without a sign stands for, in the same steps."""
        bits = self.datapath.accumulator.fraction_bits
        field, fraction = pattern[bits : bits + 9], pattern[:bits]
        normal = ((1 << bits) + fraction) << (field - 1)[: len(field)]
        return Mux(field == 0, fraction, normal) << max(-self._scale, 0)
