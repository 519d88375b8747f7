"""A sum of products brought together with the sum that it is added to."""

from amaranth.hdl import Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from archsim.arithmetic.float_datapath import FloatDatapath
from rtl.core.float_align import Align
from rtl.hierarchy import place


class FloatLateSum(wiring.Component):
    """total · 2^largest = partial · 2^partial_exponent ± significand · 2^exponent, both cut to the
    larger exponent's aligned fraction bits, towards zero.  Combinational.

    Members
    -------
    partial, partial_exponent: the sum of products, and the exponent of its unit; negative,
    exponent, significand: what it is added to, of the accumulator's format; total, largest: the
    sum and the exponent of its unit.
    """

    partial: Signal
    partial_exponent: Signal
    negative: Signal
    exponent: Signal
    significand: Signal
    total: Signal
    largest: Signal

    def __init__(self, *, datapath: FloatDatapath) -> None:
        self.datapath = datapath
        super().__init__(
            {
                "partial": In(signed(datapath.partial_bits)),
                "partial_exponent": In(datapath.exponent_bits),
                "negative": In(1),
                "exponent": In(datapath.exponent_bits),
                "significand": In(datapath.accumulator_bits),
                "total": Out(signed(datapath.sum_bits)),
                "largest": Out(datapath.exponent_bits),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m, path = Module(), self.datapath
        magnitude = Signal(path.partial_bits - 1)
        parts = (
            ("align_sum", self.partial < 0, magnitude, self.partial_exponent,
             path.rules.aligned_fraction_bits),
            ("align_addend", self.negative, self.significand, self.exponent,
             path.accumulator.fraction_bits),
        )  # fmt: skip
        m.d.comb += [
            magnitude.eq(abs(self.partial)),
            self.largest.eq(
                Mux(self.exponent > self.partial_exponent, self.exponent, self.partial_exponent)
            ),
        ]
        aligned: list[Signal] = []
        for name, negative, significand, exponent, fraction_bits in parts:
            unit = place(
                m, name, Align, significand_bits=len(significand), fraction_bits=fraction_bits,
                aligned_fraction_bits=path.rules.aligned_fraction_bits,
                exponent_bits=path.exponent_bits,
            )  # fmt: skip
            m.d.comb += [
                unit.negative.eq(negative),
                unit.significand.eq(significand),
                unit.distance.eq(self.largest - exponent),
            ]
            aligned.append(unit.o)
        m.d.comb += self.total.eq(aligned[0] + aligned[1])
        return m


__all__ = ["FloatLateSum"]
