"""The activations of a PE, from the memory that holds them: addresses, and the decoder."""

from typing import Any, ClassVar

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from archsim.machines.scnn.command import COORDINATE_BITS, PHASE_BITS, POSITION_BITS
from archsim.machines.scnn.design import Scnn
from rtl.core.memory import rtl_of
from rtl.core.scnn_cells import lists_overflow
from rtl.core.scnn_layouts import (
    activation_layout,
    axis_layout,
    layer_layout,
    positions,
    vector_layout,
)
from rtl.core.sram import address_bits


class Activations(wiring.Component):
    """position = y' · 2^tile_bits + x'  →  row = y' + base, column = x' + base, (row · Wacc +
    column) · Kp.

    The lists of all channels and phases stand one behind the other; every group reads them all.
    A phase from the axis's threshold on begins an output earlier.
    Latency: a vector written in a cycle is decoded at o in the next one; o is the vector that the
    PE stands at, and combinational behind the memory.  Throughput: one vector a cycle.  Never
    stalls.

    Members
    -------
    layer, row, column: the command; store: of the memory (`rtl.core.scnn_memories`), of `depth`
    vectors at most; clear: a layer begins; write, i: a vector from the port; step:
    to the next vector; restart, with step: to the first one (a memory that compresses values knows
    by itself where it ends); o, and empty: it is the whole list of
    a channel and phase without values.
    """

    layer: data.View
    row: data.View
    column: data.View
    store: wiring.PureInterface
    clear: Signal
    write: Signal
    i: data.View
    step: Signal
    restart: Signal
    o: data.View
    empty: Signal

    more_members: ClassVar[dict[str, Any]] = {"restart": In(1)}

    def __init__(self, *, design: Scnn) -> None:
        self.design = design
        self.depth = max(design.iaram_entries, design.oaram_entries)
        self.word_layout = vector_layout(design, design.ifmap_lanes)
        super().__init__(
            {
                "layer": In(layer_layout()),
                "row": In(axis_layout()),
                "column": In(axis_layout()),
                "store": In(rtl_of(design.activation_memory).port(design)),
                **{name: In(1) for name in ("clear", "write", "step")},
                **self.more_members,
                "i": In(self.word_layout),
                "o": Out(activation_layout(design)),
                "empty": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        word = self._memory(m, self.step, self.restart)
        lanes = self.design.ifmap_lanes
        first, base = Signal(init=1), Signal(POSITION_BITS)
        found, after = positions(base, word, lanes)
        values = [word.lanes[lane].value != 0 for lane in range(lanes)]
        any_value = Signal()
        m.d.comb += [
            any_value.eq(sum(values) != 0),
            self.empty.eq(first & word.last & ~any_value),
            self.o.last.eq(word.last),
        ]
        with m.If(self.step):
            m.d.sync += [first.eq(word.last), base.eq(Mux(word.last, 0, after))]
        bases = self._bases(m, self.step & word.last)
        for lane, position in enumerate(found):
            m.d.comb += self.o.lanes[lane].value.eq(word.lanes[lane].value)
            self._decode(m, lane, position, bases)
        return m

    def _memory(self, m: Module, step: Value, restart: Value) -> data.View:
        """The vector that the memory stands at."""
        word = Signal(self.word_layout)
        written = Signal(address_bits(self.depth + 1))
        store: Any = self.store
        m.d.comb += [
            store.write.eq(self.write),
            store.write_address.eq(written),
            store.write_data.eq(self.i.as_value()),
            word.as_value().eq(store.read_data),
        ]
        if self.design.activation_memory.stepped:
            m.d.comb += [store.append.eq(1), store.count.eq(written), store.step.eq(step)]
        else:
            self._read(m, step, restart)
        with m.If(self.clear):
            m.d.sync += written.eq(0)
        with m.Elif(self.write):
            m.d.sync += written.eq(written + 1)
        return word

    def _read(self, m: Module, step: Value, restart: Value) -> None:
        """The address of the vector that the memory stands at in the next cycle."""
        reading, next_reading = (
            Signal(address_bits(self.depth + 1), name=name) for name in ("reading", "next_reading")
        )
        store: Any = self.store
        m.d.comb += [
            store.read_address.eq(next_reading),
            next_reading.eq(Mux(step, Mux(restart, 0, self._after(reading)), reading)),
        ]
        m.d.sync += reading.eq(next_reading)

    def _after(self, reading: Signal) -> Value:
        """The next address; the last one, where lists go on behind it."""
        if not lists_overflow(self.design):
            return reading + 1
        return Mux(reading == self.depth, self.depth, reading + 1)

    def _bases(self, m: Module, list_ends: Value) -> tuple[Signal, Signal]:
        """Count the phases; returns the bases of the rows and columns of this one."""
        layer = self.layer
        phase_row, phase_column = Signal(PHASE_BITS), Signal(PHASE_BITS)
        ends = Signal()
        m.d.comb += ends.eq(list_ends)
        with m.If(ends):
            turn = phase_column + 1 == layer.phase_columns
            m.d.sync += phase_column.eq(Mux(turn, 0, phase_column + 1))
            with m.If(turn):
                m.d.sync += phase_row.eq(Mux(phase_row + 1 == layer.phase_rows, 0, phase_row + 1))
        row_base, column_base = Signal(self.row.base.shape()), Signal(self.column.base.shape())
        m.d.comb += [
            row_base.eq(self.row.base - (phase_row >= self.row.threshold)),
            column_base.eq(self.column.base - (phase_column >= self.column.threshold)),
        ]
        return row_base, column_base

    def _decode(self, m: Module, lane: int, position: Value, bases: tuple[Signal, Signal]) -> None:
        layer, word = self.layer, self.o.lanes[lane]
        row_base, column_base = bases
        y, x = (Signal(COORDINATE_BITS, name=f"{axis}_{lane}") for axis in ("y", "x"))
        row, column = (
            Signal(self.o.lanes[0].row.shape(), name=f"{axis}_{lane}") for axis in ("row", "column")
        )
        m.d.comb += [
            y.eq(position >> layer.tile_bits),
            x.eq(position & ((1 << layer.tile_bits) - 1)),
            row.eq(y + row_base),
            column.eq(x + column_base),
            word.row.eq(row),
            word.column.eq(column),
            word.address.eq((row * layer.region_columns + column) << layer.filter_bits),
        ]
