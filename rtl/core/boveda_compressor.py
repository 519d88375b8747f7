"""Groups of values in, rows of packed columns and the groups' widths out."""

from typing import Any

from amaranth.hdl import C, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.core.boveda_shift import ShiftIn
from rtl.core.boveda_width import GroupWidth, Magnitudes, check_format
from rtl.hierarchy import place


def group_layout(group: int, container_bits: int) -> data.StructLayout:
    """A group: lanes of values, lane 0 lowest, and whether it is its unit's last."""
    return data.StructLayout({"values": group * container_bits, "last": 1})


def row_layout(group: int, container_bits: int) -> data.StructLayout:
    """A row: lanes of columns, lane 0 lowest, and whether it is its unit's last."""
    return data.StructLayout({"columns": group * container_bits, "last": 1})


def width_layout(container_bits: int) -> data.StructLayout:
    """A group's width field, w − 1 (0 for w = 0), and whether the group is its unit's last."""
    return data.StructLayout({"code": container_bits.bit_length() - 1, "last": 1})


class Compressor(wiring.Component):
    """A unit's groups of G values in B bits, one behind the other, as rows of G columns of B bits.

    A group of width w takes bits p to p + w − 1 of all columns, on into the next row; then
    p ← (p + w) mod B, and p ← 0 after a unit's last group.  Bits that no group takes are 0.

    Latency: a group that crosses `i` in cycle t is merged in t + 2, so that its metadata, and a row
    that it fills or ends, are offered from t + `LATENCY_CYCLES` = t + 3 on.  Three registers: the
    magnitudes and their OR, the codes and w, the row.
    Throughput: one group and at most one row a cycle.  The last group of a unit with p + w > B ends
    two rows, the second a cycle later; in that cycle no group is merged.
    Back-pressure: a group is merged when the register of the metadata is free, or is read in that
    cycle, and so is that of the row, if the group makes one; groups behind it close up.
    With `zero_width` a unit without bits makes no row.

    Members
    -------
    i: groups; row: rows; widths: the width field of every group.
    Raises `InputError` for a group below 1 and containers of other than 4, 8 or 16 bits.
    """

    LATENCY_CYCLES = 3

    i: stream.Interface
    row: stream.Interface
    widths: stream.Interface

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
        # Registers: a group's magnitudes, its codes, and the row that is being filled.  merge: the
        # codes are put into the row.
        self.measured = Signal()
        self.coded = Signal()
        self.magnitudes = Signal(self.row_bits, reset_less=True)
        self.ones = Signal(bits - signed, reset_less=True)
        self.measured_last = Signal(reset_less=True)
        self.coded_last = Signal(reset_less=True)
        self.codes = Signal(self.row_bits, reset_less=True)
        self.w = Signal(range(bits + 1), reset_less=True)
        self.p = Signal(range(bits))
        self.current = Signal(self.row_bits)
        self.ending = Signal()
        self.merge = Signal()
        self.row_free = Signal()
        super().__init__(
            {
                "i": In(stream.Signature(group_layout(group, bits))),
                "row": Out(stream.Signature(row_layout(group, bits))),
                "widths": Out(stream.Signature(width_layout(bits))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        self._measure(m)
        self._merge(m)
        return m

    def _measure(self, m: Module) -> None:
        """The first two registers."""
        form = {"group": self.group, "container_bits": self.container_bits, "signed": self.signed}
        magnitudes = place(m, "magnitudes_of", Magnitudes, **form)
        width = place(m, "width_of", GroupWidth, **form, zero_width=self.zero_width)
        moves = Signal()
        m.d.comb += [
            moves.eq(~self.coded | self.merge),
            self.i.ready.eq(~self.measured | moves),
            magnitudes.values.eq(self.i.payload.values),
            width.magnitudes.eq(self.magnitudes),
            width.ones.eq(self.ones),
        ]
        with m.If(self.i.ready):
            m.d.sync += [
                self.measured.eq(self.i.valid),
                self.magnitudes.eq(magnitudes.magnitudes),
                self.ones.eq(magnitudes.ones),
                self.measured_last.eq(self.i.payload.last),
            ]
        with m.If(moves):
            m.d.sync += [
                self.coded.eq(self.measured),
                self.codes.eq(width.codes),
                self.w.eq(width.w),
                self.coded_last.eq(self.measured_last),
            ]

    def _merge(self, m: Module) -> None:
        """The row: codes are shifted into it, and it leaves when it is full or its unit ends."""
        shift = place(m, "shift", ShiftIn, group=self.group, container_bits=self.container_bits)
        end = Signal(range(2 * self.container_bits))
        full, spills, emits, widths_free = (
            Signal(name=name) for name in ("full", "spills", "emits", "widths_free")
        )
        m.d.comb += [
            shift.codes.eq(self.codes),
            shift.p.eq(self.p),
            end.eq(self.p + self.w),
            full.eq(end[-1]),
            spills.eq(full & end[:-1].any()),
            emits.eq(full | (self.coded_last & end.any())),
            self.row_free.eq(~self.row.valid | self.row.ready),
            widths_free.eq(~self.widths.valid | self.widths.ready),
            self.merge.eq(self.coded & ~self.ending & widths_free & (self.row_free | ~emits)),
        ]
        low, high = self._halves(shift.columns)
        merged = Signal(self.row_bits)
        m.d.comb += merged.eq(self.current | low)
        out: Any = self.row.payload
        makes_row = Signal()
        m.d.comb += makes_row.eq(Mux(self.ending, self.row_free, self.merge & emits))
        with m.If(self.row_free):
            m.d.sync += [
                self.row.valid.eq(makes_row),
                out.columns.eq(Mux(self.ending, self.current, merged)),
                out.last.eq(self.ending | (self.coded_last & ~spills)),
            ]
        with m.If(makes_row):
            m.d.sync += self.current.eq(Mux(self.ending, 0, high))
        with m.Elif(self.merge):
            m.d.sync += self.current.eq(merged)
        self._advance(m, end, spills, widths_free)

    def _advance(self, m: Module, end: Signal, spills: Signal, widths_free: Signal) -> None:
        """The pointer, what remains of a unit that has ended, and the metadata."""
        with m.If(self.merge):
            m.d.sync += [
                self.p.eq(Mux(self.coded_last, 0, end[:-1])),
                self.ending.eq(self.coded_last & spills),
            ]
        with m.Elif(self.row_free):
            m.d.sync += self.ending.eq(0)
        with m.If(widths_free):
            m.d.sync += [
                self.widths.valid.eq(self.merge),
                self.widths.payload.code.eq(self._code()),
                self.widths.payload.last.eq(self.coded_last),
            ]

    def _code(self) -> Value:
        code = (self.w - 1)[: len(self.w) - 1]
        return Mux(self.w == 0, C(0, len(code)), code) if self.zero_width else code

    def _halves(self, columns: Value) -> tuple[Value, Value]:
        """The lower and the upper halves of all columns: this row and the next."""
        bits = self.container_bits
        halves = [columns.word_select(half, bits) for half in range(2 * self.group)]
        return Cat(halves[::2]), Cat(halves[1::2])
