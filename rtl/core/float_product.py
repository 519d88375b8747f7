"""Floats taken apart and multiplied: the terms that `archsim.arithmetic.float_datapath` defines."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from archsim.arithmetic.float_datapath import FloatDatapath
from archsim.arithmetic.formats import FloatFormat
from rtl.hierarchy import place


class FloatUnpack(wiring.Component):
    """i = ±significand · 2^(exponent - bias - fraction_bits), or infinite, or NaN.

    A subnormal has the exponent 1 and no leading one (or is a zero, without `subnormals`); a zero
    has the exponent 0.  Combinational.

    Members
    -------
    i: a pattern; negative, exponent, significand, infinite, nan: what it stands for.
    """

    i: Signal
    negative: Signal
    exponent: Signal
    significand: Signal
    infinite: Signal
    nan: Signal

    def __init__(self, *, form: FloatFormat, subnormals: bool) -> None:
        self.form = form
        self.subnormals = subnormals
        super().__init__(
            {
                "i": In(form.bits),
                "negative": Out(1),
                "exponent": Out(form.exponent_bits),
                "significand": Out(form.fraction_bits + 1),
                "infinite": Out(1),
                "nan": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        fraction_bits = self.form.fraction_bits
        fraction, field = self.i[:fraction_bits], self.i[fraction_bits:-1]
        normal, special = field.any(), field.all()
        m.d.comb += [
            self.negative.eq(self.i[-1]),
            self.significand.eq(Cat(fraction, normal)),
            self.exponent.eq(Mux(normal, field, self.significand.any())),
            self.infinite.eq(special & ~fraction.any()),
            self.nan.eq(special & fraction.any()),
        ]
        if not self.subnormals:
            m.d.comb += self.significand.eq(Mux(normal, Cat(fraction, normal), 0))
        return m


class FloatProduct(wiring.Component):
    """±significand · 2^(exponent - common_bias - product_fraction_bits) = a · b, exactly.

    0 · ∞ is NaN.  A product of zero has the exponent 0.  Combinational.

    Members
    -------
    a, b: patterns of the operand's format; negative, exponent, significand, infinite, nan: the
    product as a term of the sum.
    """

    a: Signal
    b: Signal
    negative: Signal
    exponent: Signal
    significand: Signal
    infinite: Signal
    nan: Signal

    def __init__(self, *, datapath: FloatDatapath) -> None:
        self.datapath = datapath
        bits = datapath.operand.bits
        super().__init__(
            {
                "a": In(bits),
                "b": In(bits),
                "negative": Out(1),
                "exponent": Out(datapath.exponent_bits),
                "significand": Out(datapath.product_bits),
                "infinite": Out(1),
                "nan": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        form, subnormals = self.datapath.operand, self.datapath.rules.subnormal_inputs
        a = place(m, "a_parts", FloatUnpack, form=form, subnormals=subnormals)
        b = place(m, "b_parts", FloatUnpack, form=form, subnormals=subnormals)
        exponent = a.exponent + b.exponent + self.datapath.product_offset
        a_zero, b_zero = ~a.significand.any(), ~b.significand.any()
        zero_times_infinity = (a_zero & b.infinite) | (b_zero & a.infinite)
        m.d.comb += [
            a.i.eq(self.a),
            b.i.eq(self.b),
            self.negative.eq(a.negative ^ b.negative),
            self.exponent.eq(Mux(a_zero | b_zero, 0, exponent)),
            self.significand.eq(a.significand * b.significand),
            self.infinite.eq(a.infinite | b.infinite),
            self.nan.eq(a.nan | b.nan | zero_times_infinity),
        ]
        return m


class FloatAddend(wiring.Component):
    """±significand · 2^(exponent - common_bias - form.fraction_bits) = i, exactly.

    A value of zero has the exponent 0.  Of the accumulator's format it is the accumulator; of the
    operand's it is what `FloatProduct` makes of a = i and b = 1.0, without the zeros below its
    significand, which is in [0, 2).  Combinational.

    Members
    -------
    i: a pattern of the format; negative, exponent, significand, infinite, nan: the term.
    """

    i: Signal
    negative: Signal
    exponent: Signal
    significand: Signal
    infinite: Signal
    nan: Signal

    def __init__(self, *, datapath: FloatDatapath, form: FloatFormat) -> None:
        self.datapath = datapath
        self.form = form
        super().__init__(
            {
                "i": In(form.bits),
                "negative": Out(1),
                "exponent": Out(datapath.exponent_bits),
                "significand": Out(1 + form.fraction_bits),
                "infinite": Out(1),
                "nan": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        form, subnormals = self.form, self.datapath.rules.subnormal_inputs
        parts = place(m, "parts", FloatUnpack, form=form, subnormals=subnormals)
        exponent = parts.exponent + (self.datapath.common_bias - form.bias)
        m.d.comb += [
            parts.i.eq(self.i),
            self.negative.eq(parts.negative),
            self.exponent.eq(Mux(parts.significand.any(), exponent, 0)),
            self.significand.eq(parts.significand),
            self.infinite.eq(parts.infinite),
            self.nan.eq(parts.nan),
        ]
        return m
