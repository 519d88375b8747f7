"""The dot-product unit in hardware."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from archsim.ports import Port
from dot_unit.design import COUNT_BITS, DotUnit
from rtl.verification import Verification

COUNTERS = ("pair", "sum")
COUNTER_BITS = 48


class DotCore(wiring.Component):
    """ofmap = Σ ifmap · weight over the steps of each sum.

    Latency: 1 cycle from a sum's last pair.  Throughput: a pair a cycle.  Back-pressure: a last
    pair waits until the sum before leaves.
    """

    command: stream.Interface
    ifmap: stream.Interface
    weight: stream.Interface
    ofmap: stream.Interface
    count_pair: Signal
    count_sum: Signal

    @staticmethod
    def verification() -> Verification:
        from dot_unit.cases import DotVerification

        return DotVerification()

    def __init__(self, design: DotUnit) -> None:
        self.design = design
        members: dict[str, Any] = {
            port.name: (In if port.direction == "i" else Out)(stream.Signature(port.bits))
            for port in design.ports
        }
        super().__init__({**members, **{f"count_{name}": Out(COUNTER_BITS) for name in COUNTERS}})

    @property
    def ports(self) -> tuple[Port, ...]:
        return self.design.ports

    def elaborate(self, platform: object) -> Module:
        m, bits = Module(), self.design.operand_bits
        sums, steps, step = Signal(COUNT_BITS), Signal(COUNT_BITS), Signal(COUNT_BITS)
        total = Signal(signed(self.design.accumulator_bits))
        result, full = Signal.like(total), Signal()
        products = [
            self.ifmap.payload.word_select(lane, bits).as_signed()
            * self.weight.payload.word_select(lane, bits).as_signed()
            for lane in range(self.design.lanes)
        ]
        following = Signal.like(total)
        last, take, leave = Signal(), Signal(), Signal()
        m.d.comb += [
            following.eq(Mux(step == 0, 0, total) + sum(products)),
            last.eq(step == steps - 1),
            leave.eq(full & self.ofmap.ready),
            take.eq((sums != 0) & self.ifmap.valid & self.weight.valid & (~last | ~full | leave)),
            self.ifmap.ready.eq(take),
            self.weight.ready.eq(take),
            self.command.ready.eq((sums == 0) & ~full),
            self.ofmap.valid.eq(full),
            self.ofmap.payload.eq(result),
        ]
        with m.If(leave):
            m.d.sync += [full.eq(0), self.count_sum.eq(self.count_sum + 1)]
        with m.If(take):
            m.d.sync += [
                total.eq(following),
                step.eq(Mux(last, 0, step + 1)),
                self.count_pair.eq(self.count_pair + 1),
            ]
            with m.If(last):
                m.d.sync += [result.eq(following), full.eq(1), sums.eq(sums - 1)]
        with m.If(self.command.valid & self.command.ready):
            m.d.sync += Cat(sums, steps).eq(self.command.payload)
        return m
