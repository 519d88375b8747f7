"""The sums of floats of a PE's segment: of a dot product's steps, and of a tile's outputs."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data

from archsim.arithmetic.float_datapath import FloatDatapath
from archsim.machines.sparsetrain.design import SparseTrain
from rtl.core.float_late_sum import FloatLateSum
from rtl.core.float_product import FloatAddend
from rtl.core.float_round import FloatRound
from rtl.core.train_sums import SegmentSums
from rtl.hierarchy import place


def partial_layout(path: FloatDatapath) -> data.StructLayout:
    """The sum of a step's products: `total` in units of `largest`; whether a NaN, a +∞ or a −∞ is
    among them."""
    return data.StructLayout(
        {
            "total": path.partial_bits,
            "largest": path.exponent_bits,
            "nan": 1,
            "plus_infinity": 1,
            "minus_infinity": 1,
        }
    )


class TrainFloatSums(SegmentSums):
    """sums[output] ← value + (first step: (first: +0 else sums[output]) else what the step before
    made), for each step up to the last one: rounded at every step.

    An output's sum is read with its first step.  value: `partial_layout`.
    """

    def __init__(self, *, design: SparseTrain) -> None:
        super().__init__(design=design, value=design.step_bits)

    def elaborate(self, platform: object) -> Module:
        m, bits = Module(), self.design.accumulator_bits
        step, last, output, value = self._a_cycle_later(m)
        begins = Signal(init=1)
        running, held = Signal(bits), Signal(bits)
        total = self._total(m, value, Mux(begins, Mux(self.first, 0, held), running))
        with m.If(step):
            m.d.sync += [running.eq(total), begins.eq(last)]
        halves = self._halves(m, last, output)
        m.d.comb += [
            *(words.write_data.eq(total) for words in halves),
            held.eq(Mux(self.half, halves[1].read_data, halves[0].read_data)),
        ]
        return m

    def _total(self, m: Module, value: Signal, held: Value) -> Signal:
        """What is held and the step's products, a float again."""
        path = self.design.dot.datapath
        taken = data.View(partial_layout(path), value)
        addend = place(m, "addend", FloatAddend, datapath=path, form=path.accumulator)
        late = place(m, "late_sum", FloatLateSum, datapath=path)
        rounding = place(m, "round", FloatRound, datapath=path)
        m.d.comb += [
            addend.i.eq(held),
            late.partial.eq(taken.total.as_signed()),
            late.partial_exponent.eq(taken.largest),
            Cat(late.negative, late.exponent, late.significand).eq(
                Cat(addend.negative, addend.exponent, addend.significand)
            ),
            rounding.total.eq(late.total),
            rounding.largest.eq(late.largest),
            rounding.nan.eq(taken.nan | addend.nan),
            rounding.plus_infinity.eq(taken.plus_infinity | (addend.infinite & ~addend.negative)),
            rounding.minus_infinity.eq(taken.minus_infinity | (addend.infinite & addend.negative)),
        ]
        return rounding.o


__all__ = ["TrainFloatSums", "partial_layout"]
