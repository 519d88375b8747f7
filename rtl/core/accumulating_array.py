"""A grid of PEs that hold their sums: aligned words in, aligned rows of sums out."""

from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.core.delay import Delay
from rtl.core.grid import place_rows, skewed
from rtl.core.pe import AccumulatingPE
from rtl.hierarchy import place


def _ports(rows: int, columns: int, operand_bits: int, accumulator_bits: int) -> dict[str, Any]:
    """Of rows of PEs: what enters them, and what enters and leaves their columns."""
    return {
        "ifmap": In(rows * operand_bits),
        "flags": In(rows * 2),
        "weight_i": In(columns * operand_bits),
        "weight_o": Out(columns * operand_bits),
        "drain_i": In(columns),
        "drain_o": Out(columns),
        "pipe_i": In(columns * accumulator_bits),
        "pipe_o": Out(columns * accumulator_bits),
    }


class AccumulatingRow(wiring.Component):
    """A row of `AccumulatingPE`s; vectors hold one element a column, column 0 lowest.

    Members
    -------
    ifmap, flags: into column 0; weight, drain, pipe: of every column.
    """

    ifmap: Signal
    flags: Signal
    weight_i: Signal
    weight_o: Signal
    drain_i: Signal
    drain_o: Signal
    pipe_i: Signal
    pipe_o: Signal

    def __init__(
        self,
        *,
        columns: int,
        operand_bits: int,
        accumulator_bits: int,
        product_registers: int = 0,
        in_luts: bool = False,
    ) -> None:
        self.columns = columns
        self.operand_bits = operand_bits
        self.accumulator_bits = accumulator_bits
        self.product_registers = product_registers
        self.in_luts = in_luts
        super().__init__(_ports(1, columns, operand_bits, accumulator_bits))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bits, total = self.operand_bits, self.accumulator_bits
        ifmap, flags = self.ifmap, self.flags
        for column in range(self.columns):
            widths = {"operand_bits": bits, "accumulator_bits": total}
            widths["product_registers"] = self.product_registers
            if self.in_luts:
                widths["in_luts"] = True
            pe = place(m, f"pe_{column}", AccumulatingPE, **widths)
            m.d.comb += [
                pe.ifmap_i.eq(ifmap),
                pe.flags_i.eq(flags),
                pe.weight_i.eq(self.weight_i.word_select(column, bits)),
                pe.drain_i.eq(self.drain_i[column]),
                pe.pipe_i.eq(self.pipe_i.word_select(column, total)),
                self.weight_o.word_select(column, bits).eq(pe.weight_o),
                self.drain_o[column].eq(pe.drain_o),
                self.pipe_o.word_select(column, total).eq(pe.pipe_o),
            ]
            ifmap, flags = pe.ifmap_o, pe.flags_o
        return m


@dataclass
class _AccumulatingChains:
    """What passes rows of `AccumulatingPE`s: of every row, and from row to row."""

    ifmap: Value
    flags: Value
    weight: Value
    drain: Value
    pipe: Value

    def through(self, m: Module, rows: tuple[int, int], *, bits: int, shape: Any) -> None:
        """Lead them through new rows, the last of them with products in look-up tables; weight,
        drain and pipe are then what leaves."""
        kinds, (count, in_luts) = (AccumulatingRow, AccumulatingBand), rows
        for line, at in place_rows(m, count, kinds, shape, in_luts):
            m.d.comb += [
                line.ifmap.eq(self.ifmap[at.start * bits : at.stop * bits]),
                line.flags.eq(self.flags[2 * at.start : 2 * at.stop]),
                line.weight_i.eq(self.weight),
                line.drain_i.eq(self.drain),
                line.pipe_i.eq(self.pipe),
            ]
            self.weight, self.drain, self.pipe = line.weight_o, line.drain_o, line.pipe_o


class AccumulatingBand(wiring.Component):
    """Rows of `AccumulatingPE`s, as one module.

    Members
    -------
    ifmap, flags: of every row; weight, drain, pipe: of every column.
    """

    ifmap: Signal
    flags: Signal
    weight_i: Signal
    weight_o: Signal
    drain_i: Signal
    drain_o: Signal
    pipe_i: Signal
    pipe_o: Signal

    def __init__(
        self,
        *,
        rows: int,
        columns: int,
        operand_bits: int,
        accumulator_bits: int,
        product_registers: int = 0,
        lut_rows: int = 0,
    ) -> None:
        self.lut_rows = lut_rows
        self.rows = rows
        self.operand_bits = operand_bits
        self.shape = {
            "columns": columns,
            "operand_bits": operand_bits,
            "accumulator_bits": accumulator_bits,
            "product_registers": product_registers,
        }
        super().__init__(_ports(rows, columns, operand_bits, accumulator_bits))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        chains = _AccumulatingChains(
            ifmap=self.ifmap,
            flags=self.flags,
            weight=self.weight_i,
            drain=self.drain_i,
            pipe=self.pipe_i,
        )
        chains.through(m, (self.rows, self.lut_rows), bits=self.operand_bits, shape=self.shape)
        m.d.comb += [
            self.weight_o.eq(chains.weight),
            self.drain_o.eq(chains.drain),
            self.pipe_o.eq(chains.pipe),
        ]
        return m


class Serialiser(wiring.Component):
    """element ← the lowest of word[t − 1] if begin[t − 1], else the one above the element before.

    Latency: 1 cycle.  Throughput: an element a cycle.  Never stalls.
    """

    begin: Signal
    word: Signal
    element: Signal

    def __init__(self, *, elements: int, bits: int) -> None:
        self.bits = bits
        super().__init__({"begin": In(1), "word": In(elements * bits), "element": Out(bits)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        register = Signal(len(self.word), name="serial")
        m.d.sync += register.eq(Mux(self.begin, self.word, register >> self.bits))
        m.d.comb += self.element.eq(register[: self.bits])
        return m


class AccumulatingArray(wiring.Component):
    """sums of row r = Σ_k ifmap_k[r] · weight_k, the words leaving in the order of the rows.

    An ifmap word holds `rows` elements of one pixel, first the one for step 0; row r takes the
    word that comes r cycles after `begin`, and shifts it out, one element a step.  Weight words
    move down one a step.
    Latency: 1 cycle from an ifmap word to its first element; rows + columns cycles from the last
    step at row 0 (`last`, at the same time as its weights) to row 0's sums, with product registers
    one for each and one more.
    Throughput: one step a cycle; folds `rows` steps apart or more.  Never stalls.

    Members
    -------
    begin: the word for row 0 is there; ifmap: the word; first, last: this step begins, ends a sum;
    weight: the word, lane c for column c; sums: the row of sums.
    """

    begin: Signal
    ifmap: Signal
    first: Signal
    last: Signal
    weight: Signal
    sums: Signal

    def __init__(
        self,
        *,
        rows: int,
        columns: int,
        operand_bits: int,
        accumulator_bits: int,
        product_registers: int = 0,
        lut_rows: int = 0,
    ) -> None:
        self.lut_rows = lut_rows
        self.rows = rows
        self.columns = columns
        self.operand_bits = operand_bits
        self.accumulator_bits = accumulator_bits
        self.product_registers = product_registers
        super().__init__(
            {
                "begin": In(1),
                "ifmap": In(rows * operand_bits),
                "first": In(1),
                "last": In(1),
                "weight": In(columns * operand_bits),
                "sums": Out(columns * accumulator_bits),
            }
        )

    def _serialise(self, m: Module) -> list[Value]:
        """A shift register a row, loaded one row after the other."""
        begin: Value = self.begin
        serial: list[Value] = []
        for row in range(self.rows):
            sizes = {"elements": self.rows, "bits": self.operand_bits}
            serialiser = place(m, f"serialiser_{row}", Serialiser, **sizes)
            m.d.comb += [serialiser.begin.eq(begin), serialiser.word.eq(self.ifmap)]
            serial.append(serialiser.element)
            following = Signal(name=f"begin_{row + 1}")
            m.d.sync += following.eq(begin)
            begin = following
        return serial

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bits = self.operand_bits
        ends: Value = Cat(self.first, self.last)
        if self.product_registers:
            late = place(m, "flag_delay", Delay, bits=2, cycles=self.product_registers)
            m.d.comb += late.i.eq(ends)
            ends = late.o
        flags = skewed(m, "flag_skew", [ends] * self.rows)
        ifmap = self._serialise(m)
        drain = Signal()
        m.d.sync += drain.eq(ends[1])
        if self.product_registers:
            kept, drain = drain, Signal(name="drain_late")
            m.d.sync += drain.eq(kept)
        words = [self.weight.word_select(column, bits) for column in range(self.columns)]
        weight = skewed(m, "weight_skew", words)
        drains = skewed(m, "drain_skew", [drain] * self.columns)
        shape = {"columns": self.columns, "operand_bits": bits}
        shape |= {"accumulator_bits": self.accumulator_bits}
        shape |= {"product_registers": self.product_registers}
        chains = _AccumulatingChains(
            ifmap=Cat(ifmap),
            flags=Cat(flags),
            weight=Cat(weight),
            drain=Cat(drains),
            pipe=Signal(self.columns * self.accumulator_bits, name="zero"),
        )
        chains.through(m, (self.rows, self.lut_rows), bits=bits, shape=shape)
        pipe = chains.pipe
        pipes = [pipe.word_select(column, self.accumulator_bits) for column in range(self.columns)]
        m.d.comb += self.sums.eq(Cat(skewed(m, "sum_skew", pipes, falling=True)))
        return m
