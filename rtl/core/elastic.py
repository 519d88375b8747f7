"""Stages of registers that wait for what is behind them, and close up where one is empty."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out


class ElasticStages(wiring.Component):
    """Which of `stages` registers, one behind the other, are written in a cycle.

    A stage takes what is before it if it is empty, or if its own word goes on.
    Latency: `stages` cycles.  Throughput: one word a cycle.  Back-pressure: i_ready is low if all
    stages hold words and o_ready is low, in the same cycle.

    Members
    -------
    i_valid, i_ready: before the first stage; o_valid, o_ready: behind the last; takes: each stage's
    registers are written.
    """

    i_valid: Signal
    i_ready: Signal
    o_valid: Signal
    o_ready: Signal
    takes: Signal

    def __init__(self, *, stages: int) -> None:
        self.stages = stages
        super().__init__(
            {
                "i_valid": In(1),
                "i_ready": Out(1),
                "o_valid": Out(1),
                "o_ready": In(1),
                "takes": Out(stages),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        valid, free = Signal(self.stages), Signal(self.stages)
        m.d.comb += [
            free.eq(~valid | Cat(free[1:], self.o_ready)),
            self.takes.eq(free & Cat(self.i_valid, valid[:-1])),
            self.i_ready.eq(free[0]),
            self.o_valid.eq(valid[-1]),
        ]
        m.d.sync += valid.eq(self.takes | (valid & ~free))
        return m


__all__ = ["ElasticStages"]
