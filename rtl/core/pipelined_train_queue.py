"""The queue of a PE with registers between what is left, the lowest of it, and its number."""

from typing import Any

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib.wiring import Out

from archsim.machines.sparsetrain.design import SparseTrain
from rtl.core.one_hot import index_of, lowest_of
from rtl.core.queue import Queue
from rtl.core.train_queue import TrainQueue
from rtl.hierarchy import place

PLACES = 3
"""Of numbers that are found: as many as are under way while one is taken in every cycle."""


class PipelinedTrainQueue(TrainQueue):
    """As a `TrainQueue`, two cycles later.

    Latency: `outputs` are shown in the third cycle behind `start`.  Throughput: one (or those
    together) a cycle.  Never stalls.

    Members
    -------
    left: some are queued or shown.
    """

    left: Signal

    def members(self, design: SparseTrain) -> dict[str, Any]:
        return {**super().members(design), "left": Out(1)}

    def elaborate(self, platform: object) -> Module:
        m, queue = Module(), Signal.like(self.outputs, name="queued")
        lowest = Signal.like(queue)
        m.d.comb += lowest.eq(lowest_of(m, queue))
        taken, parts = self._together(m, queue, lowest)
        under_way, moves, found = Signal(range(PLACES + 1)), Signal(), Signal()
        m.d.comb += moves.eq(queue.any() & (under_way != PLACES))
        m.d.sync += [under_way.eq(under_way + moves - self.take), found.eq(moves)]
        with m.If(self.start):
            m.d.sync += queue.eq(self.outputs)
        with m.Elif(under_way != PLACES):
            m.d.sync += queue.eq(queue & ~taken)
        self._number(m, found, lowest, parts)
        m.d.comb += self.left.eq(queue.any() | (under_way != 0))
        return m

    def _number(self, m: Module, found: Signal, lowest: Signal, parts: Value) -> None:
        """The number of what was found in the cycle before, until it is taken."""
        one = Signal.like(lowest, name="one", reset_less=True)
        of = Signal(self.segments, name="of", reset_less=True)
        m.d.sync += [one.eq(lowest), of.eq(parts)]
        number = index_of(one)
        both = Cat(number, of) if self.segments > 1 else number
        numbers = place(m, "numbers", Queue, width=len(both), depth=PLACES)
        shown = numbers.o.payload
        m.d.comb += [
            numbers.i.payload.eq(both),
            numbers.i.valid.eq(found),
            numbers.o.ready.eq(self.take),
            self.waiting.eq(numbers.o.valid),
            self.number.eq(shown[: len(number)]),
            self.parts.eq(shown[len(number) :] if self.segments > 1 else 1),
        ]


__all__ = ["PipelinedTrainQueue"]
