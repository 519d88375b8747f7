"""Decode compressed weights once, before they are broadcast to the PEs."""

from typing import Any, ClassVar

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from archsim.machines.scnn.command import PHASE_BITS, POSITION_BITS, TAP_BITS
from archsim.machines.scnn.design import Scnn
from archsim.machines.scnn.pipeline import DECODE_CYCLES
from rtl.core.delay import Delay
from rtl.core.scnn_layouts import layer_layout, positions, vector_layout, weight_layout
from rtl.hierarchy import place


class WeightDecoder(wiring.Component):
    """position = (r' · 2^s_bits + s') · 2^filter_bits + k  →  r', s', k − (r' · Wacc + s') · Kp.

    The last of these is what a weight adds to the index of an accumulator.  Combinational from i
    to o; a register keeps the position from one vector of a list to the next.
    Throughput: one vector a cycle.  Never stalls.

    Members
    -------
    layer: the command; start: a layer begins with the next cycle; cross: the vector at i is taken
    in this cycle; open: weights of the layer are still to come.
    """

    layer: data.View
    start: Signal
    i: data.View
    cross: Signal
    o: data.View
    open: Signal

    more_members: ClassVar[dict[str, Any]] = {}

    def __init__(self, *, design: Scnn) -> None:
        self.design = design
        super().__init__(
            {
                **self.more_members,
                "layer": In(layer_layout()),
                "start": In(1),
                "i": In(vector_layout(design, design.weight_lanes)),
                "cross": In(1),
                "o": Out(weight_layout(design)),
                "open": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        self.filters = Signal(len(self.layer.filters))
        column_bits = self._walk(m)
        base = Signal(POSITION_BITS)
        found, after = positions(base, self.i, self.design.weight_lanes)
        with m.If(self.start):
            m.d.sync += base.eq(0)
        with m.Elif(self.cross):
            m.d.sync += base.eq(Mux(self.i.last, 0, after))
        self._pass_flags(m)
        for lane, position in enumerate(found):
            self._decode(m, lane, position, column_bits)
        return m

    def _walk(self, m: Module) -> Value:
        """Count groups, lists and column phases; returns log2 of the pitch of kernel columns."""
        layer = self.layer
        phase = Signal(PHASE_BITS)
        lists, groups = Signal(len(layer.lists)), Signal(len(layer.groups))
        ends = self._list_ends()
        last = self._last_list(m, lists, ends)
        self._open(m, groups, ends & last)
        with m.If(ends):
            m.d.sync += [
                phase.eq(Mux(phase + 1 == layer.phase_columns, 0, phase + 1)),
                lists.eq(lists + 1),
            ]
            with m.If(last):
                m.d.sync += [lists.eq(0), groups.eq(groups + 1)]
        with m.If(self.start):
            m.d.sync += [phase.eq(0), lists.eq(0), groups.eq(0)]
        m.d.comb += self.filters.eq(
            Mux(groups + 1 == layer.groups, layer.filters_last, layer.filters)
        )
        return Mux(phase < layer.wide_phases, layer.wide_bits, layer.narrow_bits)

    def _last_list(self, m: Module, lists: Signal, ends: Value) -> Value:
        """Whether the list is the last one of its group; lists: that are over; ends: one more is
        with this cycle."""
        return lists + 1 == self.layer.lists

    def _open(self, m: Module, groups: Signal, group_ends: Value) -> None:
        """Whether weights are still to come; groups: that are over."""
        m.d.comb += self.open.eq(groups != self.layer.groups)

    def _pass_flags(self, m: Module) -> None:
        """What goes with the vector."""
        m.d.comb += self.o.last.eq(self.i.last)

    def _list_ends(self) -> Value:
        """Whether the list is over with this cycle."""
        return self.cross & self.i.last

    def _value(self, lane: int, filter_: Value) -> Value:
        """A lane's value."""
        return self.i.lanes[lane].value

    def _decode(self, m: Module, lane: int, position: Value, column_bits: Value) -> None:
        layer = self.layer
        word = self.o.lanes[lane]
        tap = Signal(POSITION_BITS, name=f"tap_{lane}")
        filter_ = Signal(len(layer.filters), name=f"filter_{lane}")
        row, column = (Signal(TAP_BITS, name=f"{axis}_{lane}") for axis in ("row", "column"))
        m.d.comb += [
            tap.eq(position >> layer.filter_bits),
            filter_.eq(position & ((1 << layer.filter_bits) - 1)),
            row.eq(tap >> column_bits),
            column.eq(tap & ((1 << column_bits) - 1)),
            word.value.eq(self._value(lane, filter_)),
            word.row.eq(row),
            word.column.eq(column),
            word.address.eq(filter_ - ((row * layer.region_columns + column) << layer.filter_bits)),
        ]


class PeWeightDecoder(WeightDecoder):
    """The same in a PE whose FIFO holds vectors as they cross, as its cells may fail.

    A list is walked once for every vector of activations: `ends` says when it is over.  A lane of a
    filter that the group has not has no value, for its sum would never be read.

    Members
    -------
    as there; cross: the PE is done with the vector at i.
    """

    ends: Signal

    more_members: ClassVar[dict[str, Any]] = {"ends": In(1)}

    def _list_ends(self) -> Value:
        return self.ends

    def _value(self, lane: int, filter_: Value) -> Value:
        return Mux(filter_ < self.filters, self.i.lanes[lane].value, 0)


class PipelinedWeightDecoder(WeightDecoder):
    """As `WeightDecoder`, o `DECODE_CYCLES` later, with registers behind positions, taps, and
    row · Wacc.

    Members
    -------
    as there; write: o is a vector.
    """

    write: Signal

    more_members: ClassVar[dict[str, Any]] = {"write": Out(1)}

    def _last_list(self, m: Module, lists: Signal, ends: Value) -> Value:
        """In a register, but for the first cycle of a layer."""
        number = self.layer.lists
        kept, fresh = Signal(name="last_list"), Signal(name="first_cycle")
        last = Mux(fresh, number == 1, kept)
        following = Mux(last, number == 1, lists + 2 == number)
        m.d.sync += [fresh.eq(self.start), kept.eq(Mux(ends, following, lists + 1 == number))]
        return last

    def _open(self, m: Module, groups: Signal, group_ends: Value) -> None:
        """In a register."""
        with m.If(self.start):
            m.d.sync += self.open.eq(1)
        with m.Elif(group_ends & (groups + 1 == self.layer.groups)):
            m.d.sync += self.open.eq(0)

    def _pass_flags(self, m: Module) -> None:
        late = place(m, "flag_delay", Delay, bits=2, cycles=DECODE_CYCLES)
        m.d.comb += [
            late.i.eq(Cat(self.cross, self.i.last)),
            Cat(self.write, self.o.last).eq(late.o),
        ]

    def _walk(self, m: Module) -> Value:
        """The pitch goes with the positions."""
        bits = super()._walk(m)
        kept = Signal(len(bits), name="column_bits", reset_less=True)
        m.d.sync += kept.eq(bits)
        return kept

    def _decode(self, m: Module, lane: int, position: Value, column_bits: Value) -> None:
        """The position; tap and filter; row · Wacc; registers behind each."""
        layer, word = self.layer, self.o.lanes[lane]
        value = place(m, f"value_delay_{lane}", Delay, bits=len(word.value), cycles=DECODE_CYCLES)
        m.d.comb += [value.i.eq(self.i.lanes[lane].value), word.value.eq(value.o)]

        def kept(name: str, of: Value, bits: int) -> Signal:
            register = Signal(bits, name=f"{name}_{lane}", reset_less=True)
            m.d.sync += register.eq(of)
            return register

        at, tap = kept("at", position, POSITION_BITS), Signal(POSITION_BITS, name=f"tap_{lane}")
        m.d.comb += tap.eq(at >> layer.filter_bits)
        row = kept("row", tap >> column_bits, TAP_BITS)
        column = kept("column", tap & ((1 << column_bits) - 1), TAP_BITS)
        filter_ = kept("filter", at & ((1 << layer.filter_bits) - 1), len(layer.filters))
        product = kept("product", row * layer.region_columns, len(word.address))
        shown = kept("shown", Cat(row, column), 2 * TAP_BITS)
        filters = kept("filters", filter_, len(filter_))
        columns = shown[TAP_BITS:]
        m.d.comb += [
            word.row.eq(shown[:TAP_BITS]),
            word.column.eq(columns),
            word.address.eq(filters - ((product + columns) << layer.filter_bits)),
        ]


__all__ = ["PeWeightDecoder", "PipelinedWeightDecoder", "WeightDecoder"]
