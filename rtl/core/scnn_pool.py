"""Max pooling in an SCNN core: the walk over windows, and a window's maximum."""

from amaranth.hdl import C, Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from archsim.machines.scnn.command import COORDINATE_BITS, WINDOW_BITS
from archsim.machines.scnn.design import Scnn
from rtl.core.scnn_layouts import layer_layout

OFFSET_BITS = COORDINATE_BITS + 1
"""Of a row or column counted from the first of a PE's first window, which may lie before it."""


class WindowWalk(wiring.Component):
    """row = window row · row_step + row in the window, for each row of the window: for each column.

    Counted from the first place of the PE's first window; columns alike.
    Latency: none, all outputs stand for this cycle.  Throughput: a place a cycle.  Never stalls.

    Members
    -------
    layer: the command; step: to the next place of the window, behind the last to its first; next:
    (with step) to the window at the right; turn: (with next) to the first one of the next row of
    windows; restart: (with turn) to the first row; row, column; first, last: of the window.

    With `ahead`, what is the last place of a row, and the last row, of a window is compared a cycle
    before, into registers; in the same cycles, from the second of a command on.
    """

    layer: data.View
    step: Signal
    next: Signal
    turn: Signal
    restart: Signal
    row: Signal
    column: Signal
    first: Signal
    last: Signal

    def __init__(self, *, ahead: bool = False) -> None:
        self.ahead = ahead
        super().__init__(
            {
                "layer": In(layer_layout()),
                **{name: In(1) for name in ("step", "next", "turn", "restart")},
                **{name: Out(OFFSET_BITS) for name in ("row", "column")},
                **{name: Out(1) for name in ("first", "last")},
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        layer = self.layer
        top, left = (Signal(OFFSET_BITS, name=name) for name in ("top", "left"))
        down, right = (Signal(WINDOW_BITS, name=name) for name in ("down", "right"))
        row_ends, ends = Signal(), Signal()
        next_down, next_right = (
            Signal(WINDOW_BITS, name=name) for name in ("next_down", "next_right")
        )
        m.d.comb += [next_down.eq(down), next_right.eq(right)]
        with m.If(self.step):
            m.d.comb += next_right.eq(Mux(row_ends, 0, right + 1))
            with m.If(row_ends):
                m.d.comb += next_down.eq(Mux(self.last, 0, down + 1))
        m.d.sync += [down.eq(next_down), right.eq(next_right)]
        if self.ahead:
            m.d.sync += [
                row_ends.eq(next_right + 1 == layer.window_columns),
                ends.eq(next_down + 1 == layer.window_rows),
            ]
        else:
            m.d.comb += [
                row_ends.eq(right + 1 == layer.window_columns),
                ends.eq(down + 1 == layer.window_rows),
            ]
        m.d.comb += [
            self.first.eq((down == 0) & (right == 0)),
            self.last.eq(row_ends & ends),
            self.row.eq(top + down),
            self.column.eq(left + right),
        ]
        with m.If(self.next):
            m.d.sync += left.eq(Mux(self.turn, 0, left + layer.column_step))
            with m.If(self.turn):
                m.d.sync += top.eq(Mux(self.restart, 0, top + layer.row_step))
        return m


class WindowMaximum(wiring.Component):
    """o = the largest of the values that count, from the one with `first` on.

    Without one that counts it is the lowest number, which no padding may win against.
    Latency: none, o has this cycle's value in it.  Throughput: a value a cycle.  Never stalls.

    Members
    -------
    first: a window begins with this value; counts: it is in the plane; value; o.
    """

    first: Signal
    counts: Signal
    value: Signal
    o: Signal

    def __init__(self, *, design: Scnn) -> None:
        self.bits = design.operand_bits
        super().__init__(
            {
                "first": In(1),
                "counts": In(1),
                "value": In(signed(self.bits)),
                "o": Out(signed(self.bits)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        lowest = C(-(1 << (self.bits - 1)), signed(self.bits))
        held, before, now = (
            Signal(signed(self.bits), name=name) for name in ("held", "before", "now")
        )
        m.d.comb += [
            before.eq(Mux(self.first, lowest, held)),
            now.eq(Mux(self.counts, self.value, lowest)),
            self.o.eq(Mux(now > before, now, before)),
        ]
        m.d.sync += held.eq(self.o)
        return m
