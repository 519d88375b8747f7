"""When groups begin and end: loading, the barrier of the PEs, the drain, and the unloading."""

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from archsim.machines.scnn.design import Scnn
from rtl.core.credits import Credits
from rtl.core.delay import Delay
from rtl.core.scnn_cells import sums_may_fail
from rtl.core.scnn_layouts import layer_layout
from rtl.hierarchy import place

HALVES = 2


class GroupControl(wiring.Component):
    """S(0) = loaded + 1; S(g + 1) = max(B(g), drained(g − 1)) + 1; DS(g) = max(B(g) + LP,
    drained(g − 1), biased(g) + 1).  With `pipelined_pes` S(g + 1) = max(B(g) + 1, drained(g − 1)) +
    1, for that all PEs wait lies in a register.

    B: all PEs wait.  A group needs one of the two halves of the accumulators, which its drain gives
    back; where their cells may fail, every layer begins with the first.  LP is
    `design.pipeline_latency_cycles`.
    Latency: `go` in the cycle of its cause; `drain` in the cycle before the drain's first.

    Members
    -------
    layer: the command; start: a layer begins; loaded: the last ifmap vector crosses, or the ifmap
    has stayed and its memory is in place; done: all PEs wait; go, half: begin a group in the next
    cycle, in this half; biased: all bias words of the next group to be drained are here;
    drain_ready, drain_ended, drain, filters: of the sequencer; finished: all drains have ended,
    `design.ofmap_latency_cycles` − 1 cycles ago; flush, where memories compress values: the
    cycle before, or, where a vector is read ahead, the one before that.
    """

    layer: data.View
    start: Signal
    loaded: Signal
    done: Signal
    go: Signal
    half: Signal
    biased: Signal
    drain_ready: Signal
    drain_ended: Signal
    drain: Signal
    filters: Signal
    finished: Signal
    flush: Signal

    def __init__(self, *, design: Scnn) -> None:
        self.latency = design.pipeline_latency_cycles
        self.ofmap_latency = design.ofmap_latency_cycles
        self.flushes = design.activation_memory.stepped
        self.begins_anew = sums_may_fail(design)
        self.ahead = design.pipelined_pes
        self.behind_flush = 1 + self.ahead
        taken = ("start", "loaded", "done", "biased", "drain_ready", "drain_ended")
        super().__init__(
            {
                "layer": In(layer_layout()),
                **{name: In(1) for name in taken},
                **{name: Out(1) for name in ("go", "half", "drain", "finished")},
                **({"flush": Out(1)} if self.flushes else {}),
                "filters": Out(10),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        layer = self.layer
        begun = self._count(m, "begun", self.go)
        drained = self._count(m, "drained", self.drain)
        ended = self._count(m, "ended", self.drain_ended)
        more = self._kept(m, "more", begun != layer.groups)
        computing, waiting, barrier = Signal(), Signal(), Signal()
        halves = place(m, "halves", Credits, initial=HALVES, limit=HALVES)
        summed = place(m, "summed", Credits, initial=0, limit=HALVES)
        line = place(m, "summed_delay", Delay, bits=1, cycles=self.latency - 2 - self.ahead)
        behind = self.behind_flush if self.flushes else self.ofmap_latency
        last = place(m, "finished_delay", Delay, bits=1, cycles=behind)
        filters = Mux(drained + 1 == layer.groups, layer.filters_last, layer.filters)
        m.d.comb += [
            barrier.eq(computing & self._done(m)),
            self.go.eq(self.loaded | ((barrier | waiting) & more & halves.available)),
            halves.take.eq(self.go),
            halves.give.eq(self.drain_ended),
            line.i.eq(barrier),
            summed.give.eq(line.o),
            self.drain.eq(summed.available & self.drain_ready & self.biased),
            summed.take.eq(self.drain),
            self.filters.eq(self._kept(m, "group_filters", filters)),
            self.finished.eq(last.o),
        ]
        over = self.drain_ended & (ended + 1 == layer.groups)
        if self.flushes:
            before = self.ofmap_latency - self.behind_flush
            flush = place(m, "flush_delay", Delay, bits=1, cycles=before)
            m.d.comb += [flush.i.eq(over), self.flush.eq(flush.o)]
            over = flush.o
        m.d.comb += last.i.eq(over)
        m.d.sync += [
            computing.eq(self.go | (computing & ~barrier)),
            waiting.eq((barrier | waiting) & ~self.go & more),
            self.half.eq(self.half ^ self.go),
        ]
        if self.begins_anew:
            with m.If(self.start):
                m.d.sync += self.half.eq(0)
        return m

    def _done(self, m: Module) -> Value:
        """Whether all PEs wait; of a group that has begun, and not of the one before."""
        if not self.ahead:
            return self.done
        done = Signal(name="all_done")
        m.d.sync += done.eq(self.done & ~self.go)
        return done

    def _kept(self, m: Module, name: str, of: Value) -> Value:
        """What follows from a count of groups, with `pipelined_pes` a cycle later, in a register:
        a group takes some cycles, and so does its drain."""
        if not self.ahead:
            return of
        kept = Signal(len(of), name=name)
        m.d.sync += kept.eq(of)
        return kept

    def _count(self, m: Module, name: str, event: Signal) -> Signal:
        """How many of the layer's groups have had an event."""
        count = Signal(len(self.layer.groups), name=name)
        with m.If(self.start):
            m.d.sync += count.eq(0)
        with m.Elif(event):
            m.d.sync += count.eq(count + 1)
        return count
