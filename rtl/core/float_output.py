"""The output stage of a core with floating accumulators: sums, bias, ReLU, ofmap."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from archsim.arithmetic.float_sum import FloatOutput
from rtl.core.dot_product import FloatDotProduct
from rtl.core.memory import PLAIN_BANKS, Banks
from rtl.core.output_stage import OutputStage
from rtl.hierarchy import place


class FloatRequantize(wiring.Component):
    """o = relu(acc + bias), rounded once to the ofmap's format: the twin of `FloatOutput`.

    Latency: `output.latency_cycles`, 3, of the dot-product unit 0 + acc · 1.0 + bias · 1.0, without
    multipliers; ReLU is combinational behind it.  Throughput: one a cycle.  Never stalls.

    Members
    -------
    acc, bias: patterns of the accumulator; relu: of the same word, but given with o, since it is
    one for all columns and travels outside; o: a pattern of the ofmap.
    """

    acc: Signal
    bias: Signal
    relu: Signal
    o: Signal

    def __init__(self, *, output: FloatOutput) -> None:
        self.output = output
        super().__init__(
            {
                "acc": In(output.accumulator.bits),
                "bias": In(output.accumulator.bits),
                "relu": In(1),
                "o": Out(output.ofmap.bits),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        unit = place(m, "sum", FloatDotProduct, design=self.output.unit, by_one=True)
        m.d.comb += [
            unit.a.eq(Cat(self.acc, self.bias)),
            unit.c.eq(0),
            self.o.eq(Mux(self.relu & unit.o[-1], 0, unit.o)),
        ]
        return m


class FloatOutputStage(OutputStage):
    """relu(accumulators[n] + bias), n = 0 … output_rows − 1, of floats, packed into whole words.

    Walk, bias, queue, members, throughput and back-pressure are those of `OutputStage`; the
    command's multiplier and shift are not looked at.  Latency: 3 + `output.latency_cycles`, 6
    cycles from a read to its word at the port.

    queue_depth: at least 7, the cycles from a read to the credit that its word gives back, or else
    the stage does not reach a word a cycle.
    """

    def __init__(
        self,
        *,
        columns: int,
        output: FloatOutput,
        depths: tuple[int, int],
        queue_depth: int,
        scalar_bias: bool,
        banks: Banks = PLAIN_BANKS,
    ) -> None:
        self.output = output
        super().__init__(
            columns=columns,
            accumulator_bits=output.accumulator.bits,
            operand_bits=output.ofmap.bits,
            depths=depths,
            queue_depth=queue_depth,
            scalar_bias=scalar_bias,
            banks=banks,
        )

    @property
    def column_latency_cycles(self) -> int:
        """Of `FloatRequantize`."""
        return self.output.latency_cycles

    def _column(self, m: Module, column: int, stages: list[Any]) -> Any:
        unit = place(m, f"requantize_{column}", FloatRequantize, output=self.output)
        m.d.comb += unit.relu.eq(stages[-1].relu)
        return unit
