"""Terms of a sum brought to the exponent of the largest."""

from amaranth.hdl import Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out


class MaximumExponent(wiring.Component):
    """o = max i, by a tree of comparisons.  Combinational.

    Members
    -------
    i: lanes of `bits`, lane 0 lowest, unsigned; o: the largest.
    """

    i: Signal
    o: Signal

    def __init__(self, *, lanes: int, bits: int) -> None:
        self.lanes = lanes
        self.bits = bits
        super().__init__({"i": In(lanes * bits), "o": Out(bits)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        lanes: list[Value] = [self.i.word_select(lane, self.bits) for lane in range(self.lanes)]
        while len(lanes) > 1:
            larger = [Mux(x > y, x, y) for x, y in zip(lanes[::2], lanes[1::2], strict=False)]
            lanes = [*larger, *lanes[len(larger) * 2 :]]
        m.d.comb += self.o.eq(lanes[0])
        return m


class Align(wiring.Component):
    """o = ±⌊significand · 2^(aligned_fraction_bits - fraction_bits - distance)⌋.

    What is shifted out is dropped: towards zero.  Combinational.

    Members
    -------
    negative, significand: of the term; distance: the largest exponent less the term's; o: signed,
    a bit more than its magnitude has at distance 0.
    """

    negative: Signal
    significand: Signal
    distance: Signal
    o: Signal

    def __init__(
        self,
        *,
        significand_bits: int,
        fraction_bits: int,
        aligned_fraction_bits: int,
        exponent_bits: int,
    ) -> None:
        self.gained_bits = aligned_fraction_bits - fraction_bits
        super().__init__(
            {
                "negative": In(1),
                "significand": In(significand_bits),
                "distance": In(exponent_bits),
                "o": Out(signed(significand_bits + self.gained_bits + 1)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        magnitude = Signal(len(self.o) - 1)
        gained, lost = max(self.gained_bits, 0), max(-self.gained_bits, 0)
        m.d.comb += [
            magnitude.eq(((self.significand << gained) >> lost) >> self.distance),
            self.o.eq(Mux(self.negative, -magnitude, magnitude)),
        ]
        return m
