"""A compressor whose rows and metadata go straight to a decompressor: what goes in comes out."""

from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.core.boveda_compressor import Compressor, group_layout
from rtl.core.boveda_decompressor import Decompressor
from rtl.core.boveda_width import check_format
from rtl.core.queue import Queue
from rtl.hierarchy import place


class BovedaRoundTrip(wiring.Component):
    """o = i, group for group.

    Metadata wait in a queue for the row that their group ends in: a row holds bits of up to B
    groups of one bit each, so that B places suffice.  With `zero_width` any number of groups
    without bits can follow one whose row is not full: `queue` must then be at least the groups of
    the longest unit.

    Latency: at least 3 + 1 + 2 cycles (compressor, queue, decompressor), more for groups whose row
    is filled by later ones: a group whose row is not full waits for more groups, or for its unit's
    end.  Throughput: one group a cycle but for the cycle of a unit's second last row (see
    `Compressor`).  Back-pressure: passed on.

    Members
    -------
    i, o: groups.
    """

    i: stream.Interface
    o: stream.Interface

    def __init__(
        self,
        *,
        group: int,
        container_bits: int,
        signed: bool,
        zero_width: bool = False,
        queue: int | None = None,
    ) -> None:
        check_format(group, container_bits)
        self.form = {
            "group": group,
            "container_bits": container_bits,
            "signed": signed,
            "zero_width": zero_width,
        }
        self.queue = container_bits if queue is None else queue
        layout = group_layout(group, container_bits)
        super().__init__({"i": In(stream.Signature(layout)), "o": Out(stream.Signature(layout))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        compressor = place(m, "compressor", Compressor, **self.form)
        width_bits = len(compressor.widths.payload.as_value())
        queue = place(m, "width_queue", Queue, width=width_bits, depth=self.queue)
        decompressor = place(m, "decompressor", Decompressor, **self.form)
        m.d.comb += [
            compressor.i.payload.eq(self.i.payload),
            compressor.i.valid.eq(self.i.valid),
            self.i.ready.eq(compressor.i.ready),
            queue.i.payload.eq(compressor.widths.payload),
            queue.i.valid.eq(compressor.widths.valid),
            compressor.widths.ready.eq(queue.i.ready),
            decompressor.row.payload.eq(compressor.row.payload.columns),
            decompressor.row.valid.eq(compressor.row.valid),
            compressor.row.ready.eq(decompressor.row.ready),
            decompressor.widths.payload.eq(queue.o.payload),
            decompressor.widths.valid.eq(queue.o.valid),
            queue.o.ready.eq(decompressor.widths.ready),
            self.o.payload.eq(decompressor.o.payload),
            self.o.valid.eq(decompressor.o.valid),
            decompressor.o.ready.eq(self.o.ready),
        ]
        return m
