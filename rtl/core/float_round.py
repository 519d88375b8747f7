"""A sum of aligned terms made a float again: normalise, round, pack."""

from amaranth.hdl import C, Cat, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from archsim.arithmetic.float_datapath import FloatDatapath
from rtl.hierarchy import place


class LeadingZeros(wiring.Component):
    """o = zeros above the highest one of i, by halves.  What o is for i = 0 does not matter.

    Combinational.
    """

    i: Signal
    o: Signal

    def __init__(self, *, bits: int) -> None:
        self.bits = bits
        self.levels = (bits - 1).bit_length()
        super().__init__({"i": In(bits), "o": Out(max(self.levels, 1))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        rest: Value = Cat(C(0, (1 << self.levels) - self.bits), self.i)
        for level in reversed(range(self.levels)):
            half = 1 << level
            empty = ~rest[half:].any()
            kept = Signal(half, name=f"rest_{level}")
            m.d.comb += [self.o[level].eq(empty), kept.eq(Mux(empty, rest[:half], rest[half:]))]
            rest = kept
        return m


class FloatRound(wiring.Component):
    """o = total · 2^(largest - common_bias - aligned_fraction_bits), rounded to the accumulator.

    A total of 0 is +0; what rounds to 0 keeps its sign; an overflow is infinite.  NaN if `nan` or
    if there are infinities of both signs, else ±∞ if there is one.  Combinational.

    The magnitude is shifted left until its leading one is on top or its exponent field would fall
    to 0 (`room` is the longest shift before that), so that subnormals need no case of their own;
    the pattern is (field - 1) · 2^fraction_bits + significand, into which a carry of rounding
    runs by itself.

    Members
    -------
    total: the sum, signed; largest: exponent of its unit; nan, plus_infinity, minus_infinity:
    whether such a term is in the sum; o: the pattern.
    """

    total: Signal
    largest: Signal
    nan: Signal
    plus_infinity: Signal
    minus_infinity: Signal
    o: Signal

    def __init__(self, *, datapath: FloatDatapath) -> None:
        self.datapath = datapath
        super().__init__(
            {
                "total": In(signed(datapath.sum_bits)),
                "largest": In(datapath.exponent_bits),
                "nan": In(1),
                "plus_infinity": In(1),
                "minus_infinity": In(1),
                "o": Out(datapath.accumulator.bits),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        form, rules = self.datapath.accumulator, self.datapath.rules
        magnitude = Signal(self.datapath.sum_bits - 1)
        m.d.comb += magnitude.eq(abs(self.total))
        significand, field = self._normalised(m, magnitude)
        rounded = self._rounded(significand) if rules.rounding == "nearest_even" else 0
        pattern = Signal(len(field) + form.fraction_bits + 1)
        finite = Signal(form.bits - 1)
        kept = significand[-form.fraction_bits - 1 :]
        m.d.comb += [
            pattern.eq((field << form.fraction_bits) + kept + rounded),
            finite.eq(Mux(pattern > form.infinity, form.infinity, pattern)),
        ]
        vanishes = ~magnitude.any()
        if not rules.subnormal_outputs:
            vanishes |= ~pattern[form.fraction_bits :].any()
        with m.If(vanishes):
            m.d.comb += finite.eq(0)
        m.d.comb += self.o.eq(Cat(finite, self.total < 0))
        with m.If(self.plus_infinity | self.minus_infinity):
            m.d.comb += self.o.eq(Cat(C(form.infinity, form.bits - 1), self.minus_infinity))
        with m.If(self.nan | (self.plus_infinity & self.minus_infinity)):
            m.d.comb += self.o.eq(form.nan)
        return m

    def _normalised(self, m: Module, magnitude: Signal) -> tuple[Value, Signal]:
        """The magnitude, its leading one on top or subnormal, and the exponent field less 1."""
        datapath = self.datapath
        below = datapath.underflow_bits
        zeros = place(m, "leading_zeros", LeadingZeros, bits=len(magnitude))
        offset = datapath.top_exponent_offset - 1 + below
        room = Signal(range((1 << datapath.exponent_bits) + max(offset, 0)))
        field = Signal.like(room)
        word = Signal(len(magnitude) + below)
        shift = Signal(range(len(word)))
        wanted = zeros.o + below
        m.d.comb += [
            zeros.i.eq(magnitude),
            room.eq(self.largest + offset),
            shift.eq(Mux(wanted < room, wanted, room)),
            field.eq(room - shift),
            word.eq(magnitude << shift),
        ]
        missing = max(datapath.accumulator_bits - len(word), 0)
        return Cat(C(0, missing), word), field

    def _rounded(self, significand: Value) -> Value:
        """1 where the dropped bits are more than half a unit, or half of it above an odd number."""
        dropped = len(significand) - self.datapath.accumulator_bits
        if dropped == 0:
            return C(0, 1)
        odd, half = significand[dropped], significand[dropped - 1]
        return half & (odd | significand[: dropped - 1].any())
