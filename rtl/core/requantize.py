"""From a sum to an output: bias, scale, rounding, ReLU, saturation."""

from amaranth.hdl import Module, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

MULTIPLIER_BITS = 16


class Requantize(wiring.Component):
    """o = saturate(relu(⌊(sum · multiplier + 2^(shift−1)) / 2^shift⌋)); shift 0 rounds nothing.

    sum = acc + bias.  Latency: 2 registers (sum, product), o combinational behind them; multiplier
    is taken a cycle behind acc and bias, shift and relu two.  Throughput: one a cycle.  Never
    stalls.
    """

    acc: Signal
    bias: Signal
    multiplier: Signal
    shift: Signal
    relu: Signal
    o: Signal

    def __init__(self, *, accumulator_bits: int, operand_bits: int) -> None:
        self.accumulator_bits = accumulator_bits
        self.operand_bits = operand_bits
        super().__init__(
            {
                "acc": In(signed(accumulator_bits)),
                "bias": In(signed(accumulator_bits)),
                "multiplier": In(MULTIPLIER_BITS),
                "shift": In(6),
                "relu": In(1),
                "o": Out(signed(operand_bits)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        total = Signal(signed(self.accumulator_bits + 1))
        product = Signal(signed(self.accumulator_bits + 1 + MULTIPLIER_BITS))
        rounded = Signal(signed(len(product) + 1))
        half = Signal(64)
        m.d.sync += [
            total.eq(self.acc + self.bias),
            product.eq(total * self.multiplier),
        ]
        m.d.comb += [
            half.eq((1 << self.shift) >> 1),
            rounded.eq((product + half) >> self.shift),
        ]
        self._saturate(m, rounded, self.relu)
        return m

    def _saturate(self, m: Module, rounded: Signal, relu: Signal) -> None:
        low, high = -(1 << (self.operand_bits - 1)), (1 << (self.operand_bits - 1)) - 1
        m.d.comb += self.o.eq(rounded)
        with m.If(rounded > high):
            m.d.comb += self.o.eq(high)
        with m.If((rounded < 0) & relu):
            m.d.comb += self.o.eq(0)
        with m.Elif(rounded < low):
            m.d.comb += self.o.eq(low)
