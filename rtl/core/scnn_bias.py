"""The bias words of an SCNN layer, one a filter, shared by all PEs."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from archsim.machines.scnn.design import Scnn
from rtl.core.queue import Queue
from rtl.core.scnn_drain import step_layout
from rtl.core.scnn_layouts import layer_layout
from rtl.hierarchy import place


class BiasQueue(wiring.Component):
    """o[t + 1] = the bias of the filter of step[t]; 0 in a layer without biases.

    Latency: a word that crosses is counted for `biased` from the next cycle on.  Back-pressure:
    word.ready is low while 2 · filter_group words are held; a filter's word is given back when its
    list ends.

    Members
    -------
    layer: the command; start: a layer begins; word: the port; step: of the drain; filters: of the
    next group to be drained; biased: all its words are here; o: to all PEs.
    """

    layer: data.View
    start: Signal
    word: stream.Interface
    step: data.View
    filters: Signal
    biased: Signal
    o: Signal

    def __init__(self, *, design: Scnn) -> None:
        self.design = design
        super().__init__(
            {
                "layer": In(layer_layout()),
                "start": In(1),
                "word": In(stream.Signature(design.accumulator_bits)),
                "step": In(step_layout()),
                "filters": In(10),
                "biased": Out(1),
                "o": Out(design.accumulator_bits),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        layer, depth = self.layer, 2 * self.design.filter_group
        queue = place(m, "queue", Queue, width=self.design.accumulator_bits, depth=depth)
        taken, held = Signal(len(layer.ofmap_lists)), Signal(range(depth + 1))
        open_, crosses, leaves = Signal(), Signal(), Signal()
        m.d.comb += [
            open_.eq(layer.has_bias & (taken != layer.ofmap_lists)),
            self.word.ready.eq(open_ & queue.i.ready),
            queue.i.valid.eq(open_ & self.word.valid),
            queue.i.payload.eq(self.word.payload),
            crosses.eq(self.word.valid & self.word.ready),
            leaves.eq(self.step.ends & layer.has_bias),
            queue.o.ready.eq(leaves),
            self.biased.eq(~layer.has_bias | (held >= self.filters + leaves)),
        ]
        m.d.sync += [
            held.eq(held + crosses - leaves),
            self.o.eq(Mux(layer.has_bias, queue.o.payload, 0)),
        ]
        with m.If(self.start):
            m.d.sync += taken.eq(0)
        with m.Elif(crosses):
            m.d.sync += taken.eq(taken + 1)
        return m
