"""The sums of floats of a PE's segment: of a dot product's steps, and of a tile's outputs."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring

from archsim.arithmetic.float_datapath import FloatDatapath
from archsim.machines.sparsetrain.design import SparseTrain
from rtl.core.float_late_sum import FloatLateSum
from rtl.core.float_product import FloatAddend
from rtl.core.float_round import FloatRound
from rtl.core.memory import Banks
from rtl.core.train_sums import sums_ports
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


class TrainFloatSums(wiring.Component):
    """sums[output] ← value + (first step: (first: +0 else sums[output]) else what the step before
    made), for each step up to the last one: rounded at every step.

    Halves, latency, throughput, members: as `rtl.core.train_sums.TrainSums`; an output's sum is
    read with its first step.  value: `partial_layout`.  Never stalls.
    """

    step: Signal
    last: Signal
    output: Signal
    value: Signal
    first: Signal
    half: Signal
    drain: Signal
    drain_half: Signal
    drain_address: Signal
    drain_data: Signal

    def __init__(self, *, design: SparseTrain) -> None:
        self.design = design
        super().__init__(sums_ports(design, design.step_bits))

    def elaborate(self, platform: object) -> Module:
        m, design = Module(), self.design
        step, last, begins = Signal(), Signal(), Signal(init=1)
        output, value = Signal.like(self.output), Signal.like(self.value)
        running, held = Signal(design.accumulator_bits), Signal(design.accumulator_bits)
        m.d.sync += [
            step.eq(self.step),
            last.eq(self.last),
            output.eq(self.output),
            value.eq(self.value),
        ]
        total = self._total(m, value, Mux(begins, Mux(self.first, 0, held), running))
        with m.If(step):
            m.d.sync += [running.eq(total), begins.eq(last)]
        banks = Banks(memory=design.accumulator_memory, use=design.use("accumulator"))
        shown: list[Signal] = []
        for half in (0, 1):
            words = banks.place(
                m, self, f"half_{half}", half, bits=len(total), depth=design.segment_outputs
            )
            drains = self.drain & (self.drain_half == half)
            m.d.comb += [
                words.read_address.eq(Mux(drains, self.drain_address, self.output)),
                words.write.eq(last & (self.half == half)),
                words.write_address.eq(output),
                words.write_data.eq(total),
            ]
            shown.append(words.read_data)
        m.d.comb += [
            held.eq(Mux(self.half, shown[1], shown[0])),
            self.drain_data.eq(Mux(self.drain_half, shown[1], shown[0])),
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
