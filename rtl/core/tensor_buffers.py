"""The buffers of a tensor core: fragments of two matrices, sums, and the walk through them."""

from amaranth.hdl import C, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from archsim.machines.tensorcore.tensor_array import TensorArrayDesign
from rtl.core.sram import Sram, address_bits
from rtl.hierarchy import place


def pass_layout(group_rows: int) -> data.StructLayout:
    """What a pass is: flags and buffer half of its set, its column block, its row in each group."""
    flags = {"valid": 1, "first": 1, "last": 1, "half": 1, "block": 1}
    return data.StructLayout({**flags, "row": address_bits(group_rows)})


def _upper(flag: Value, row: Value, rows: int) -> Value:
    """An address: of row `row`, or of the same row in the upper half of a memory of 2 · rows."""
    return row + Mux(flag, C(rows), C(0))


class Walk(wiring.Component):
    """Counts 2 · rows cycles from `start`, which is the first of them: upper · rows + row.

    Combinational from `start`.  A next start comes 2 · rows cycles later or more.

    Members
    -------
    start, flags_i: what is walked now begins; valid: a cycle of the walk; upper, row: which;
    flags_o: those of the start, in every cycle of the walk.
    """

    start: Signal
    flags_i: Signal
    valid: Signal
    upper: Signal
    row: Signal
    flags_o: Signal

    def __init__(self, *, rows: int, bits: int) -> None:
        self.rows = rows
        self.bits = bits
        super().__init__(
            {
                "start": In(1),
                "flags_i": In(bits),
                "valid": Out(1),
                "upper": Out(1),
                "row": Out(address_bits(rows)),
                "flags_o": Out(bits),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        running = Signal()
        upper, row = Signal.like(self.upper, name="upper_at"), Signal.like(self.row, name="row_at")
        flags = Signal(self.bits, reset_less=True)
        wraps = self.row == self.rows - 1
        m.d.comb += [
            self.valid.eq(self.start | running),
            self.upper.eq(upper & ~self.start),
            self.row.eq(Mux(self.start, 0, row)),
            self.flags_o.eq(Mux(self.start, self.flags_i, flags)),
        ]
        m.d.sync += flags.eq(self.flags_o)
        with m.If(self.valid):
            m.d.sync += [
                running.eq(~(self.upper & wraps)),
                upper.eq(self.upper ^ wraps),
                row.eq(Mux(wraps, 0, self.row + 1)),
            ]
        return m


class RowFragments(wiring.Component):
    """The rows of A of two sets: one of each thread group leaves for the units in a pass.

    Latency: 2 cycles from a pass to its operands (memory, register).  A row written in cycle t is
    read by a pass of cycle t + 1.  Throughput: a row in and a pass out a cycle.  Never stalls.

    Members
    -------
    write, write_half, write_group, write_row, ifmap: a row comes; read_half, read_row: of a pass;
    a: k operands for thread group 0, and above them for thread group 1.
    """

    write: Signal
    write_half: Signal
    write_group: Signal
    write_row: Signal
    ifmap: Signal
    read_half: Signal
    read_row: Signal
    a: Signal

    def __init__(self, *, design: TensorArrayDesign) -> None:
        self.design = design
        self.bits = design.dot.length * design.dot.operand.bits
        row = address_bits(design.group_rows)
        super().__init__(
            {
                "write": In(1),
                "write_half": In(1),
                "write_group": In(1),
                "write_row": In(row),
                "ifmap": In(self.bits),
                "read_half": In(1),
                "read_row": In(row),
                "a": Out(2 * self.bits),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        rows = self.design.group_rows
        selected = Signal(2 * self.bits, reset_less=True)
        for group in range(2):
            store = place(m, f"group_{group}", Sram, bits=self.bits, depth=2 * rows, apart=True)
            m.d.comb += [
                store.write.eq(self.write & (self.write_group == group)),
                store.write_address.eq(_upper(self.write_half, self.write_row, rows)),
                store.write_data.eq(self.ifmap),
                store.read_address.eq(_upper(self.read_half, self.read_row, rows)),
            ]
            m.d.sync += selected.word_select(group, self.bits).eq(store.read_data)
        m.d.comb += self.a.eq(selected)
        return m


class ColumnFragments(wiring.Component):
    """The columns of B: k elements of each come in, one column of every unit of a group leaves.

    Element e of all columns comes e cycles after `begin`.  `start`, in the cycle of a set's pass
    0, moves what has come to where the passes see it.  Both thread groups of an octet get the same
    operands.  Latency: 2 cycles from a pass to its operands (start or block, then a register).
    Throughput: an element in and a pass out a cycle.  Never stalls.

    Members
    -------
    begin: slot 0 of a set; weight: an element of all columns; start: pass 0; block: of a pass;
    b: k operands of each column, columns in the order of octets and their units.
    """

    begin: Signal
    weight: Signal
    start: Signal
    block: Signal
    b: Signal

    def __init__(self, *, design: TensorArrayDesign) -> None:
        self.design = design
        operands = design.columns * design.dot.operand.bits
        super().__init__(
            {
                "begin": In(1),
                "weight": In(operands),
                "start": In(1),
                "block": In(1),
                "b": Out(operands // 2 * design.dot.length),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        design, bits = self.design, self.design.dot.operand.bits
        units, length = design.group_columns, design.dot.length
        block = Signal()
        m.d.sync += block.eq(self.block)
        selected = Signal(len(self.b), reset_less=True)
        for element, word in enumerate(self._elements(m)):
            for octet in range(design.octets):
                for unit in range(units):
                    low = word.word_select(2 * octet * units + unit, bits)
                    high = word.word_select((2 * octet + 1) * units + unit, bits)
                    at = (octet * units + unit) * length + element
                    m.d.sync += selected.word_select(at, bits).eq(Mux(block, high, low))
        m.d.comb += self.b.eq(selected)
        return m

    def _elements(self, m: Module) -> list[Signal]:
        """Each element of all columns, as the passes see it."""
        arrives: Value = self.begin
        elements: list[Signal] = []
        for element in range(self.design.dot.length):
            incoming = Signal(len(self.weight), name=f"incoming_{element}", reset_less=True)
            current = Signal(len(self.weight), name=f"current_{element}", reset_less=True)
            with m.If(arrives):
                m.d.sync += incoming.eq(self.weight)
            with m.If(self.start):
                m.d.sync += current.eq(incoming)
            elements.append(current)
            following = Signal(name=f"arrives_{element + 1}")
            m.d.sync += following.eq(arrives)
            arrives = following
        return elements


class PartialSums(wiring.Component):
    """The sums of a block under way: a word of all units' sums for every pass of a set.

    Latency: 2 cycles from `reading` to c (memory, register), which is +0 if that is `first`; a
    word of `writing` is read from the next cycle on.  Throughput: a pass in and a pass out a cycle.
    Never stalls.

    Members
    -------
    reading: a pass is issued; c: a sum a unit; writing: a pass is over; sums: its sum of each unit.
    """

    reading: data.View
    c: Signal
    writing: data.View
    sums: Signal

    def __init__(self, *, design: TensorArrayDesign) -> None:
        self.design = design
        self.bits = design.columns * design.dot.accumulator.bits
        layout = pass_layout(design.group_rows)
        super().__init__(
            {
                "reading": In(layout),
                "c": Out(self.bits),
                "writing": In(layout),
                "sums": In(self.bits),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        reading, writing, rows = self.reading, self.writing, self.design.group_rows
        store = place(m, "store", Sram, bits=self.bits, depth=self.design.rows, apart=True)
        first = Signal()
        selected = Signal(self.bits, reset_less=True)
        m.d.comb += [
            store.read_address.eq(_upper(reading.block, reading.row, rows)),
            store.write.eq(writing.valid),
            store.write_address.eq(_upper(writing.block, writing.row, rows)),
            store.write_data.eq(self.sums),
            self.c.eq(selected),
        ]
        m.d.sync += [first.eq(reading.first), selected.eq(Mux(first, 0, store.read_data))]
        return m


class FinishedSums(wiring.Component):
    """The sums of blocks that leave, in two halves: one fills while the other's rows are read.

    A bank for each thread group and column block, so that a row leaves in one cycle.
    Latency: 1 cycle from a row's address to `o`; what is written is read from the next cycle on.
    Throughput: a pass in and a row out a cycle.  Never stalls.

    Members
    -------
    writing: a pass is over; sums: its sum of each unit; read_half, read_group, read_row: of the
    row that leaves; o: its sums, a cycle later.
    """

    writing: data.View
    sums: Signal
    read_half: Signal
    read_group: Signal
    read_row: Signal
    o: Signal

    def __init__(self, *, design: TensorArrayDesign) -> None:
        self.design = design
        self.bits = design.columns * design.dot.accumulator.bits
        super().__init__(
            {
                "writing": In(pass_layout(design.group_rows)),
                "sums": In(self.bits),
                "read_half": In(1),
                "read_group": In(1),
                "read_row": In(address_bits(design.group_rows)),
                "o": Out(self.bits),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        design, bits = self.design, self.design.dot.accumulator.bits
        units = design.group_columns
        group = Signal()
        m.d.sync += group.eq(self.read_group)
        for block in range(2):
            words = [self._bank(m, each, block) for each in range(2)]
            row = Mux(group, words[1], words[0])
            for octet in range(design.octets):
                for unit in range(units):
                    column = (2 * octet + block) * units + unit
                    total = row.word_select(octet * units + unit, bits)
                    m.d.comb += self.o.word_select(column, bits).eq(total)
        return m

    def _bank(self, m: Module, group: int, block: int) -> Value:
        """The bank of a thread group and column block: what it reads."""
        writing, rows = self.writing, self.design.group_rows
        bits = self.bits // 2
        store = place(m, f"bank_{group}_{block}", Sram, bits=bits, depth=2 * rows, apart=True)
        m.d.comb += [
            store.write.eq(writing.valid & writing.last & (writing.block == block)),
            store.write_address.eq(_upper(writing.half, writing.row, rows)),
            store.write_data.eq(self.sums.word_select(group, bits)),
            store.read_address.eq(_upper(self.read_half, self.read_row, rows)),
        ]
        return store.read_data
