"""Boveda in hardware: a contents page, and both directions as one top.

The format and every cycle are in docs/contracts/boveda.md.  To see

| | open |
|---|---|
| how a group's width is found, and its codes | `rtl/core/boveda_width.py` |
| how codes are put into the columns of two rows, and read from there | `rtl/core/boveda_shift.py` |
| groups to rows, with stalls | `rtl/core/boveda_compressor.py` |
| rows to groups, with stalls | `rtl/core/boveda_decompressor.py` |
| one behind the other | `rtl/core/boveda_round_trip.py` |
| when words cross | `archsim/codecs/boveda_timing.py` |
"""

from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.core.boveda_compressor import Compressor, group_layout, row_layout, width_layout
from rtl.core.boveda_decompressor import Decompressor
from rtl.core.boveda_round_trip import BovedaRoundTrip
from rtl.core.boveda_shift import Pack, Unpack
from rtl.core.boveda_width import check_format
from rtl.hierarchy import place

__all__ = ["BovedaCodec", "BovedaRoundTrip", "Compressor", "Decompressor", "Pack", "Unpack"]


class BovedaCodec(wiring.Component):
    """A compressor and a decompressor of one format, side by side before a memory.

    Latency, throughput and back-pressure: those of `Compressor` and `Decompressor`.

    Members
    -------
    i, row, widths: of the compressor; stored_row, stored_widths, o: of the decompressor.
    """

    i: stream.Interface
    row: stream.Interface
    widths: stream.Interface
    stored_row: stream.Interface
    stored_widths: stream.Interface
    o: stream.Interface

    def __init__(
        self, *, group: int, container_bits: int, signed: bool, zero_width: bool = False
    ) -> None:
        check_format(group, container_bits)
        self.form = {
            "group": group,
            "container_bits": container_bits,
            "signed": signed,
            "zero_width": zero_width,
        }
        groups, widths = group_layout(group, container_bits), width_layout(container_bits)
        super().__init__(
            {
                "i": In(stream.Signature(groups)),
                "row": Out(stream.Signature(row_layout(group, container_bits))),
                "widths": Out(stream.Signature(widths)),
                "stored_row": In(stream.Signature(group * container_bits)),
                "stored_widths": In(stream.Signature(widths)),
                "o": Out(stream.Signature(groups)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        compressor = place(m, "compressor", Compressor, **self.form)
        decompressor = place(m, "decompressor", Decompressor, **self.form)
        for source, sink in (
            (self.i, compressor.i),
            (compressor.row, self.row),
            (compressor.widths, self.widths),
            (self.stored_row, decompressor.row),
            (self.stored_widths, decompressor.widths),
            (decompressor.o, self.o),
        ):
            m.d.comb += [
                sink.payload.eq(source.payload),
                sink.valid.eq(source.valid),
                source.ready.eq(sink.ready),
            ]
        return m
