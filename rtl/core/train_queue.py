"""The queue of a PE: its outputs that are needed, one by one or those of its segments together."""

from typing import Any

from amaranth.hdl import C, Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from archsim.machines.sparsetrain.design import SparseTrain
from rtl.core.one_hot import any_of, index_of
from rtl.core.sram import address_bits


class TrainQueue(wiring.Component):
    """Shows the lowest output that is left; with `split`, all that are left of its column vector.

    Latency: `outputs` are shown in the cycle behind `start`.  Throughput: one (or those together) a
    cycle.  Never stalls.

    Members
    -------
    start: takes `outputs` [row · own columns + column], 1 where it is needed.
    waiting: some are left.  number: of the lowest.  parts: of which segments outputs are shown.
    take: what is shown is taken.
    """

    start: Signal
    outputs: Signal
    split: Signal
    waiting: Signal
    number: Signal
    parts: Signal
    take: Signal

    def __init__(self, *, design: SparseTrain) -> None:
        self.segments = design.segments
        super().__init__(self.members(design))

    def members(self, design: SparseTrain) -> dict[str, Any]:
        """Its ports."""
        split: dict[str, Any] = {"split": In(1)} if design.segments > 1 else {}
        return {
            "start": In(1),
            "outputs": In(design.own_outputs),
            **split,
            "waiting": Out(1),
            "number": Out(address_bits(design.own_outputs)),
            "parts": Out(design.segments),
            "take": In(1),
        }

    def elaborate(self, platform: object) -> Module:
        m, queue = Module(), Signal.like(self.outputs, name="queued")
        lowest = Signal.like(queue)
        m.d.comb += [
            lowest.eq(queue & (~queue + 1)),
            self.number.eq(index_of(lowest)),
            self.waiting.eq(queue.any()),
        ]
        taken, parts = self._together(m, queue, lowest)
        m.d.comb += self.parts.eq(parts)
        with m.If(self.start):
            m.d.sync += queue.eq(self.outputs)
        with m.Elif(self.take):
            m.d.sync += queue.eq(queue & ~taken)
        return m

    def _together(self, m: Module, queue: Signal, lowest: Signal) -> tuple[Value, Value]:
        """Of the queue what is shown, and of which segments."""
        if self.segments == 1:
            return lowest, C(1, 1)
        taken = Signal.like(queue, name="taken")
        sets = range(0, len(queue), self.segments)
        near = Cat(lowest[at : at + self.segments].any().replicate(self.segments) for at in sets)
        m.d.comb += taken.eq(queue & Mux(self.split, near, lowest))
        return taken, any_of([taken[at : at + self.segments] for at in sets])


__all__ = ["TrainQueue"]
