"""Stages of registers that wait for what is behind them, and close up where one is empty."""

from typing import Any

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out


def stage_registers(m: Module, stages: Any, stage: int, taken: data.View) -> Any:
    """What a stage of `ElasticStages` holds, which takes `taken`."""
    kept = Signal(taken.shape(), name=f"stage_{stage}", reset_less=True)
    with m.If(stages.takes[stage]):
        m.d.sync += kept.eq(taken)
    return kept


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
        valid = [Signal(name=f"valid_{stage}") for stage in range(self.stages)]
        goes_on: Value = self.o_ready
        for stage in reversed(range(self.stages)):
            free = Signal(name=f"free_{stage}")
            m.d.comb += [
                free.eq(~valid[stage] | goes_on),
                self.takes[stage].eq(free & (valid[stage - 1] if stage else self.i_valid)),
            ]
            with m.If(free):
                m.d.sync += valid[stage].eq(self.takes[stage])
            goes_on = free
        m.d.comb += [self.i_ready.eq(goes_on), self.o_valid.eq(valid[-1])]
        return m


__all__ = ["ElasticStages", "stage_registers"]
