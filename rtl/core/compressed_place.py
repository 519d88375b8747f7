"""Where a word of a compressed scratchpad lies, from the directory's entry of its unit."""

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.core.adder_tree import sum_of
from rtl.core.compressed_writer import entry_bits, index_bits
from rtl.core.sram import address_bits


class WordPlace(wiring.Component):
    """row = first + ⌊s / B⌋, p = s mod B with s the sum of the widths before; w.

    Combinational, or, with `registers` 1, a cycle later: s, w and what else an answer is made of
    lie in registers then.

    With `pair` the same of the word behind, which is the first of the following unit if this one
    is the last of its own.

    Members
    -------
    entry, following: of this unit, and with `pair` of the next; index: of the word in its unit;
    row, p, w: of the word, and with `pair` next_row, next_p, next_w: of the word behind it.
    """

    entry: Signal
    following: Signal
    index: Signal
    row: Signal
    p: Signal
    w: Signal
    next_row: Signal
    next_p: Signal
    next_w: Signal

    def __init__(
        self, *, container_bits: int, unit_words: int, rows: int, pair: bool, registers: int = 0
    ) -> None:
        self.registers = registers
        self.container_bits = container_bits
        self.unit_words = unit_words
        self.rows = rows
        self.pair = pair
        entry = entry_bits(rows=rows, unit_words=unit_words, container_bits=container_bits)
        answers = {
            "row": Out(address_bits(rows)),
            "p": Out(range(container_bits)),
            "w": Out(range(container_bits + 1)),
        }
        super().__init__(
            {
                "entry": In(entry),
                **({"following": In(entry)} if pair else {}),
                "index": In(index_bits(unit_words)),
                **answers,
                **({f"next_{name}": member for name, member in answers.items()} if pair else {}),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        shift = self.container_bits.bit_length() - 1
        first, codes = self._fields(self.entry)
        before = Signal(range(self.unit_words * self.container_bits))
        masked = [Mux(self.index > at, code, 0) for at, code in enumerate(codes[:-1])]
        if self.registers:
            self._place_late(m, before, first, codes, masked)
            return m
        m.d.comb += [
            before.eq(sum_of([*masked, self.index])),
            self.row.eq(first + before[shift:]),
            self.p.eq(before[:shift]),
            self.w.eq(self._select(m, codes) + 1),
        ]
        if self.pair:
            self._place_next(m, first, before + self.w, codes)
        return m

    def _place_late(
        self, m: Module, before: Signal, first: Value, codes: list[Value], masked: list[Value]
    ) -> None:
        """Sums and choices in registers, rows behind them."""
        shift = self.container_bits.bit_length() - 1
        row = self._kept(m, "first", first)
        m.d.sync += [
            before.eq(sum_of([*masked, self.index])),
            self.w.eq(self._select(m, codes) + 1),
        ]
        m.d.comb += [self.row.eq(row + before[shift:]), self.p.eq(before[:shift])]
        if not self.pair:
            return
        total = Signal(range(self.unit_words * self.container_bits + 1))
        next_first, next_codes = self._fields(self.following)
        last = self.index == self.unit_words - 1
        ends = self._kept(m, "ends", last)
        begins = self._kept(m, "begins", next_first)
        width = Mux(last, next_codes[0], self._select(m, codes[1:]))
        m.d.sync += self.next_w.eq(width + 1)
        m.d.comb += [
            total.eq(before + self.w),
            self.next_row.eq(Mux(ends, begins, row + total[shift:])),
            self.next_p.eq(Mux(ends, 0, total[:shift])),
        ]

    def _kept(self, m: Module, name: str, value: Value) -> Signal:
        """The value a cycle later."""
        kept = Signal(len(value), name=f"{name}_kept", reset_less=True)
        m.d.sync += kept.eq(value)
        return kept

    def _fields(self, entry: Signal) -> tuple[Value, list[Value]]:
        """The first row, and w − 1 of every word."""
        row_bits, bits = address_bits(self.rows), self.container_bits.bit_length() - 1
        codes = entry[row_bits:]
        return entry[:row_bits], [codes.word_select(at, bits) for at in range(self.unit_words)]

    def _select(self, m: Module, codes: list[Value]) -> Signal:
        """The code at the index."""
        code = Signal(self.container_bits.bit_length() - 1)
        with m.Switch(self.index):
            for at, value in enumerate(codes):
                with m.Case(at):
                    m.d.comb += code.eq(value)
            with m.Default():
                m.d.comb += code.eq(0)
        return code

    def _place_next(self, m: Module, first: Value, before: Value, codes: list[Value]) -> None:
        shift = self.container_bits.bit_length() - 1
        total = Signal(range(self.unit_words * self.container_bits + 1))
        next_first, next_codes = self._fields(self.following)
        m.d.comb += total.eq(before)
        with m.If(self.index == self.unit_words - 1):
            m.d.comb += [
                self.next_row.eq(next_first),
                self.next_p.eq(0),
                self.next_w.eq(next_codes[0] + 1),
            ]
        with m.Else():
            m.d.comb += [
                self.next_row.eq(first + total[shift:]),
                self.next_p.eq(total[:shift]),
                self.next_w.eq(self._select(m, codes[1:]) + 1),
            ]
