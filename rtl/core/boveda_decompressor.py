"""Rows of packed columns and widths in, groups of values out."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.core.boveda_compressor import group_layout, width_layout
from rtl.core.boveda_shift import Expand, ShiftOut
from rtl.core.boveda_width import check_format
from rtl.hierarchy import place


class Decompressor(wiring.Component):
    """What `rtl.core.boveda_compressor.Compressor` has made, group by group.

    Holds two rows, the one that the pointer p points into and the next.  A group of width w is read
    when its metadata are there, and the rows that it lies in: none if w = 0, two if p + w > B.
    Then p ← (p + w) mod B, and p ← 0 after a unit's last group.  A row is given up by the group
    that comes to its end, or ends its unit in it.

    Latency: metadata cross in the cycle t in which their group is read, and the group is offered
    from t + `LATENCY_CYCLES` = t + 2 on; its rows have crossed before t.  Two registers: the code,
    shifted down, and the values.
    Throughput: one group and at most one row a cycle.  A unit's last group may give up two rows.
    Back-pressure: widths.ready is 1 in the cycle in which a group is read; row.ready is low
    while two rows are held and none is given up.

    Members
    -------
    row: the columns of each row; widths: the width field of every group, and whether it is its
    unit's last; o: groups.
    Raises `InputError` for a group below 1 and containers of other than 4, 8 or 16 bits.
    """

    LATENCY_CYCLES = 2

    row: stream.Interface
    widths: stream.Interface
    o: stream.Interface

    def __init__(
        self, *, group: int, container_bits: int, signed: bool, zero_width: bool = False
    ) -> None:
        check_format(group, container_bits)
        self.group = group
        self.container_bits = container_bits
        self.signed = signed
        self.zero_width = zero_width
        bits = container_bits
        self.row_bits = group * bits
        # Registers: two rows, the pointer, and a group's code.  read: a group is read.
        self.held = [Signal(name=f"held_{number}") for number in range(2)]
        self.rows = [
            Signal(self.row_bits, name=f"row_{number}", reset_less=True) for number in range(2)
        ]
        self.p = Signal(range(bits))
        self.shifted = Signal()
        self.codes = Signal(self.row_bits, reset_less=True)
        self.w = Signal(range(bits + 1), reset_less=True)
        self.last = Signal(reset_less=True)
        self.read = Signal()
        self.code_free = Signal()
        super().__init__(
            {
                "row": In(stream.Signature(self.row_bits)),
                "widths": In(stream.Signature(width_layout(bits))),
                "o": Out(stream.Signature(group_layout(group, bits))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        w = Signal(range(self.container_bits + 1), name="width")
        end = Signal(range(2 * self.container_bits))
        field: Any = self.widths.payload
        m.d.comb += [w.eq(field.code + 1), end.eq(self.p + w)]
        if self.zero_width:
            m.d.comb += w.eq(Mux(field.code == 0, 0, field.code + 1))
        gives_up = Signal()
        both = Signal()
        spills = end[-1] & end[:-1].any()
        there = (self.held[0] | (w == 0)) & (self.held[1] | ~spills)
        m.d.comb += [
            self.read.eq(self.widths.valid & there & self.code_free),
            self.widths.ready.eq(there & self.code_free),
            gives_up.eq(self.read & (end[-1] | (field.last & end.any()))),
            both.eq(self.read & field.last & spills),
        ]
        with m.If(self.read):
            m.d.sync += self.p.eq(Mux(field.last, 0, end[:-1]))
        self._hold(m, gives_up, both)
        self._expand(m, w)
        return m

    def _hold(self, m: Module, gives_up: Signal, both: Signal) -> None:
        """The two rows: given up from the first, filled behind what is kept."""
        kept = Signal(2)
        m.d.comb += [
            kept[0].eq(Mux(gives_up, self.held[1] & ~both, self.held[0])),
            kept[1].eq(self.held[1] & ~gives_up),
            self.row.ready.eq(~self.held[1] | gives_up),
        ]
        comes = self.row.valid & self.row.ready
        m.d.sync += [
            self.held[0].eq(kept[0] | comes),
            self.held[1].eq(kept[1] | (kept[0] & comes)),
        ]
        with m.If(~kept[0]):
            m.d.sync += self.rows[0].eq(self.row.payload)
        with m.Elif(gives_up):
            m.d.sync += self.rows[0].eq(self.rows[1])
        with m.If(self.row.ready):
            m.d.sync += self.rows[1].eq(self.row.payload)

    def _expand(self, m: Module, w: Signal) -> None:
        """The last two registers."""
        form = {"group": self.group, "container_bits": self.container_bits}
        shift = place(m, "shift", ShiftOut, **form)
        expand = place(m, "expand", Expand, **form, signed=self.signed)
        free = Signal()
        m.d.comb += [
            shift.current.eq(self.rows[0]),
            shift.following.eq(self.rows[1]),
            shift.p.eq(self.p),
            expand.codes.eq(self.codes),
            expand.w.eq(self.w),
            free.eq(~self.o.valid | self.o.ready),
            self.code_free.eq(~self.shifted | free),
        ]
        with m.If(self.code_free):
            m.d.sync += [
                self.shifted.eq(self.read),
                self.codes.eq(shift.o),
                self.w.eq(w),
                self.last.eq(self.widths.payload.last),
            ]
        with m.If(free):
            m.d.sync += [
                self.o.valid.eq(self.shifted),
                self.o.payload.values.eq(expand.values),
                self.o.payload.last.eq(self.last),
            ]
