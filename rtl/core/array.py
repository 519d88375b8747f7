"""Grids of PEs with the skew around them: aligned words in, aligned rows of sums out."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.core.delay import Skew
from rtl.core.pe import AccumulatingPE, StationaryPE
from rtl.hierarchy import place


def _lanes(m: Module, name: str, values: list[Value], *, falling: bool = False) -> list[Value]:
    """Skew equal lanes; returns the skewed lanes."""
    bits = len(values[0])
    skew = place(m, name, Skew, lanes=len(values), bits=bits, falling=falling)
    m.d.comb += skew.i.eq(Cat(value[:bits] for value in values))
    return [skew.o.word_select(lane, bits) for lane in range(len(values))]


class StationaryRow(wiring.Component):
    """A row of `StationaryPE`s; vectors hold one element a column, column 0 lowest.

    across: the stationary chain runs along the row, else down through each PE.

    Members
    -------
    moving, bank: into column 0; stationary, capture: of the one chain along the row, or of every
    column's; psum: of every column.
    """

    moving: Signal
    bank: Signal
    stationary_i: Signal
    stationary_o: Signal
    capture_i: Signal
    capture_o: Signal
    psum_i: Signal
    psum_o: Signal

    def __init__(
        self, *, columns: int, operand_bits: int, accumulator_bits: int, across: bool
    ) -> None:
        self.columns = columns
        self.operand_bits = operand_bits
        self.accumulator_bits = accumulator_bits
        self.across = across
        chains = 1 if across else columns
        super().__init__(
            {
                "moving": In(operand_bits),
                "bank": In(1),
                "stationary_i": In(chains * operand_bits),
                "stationary_o": Out(chains * operand_bits),
                "capture_i": In(chains * 2),
                "capture_o": Out(chains * 2),
                "psum_i": In(columns * accumulator_bits),
                "psum_o": Out(columns * accumulator_bits),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bits = self.operand_bits
        widths = {"operand_bits": bits, "accumulator_bits": self.accumulator_bits}
        moving, bank = self.moving, self.bank
        stationary, capture = self.stationary_i[:bits], self.capture_i[:2]
        for column in range(self.columns):
            pe = place(m, f"pe_{column}", StationaryPE, **widths)
            if not self.across:
                stationary = self.stationary_i.word_select(column, bits)
                capture = self.capture_i.word_select(column, 2)
                m.d.comb += [
                    self.stationary_o.word_select(column, bits).eq(pe.stationary_o),
                    self.capture_o.word_select(column, 2).eq(pe.capture_o),
                ]
            m.d.comb += [
                pe.moving_i.eq(moving),
                pe.bank_i.eq(bank),
                pe.stationary_i.eq(stationary),
                pe.capture_i.eq(capture),
                pe.psum_i.eq(self.psum_i.word_select(column, self.accumulator_bits)),
                self.psum_o.word_select(column, self.accumulator_bits).eq(pe.psum_o),
            ]
            moving, bank = pe.moving_o, pe.bank_o
            stationary, capture = pe.stationary_o, pe.capture_o
        if self.across:
            m.d.comb += [self.stationary_o.eq(stationary), self.capture_o.eq(capture)]
        return m


class StationaryArray(wiring.Component):
    """sums[c] = Σ_r moving[r] · held[r][c], for a word of `rows` moving operands a cycle.

    Stationary words enter one a cycle behind a capture token: down the columns, word j for row j
    (`across` false, weights), or along the rows, word j for column j (`across` true, ifmap).
    Latency: rows + columns − 1 cycles from moving to sums.  A word moving in cycle t uses a bank
    whose first stationary word entered in cycle s if t ≥ s + words.  Throughput: one word a cycle
    on both inputs.  Never stalls.

    Members
    -------
    moving: the word, lane r for row r; bank: the bank that it meets; stationary: the word, a lane a
    chain; capture: a `CAPTURE` token, valid with the first word of a load; sums: the row of sums.
    """

    moving: Signal
    bank: Signal
    stationary: Signal
    capture: Signal
    sums: Signal

    def __init__(
        self, *, rows: int, columns: int, operand_bits: int, accumulator_bits: int, across: bool
    ) -> None:
        self.rows = rows
        self.columns = columns
        self.operand_bits = operand_bits
        self.accumulator_bits = accumulator_bits
        self.across = across
        super().__init__(
            {
                "moving": In(rows * operand_bits),
                "bank": In(1),
                "stationary": In((rows if across else columns) * operand_bits),
                "capture": In(2),
                "sums": Out(columns * accumulator_bits),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bits = self.operand_bits
        moving = _lanes(
            m,
            "moving_skew",
            [Cat(self.moving.word_select(row, bits), self.bank) for row in range(self.rows)],
        )
        chains = self.rows if self.across else self.columns
        stationary = _lanes(
            m,
            "stationary_skew",
            [Cat(self.stationary.word_select(at, bits), self.capture) for at in range(chains)],
        )
        widths = {"operand_bits": bits, "accumulator_bits": self.accumulator_bits}
        row_shape = {**widths, "columns": self.columns, "across": self.across}
        psum: Value = Signal(self.columns * self.accumulator_bits, name="zero")
        chain = Cat(lane[:bits] for lane in stationary)
        token = Cat(lane[bits:] for lane in stationary)
        for row in range(self.rows):
            line = place(m, f"row_{row}", StationaryRow, **row_shape)
            m.d.comb += [
                Cat(line.moving, line.bank).eq(moving[row]),
                line.stationary_i.eq(stationary[row][:bits] if self.across else chain),
                line.capture_i.eq(stationary[row][bits:] if self.across else token),
                line.psum_i.eq(psum),
            ]
            chain, token, psum = line.stationary_o, line.capture_o, line.psum_o
        psums = [psum.word_select(column, self.accumulator_bits) for column in range(self.columns)]
        m.d.comb += self.sums.eq(Cat(_lanes(m, "sum_skew", psums, falling=True)))
        return m


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

    def __init__(self, *, columns: int, operand_bits: int, accumulator_bits: int) -> None:
        self.columns = columns
        self.operand_bits = operand_bits
        self.accumulator_bits = accumulator_bits
        super().__init__(
            {
                "ifmap": In(operand_bits),
                "flags": In(2),
                "weight_i": In(columns * operand_bits),
                "weight_o": Out(columns * operand_bits),
                "drain_i": In(columns),
                "drain_o": Out(columns),
                "pipe_i": In(columns * accumulator_bits),
                "pipe_o": Out(columns * accumulator_bits),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bits, total = self.operand_bits, self.accumulator_bits
        ifmap, flags = self.ifmap, self.flags
        for column in range(self.columns):
            widths = {"operand_bits": bits, "accumulator_bits": total}
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


class AccumulatingArray(wiring.Component):
    """sums of row r = Σ_k ifmap_k[r] · weight_k, the words leaving in the order of the rows.

    An ifmap word holds `rows` elements of one pixel, first the one for step 0; row r takes the
    word that comes r cycles after `begin`, and shifts it out, one element a step.  Weight words
    move down one a step.
    Latency: 1 cycle from an ifmap word to its first element; rows + columns cycles from the last
    step at row 0 (`last`, at the same time as its weights) to row 0's sums.
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
        self, *, rows: int, columns: int, operand_bits: int, accumulator_bits: int
    ) -> None:
        self.rows = rows
        self.columns = columns
        self.operand_bits = operand_bits
        self.accumulator_bits = accumulator_bits
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
            register = Signal(self.rows * self.operand_bits, name=f"serial_{row}")
            m.d.sync += register.eq(Mux(begin, self.ifmap, register >> self.operand_bits))
            serial.append(register[: self.operand_bits])
            following = Signal(name=f"begin_{row + 1}")
            m.d.sync += following.eq(begin)
            begin = following
        return serial

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bits = self.operand_bits
        flags = _lanes(m, "flag_skew", [Cat(self.first, self.last)] * self.rows)
        ifmap: list[Value] = [
            Cat(element, flag) for element, flag in zip(self._serialise(m), flags, strict=True)
        ]
        drain = Signal()
        m.d.sync += drain.eq(self.last)
        words = [self.weight.word_select(column, bits) for column in range(self.columns)]
        weight = _lanes(m, "weight_skew", words)
        drains = _lanes(m, "drain_skew", [drain] * self.columns)
        widths = {"operand_bits": bits, "accumulator_bits": self.accumulator_bits}
        pipe: Value = Signal(self.columns * self.accumulator_bits, name="zero")
        down, token = Cat(weight), Cat(drains)
        for row in range(self.rows):
            line = place(m, f"row_{row}", AccumulatingRow, columns=self.columns, **widths)
            m.d.comb += [
                Cat(line.ifmap, line.flags).eq(ifmap[row]),
                line.weight_i.eq(down),
                line.drain_i.eq(token),
                line.pipe_i.eq(pipe),
            ]
            down, token, pipe = line.weight_o, line.drain_o, line.pipe_o
        pipes = [pipe.word_select(column, self.accumulator_bits) for column in range(self.columns)]
        m.d.comb += self.sums.eq(Cat(_lanes(m, "sum_skew", pipes, falling=True)))
        return m
