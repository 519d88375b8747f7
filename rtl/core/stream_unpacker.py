"""Rows into groups of values, one column of a memory that is read as it was written."""

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.core.boveda_shift import Unpack
from rtl.core.sram import address_bits
from rtl.hierarchy import place


class StreamUnpacker(wiring.Component):
    """values = bits p to p + w − 1 of the rows from `row` on; with `advance` p and row move on.

    Rows lie in an even and an odd bank, so that both rows of a group are there at once, whatever
    group comes next: also the first one, behind the content's last.
    Latency: addresses are those of the next cycle's group; values are combinational behind the
    banks.  Throughput: a group a cycle.  Never stalls.  `bounded`: rows from `written` on are
    zeros; the number of a group's first row wraps at its bits.

    Members
    -------
    code: the group's width field; even, odd: what the banks' addresses have given; advance: to the
    next group; last: this is the content's last one, the first comes next; rewind: to the first;
    written, where bounded: how many rows there are; even_address, odd_address: of the banks;
    values: G lanes of B bits; gives_up: of how many rows it is the last group.
    """

    code: Signal
    even: Signal
    odd: Signal
    advance: Signal
    last: Signal
    rewind: Signal
    written: Signal
    even_address: Signal
    odd_address: Signal
    values: Signal
    gives_up: Signal

    def __init__(
        self, *, group: int, container_bits: int, rows: int, bounded: bool = False
    ) -> None:
        self.size = {"group": group, "container_bits": container_bits}
        self.bounded = bounded
        self.row_bits = address_bits(rows)
        lanes, bank = group * container_bits, address_bits(-(-rows // 2))
        super().__init__(
            {
                "code": In(container_bits.bit_length() - 1),
                "even": In(lanes),
                "odd": In(lanes),
                **{name: In(1) for name in ("advance", "last", "rewind")},
                **({"written": In(range(rows + 1))} if bounded else {}),
                "even_address": Out(bank),
                "odd_address": Out(bank),
                "values": Out(lanes),
                "gives_up": Out(2),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bits = self.size["container_bits"]
        self.p = p = Signal(range(bits), name="pointer")
        self.row = row = Signal(self.row_bits, name="row")
        next_p, next_row = Signal.like(p), Signal.like(row)
        w, end = Signal(range(bits + 1), name="width"), Signal(len(p) + 1)
        restarts = Signal()
        unpack = place(m, "unpack", Unpack, **self.size, signed=True)
        m.d.comb += [
            w.eq(Mux(self.code == 0, 0, self.code + 1)),
            end.eq(p + w),
            restarts.eq(self.rewind | (self.advance & self.last)),
            next_p.eq(Mux(restarts, 0, Mux(self.advance, end[:-1], p))),
            next_row.eq(Mux(restarts, 0, row + (self.advance & end[-1]))),
            self.even_address.eq((next_row + 1)[1:]),
            self.odd_address.eq(next_row[1:]),
            unpack.current.eq(self._there(row, Mux(row[0], self.odd, self.even))),
            unpack.following.eq(self._there(row + 1, Mux(row[0], self.even, self.odd))),
            unpack.p.eq(p),
            unpack.w.eq(w),
            self.values.eq(unpack.values),
            self.gives_up.eq(end[-1] + (self.last & end[:-1].any())),
        ]
        m.d.sync += [p.eq(next_p), row.eq(next_row)]
        return m

    def _there(self, row: Value, data: Value) -> Value:
        """A row; zeros where it is not there."""
        return Mux(row < self.written, data, 0) if self.bounded else data
