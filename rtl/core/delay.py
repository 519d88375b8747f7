"""Delay lines: the same one for a whole word, or one more cycle a lane (skew)."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out


class Delay(wiring.Component):
    """o[t] = i[t − cycles].  Latency: `cycles`; throughput: one a cycle; never stalls."""

    i: Signal
    o: Signal

    def __init__(self, *, bits: int, cycles: int) -> None:
        self.bits = bits
        self.cycles = cycles
        super().__init__({"i": In(bits), "o": Out(bits)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        if self.cycles == 0:
            m.d.comb += self.o.eq(self.i)
            return m
        line = Signal(self.bits * self.cycles)
        m.d.sync += line.eq(Cat(self.i, line)[: len(line)])
        m.d.comb += self.o.eq(line[-self.bits :])
        return m


class Skew(wiring.Component):
    """Lane r of o is lane r of i, `r` cycles later (or `lanes − 1 − r`, if `falling`).

    Latency: 0 … lanes − 1; throughput: one word a cycle; never stalls.
    """

    i: Signal
    o: Signal

    def __init__(self, *, lanes: int, bits: int, falling: bool = False) -> None:
        self.lanes = lanes
        self.bits = bits
        self.falling = falling
        super().__init__({"i": In(lanes * bits), "o": Out(lanes * bits)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for lane in range(self.lanes):
            cycles = self.lanes - 1 - lane if self.falling else lane
            i = self.i.word_select(lane, self.bits)
            o = self.o.word_select(lane, self.bits)
            if cycles == 0:
                m.d.comb += o.eq(i)
                continue
            line = Signal(self.bits * cycles, name=f"lane_{lane}")
            m.d.sync += line.eq(Cat(i, line)[: len(line)])
            m.d.comb += o.eq(line[-self.bits :])
        return m
