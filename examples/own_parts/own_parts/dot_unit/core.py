"""The dot-product unit in hardware."""

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import stream

from own_parts.dot_unit.design import COUNT_BITS
from rtl.design_component import DesignComponent
from rtl.verification import Verification


class DotCore(DesignComponent):
    """ofmap = Σ ifmap · weight over the pairs of words of each sum.

    Latency: 1 cycle from a sum's last pair.  Throughput: a pair a cycle.  Back-pressure: a last
    pair waits until the sum before leaves.
    """

    command: stream.Interface
    ifmap: stream.Interface
    weight: stream.Interface
    ofmap: stream.Interface

    counters = ("pair", "sum")

    @staticmethod
    def verification() -> Verification:
        from own_parts.dot_unit.cases import DotVerification

        return DotVerification(counters=DotCore.counters, tail_cycles=4)

    def elaborate(self, platform: object) -> Module:
        m, bits = Module(), self.design.operand_bits
        sums, pairs, pair = Signal(COUNT_BITS), Signal(COUNT_BITS), Signal(COUNT_BITS)
        total = Signal(signed(self.design.accumulator_bits))
        result, following, full = Signal.like(total), Signal.like(total), Signal()
        last, take, leave = Signal(), Signal(), Signal()
        products = [
            self.ifmap.payload.word_select(lane, bits).as_signed()
            * self.weight.payload.word_select(lane, bits).as_signed()
            for lane in range(self.design.lanes)
        ]
        m.d.comb += [
            following.eq(Mux(pair == 0, 0, total) + sum(products)),
            last.eq(pair == pairs - 1),
            leave.eq(full & self.ofmap.ready),
            take.eq((sums != 0) & self.ifmap.valid & self.weight.valid & (~last | ~full | leave)),
            self.ifmap.ready.eq(take),
            self.weight.ready.eq(take),
            self.command.ready.eq((sums == 0) & ~full),
            self.ofmap.valid.eq(full),
            self.ofmap.payload.eq(result),
        ]
        with m.If(leave):
            m.d.sync += full.eq(0)
        with m.If(take):
            m.d.sync += [total.eq(following), pair.eq(Mux(last, 0, pair + 1))]
            with m.If(last):
                m.d.sync += [result.eq(following), full.eq(1), sums.eq(sums - 1)]
        with m.If(self.command.valid & self.command.ready):
            m.d.sync += Cat(sums, pairs).eq(self.command.payload)
        self.counted(m, pair=take, sum=leave)
        return m
