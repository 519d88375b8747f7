"""The lists of all PEs on their way through a port: whose turn it is, and when they are over."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out


class ListWalk(wiring.Component):
    """for row: for column: for list: vectors up to the one with its flag.

    Latency: `open` in the cycle after `start`; the next PE's turn is in the cycle after its
    predecessor's last vector.  Throughput: one vector a cycle.  Never stalls.

    Members
    -------
    start: begin; rows, columns: how many PEs there are, up to `most`; lists: of each, given with
    `start` already; cross, last: a vector crosses in this cycle, and ends its list; open: vectors
    are to come; row, column: whose; pe_ends: the PE's last one crosses in this cycle; ended: the
    last of all does.
    """

    start: Signal
    rows: Signal
    columns: Signal
    lists: Signal
    cross: Signal
    last: Signal
    open: Signal
    row: Signal
    column: Signal
    pe_ends: Signal
    ended: Signal

    def __init__(self, *, most: int, lists_bits: int) -> None:
        self.lists_bits = lists_bits
        index = range(max(most, 2))  # no ports of no bits
        super().__init__(
            {
                **{name: In(1) for name in ("start", "cross", "last")},
                "rows": In(range(most + 1)),
                "columns": In(range(most + 1)),
                "lists": In(lists_bits),
                "open": Out(1),
                "row": Out(index),
                "column": Out(index),
                "pe_ends": Out(1),
                "ended": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        left = Signal(self.lists_bits)
        list_ends, pe_ends, row_ends = Signal(), self.pe_ends, Signal()
        m.d.comb += [
            list_ends.eq(self.cross & self.last),
            pe_ends.eq(list_ends & (left == 1)),
            row_ends.eq(pe_ends & (self.column + 1 == self.columns)),
            self.ended.eq(row_ends & (self.row + 1 == self.rows)),
        ]
        with m.If(self.start | pe_ends):
            m.d.sync += left.eq(self.lists)
        with m.Elif(list_ends):
            m.d.sync += left.eq(left - 1)
        with m.If(pe_ends):
            m.d.sync += self.column.eq(Mux(row_ends, 0, self.column + 1))
        with m.If(row_ends):
            m.d.sync += self.row.eq(Mux(self.ended, 0, self.row + 1))
        with m.If(self.start):
            m.d.sync += self.open.eq(1)
        with m.Elif(self.ended):
            m.d.sync += self.open.eq(0)
        return m
