"""The output stage with registers behind the shift and the rounding of a column."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value, signed
from amaranth.lib import data

from rtl.core.delay import Delay
from rtl.core.output_stage import OutputStage
from rtl.core.requantize import MULTIPLIER_BITS, Requantize
from rtl.hierarchy import place


class PipelinedRequantize(Requantize):
    """o of `Requantize`, `registers` (1 or 2) cycles later.

    q = ⌊2 · sum · multiplier / 2^shift⌋ lies in a register; o = saturate(relu(⌊(q + 1) / 2⌋)), the
    same number, since q keeps the bit that rounds.  With 2 registers ⌊(q + 1) / 2⌋ lies in the
    second.

    Latency: 2 + `registers`, o combinational behind them; multiplier is taken a cycle behind acc
    and bias, shift and relu two.  Throughput: one a cycle.  Never stalls.
    """

    def __init__(self, *, accumulator_bits: int, operand_bits: int, registers: int) -> None:
        self.registers = registers
        super().__init__(accumulator_bits=accumulator_bits, operand_bits=operand_bits)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        total = Signal(signed(self.accumulator_bits + 1))
        product = Signal(signed(self.accumulator_bits + 1 + MULTIPLIER_BITS))
        doubled = Signal(signed(len(product) + 1))
        rounded = Signal(signed(len(product) + 1))
        relu = place(m, "relu_delay", Delay, bits=1, cycles=self.registers)
        m.d.comb += relu.i.eq(self.relu)
        m.d.sync += [
            total.eq(self.acc + self.bias),
            product.eq(total * self.multiplier),
            doubled.eq((product << 1) >> self.shift),
        ]
        behind = m.d.sync if self.registers > 1 else m.d.comb
        behind += rounded.eq((doubled >> 1) + doubled[0])
        self._saturate(m, rounded, relu.o)
        return m


class PipelinedOutputStage(OutputStage):
    """As `OutputStage`, each word `registers` cycles later.

    Which lanes of the next row have an output is compared a row ahead: the credits that a read
    waits for hang on it.
    """

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

    def _lanes(self, m: Module, current: data.View, issue: Signal, left: Signal) -> Value:
        short, fresh = Signal(name="short_row"), self.command.payload
        take = self.command.ready & self.command.valid
        if not self.scalar_bias:
            with m.If(take):
                m.d.sync += short.eq(fresh.output_rows <= fresh.pixels)
            with m.Elif(issue):
                m.d.sync += short.eq(left - 1 <= current.pixels)
            return Mux(short, current.step_lanes, self.columns)
        pixels, filters = Signal(24, name="pixels_left"), Signal(24, name="filters_left")
        with m.If(take):
            m.d.sync += [
                pixels.eq(fresh.pixels),
                filters.eq(fresh.filter_steps),
                short.eq(fresh.pixels < self.columns),
            ]
        with m.Elif(issue):
            m.d.sync += filters.eq(filters - 1)
            with m.If(filters == 1):
                m.d.sync += [
                    filters.eq(current.filter_steps),
                    pixels.eq(pixels - self.columns),
                    short.eq(pixels < 2 * self.columns),
                ]
        return Mux(short, pixels[: len(self.packing.units)], self.columns)

    def _requantize(self, m: Module, name: str, widths: dict[str, int]) -> Any:
        return place(m, name, PipelinedRequantize, **widths, registers=self.registers)
