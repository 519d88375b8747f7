"""The dot-product unit of tensor cores and vector MACs, for floats and for integers."""

from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any

from amaranth.hdl import Cat, Module, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from archsim.arithmetic.dot_product import DotProduct
from rtl.core.adder_tree import AdderTree
from rtl.core.delay import Delay
from rtl.core.float_align import Align, MaximumExponent
from rtl.core.float_late_sum import FloatLateSum
from rtl.core.float_product import FloatAddend, FloatProduct
from rtl.core.float_round import FloatRound
from rtl.hierarchy import place


def _ports(design: DotProduct, *, by_one: bool = False) -> dict[str, Any]:
    lanes = design.length * design.operand.bits
    bits = design.accumulator.bits
    factors = {"a": In(lanes)} if by_one else {"a": In(lanes), "b": In(lanes)}
    return {**factors, "c": In(bits), "o": Out(bits)}


def _delayed(m: Module, name: str, value: Value, cycles: int) -> Value:
    line = place(m, name, Delay, bits=len(value), cycles=cycles)
    m.d.comb += line.i.eq(value)
    return line.o


@dataclass(frozen=True, kw_only=True)
class _Term:
    """A term of the sum, at some stage of the pipeline."""

    negative: Value
    exponent: Value
    significand: Value
    fraction_bits: int

    def delayed(self, m: Module, name: str, cycles: int) -> "_Term":
        """The same term, some cycles later."""
        bits = Cat(self.negative, self.exponent, self.significand)
        late = _delayed(m, name, bits, cycles)
        split = 1 + len(self.exponent)
        return _Term(
            negative=late[0],
            exponent=late[1:split],
            significand=late[split:],
            fraction_bits=self.fraction_bits,
        )


class IntegerDotProduct(wiring.Component):
    """o[t + latency] = c[t] + Σ a_i[t] · b_i[t], modulo 2^(bits of c).

    Stages: multiply; the levels of the adder tree; accumulate.  Latency: 2 + ⌈log2 k⌉ cycles.
    Throughput: one sum a cycle.  Never stalls.

    Members
    -------
    a, b: k lanes of operands, lane 0 lowest; c: the accumulator; o: the sum.
    """

    a: Signal
    b: Signal
    c: Signal
    o: Signal

    def __init__(self, *, design: DotProduct) -> None:
        self.design = design
        super().__init__(_ports(design))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        design, bits = self.design, self.design.operand.bits
        tree = place(m, "tree", AdderTree, lanes=design.length, bits=2 * bits)
        for lane in range(design.length):
            a, b = (port.word_select(lane, bits).as_signed() for port in (self.a, self.b))
            product = Signal(signed(2 * bits), name=f"product_{lane}", reset_less=True)
            m.d.sync += product.eq(a * b)
            m.d.comb += tree.i.word_select(lane, 2 * bits).eq(product)
        c = _delayed(m, "c_delay", self.c, 1 + design.tree_levels)
        m.d.sync += self.o.eq(c + tree.o)
        return m


class FloatDotProduct(wiring.Component):
    """o[t + latency] = c[t] + Σ a_i[t] · b_i[t], by `design.rules`.

    Stages: multiply, and find the largest exponent; align, and the levels of the adder tree;
    accumulate, normalise and round.  With k = 1, which has no tree, the last stage aligns.
    Latency: 2 + ⌈log2 k⌉ cycles.  Throughput: one sum a cycle.  Never stalls.

    by_one: every b_i is 1.0, so that o = c + Σ a_i.  A term is the operand taken apart: no
    multiplier, a significand in [0, 2) of 1 + fraction_bits bits, and a tree a bit narrower.
    Exponents, the sum's frame and the rounding are those of products; so are o, in every bit, and
    its latency.

    Members
    -------
    a, b: k lanes of operands, lane 0 lowest, b unless `by_one`; c: the accumulator; o: the sum.
    """

    a: Signal
    b: Signal
    c: Signal
    o: Signal

    def __init__(self, *, design: DotProduct, by_one: bool = False) -> None:
        self.design = design
        self.datapath = design.datapath
        self.by_one = by_one
        super().__init__(_ports(design, by_one=by_one))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        levels, joins = self.design.tree_levels, self.datapath.rules.accumulator_joins
        parts = self._parts(m)
        largest = self._largest(m, parts if joins else parts[:-1])
        specials = _delayed(m, "specials_delay", self._specials(parts), 1 + levels)
        *products, addend = self._registered(m, parts)
        sum_of_products = self._sum_of_products(m, products, largest)
        if joins:
            aligned = self._aligned(m, "align_addend", addend, largest)
            aligned = _delayed(m, "addend_delay", aligned, levels).as_signed()
            largest = _delayed(m, "largest_delay", largest, levels)
            total = sum_of_products + aligned
        else:
            largest = _delayed(m, "largest_delay", largest, levels)
            addend = addend.delayed(m, "addend_delay", levels)
            total, largest = self._joined_late(m, sum_of_products, largest, addend)
        rounding = place(m, "round", FloatRound, datapath=self.datapath)
        m.d.comb += [
            rounding.total.eq(total),
            rounding.largest.eq(largest),
            Cat(rounding.nan, rounding.plus_infinity, rounding.minus_infinity).eq(specials),
        ]
        m.d.sync += self.o.eq(rounding.o)
        return m

    def _parts(self, m: Module) -> list[Any]:
        """The products and, last, the accumulator, as terms: not yet registered."""
        lanes = range(self.design.length)
        products = [
            self._term(m, lane) if self.by_one else self._product(m, lane) for lane in lanes
        ]
        form = self.datapath.accumulator
        addend = place(m, "addend", FloatAddend, datapath=self.datapath, form=form)
        m.d.comb += addend.i.eq(self.c)
        return [*products, addend]

    def _product(self, m: Module, lane: int) -> Any:
        product = place(m, f"product_{lane}", FloatProduct, datapath=self.datapath)
        for own, port in ((product.a, self.a), (product.b, self.b)):
            m.d.comb += own.eq(port.word_select(lane, len(own)))
        return product

    def _term(self, m: Module, lane: int) -> Any:
        """The product with 1.0."""
        form = self.datapath.operand
        term = place(m, f"term_of_{lane}", FloatAddend, datapath=self.datapath, form=form)
        m.d.comb += term.i.eq(self.a.word_select(lane, form.bits))
        return term

    def _registered(self, m: Module, parts: list[Any]) -> list[_Term]:
        """The same terms, one cycle later."""
        path = self.datapath
        of_product = path.operand.fraction_bits if self.by_one else path.product_fraction_bits
        fraction_bits = [of_product] * self.design.length
        fraction_bits.append(path.accumulator.fraction_bits)
        return [
            _Term(
                negative=part.negative,
                exponent=part.exponent,
                significand=part.significand,
                fraction_bits=bits,
            ).delayed(m, f"term_{number}", 1)
            for number, (part, bits) in enumerate(zip(parts, fraction_bits, strict=True))
        ]

    def _largest(self, m: Module, parts: list[Any]) -> Signal:
        """The largest exponent, registered."""
        bits = self.datapath.exponent_bits
        tree = place(m, "largest", MaximumExponent, lanes=len(parts), bits=bits)
        largest = Signal(bits, reset_less=True)
        m.d.comb += tree.i.eq(Cat(part.exponent for part in parts))
        m.d.sync += largest.eq(tree.o)
        return largest

    def _specials(self, parts: list[Any]) -> Value:
        """Whether there is a NaN, a +∞, a −∞ among the terms."""
        return Cat(
            reduce(or_, (part.nan for part in parts)),
            reduce(or_, (part.infinite & ~part.negative for part in parts)),
            reduce(or_, (part.infinite & part.negative for part in parts)),
        )

    def _sum_of_products(self, m: Module, products: list[_Term], largest: Signal) -> Value:
        bits = self.datapath.aligned_product_bits - self.by_one
        tree = place(m, "tree", AdderTree, lanes=len(products), bits=bits)
        for lane, product in enumerate(products):
            aligned = self._aligned(m, f"align_{lane}", product, largest)
            m.d.comb += tree.i.word_select(lane, bits).eq(aligned)
        return tree.o

    def _aligned(self, m: Module, name: str, term: _Term, largest: Value) -> Value:
        unit = place(
            m,
            name,
            Align,
            significand_bits=len(term.significand),
            fraction_bits=term.fraction_bits,
            aligned_fraction_bits=self.datapath.rules.aligned_fraction_bits,
            exponent_bits=self.datapath.exponent_bits,
        )
        m.d.comb += [
            unit.negative.eq(term.negative),
            unit.significand.eq(term.significand),
            unit.distance.eq(largest - term.exponent),
        ]
        return unit.o

    def _joined_late(
        self, m: Module, sum_of_products: Value, largest_product: Value, addend: _Term
    ) -> tuple[Value, Value]:
        """The sum of products, aligned once more with the accumulator, and the larger exponent."""
        late = place(m, "late_sum", FloatLateSum, datapath=self.datapath)
        m.d.comb += [
            late.partial.eq(sum_of_products),
            late.partial_exponent.eq(largest_product),
            Cat(late.negative, late.exponent, late.significand).eq(
                Cat(addend.negative, addend.exponent, addend.significand)
            ),
        ]
        return late.total, late.largest


class DotProductUnit(wiring.Component):
    """o[t + latency] = c[t] + Σ a_i[t] · b_i[t], of any design of `DotProduct`.

    valid_o follows valid_i after the latency; o is of the operands that came with it.  Latency:
    `design.latency_cycles`, 2 + ⌈log2 k⌉.  Throughput: one sum a cycle.  Never stalls: who takes
    the result must be ready for it.

    Members
    -------
    valid_i, a, b, c: the operands, k lanes each in a and b, lane 0 lowest; valid_o, o: the result.
    """

    valid_i: Signal
    a: Signal
    b: Signal
    c: Signal
    valid_o: Signal
    o: Signal

    def __init__(self, *, design: DotProduct) -> None:
        self.design = design
        super().__init__({"valid_i": In(1), **_ports(design), "valid_o": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        kind = IntegerDotProduct if self.design.rules is None else FloatDotProduct
        datapath = place(m, "datapath", kind, design=self.design)
        valid = _delayed(m, "valid_delay", self.valid_i, self.design.latency_cycles)
        m.d.comb += [
            datapath.a.eq(self.a),
            datapath.b.eq(self.b),
            datapath.c.eq(self.c),
            self.valid_o.eq(valid),
            self.o.eq(datapath.o),
        ]
        return m
