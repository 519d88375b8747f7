"""Faults put into Boveda's units, for simulation and for proofs alike."""

from collections.abc import Mapping
from typing import Any

from amaranth.hdl import Cat, Module
from faults import Patch, after, drive

from rtl.core.boveda_compressor import Compressor
from rtl.core.boveda_decompressor import Decompressor
from rtl.core.boveda_shift import Expand, ShiftIn, ShiftOut
from rtl.core.boveda_width import GroupWidth, Magnitudes


def _merges(self: Any, *, rows: Any = None, widths: Any = None, ending: Any = None) -> Any:
    """A compressor's merge, with parts of what it waits for replaced."""
    end = self.p + self.w
    emits = (end >= self.container_bits) | (self.coded_last & (end != 0))
    waits = [
        self.row_free | ~emits if rows is None else rows,
        ~self.widths.valid | self.widths.ready if widths is None else widths,
        ~self.ending if ending is None else ending,
    ]
    return self.coded & waits[0] & waits[1] & waits[2]


def _late(self: Any, m: Module) -> None:
    """A group is taken when none is measured, not when one moves on."""
    m.d.comb += self.i.ready.eq(~self.measured)
    with m.If(self.measured & (~self.coded | self.merge)):
        m.d.sync += self.measured.eq(0)


def _no_reset(self: Any, m: Module) -> None:
    with m.If(self.merge):
        m.d.sync += self.p.eq((self.p + self.w)[: len(self.p)])


def _no_reset_behind(self: Any, m: Module) -> None:
    with m.If(self.read):
        m.d.sync += self.p.eq((self.p + self.widths.payload.code + 1)[: len(self.p)])


def _row_twice(self: Any, m: Module) -> None:
    with m.If(self.row.valid & self.row.ready & self.row.payload.last & ~self.merge):
        m.d.sync += self.row.valid.eq(1)


def _row_kept(self: Any, m: Module) -> None:
    with m.If(self.read & self.held[0] & self.widths.payload.last):
        m.d.sync += self.held[0].eq(1)


def _first_lane_only(self: Any, m: Module) -> None:
    value = self.magnitudes[: self.container_bits]
    drive(m, self.ones, value[: len(self.ones)])


def _no_second_row(self: Any, m: Module) -> None:
    reads = self.widths.valid & self.held[0] & self.code_free
    m.d.comb += [self.read.eq(reads), self.widths.ready.eq(self.held[0] & self.code_free)]


def _shifted_alone(self: Any, m: Module) -> None:
    bits = self.container_bits
    lanes = [self.current.word_select(lane, bits) >> self.p for lane in range(self.group)]
    drive(m, self.o, Cat(lane[:bits] for lane in lanes))


COMPRESSOR: Mapping[str, Patch] = {
    "a group one cycle late": after(Compressor, _late),
    "the second row one cycle early": after(
        Compressor,
        lambda self, m: drive(m, self.merge, _merges(self, ending=1)),
    ),
    "the second row dropped": after(Compressor, lambda self, m: _sync(m, self.ending, 0)),
    "a stall of the rows ignored": after(Compressor, lambda self, m: drive(m, self.row_free, 1)),
    "a stall of the widths ignored": after(
        Compressor, lambda self, m: drive(m, self.merge, _merges(self, widths=1))
    ),
    "groups wait for rows they do not end": after(
        Compressor, lambda self, m: drive(m, self.merge, _merges(self, rows=self.row_free))
    ),
    "the pointer not reset at a unit's end": after(Compressor, _no_reset),
    "a row emitted twice": after(Compressor, _row_twice),
    "a unit's last row not flagged": after(
        Compressor, lambda self, m: _sync(m, self.row.payload.last, 0)
    ),
    "a unit's last group not flagged": after(
        Compressor, lambda self, m: _sync(m, self.widths.payload.last, 0)
    ),
    "the lowest bit that spills dropped": after(
        ShiftIn, lambda self, m: drive(m, self.columns[self.container_bits], 0)
    ),
    "a column's top bit dropped": after(
        ShiftIn, lambda self, m: drive(m, self.columns[self.container_bits - 1], 0)
    ),
    "signs dropped": after(
        GroupWidth,
        lambda self, m: drive(
            m, self.codes[: self.container_bits], self.magnitudes[: self.container_bits - 1]
        ),
    ),
    "the least value one bit narrower": after(
        Magnitudes,
        lambda self, m: drive(m, self.ones[-1], self.magnitudes[self.container_bits - 2]),
    ),
    "the width of the first lane alone": after(Magnitudes, _first_lane_only),
}

DECOMPRESSOR: Mapping[str, Patch] = {
    "a row one cycle late": after(
        Decompressor, lambda self, m: drive(m, self.row.ready, ~self.held[1])
    ),
    "a group read before its second row": after(Decompressor, _no_second_row),
    "a stall of the groups ignored": after(
        Decompressor, lambda self, m: drive(m, self.code_free, 1)
    ),
    "the pointer not reset behind a unit": after(Decompressor, _no_reset_behind),
    "a unit's last row kept": after(Decompressor, _row_kept),
    "a group's unit end dropped": after(Decompressor, lambda self, m: _sync(m, self.last, 0)),
    "the next row not looked at": after(ShiftOut, _shifted_alone),
    "signs lost": after(Expand, lambda self, m: drive(m, self.values[self.container_bits - 1], 0)),
    "bits of the next group taken along": after(
        Expand, lambda self, m: drive(m, self.values[0], self.codes[0] | self.codes[1])
    ),
}


def _sync(m: Module, target: Any, value: Any) -> None:
    m.d.sync += target.eq(value)
