"""Banks of a compressed scratchpad's column behind layers that its cells are seen through."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from archsim.memories.boveda.cells import DIRECTORY, ROWS
from rtl.core.compressed_writer import bank_bits
from rtl.core.memory import Asked, CellLayer, seen_through
from rtl.hierarchy import place

Layers = tuple[CellLayer, ...]


def seen(
    m: Module, layers: Layers, settings: Value | None, store: Any,
    at: tuple[str, str, Value, int],
) -> Value:  # fmt: skip
    """What a bank (`rtl.core.held_bank.HeldBank`) shows, through the layers of its SRAM.

    at: a name; the SRAM; the row that is asked for in this cycle, of all of the SRAM's; the first
    of its bits in that row.  A bank that is asked for what it holds shows that: so in the next
    cycle this is the row that it shows, wherever somebody looks.
    """
    name, sram, row, first_bit = at
    asked = Asked(name, sram, store.read_half, row, first_bit)
    return seen_through(m, layers, settings, store.read_data, asked)


class WrittenRows(wiring.Component):
    """How many rows of a column the tile in each half has: those that a wrong entry may name.

    They are written in order, so that the last one says it.  A half is overwritten behind its last
    read (`docs/contracts/compressed-memory.md`), so a count is that of the tile that is read.

    Members
    -------
    write, address: of the column's even and odd bank; half_in: of which half; half: of which half
    rows are read; count: its rows.
    """

    write: Signal
    address: Signal
    half_in: Signal
    half: Signal
    count: Signal

    def __init__(self, *, rows: int, bank_bits: int) -> None:
        self.rows, self.bank_bits = rows, bank_bits
        super().__init__(
            {
                "write": In(2),
                "address": In(2 * bank_bits),
                "half_in": In(1),
                "half": In(1),
                "count": Out(range(rows + 1)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        even, odd = (self.address.word_select(bank, self.bank_bits) for bank in range(2))
        last_is_odd = self.write[1] & (~self.write[0] | (even == odd))
        last = Mux(last_is_odd, Cat(Const(1, 1), odd), Cat(Const(0, 1), even))
        counts = [Signal.like(self.count, name=f"count_{half}") for half in range(2)]
        for half, count in enumerate(counts):
            with m.If(self.write.any() & (self.half_in == half)):
                m.d.sync += count.eq(last + 1)
        m.d.comb += self.count.eq(Array(counts)[self.half])
        return m


def written_rows(m: Module, column: Any, writer: Any) -> Value:
    """How many rows the tile has that a column reads of (`rtl.core.compressed_writer`)."""
    sizes = {"rows": column.rows, "bank_bits": bank_bits(column.rows)}
    written = place(m, "written_rows", WrittenRows, **sizes)
    m.d.comb += [
        written.write.eq(writer.write),
        written.address.eq(writer.address),
        written.half_in.eq(column.half_in),
        written.half.eq(column.half),
    ]
    return written.count


__all__ = [
    "DIRECTORY",
    "ROWS",
    "Layers",
    "WrittenRows",
    "seen",
    "written_rows",
]
