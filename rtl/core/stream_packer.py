"""Groups of values into rows, one column of a memory that is read as it was written."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.core.boveda_shift import ShiftIn
from rtl.core.boveda_width import measured
from rtl.core.sram import address_bits
from rtl.hierarchy import place


class StreamPacker(wiring.Component):
    """A group of width w takes bits p to p + w − 1 of its columns; then p ← (p + w) mod B.

    A group of zeros takes none.  A row is written when it is full, and what is begun when the
    content ends; then p and the row are 0 again.
    Latency: rows and widths 2 cycles behind the values (magnitudes, width).  Throughput: a group a
    cycle.  Never stalls.  `bounded`: rows behind the last one are not counted on, so that whoever
    keeps rows may drop them.

    Members
    -------
    values: G lanes of B bits; 2 cycles later append: the group is one of the content; flush: the
    content has ended, in a cycle without append; write, row, data: to the rows; code: the width
    field, of the group that is appended.
    """

    values: Signal
    append: Signal
    flush: Signal
    write: Signal
    row: Signal
    data: Signal
    code: Signal

    def __init__(
        self, *, group: int, container_bits: int, rows: int, bounded: bool = False
    ) -> None:
        self.size = {"group": group, "container_bits": container_bits}
        self.last_row = rows if bounded else None
        lanes = group * container_bits
        super().__init__(
            {
                "values": In(lanes),
                "append": In(1),
                "flush": In(1),
                "write": Out(1),
                "row": Out(address_bits(rows + bounded)),
                "data": Out(lanes),
                "code": Out(container_bits.bit_length() - 1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        w, codes = self._measure(m)
        bits, group = self.size["container_bits"], self.size["group"]
        self.p = p = Signal(range(bits), name="pointer")
        self.begun = begun = Signal(group * bits, name="begun")
        total = Signal(len(p) + 1)
        row = Signal.like(self.row, name="rows_full")
        shift = place(m, "shift_in", ShiftIn, **self.size)
        m.d.comb += [shift.codes.eq(codes), shift.p.eq(p), total.eq(p + w)]
        lanes = [shift.columns.word_select(lane, 2 * bits) for lane in range(group)]
        low, high = Signal(group * bits), Signal(group * bits)
        full = total[-1]
        m.d.comb += [
            low.eq(Cat(lane[:bits] for lane in lanes) | begun),
            high.eq(Cat(lane[bits:] for lane in lanes)),
            self.write.eq(Mux(self.flush, p != 0, self.append & full)),
            self.row.eq(row),
            self.data.eq(Mux(self.flush, begun, low)),
            self.code.eq(Mux(w == 0, 0, w - 1)),
        ]
        with m.If(self.flush):
            m.d.sync += [p.eq(0), row.eq(0), begun.eq(0)]
        with m.Elif(self.append):
            more = full if self.last_row is None else full & (row != self.last_row)
            m.d.sync += [p.eq(total[:-1]), row.eq(row + more), begun.eq(Mux(full, high, low))]
        return m

    def _measure(self, m: Module) -> tuple[Signal, Signal]:
        """Width and codes, two registers behind the values."""
        return measured(m, self.values, zero_width=True, **self.size, signed=True)
