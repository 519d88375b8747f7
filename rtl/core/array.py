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
    skew = Skew(len(values), bits, falling=falling)
    m.submodules[name] = skew
    m.d.comb += skew.i.eq(Cat(value[:bits] for value in values))
    return [skew.o.word_select(lane, bits) for lane in range(len(values))]


class StationaryArray(wiring.Component):
    """sums[c] = Σ_r moving[r] · held[r][c], for a word of `rows` moving operands a cycle.

    Stationary words enter one a cycle behind a capture token: down the columns, word j for row j
    (`across` false, weights), or along the rows, word j for column j (`across` true, ifmap).
    Latency: rows + columns − 1 cycles from moving to sums.  A word moving in cycle t uses a bank
    whose first stationary word entered in cycle s if t ≥ s + words.  Throughput: one word a cycle
    on both inputs.  Never stalls.
    """

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
        psums: list[Value] = []
        for column in range(self.columns):
            psum: Value = Signal(self.accumulator_bits, name=f"zero_{column}")
            for row in range(self.rows):
                pe = StationaryPE(operand_bits=bits, accumulator_bits=self.accumulator_bits)
                place(m, f"pe_{row}_{column}", pe, f"stationary_pe_{bits}_{self.accumulator_bits}")
                chain = row if self.across else column
                m.d.comb += [
                    Cat(pe.moving_i, pe.bank_i).eq(moving[row]),
                    Cat(pe.stationary_i, pe.capture_i).eq(stationary[chain]),
                    pe.psum_i.eq(psum),
                ]
                moving[row] = Cat(pe.moving_o, pe.bank_o)
                stationary[chain] = Cat(pe.stationary_o, pe.capture_o)
                psum = pe.psum_o
            psums.append(psum)
        m.d.comb += self.sums.eq(Cat(_lanes(m, "sum_skew", psums, falling=True)))
        return m


class AccumulatingArray(wiring.Component):
    """sums of row r = Σ_k ifmap_k[r] · weight_k, the words leaving in the order of the rows.

    An ifmap word holds `rows` elements of one pixel, first the one for step 0; row r takes the
    word that comes r cycles after `begin`, and shifts it out, one element a step.  Weight words
    move down one a step.
    Latency: 1 cycle from an ifmap word to its first element; rows + columns cycles from the last
    step at row 0 (`last`, at the same time as its weights) to row 0's sums.
    Throughput: one step a cycle; folds `rows` steps apart or more.  Never stalls.
    """

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
        pipes: list[Value] = []
        for column in range(self.columns):
            pipe: Value = Signal(self.accumulator_bits, name=f"zero_{column}")
            down, token = weight[column], drains[column]
            for row in range(self.rows):
                pe = AccumulatingPE(operand_bits=bits, accumulator_bits=self.accumulator_bits)
                name = f"accumulating_pe_{bits}_{self.accumulator_bits}"
                place(m, f"pe_{row}_{column}", pe, name)
                m.d.comb += [
                    Cat(pe.ifmap_i, pe.flags_i).eq(ifmap[row]),
                    pe.weight_i.eq(down),
                    pe.drain_i.eq(token),
                    pe.pipe_i.eq(pipe),
                ]
                ifmap[row] = Cat(pe.ifmap_o, pe.flags_o)
                down, token, pipe = pe.weight_o, pe.drain_o, pe.pipe_o
            pipes.append(pipe)
        m.d.comb += self.sums.eq(Cat(_lanes(m, "sum_skew", pipes, falling=True)))
        return m
