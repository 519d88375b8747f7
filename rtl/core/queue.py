"""A queue between two streams."""

from amaranth.hdl import Module
from amaranth.lib import fifo, stream, wiring
from amaranth.lib.wiring import In, Out


class Queue(wiring.Component):
    """o = i, in order, up to `depth` words under way.

    Latency: 1 cycle.  Throughput: one word a cycle.  Back-pressure: i.ready is low when full,
    whatever o does in the same cycle.
    """

    i: stream.Interface
    o: stream.Interface

    def __init__(self, *, width: int, depth: int) -> None:
        self.width = width
        self.depth = depth
        super().__init__({"i": In(stream.Signature(width)), "o": Out(stream.Signature(width))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.store = store = fifo.SyncFIFO(width=self.width, depth=self.depth)
        m.d.comb += [
            store.w_en.eq(self.i.valid & self.i.ready),
            store.w_data.eq(self.i.payload),
            self.i.ready.eq(store.w_rdy),
            self.o.valid.eq(store.r_rdy),
            self.o.payload.eq(store.r_data),
            store.r_en.eq(self.o.ready),
        ]
        return m
