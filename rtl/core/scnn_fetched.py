"""The activations of a PE with `pipelined_pes`: fetched and decoded ahead of their pairs."""

from typing import Any, ClassVar

from amaranth.hdl import Cat, Module, Mux, Signal, Value, signed
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from archsim.machines.scnn.command import COORDINATE_BITS, POSITION_BITS
from archsim.machines.scnn.design import Scnn
from rtl.core.elastic import ElasticStages, stage_registers
from rtl.core.queue import HeadedQueue
from rtl.core.scnn_activations import Activations
from rtl.core.scnn_layouts import (
    PLACE_BITS,
    accumulator_address_bits,
    activation_layout,
    axis_layout,
    positions,
)
from rtl.hierarchy import place

WORD, POSITIONS, PLACES, PRODUCTS = range(4)
"""Stages of registers: what was read; positions; rows and columns; row · Wacc."""

WAITING = 2
"""Decoded vectors that wait, so that whether one more may come lies in registers."""


def stage_layouts(design: Scnn) -> tuple[data.Layout, ...]:
    """What the stages behind the first hold; `ends`: last, empty."""
    lanes = design.ifmap_lanes
    base = axis_layout()["base"].shape
    every = {"values": data.ArrayLayout(signed(design.operand_bits), lanes), "ends": 2}
    coordinates = data.ArrayLayout(signed(PLACE_BITS), lanes)
    places = {**every, "rows": coordinates, "columns": coordinates}
    products = data.ArrayLayout(accumulator_address_bits(design), lanes)
    found = data.ArrayLayout(POSITION_BITS, lanes)
    return (
        data.StructLayout({**every, "found": found, "row_base": base, "column_base": base}),
        data.StructLayout(places),
        data.StructLayout({**places, "products": products}),
    )


class FetchedActivations(Activations):
    """As `Activations`, with registers between the memory and its positions, rows and columns,
    row · Wacc and the address; then a queue.

    From `go` on the vectors of a group are fetched, one behind the other, as far as there is room.
    Latency: the first is at o `FETCH_CYCLES` behind the group's first cycle.  Throughput: one
    vector a cycle.  Back-pressure: a vector that is not stepped over holds up those behind it.

    Members
    -------
    as there, without `restart`, which follows from the number of lists; go: a group begins with the
    next cycle; valid: o and empty are of the vector that the PE stands at.
    """

    go: Signal
    valid: Signal

    more_members: ClassVar[dict[str, Any]] = {"go": In(1), "valid": Out(1)}

    def elaborate(self, platform: object) -> Module:
        m = Module()
        self.stages = place(m, "stages", ElasticStages, stages=len(stage_layouts(self.design)) + 1)
        shown = Signal(
            data.StructLayout({"o": activation_layout(self.design), "empty": 1}), name="shown"
        )
        queue: Any = place(m, "queue", HeadedQueue, width=len(shown.as_value()), depth=WAITING)
        self._show(m, self._multiply(m, self._locate(m, self._position(m, self._fetch(m)))), shown)
        m.d.comb += [
            self.stages.o_ready.eq(queue.i.ready),
            queue.i.valid.eq(self.stages.o_valid),
            queue.i.payload.eq(shown.as_value()),
            self.valid.eq(queue.o.valid),
            Cat(self.o.as_value(), self.empty).eq(queue.o.payload),
            queue.o.ready.eq(self.step),
        ]
        return m

    def _fetch(self, m: Module) -> data.View:
        """Step through the lists of a group."""
        self.fetching = fetching = Signal(name="fetching")
        left = Signal(len(self.layer.lists))
        step, restart = Signal(name="fetch"), Signal(name="restart")
        word = self._memory(m, step, restart)
        m.d.comb += [
            self.stages.i_valid.eq(fetching),
            step.eq(fetching & self.stages.i_ready),
            restart.eq(word.last & (left == 1)),
        ]
        with m.If(step & word.last):
            m.d.sync += left.eq(left - 1)
        with m.If(step & restart):
            m.d.sync += fetching.eq(0)
        with m.If(~fetching):
            m.d.sync += left.eq(self.layer.lists)
        with m.If(self.go):
            m.d.sync += fetching.eq(1)
        return stage_registers(m, self.stages, WORD, word)

    def _read(self, m: Module, step: Value, restart: Value) -> None:
        """Back at the first vector while none is fetched, not as the last one is: what is read next
        does not hang on what was read."""
        idle = ~self.fetching
        super()._read(m, step | idle, idle)

    def _next(self, stage: int) -> data.View:
        """What a stage takes."""
        layout = stage_layouts(self.design)[stage - POSITIONS]
        found: data.View = Signal(layout, name=f"to_stage_{stage}")
        return found

    def _position(self, m: Module, word: data.View) -> data.View:
        """Positions of the lanes, and of which phase they are."""
        o, moves = self._next(POSITIONS), self.stages.takes[POSITIONS]
        first, base = Signal(init=1), Signal(POSITION_BITS)
        found, after = positions(base, word, self.design.ifmap_lanes)
        with m.If(moves):
            m.d.sync += [first.eq(word.last), base.eq(Mux(word.last, 0, after))]
        row_base, column_base = self._bases(m, moves & word.last)
        m.d.comb += [o.row_base.eq(row_base), o.column_base.eq(column_base)]
        for lane, at in enumerate(found):
            m.d.comb += [o.values[lane].eq(word.lanes[lane].value), o.found[lane].eq(at)]
        some = o.values.as_value().any()
        m.d.comb += o.ends.eq(Cat(word.last, first & word.last & ~some))
        return stage_registers(m, self.stages, POSITIONS, o)

    def _locate(self, m: Module, i: data.View) -> data.View:
        """The output that tap 0 leads to."""
        o, bits = self._next(PLACES), self.layer.tile_bits
        m.d.comb += [o.values.eq(i.values), o.ends.eq(i.ends)]
        for lane in range(self.design.ifmap_lanes):
            y, x = (Signal(COORDINATE_BITS, name=f"{axis}_{lane}") for axis in ("y", "x"))
            m.d.comb += [
                y.eq(i.found[lane] >> bits),
                x.eq(i.found[lane] & ((1 << bits) - 1)),
                o.rows[lane].eq(y + i.row_base),
                o.columns[lane].eq(x + i.column_base),
            ]
        return stage_registers(m, self.stages, PLACES, o)

    def _multiply(self, m: Module, i: data.View) -> data.View:
        """The row's first address, but for the pitch of filters."""
        o = self._next(PRODUCTS)
        m.d.comb += [getattr(o, name).eq(getattr(i, name)) for name in i.shape().members]
        for lane in range(self.design.ifmap_lanes):
            m.d.comb += o.products[lane].eq(i.rows[lane] * self.layer.region_columns)
        return stage_registers(m, self.stages, PRODUCTS, o)

    def _show(self, m: Module, i: data.View, shown: data.View) -> None:
        """The vector, decoded."""
        o, bits = shown.o, self.layer.filter_bits
        m.d.comb += Cat(o.last, shown.empty).eq(i.ends)
        for lane in range(self.design.ifmap_lanes):
            m.d.comb += [
                o.lanes[lane].value.eq(i.values[lane]),
                o.lanes[lane].row.eq(i.rows[lane]),
                o.lanes[lane].column.eq(i.columns[lane]),
                o.lanes[lane].address.eq((i.products[lane] + i.columns[lane]) << bits),
            ]
