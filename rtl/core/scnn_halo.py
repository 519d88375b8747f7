"""A PE's part of a drain: its addresses, the links to its neighbours, and its own outputs."""

from typing import Any, ClassVar

from amaranth.hdl import Cat, Module, Mux, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from archsim.machines.scnn.command import COORDINATE_BITS
from archsim.machines.scnn.design import Scnn
from archsim.machines.scnn.pipeline import DRAIN_CYCLES, STEP_CYCLES
from rtl.core.delay import Delay
from rtl.core.one_hot import chosen
from rtl.core.scnn_banks import drain_layout
from rtl.core.scnn_copies import received_place, sent_place
from rtl.core.scnn_drain import SIDES, step_layout
from rtl.core.scnn_layouts import accumulator_address_bits, axis_layout, layer_layout
from rtl.core.scnn_pool import OFFSET_BITS
from rtl.hierarchy import place

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
    0 a cycle later, but not copies, nor what is read for windows.
    Where the ofmap stays, places of the output phase that the PE does not give out are `blank`.
    Latency: from step to `sum` or `blank` 1 cycle.  Throughput: a halo sum every 2 cycles, an
    output a cycle.  Never stalls.

    Members
    -------
    layer, row, column: the command; step: of the sequencer; drain, read_data: the port of the
    accumulators; link: to all neighbours; from_<side>: of the neighbour there; valid_o, sum: an own
    output, or a place of its window; gives: it is the window's last place; blank: a place of an
    ifmap without an output; count_halo, count_copy: a sum is sent; count_window: one is read for a
    window; count_zeroed: one is given out and written 0.
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
    gives: Signal
    blank: Signal
    count_halo: Signal
    count_copy: Signal
    count_window: Signal
    count_zeroed: Signal

    more_members: ClassVar[dict[str, Any]] = {}

    def __init__(self, *, design: Scnn) -> None:
        self.design = design
        link = link_layout(design)
        super().__init__(
            {
                **self.more_members,
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
                **{
                    name: Out(1)
                    for name in (
                        "gives",
                        "blank",
                        "count_halo",
                        "count_copy",
                        "count_window",
                        "count_zeroed",
                    )
                },
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        drain = self.drain
        given = Signal()
        own, valid = self._own_place(m, given)
        theirs = self._received_place(m)
        address = Signal(accumulator_address_bits(self.design))
        target = Signal.like(address)
        m.d.comb += address.eq(self._address(m, Mux(self.step.second, theirs, own)))
        step, valid, given = self._read(m, (valid, given))
        taken, is_output, added = Signal(), Signal(), Signal(link_layout(self.design))
        stays, last = Signal(), step.output & step.last
        m.d.sync += [
            target.eq(address),
            taken.eq(valid & step.active & ~step.second & ~step.ends & ~step.clears),
            is_output.eq(step.output),
            stays.eq(step.copy | (step.output & self.layer.pooled)),
            self.gives.eq(last & given),
            self.blank.eq(last & self.layer.keep_ofmap & ~given),
            added.eq(self._received(step)),
        ]
        with m.If(~step.second):
            m.d.sync += added.valid.eq(0)
        m.d.comb += [
            drain.half.eq(step.half),
            drain.reads.eq(step.active),
            drain.read_address.eq(address),
            drain.write.eq((taken & ~stays) | added.valid),
            drain.write_address.eq(target),
            drain.adds.eq(added.valid),
            drain.addend.eq(added.sum),
            self.link.valid.eq(taken & ~is_output),
            self.link.sum.eq(self.read_data),
            self.valid_o.eq(taken & is_output),
            self.sum.eq(self.read_data),
            self.count_halo.eq(self.link.valid & ~stays),
            self.count_copy.eq(self.link.valid & stays),
            self.count_window.eq(self.valid_o & stays),
            self.count_zeroed.eq(self.valid_o & ~stays),
        ]
        return m

    def _read(self, m: Module, found: tuple[Value, Value]) -> tuple[data.View, Value, Value]:
        """The step of which a sum is read in this cycle, and (valid, given) of it."""
        return self.step, *found

    def _own_place(self, m: Module, given: Signal) -> tuple[Value, Signal]:
        """(row, column) in the own region of what is sent or given out, and whether it exists;
        given: the PE gives out what the step's window makes."""
        step, row, column = self.step, self.row, self.column
        valid = Signal()
        at_row, at_column = (
            Signal(COORDINATE_BITS, name=f"own_{axis}") for axis in ("row", "column")
        )
        after_row, after_column = row.own_first + row.own_count, column.own_first + column.own_count
        with m.If(step.copy):
            copied, exists = sent_place(step, row, column)
            m.d.comb += [at_row.eq(copied[0]), at_column.eq(copied[1]), valid.eq(exists)]
        with m.Elif(step.left | step.right):
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
            place, seen = self._window_place(m)
            m.d.comb += [
                at_row.eq(place[0]),
                at_column.eq(place[1]),
                given.eq((step.along < row.give_count) & (step.depth < column.give_count)),
                valid.eq(given & seen),
            ]
        return _place(at_row, at_column), valid

    def _window_place(self, m: Module) -> tuple[tuple[Value, Value], Value]:
        """(row, column) in the own region of a window's place, and whether it is in the region: in
        padding it is not."""
        found: list[Value] = []
        seen: list[Value] = []
        for name, axis in (("row", self.row), ("column", self.column)):
            at = Signal(signed(OFFSET_BITS + 2), name=f"in_{name}")
            m.d.comb += at.eq(axis.window_first + self.step[name])
            found.append(at)
            seen.append(_within(at, axis.reach))
        return (found[0], found[1]), seen[0] & seen[1]

    def _received_place(self, m: Module) -> Value:
        """(row, column) in the own region of what comes.

        From the left or from above it begins at the first own output, from the right or from below
        at the first of the neighbour's region.
        """
        step, row, column = self.step, self.row, self.column
        at_row, at_column = (
            Signal(COORDINATE_BITS, name=f"received_{axis}") for axis in ("row", "column")
        )
        with m.If(step.copy):
            kept = received_place(step, row, column)
            m.d.comb += [at_row.eq(kept[0]), at_column.eq(kept[1])]
        with m.Elif(step.left | step.right):
            first = Mux(step.left, column.next_first, column.own_first)
            m.d.comb += [at_row.eq(step.along), at_column.eq(first + step.depth)]
        with m.Else():
            first = Mux(step.up, row.next_first, row.own_first)
            m.d.comb += [
                at_row.eq(first + step.depth),
                at_column.eq(column.own_first + step.along),
            ]
        return _place(at_row, at_column)

    def _received(self, step: data.View) -> Value:
        """The sum that comes: what goes to the left comes from the right."""
        ports: dict[str, data.View] = {side: getattr(self, f"from_{side}") for side in SIDES}
        return chosen([(step[side], ports[OPPOSITE[side]].as_value()) for side in SIDES])

    def _address(self, m: Module, place: Value) -> Value:
        row, column = place[:COORDINATE_BITS], place[COORDINATE_BITS:]
        index = Signal(2 * COORDINATE_BITS)
        m.d.comb += index.eq(row * self.layer.region_columns + column)
        return (index << self.layer.filter_bits) + self.step.filter


class PipelinedHaloPort(HaloPort):
    """As `HaloPort`, three cycles later: registers behind places, row · Wacc, and addresses.

    Members
    -------
    as there; late: the step of which a sum is read.
    """

    late: data.View

    more_members: ClassVar[dict[str, Any]] = {"late": Out(step_layout())}

    def _read(self, m: Module, found: tuple[Value, Value]) -> tuple[data.View, Value, Value]:
        flags = Cat(self.step.as_value(), *found)
        line = place(m, "step_delay", Delay, bits=len(flags), cycles=DRAIN_CYCLES - STEP_CYCLES)
        valid, given = Signal(name="late_valid"), Signal(name="late_given")
        m.d.comb += [line.i.eq(flags), Cat(self.late.as_value(), valid, given).eq(line.o)]
        return self.late, valid, given

    def _address(self, m: Module, place: Value) -> Value:
        bits = accumulator_address_bits(self.design)
        kept = Signal(len(place), name="place", reset_less=True)
        product, columns, address = (
            Signal(bits, name=name, reset_less=True) for name in ("product", "columns", "address")
        )
        filters = [Signal.like(self.step.filter, name=f"filter_{n}") for n in range(2)]
        row, column = kept[:COORDINATE_BITS], kept[COORDINATE_BITS:]
        m.d.sync += [
            kept.eq(place),
            product.eq(row * self.layer.region_columns),
            columns.eq(column),
            address.eq(((product + columns) << self.layer.filter_bits) + filters[1]),
            filters[0].eq(self.step.filter),
            filters[1].eq(filters[0]),
        ]
        return address


def _within(place: Value, count: Value) -> Value:
    return (place >= 0) & (place < count)


def _place(row: Signal, column: Signal) -> Value:
    return Cat(row, column)
