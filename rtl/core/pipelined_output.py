"""The output stage with registers in the product of a column and behind its shift."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value, signed
from amaranth.lib import data

from rtl.core.delay import Delay
from rtl.core.one_more import one_more
from rtl.core.output_stage import OutputStage
from rtl.core.requantize import MULTIPLIER_BITS, Requantize
from rtl.core.wide_product import WideProduct
from rtl.hierarchy import place


class PipelinedRequantize(Requantize):
    """o of `Requantize`, `registers` (1 or 2) cycles later.

    q = ⌊2 · sum · multiplier / 2^shift⌋ lies in a register; o = saturate(relu(⌊(q + 1) / 2⌋)), the
    same number, since q keeps the bit that rounds.  Whether it is limited is seen in q's upper bits
    while the lowest are rounded.  With 2 registers the other is in the product: the parts of sum
    and the products of parts lie in the multipliers' own registers (`WideProduct`).

    Latency: 2 + `registers`, o combinational behind them; multiplier is taken 2 − `registers`
    cycles behind acc and bias, shift and relu two.  Throughput: one a cycle.  Never stalls.
    """

    def __init__(self, *, accumulator_bits: int, operand_bits: int, registers: int) -> None:
        self.registers = registers
        super().__init__(accumulator_bits=accumulator_bits, operand_bits=operand_bits)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bits = self.accumulator_bits + 1, MULTIPLIER_BITS
        product = Signal(signed(sum(bits)))
        doubled = Signal(signed(len(product) + 1))
        if self.registers > 1:
            wide = place(m, "product", WideProduct, bits=bits)
            m.d.comb += [
                wide.a.eq(self.acc + self.bias),
                wide.b.eq(self.multiplier),
                product.eq(wide.o),
            ]
        else:
            total = Signal(signed(bits[0]))
            m.d.sync += [total.eq(self.acc + self.bias), product.eq(total * self.multiplier)]
        shift = place(m, "shift_delay", Delay, bits=len(self.shift), cycles=self.registers - 1)
        relu = place(m, "relu_delay", Delay, bits=1, cycles=self.registers)
        m.d.comb += [shift.i.eq(self.shift), relu.i.eq(self.relu)]
        m.d.sync += doubled.eq((product << 1) >> shift.o)
        self._limit(m, doubled, relu.o)
        return m

    def _limit(self, m: Module, doubled: Signal, relu: Value) -> None:
        """o of ⌊(doubled + 1) / 2⌋."""
        bits = self.operand_bits
        low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
        lowest, upper, negative = doubled[: bits + 1], doubled[bits:], doubled[-1]
        rounded, beyond = Signal(signed(bits)), Signal()
        m.d.comb += [
            rounded.eq(lowest[1:] + lowest[0]),
            beyond.eq(upper.any() & ~upper.all()),
            self.o.eq(rounded),
        ]
        with m.If(negative):
            with m.If(relu):
                m.d.comb += self.o.eq(0)
            with m.Elif(beyond):
                m.d.comb += self.o.eq(low)
        with m.Elif(beyond | rounded[-1]):
            m.d.comb += self.o.eq(high)


class PipelinedOutputStage(OutputStage):
    """As `OutputStage`, each word `registers` cycles later.

    What a read waits for, and what ends with it, is compared a row ahead: credits, the last row,
    lanes of the next row that have an output, whether it completes a word and takes the last of
    its bias word.
    """

    ahead = True

    def __init__(self, *, registers: int, **shape: Any) -> None:
        self.registers = registers
        super().__init__(**shape)

    @property
    def column_latency_cycles(self) -> int:
        """Of `PipelinedRequantize`."""
        return 2 + self.registers

    @property
    def parameter_cycles(self) -> int:
        """To the product; a column keeps what it needs behind it."""
        return 2

    @property
    def multiplier_cycles(self) -> int:
        """0 where the multipliers' own registers take both factors."""
        return 2 - self.registers

    def _lanes(self, m: Module, current: data.View, issue: Signal, left: Signal) -> Value:
        short, fresh, packing = Signal(name="short_row"), self.command.payload, self.packing
        take = self.command.ready & self.command.valid
        m.d.comb += [packing.full.eq(~short), packing.begins.eq(take)]
        if not self.scalar_bias:
            m.d.comb += packing.following_units.eq(
                Mux(packing.take, current.step_lanes, fresh.step_lanes)
            )
            with m.If(take):
                m.d.sync += short.eq(fresh.output_rows <= fresh.pixels)
            with m.Elif(issue & one_more(left, current.pixels)):
                m.d.sync += short.eq(1)
            return Mux(short, current.step_lanes, self.columns)
        pixels, filters = Signal(24, name="pixels_left"), Signal(24, name="filters_left")
        self.block_last = block_last = self._last_of(m, filters, "filter_steps", issue)
        following = Mux(block_last, pixels - self.columns, pixels)
        m.d.comb += packing.following_units.eq(
            Mux(packing.take, following, fresh.pixels)[: len(packing.units)]
        )
        with m.If(take):
            m.d.sync += [pixels.eq(fresh.pixels), short.eq(fresh.pixels < self.columns)]
        with m.Elif(issue & block_last):
            m.d.sync += [
                pixels.eq(pixels - self.columns),
                short.eq(pixels < 2 * self.columns),
            ]
        return Mux(short, pixels[: len(packing.units)], self.columns)

    def _turns(
        self, m: Module, current: data.View, address: Signal, issued: tuple[Signal, Signal]
    ) -> Value:
        if self.scalar_bias:
            return self.block_last
        return self._last_of(m, Signal(24, name="repeats_left"), "pixels", issued[0])

    def _last_of(self, m: Module, left: Signal, field: str, issue: Signal) -> Signal:
        """Whether the row is the last of so many, again and again, as the command's field says."""
        count, fresh = self.current[field], self.command.payload[field]
        last = Signal(name=f"{left.name}_last")
        with m.If(self.command.ready & self.command.valid):
            m.d.sync += [left.eq(fresh), last.eq(fresh == 1)]
        with m.Elif(issue):
            m.d.sync += [
                left.eq(Mux(last, count, left - 1)),
                last.eq(Mux(last, count == 1, left == 2)),
            ]
        return last

    def _requantize(self, m: Module, name: str, widths: dict[str, int]) -> Any:
        return place(m, name, PipelinedRequantize, **widths, registers=self.registers)
