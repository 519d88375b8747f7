"""A grid of PEs that hold an operand: aligned words in, aligned rows of sums out."""

from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.core.grid import place_rows, skewed
from rtl.core.pe import StationaryPE
from rtl.hierarchy import place


def _ports(
    pes: tuple[int, int], chains: int, operand_bits: int, accumulator_bits: int
) -> dict[str, Any]:
    """Of (rows, columns) of PEs: what enters the rows and the stationary chains, and leaves."""
    rows, columns = pes
    return {
        "moving": In(rows * operand_bits),
        "bank": In(rows),
        "stationary_i": In(chains * operand_bits),
        "stationary_o": Out(chains * operand_bits),
        "capture_i": In(chains * 2),
        "capture_o": Out(chains * 2),
        "psum_i": In(columns * accumulator_bits),
        "psum_o": Out(columns * accumulator_bits),
    }


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
        self,
        *,
        columns: int,
        operand_bits: int,
        accumulator_bits: int,
        across: bool,
        product_registers: int = 0,
        in_luts: bool = False,
    ) -> None:
        self.columns = columns
        self.operand_bits = operand_bits
        self.accumulator_bits = accumulator_bits
        self.across = across
        self.product_registers = product_registers
        self.in_luts = in_luts
        chains = 1 if across else columns
        super().__init__(_ports((1, columns), chains, operand_bits, accumulator_bits))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bits = self.operand_bits
        widths = {"operand_bits": bits, "accumulator_bits": self.accumulator_bits}
        widths["product_registers"] = self.product_registers
        if self.in_luts:
            widths["in_luts"] = True
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


@dataclass
class _StationaryChains:
    """What passes rows of `StationaryPE`s: of every row, and from row to row (`StationaryBand`)."""

    moving: Value
    bank: Value
    stationary: Value
    capture: Value
    psum: Value

    def through(
        self, m: Module, rows: tuple[int, int], *, bits: int, across: bool, shape: Any
    ) -> None:
        """Lead them through new rows, the last of them with products in look-up tables; stationary,
        capture and psum are then what leaves."""
        kinds, (count, in_luts) = (StationaryRow, StationaryBand), rows
        for line, at in place_rows(m, count, kinds, {**shape, "across": across}, in_luts):
            own = slice(at.start * bits, at.stop * bits)
            m.d.comb += [
                line.moving.eq(self.moving[own]),
                line.bank.eq(self.bank[at]),
                line.stationary_i.eq(self.stationary[own] if across else self.stationary),
                line.capture_i.eq(
                    self.capture[2 * at.start : 2 * at.stop] if across else self.capture
                ),
                line.psum_i.eq(self.psum),
            ]
            self.psum = line.psum_o
            if not across:
                self.stationary, self.capture = line.stationary_o, line.capture_o


class StationaryBand(wiring.Component):
    """Rows of `StationaryPE`s, as one module.

    Members
    -------
    moving, bank: of every row; stationary, capture: of the chain along every row (`across`), or of
    every column's, which leaves again; psum: of every column.
    """

    moving: Signal
    bank: Signal
    stationary_i: Signal
    stationary_o: Signal
    capture_i: Signal
    capture_o: Signal
    psum_i: Signal
    psum_o: Signal

    def __init__(  # noqa: PLR0913
        self,
        *,
        rows: int,
        columns: int,
        operand_bits: int,
        accumulator_bits: int,
        across: bool,
        product_registers: int = 0,
        lut_rows: int = 0,
    ) -> None:
        self.lut_rows = lut_rows
        self.rows = rows
        self.across = across
        self.operand_bits = operand_bits
        self.shape = {
            "columns": columns,
            "operand_bits": operand_bits,
            "accumulator_bits": accumulator_bits,
            "product_registers": product_registers,
        }
        chains = rows if across else columns
        ports = _ports((rows, columns), chains, operand_bits, accumulator_bits)
        ended = ("stationary_o", "capture_o") if across else ()
        super().__init__({name: port for name, port in ports.items() if name not in ended})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        chains = _StationaryChains(
            moving=self.moving,
            bank=self.bank,
            stationary=self.stationary_i,
            capture=self.capture_i,
            psum=self.psum_i,
        )
        rows = self.rows, self.lut_rows
        chains.through(m, rows, bits=self.operand_bits, across=self.across, shape=self.shape)
        m.d.comb += self.psum_o.eq(chains.psum)
        if not self.across:
            m.d.comb += [
                self.stationary_o.eq(chains.stationary),
                self.capture_o.eq(chains.capture),
            ]
        return m


class StationaryArray(wiring.Component):
    """sums[c] = Σ_r moving[r] · held[r][c], for a word of `rows` moving operands a cycle.

    Stationary words enter one a cycle behind a capture token: down the columns, word j for row j
    (`across` false, weights), or along the rows, word j for column j (`across` true, ifmap).
    Latency: rows + columns − 1 + `product_registers` cycles from moving to sums.  A word moving in
    cycle t uses a bank whose first stationary word entered in cycle s if t ≥ s + words.
    Throughput: one word a cycle on both inputs.  Never stalls.

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

    def __init__(  # noqa: PLR0913
        self,
        *,
        rows: int,
        columns: int,
        operand_bits: int,
        accumulator_bits: int,
        across: bool,
        product_registers: int = 0,
        lut_rows: int = 0,
    ) -> None:
        self.lut_rows = lut_rows
        self.rows = rows
        self.columns = columns
        self.operand_bits = operand_bits
        self.accumulator_bits = accumulator_bits
        self.across = across
        self.product_registers = product_registers
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
        moving = skewed(
            m,
            "moving_skew",
            [Cat(self.moving.word_select(row, bits), self.bank) for row in range(self.rows)],
        )
        count = self.rows if self.across else self.columns
        stationary = skewed(
            m,
            "stationary_skew",
            [Cat(self.stationary.word_select(at, bits), self.capture) for at in range(count)],
        )
        chains = _StationaryChains(
            moving=Cat(lane[:bits] for lane in moving),
            bank=Cat(lane[bits] for lane in moving),
            stationary=Cat(lane[:bits] for lane in stationary),
            capture=Cat(lane[bits:] for lane in stationary),
            psum=Signal(self.columns * self.accumulator_bits, name="zero"),
        )
        shape = {"columns": self.columns, "operand_bits": bits}
        shape |= {"accumulator_bits": self.accumulator_bits}
        shape |= {"product_registers": self.product_registers}
        rows = self.rows, self.lut_rows
        chains.through(m, rows, bits=bits, across=self.across, shape=shape)
        psum = chains.psum
        psums = [psum.word_select(column, self.accumulator_bits) for column in range(self.columns)]
        m.d.comb += self.sums.eq(Cat(skewed(m, "sum_skew", psums, falling=True)))
        return m
