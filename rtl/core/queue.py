"""Queues between two streams."""

from amaranth.hdl import Module, Signal
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


class HeadedQueue(Queue):
    """As a `Queue`, in the same cycles; its first word lies in registers, and not in a memory."""

    def elaborate(self, platform: object) -> Module:
        m = Module()
        head, filled = Signal(self.width), Signal()
        comes = self.i.valid & self.i.ready
        with m.If(~filled | self.o.ready):
            m.d.sync += [head.eq(self.i.payload), filled.eq(comes)]
        if self.depth == 1:
            m.d.comb += self.i.ready.eq(~filled)
        else:
            # behind an empty head there is nothing
            m.submodules.store = store = fifo.SyncFIFO(width=self.width, depth=self.depth - 1)
            m.d.comb += [
                self.i.ready.eq(store.w_rdy),
                store.w_data.eq(self.i.payload),
                store.w_en.eq(comes & filled & (store.r_rdy | ~self.o.ready)),
                store.r_en.eq(self.o.ready),
            ]
            with m.If(self.o.ready & store.r_rdy):
                m.d.sync += [head.eq(store.r_data), filled.eq(1)]
        m.d.comb += [self.o.valid.eq(filled), self.o.payload.eq(head)]
        return m
