"""Groups into rows: what stands before the memories of a compressed scratchpad's group column."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.core.boveda_shift import ShiftIn
from rtl.core.boveda_width import measured
from rtl.core.sram import address_bits
from rtl.hierarchy import place


def entry_bits(*, rows: int, unit_words: int, container_bits: int) -> int:
    """Bits of a directory entry: the first row of a unit, then w − 1 of its words."""
    return address_bits(rows) + unit_words * (container_bits.bit_length() - 1)


class ColumnWriter(wiring.Component):
    """Rows and directory entries of the groups of one column, 2 cycles behind the values.

    A group of width w takes bits p to p + w − 1 of its columns; what is beyond bit B − 1 waits for
    the next row.  A row is written when it is full, and at the end of a unit; a group that fills a
    row and ends its unit in the next writes both: one is even, one odd.  The entry is that of the
    unit up to this word; it is complete at the unit's end.
    Throughput: a group a cycle.  Never stalls.

    Members
    -------
    values: lanes of B bits; and 2 cycles later, of the same word: valid, index: its place in the
    unit; ends: it is the unit's last; tile_ends: and the tile's.  write, address, data: to the
    rows, in lane 0 the even, in lane 1 the odd; entry: to the directory.
    """

    values: Signal
    valid: Signal
    index: Signal
    ends: Signal
    tile_ends: Signal
    write: Signal
    address: Signal
    data: Signal
    entry: Signal

    def __init__(
        self, *, group: int, container_bits: int, signed: bool, unit_words: int, rows: int
    ) -> None:
        self.size = {"group": group, "container_bits": container_bits}
        self.signed = signed
        self.unit_words = unit_words
        self.rows = rows
        entry = entry_bits(rows=rows, unit_words=unit_words, container_bits=container_bits)
        super().__init__(
            {
                "values": In(group * container_bits),
                "valid": In(1),
                "index": In(index_bits(unit_words)),
                "ends": In(1),
                "tile_ends": In(1),
                "write": Out(2),
                "address": Out(2 * bank_bits(rows)),
                "data": Out(2 * group * container_bits),
                "entry": Out(entry),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        w, codes = self._measure(m)
        low, high, total = self._shift(m, w, codes)
        spills = Signal()
        full = total[-1]
        m.d.comb += spills.eq(full & (total[:-1] != 0))
        row = self._write_rows(m, (full, spills), (low, high))
        self._write_entry(m, row, w)
        return m

    def _measure(self, m: Module) -> tuple[Signal, Signal]:
        """Width and codes, two registers behind the values."""
        return measured(m, self.values, zero_width=False, **self.size, signed=self.signed)

    def _shift(self, m: Module, w: Signal, codes: Signal) -> tuple[Value, Value, Signal]:
        """The row of this group with those before it, the next row, and p + w."""
        bits, group = self.size["container_bits"], self.size["group"]
        p = Signal(range(bits), name="pointer")
        begun = Signal(group * bits)
        total = Signal(len(p) + 1)
        shift = place(m, "shift_in", ShiftIn, **self.size)
        m.d.comb += [shift.codes.eq(codes), shift.p.eq(p), total.eq(p + w)]
        lanes = [shift.columns.word_select(lane, 2 * bits) for lane in range(group)]
        low, high = Signal(group * bits), Signal(group * bits)
        m.d.comb += [
            low.eq(Cat(lane[:bits] for lane in lanes) | begun),
            high.eq(Cat(lane[bits:] for lane in lanes)),
        ]
        with m.If(self.valid):
            m.d.sync += [
                p.eq(Mux(self.ends, 0, total[:-1])),
                begun.eq(Mux(self.ends, 0, Mux(total[-1], high, low))),
            ]
        return low, high, total

    def _write_rows(
        self, m: Module, flags: tuple[Value, Value], data: tuple[Value, Value]
    ) -> Signal:
        """Write what is complete; returns the row of this group's first bits."""
        full, spills = flags
        bank = bank_bits(self.rows)
        row = Signal(range(self.rows + 2))
        first, second, odd = Signal(), Signal(), row[0]
        m.d.comb += [
            first.eq(self.valid & (full | self.ends)),
            second.eq(self.valid & self.ends & spills),
            self.write.eq(Cat(Mux(odd, second, first), Mux(odd, first, second))),
            self.address.eq(Cat((row + 1)[1:][:bank], row[1:][:bank])),
            self.data.eq(Cat(Mux(odd, data[1], data[0]), Mux(odd, data[0], data[1]))),
        ]
        with m.If(self.valid):
            with m.If(self.tile_ends):
                m.d.sync += row.eq(0)
            with m.Elif(self.ends):
                m.d.sync += row.eq(row + 1 + spills)
            with m.Else():
                m.d.sync += row.eq(row + full)
        return row

    def _write_entry(self, m: Module, row: Signal, w: Signal) -> None:
        """The unit's first row and widths: those of the words before, and this one's."""
        code_bits = len(w) - 1
        code = (w - 1)[:code_bits]
        begins = self.index == 0
        first = Signal(address_bits(self.rows))
        fields: list[Value] = [Mux(begins, row, first)[: len(first)]]
        with m.If(self.valid & begins):
            m.d.sync += first.eq(row)
        for number in range(self.unit_words):
            here = self.index == number
            if number == self.unit_words - 1:
                fields.append(code)
                continue
            kept = Signal(code_bits, name=f"width_{number}", reset_less=True)
            with m.If(self.valid & here):
                m.d.sync += kept.eq(code)
            fields.append(Mux(here, code, kept))
        m.d.comb += self.entry.eq(Cat(fields))


def bank_bits(rows: int) -> int:
    """Bits of an address into the even or the odd ones of so many rows."""
    return address_bits(-(-rows // 2))


def index_bits(unit_words: int) -> int:
    """Bits of a word's place in its unit."""
    return address_bits(unit_words)
