"""A PE's part of a drain: its addresses, the links to its neighbours, and its own outputs."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from archsim.designs.scnn import Scnn
from archsim.sparse.scnn_command import COORDINATE_BITS
from rtl.core.scnn_banks import drain_layout
from rtl.core.scnn_drain import SIDES, step_layout
from rtl.core.scnn_layouts import accumulator_address_bits, axis_layout, layer_layout

OPPOSITE = {"left": "right", "right": "left", "up": "down", "down": "up"}


def link_layout(design: Scnn) -> data.StructLayout:
    """A sum on its way to a neighbour."""
    return data.StructLayout({"valid": 1, "sum": design.accumulator_bits})


class HaloPort(wiring.Component):
    """A step's sum goes to the neighbour of its side and is added there; own outputs go to `sum`.

    The address of (row, column, filter) is ((row · Wacc) + column) · Kp + filter.  A sum goes left
    or up from the first ones of the sender's region, right or down from behind its own outputs.
    A halo sum: read in the first cycle; sent, and what the receiver has is read, in the second;
    added and written in the one after that.  What has been read to be sent or given out is written
    0 a cycle later.
    Where the ofmap stays, places of the output phase that the PE does not own are `blank`.
    Latency: from step to `sum` or `blank` 1 cycle.  Throughput: a halo sum every 2 cycles, an
    output a cycle.  Never stalls.

    Members
    -------
    layer, row, column: the command; step: of the sequencer; drain, read_data: the port of the
    accumulators; link: to all neighbours; from_<side>: of the neighbour there; valid_o, sum: an own
    output; blank: a place of an ifmap without an output; count_halo: a sum is sent.
    """

    layer: data.View
    row: data.View
    column: data.View
    step: data.View
    drain: data.View
    read_data: Signal
    link: data.View
    valid_o: Signal
    sum: Signal
    blank: Signal
    count_halo: Signal

    def __init__(self, *, design: Scnn) -> None:
        self.design = design
        link = link_layout(design)
        super().__init__(
            {
                "layer": In(layer_layout()),
                "row": In(axis_layout()),
                "column": In(axis_layout()),
                "step": In(step_layout()),
                "drain": Out(drain_layout(design)),
                "read_data": In(design.accumulator_bits),
                "link": Out(link),
                **{f"from_{side}": In(link) for side in SIDES},
                "valid_o": Out(1),
                "sum": Out(design.accumulator_bits),
                "blank": Out(1),
                "count_halo": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        step, drain = self.step, self.drain
        own, valid = self._own_place(m)
        theirs = self._received_place(m)
        address = Signal(accumulator_address_bits(self.design))
        target = Signal.like(address)
        m.d.comb += address.eq(self._address(m, Mux(step.second, theirs, own)))
        taken, is_output, added = Signal(), Signal(), Signal(link_layout(self.design))
        m.d.sync += [
            target.eq(address),
            taken.eq(valid & step.active & ~step.second & ~step.ends),
            is_output.eq(step.output),
            self.blank.eq(step.output & self.layer.keep_ofmap & ~valid),
            added.eq(self._received(m)),
        ]
        with m.If(~step.second):
            m.d.sync += added.valid.eq(0)
        m.d.comb += [
            drain.half.eq(step.half),
            drain.reads.eq(step.active),
            drain.read_address.eq(address),
            drain.write.eq(taken | added.valid),
            drain.write_address.eq(target),
            drain.write_data.eq(Mux(added.valid, self.read_data + added.sum, 0)),
            self.link.valid.eq(taken & ~is_output),
            self.link.sum.eq(self.read_data),
            self.valid_o.eq(taken & is_output),
            self.sum.eq(self.read_data),
            self.count_halo.eq(self.link.valid),
        ]
        return m

    def _own_place(self, m: Module) -> tuple[Value, Signal]:
        """(row, column) in the own region of what is sent or given out, and whether it exists."""
        step, row, column = self.step, self.row, self.column
        valid = Signal()
        at_row, at_column = (
            Signal(COORDINATE_BITS, name=f"own_{axis}") for axis in ("row", "column")
        )
        after_row, after_column = row.own_first + row.own_count, column.own_first + column.own_count
        with m.If(step.left | step.right):
            before = (step.depth < column.own_first) & step.left
            beyond = (after_column + step.depth < column.reach) & step.right
            m.d.comb += [
                at_row.eq(step.along),
                at_column.eq(Mux(step.left, step.depth, after_column + step.depth)),
                valid.eq((before | beyond) & (step.along < row.reach)),
            ]
        with m.Elif(step.up | step.down):
            before = (step.depth < row.own_first) & step.up
            beyond = (after_row + step.depth < row.reach) & step.down
            m.d.comb += [
                at_row.eq(Mux(step.up, step.depth, after_row + step.depth)),
                at_column.eq(column.own_first + step.along),
                valid.eq((before | beyond) & (step.along < column.own_count)),
            ]
        with m.Else():
            m.d.comb += [
                at_row.eq(row.own_first + step.along),
                at_column.eq(column.own_first + step.depth),
                valid.eq((step.along < row.own_count) & (step.depth < column.own_count)),
            ]
        return _place(at_row, at_column), valid

    def _received_place(self, m: Module) -> Value:
        """(row, column) in the own region of what comes.

        From the left or from above it begins at the first own output, from the right or from below
        at the first of the neighbour's region.
        """
        step, row, column = self.step, self.row, self.column
        at_row, at_column = (
            Signal(COORDINATE_BITS, name=f"received_{axis}") for axis in ("row", "column")
        )
        with m.If(step.left | step.right):
            first = Mux(step.left, column.next_first, column.own_first)
            m.d.comb += [at_row.eq(step.along), at_column.eq(first + step.depth)]
        with m.Else():
            first = Mux(step.up, row.next_first, row.own_first)
            m.d.comb += [
                at_row.eq(first + step.depth),
                at_column.eq(column.own_first + step.along),
            ]
        return _place(at_row, at_column)

    def _received(self, m: Module) -> Value:
        """The sum that comes: what goes to the left comes from the right."""
        ports: dict[str, data.View] = {side: getattr(self, f"from_{side}") for side in SIDES}
        link: Any = Signal(link_layout(self.design), name="received")
        for side in SIDES:
            with m.If(self.step[side]):
                m.d.comb += link.eq(ports[OPPOSITE[side]])
        return Value.cast(link)

    def _address(self, m: Module, place: Value) -> Value:
        row, column = place[:COORDINATE_BITS], place[COORDINATE_BITS:]
        index = Signal(2 * COORDINATE_BITS)
        m.d.comb += index.eq(row * self.layer.region_columns + column)
        return (index << self.layer.filter_bits) + self.step.filter


def _place(row: Signal, column: Signal) -> Value:
    return Cat(row, column)
