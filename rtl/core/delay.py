"""Delay lines: the same one for a whole word, or one more cycle a lane (skew)."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.hierarchy import VerilogModule


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


SKEW = """\
// Lane r is {bits} bits wide and {late} cycles late.
module {name}(input clk, input rst, input [{high}:0] i, output [{high}:0] o);
{lanes}
endmodule
"""

LANE = """\
  reg [{high}:0] lane_{lane} = 0;
  always @(posedge clk) lane_{lane} <= rst ? {{{length}{{1'b0}}}} : {following};
  assign o[{lane_high}:{lane_low}] = lane_{lane}[{high}:{last}];"""


class Skew(wiring.Component):
    """Lane r of o is lane r of i, `r` cycles later (or `lanes − 1 − r`, if `falling`).

    Latency: 0 … lanes − 1; throughput: one word a cycle; never stalls.
    In emitted Verilog a module of its own, written and not converted: lanes² / 2 registers of
    `bits` bits take Amaranth seconds.
    """

    i: Signal
    o: Signal

    @staticmethod
    def ports(*, lanes: int, bits: int) -> wiring.Signature:
        """The ports; those of the Verilog module beside its clock and reset."""
        return wiring.Signature({"i": In(lanes * bits), "o": Out(lanes * bits)})

    @classmethod
    def verilog(cls, *, lanes: int, bits: int, falling: bool = False) -> VerilogModule:
        """The Verilog module that stands for this component in emitted designs."""
        name = f"skew_{lanes}x{bits}{'_falling' * falling}"
        late = [lanes - 1 - lane if falling else lane for lane in range(lanes)]
        source = SKEW.format(
            name=name,
            bits=bits,
            late=f"{lanes - 1} - r" if falling else "r",
            high=lanes * bits - 1,
            lanes="\n".join(_lane(lane, cycles, bits) for lane, cycles in enumerate(late)),
        )
        ports = cls.ports(lanes=lanes, bits=bits)
        return VerilogModule(name=name, source=source, signature=ports, resets=True)

    def __init__(self, *, lanes: int, bits: int, falling: bool = False) -> None:
        self.lanes = lanes
        self.bits = bits
        self.falling = falling
        super().__init__(self.ports(lanes=lanes, bits=bits))

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


def _lane(lane: int, cycles: int, bits: int) -> str:
    """A lane in Verilog: its registers, the youngest word lowest."""
    high, low = (lane + 1) * bits - 1, lane * bits
    if cycles == 0:
        return f"  assign o[{high}:{low}] = i[{high}:{low}];"
    length = cycles * bits
    word = f"i[{high}:{low}]"
    return LANE.format(
        lane=lane,
        length=length,
        high=length - 1,
        last=length - bits,
        lane_high=high,
        lane_low=low,
        following=word if cycles == 1 else f"{{lane_{lane}[{length - bits - 1}:0], {word}}}",
    )
