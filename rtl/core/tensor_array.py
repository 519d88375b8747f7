"""A tensor core: dot-product units in octets, between fragments of two matrices and their sums."""

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from archsim.machines.tensorcore.tensor_array import TensorArrayDesign
from rtl.core.delay import Delay
from rtl.core.dot_product import FloatDotProduct, IntegerDotProduct
from rtl.core.tensor_buffers import (
    ColumnFragments,
    FinishedSums,
    PartialSums,
    RowFragments,
    Walk,
    pass_layout,
)
from rtl.hierarchy import place


def _delayed(m: Module, name: str, value: Value, cycles: int) -> Value:
    line = place(m, name, Delay, bits=len(value), cycles=cycles)
    m.d.comb += line.i.eq(value)
    return line.o


class TensorUnit(wiring.Component):
    """o = c + Σ a_i · b_i behind operand registers, with result registers behind it.

    Latency: `design.result_cycles` − 3: 1 of operand registers, that of the dot product, and the
    result's registers up to the write.  Throughput: one sum a cycle.  Never stalls.

    Members
    -------
    a, b: k operands, lane 0 lowest; c: the sum before; o: the sum.
    """

    a: Signal
    b: Signal
    c: Signal
    o: Signal

    def __init__(self, *, design: TensorArrayDesign) -> None:
        self.design = design
        dot = design.dot
        operands = dot.length * dot.operand.bits
        accumulator = dot.accumulator.bits
        super().__init__(
            {
                "a": In(operands),
                "b": In(operands),
                "c": In(accumulator),
                "o": Out(accumulator),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        design = self.design
        collect = design.collect_cycles - 2
        operands = Cat(self.a, self.b, self.c)
        registered = _delayed(m, "operand_delay", operands, collect)
        kind = IntegerDotProduct if design.dot.rules is None else FloatDotProduct
        dot = place(m, "dot", kind, design=design.dot)
        m.d.comb += Cat(dot.a, dot.b, dot.c).eq(registered)
        written = design.pack_cycles + design.write_cycles - 1
        m.d.comb += self.o.eq(_delayed(m, "result_delay", dot.o, written))
        return m


class TensorArray(wiring.Component):
    """sums[r, c] = Σ over the sets of a block, in their order, of A[r] · B[c], from +0.

    A set's A comes a row a cycle in slots 0 … P − 1, its B an element of all columns a cycle in
    slots 0 … k − 1, slot 0 with `begin`; other slots do not matter.  Sets follow T =
    `design.set_cycles` apart or more.  With `begin` in cycle t, pass p is issued in t + T + p.
    Latency: row r of a set with `last` is at `sums` in cycle t + T + `drain_start_cycles` + 1 + r,
    for one cycle.  Throughput: a set, P · F · k products, every T cycles.  Never stalls: who takes
    the rows must be ready for them.

    Members
    -------
    begin: slot 0 of a set; first, last, with begin: the block's sums begin at +0, leave after it;
    ifmap: a row's k operands, lane 0 lowest; weight: an element of the F columns; sums: a row's F.
    """

    begin: Signal
    first: Signal
    last: Signal
    ifmap: Signal
    weight: Signal
    sums: Signal

    def __init__(self, *, design: TensorArrayDesign) -> None:
        self.design = design
        dot = design.dot
        super().__init__(
            {
                "begin": In(1),
                "first": In(1),
                "last": In(1),
                "ifmap": In(dot.length * dot.operand.bits),
                "weight": In(design.columns * dot.operand.bits),
                "sums": Out(design.columns * dot.accumulator.bits),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        design = self.design
        half = Signal()
        m.d.sync += half.eq(half ^ self.begin)
        flags = Cat(self.begin, self.first, self.last, half)
        start, first, last, late_half = _delayed(m, "set_delay", flags, design.set_cycles)
        issued = Signal(pass_layout(design.group_rows))
        walk = place(m, "passes", Walk, rows=design.group_rows, bits=3)
        m.d.comb += [
            walk.start.eq(start),
            walk.flags_i.eq(Cat(first, last, late_half)),
            issued.as_value().eq(Cat(walk.valid, walk.flags_o, walk.upper, walk.row)),
        ]
        writing = Signal(pass_layout(design.group_rows))
        written = _delayed(m, "pass_delay", issued.as_value(), design.result_cycles - 1)
        m.d.comb += writing.as_value().eq(written)
        partial = place(m, "partial", PartialSums, design=design)
        a, b = self._rows(m, half, issued), self._columns(m, start, issued)
        totals = self._units(m, a, b, partial.c)
        m.d.comb += [
            partial.reading.eq(issued),
            partial.writing.eq(writing),
            partial.sums.eq(totals),
        ]
        leaving = _delayed(
            m, "drain_delay", Cat(start & last, late_half), design.drain_start_cycles
        )
        self._leave(m, leaving, writing, totals)
        return m

    def _rows(self, m: Module, half: Value, issued: data.View) -> Value:
        """k operands of each thread group, 2 cycles after the issue of a pass."""
        slots = place(m, "slots", Walk, rows=self.design.group_rows, bits=1)
        fragments = place(m, "row_fragments", RowFragments, design=self.design)
        m.d.comb += [
            slots.start.eq(self.begin),
            slots.flags_i.eq(half),
            fragments.write.eq(slots.valid),
            fragments.write_half.eq(slots.flags_o),
            fragments.write_group.eq(slots.upper),
            fragments.write_row.eq(slots.row),
            fragments.ifmap.eq(self.ifmap),
            fragments.read_half.eq(issued.half),
            fragments.read_row.eq(issued.row),
        ]
        return fragments.a

    def _columns(self, m: Module, start: Value, issued: data.View) -> Value:
        """k operands of each unit of a thread group, 2 cycles after the issue of a pass."""
        fragments = place(m, "column_fragments", ColumnFragments, design=self.design)
        m.d.comb += [
            fragments.begin.eq(self.begin),
            fragments.weight.eq(self.weight),
            fragments.start.eq(start),
            fragments.block.eq(issued.block),
        ]
        return fragments.b

    def _units(self, m: Module, a: Value, b: Value, c: Value) -> Value:
        """The sums of all units, those of thread groups 0 lowest, octet by octet."""
        dot = self.design.dot
        operands = dot.length * dot.operand.bits
        per_group = self.design.columns // 2
        totals: list[Value] = []
        for at in range(self.design.columns):
            group, column = divmod(at, per_group)
            octet, number = divmod(column, self.design.group_columns)
            unit = place(m, f"unit_{group}_{octet}_{number}", TensorUnit, design=self.design)
            m.d.comb += [
                unit.a.eq(a.word_select(group, operands)),
                unit.b.eq(b.word_select(column, operands)),
                unit.c.eq(c.word_select(at, dot.accumulator.bits)),
            ]
            totals.append(unit.o)
        return Cat(totals)

    def _leave(self, m: Module, leaving: Value, writing: data.View, totals: Value) -> None:
        """Rows leave from where a block's last set has written them."""
        finished = place(m, "finished", FinishedSums, design=self.design)
        rows = place(m, "rows", Walk, rows=self.design.group_rows, bits=1)
        m.d.comb += [
            rows.start.eq(leaving[0]),
            rows.flags_i.eq(leaving[1]),
            finished.writing.eq(writing),
            finished.sums.eq(totals),
            finished.read_half.eq(rows.flags_o),
            finished.read_group.eq(rows.upper),
            finished.read_row.eq(rows.row),
            self.sums.eq(finished.o),
        ]
