"""A product wider than an FPGA's multiplier, with the registers that multipliers have inside."""

from typing import Any

from amaranth.hdl import Cat, Module, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from archsim.arithmetic.factors import FACTOR_BITS, factor_bits, parts_of
from rtl.core.product import Product
from rtl.hierarchy import place


class WideProduct(wiring.Component):
    """o[t + 3] = a[t] · b[t], of a signed a and an unsigned b.

    a is cut into parts (`parts_of`), and o is the sum of their products, each from where its part
    begins: of two parts one addition, into which the lowest bits do not go.
    Latency: 3 registers: parts and b, their products (both a multiplier's own, `Product`), o.
    Throughput: one product a cycle.  Never stalls.
    bits: of a and of b, b less than a factor has; widest: bits of a multiplier's signed factor.
    """

    a: Signal
    b: Signal
    o: Signal

    def __init__(self, *, bits: tuple[int, int], widest: int = FACTOR_BITS) -> None:
        self.parts = parts_of(bits[0], widest)
        super().__init__({"a": In(signed(bits[0])), "b": In(bits[1]), "o": Out(signed(sum(bits)))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bits = factor_bits(self.parts), len(self.b) + 1
        products: list[Any] = []
        at = 0
        for number, part in enumerate(self.parts):
            unit = place(m, f"product_{number}", Product, bits=bits, registers=2)
            cut = self.a[at : at + part]
            highest = number == len(self.parts) - 1
            m.d.comb += [unit.a.eq(cut.as_signed() if highest else cut), unit.b.eq(self.b)]
            products.append(unit.o)
            at += part
        total: Value = products.pop()
        for product, part in zip(products[::-1], self.parts[-2::-1], strict=True):
            total = Cat(product[:part], (product >> part) + total).as_signed()
        m.d.sync += self.o.eq(total)
        return m
