"""The sums of floats of a PE: those of its products, segment by segment, or of all lanes."""

from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Module, Mux, Signal, Value

from rtl.core.adder_tree import sum_of
from rtl.core.float_align import Align, MaximumExponent
from rtl.core.float_product import FloatProduct
from rtl.core.train_float_sums import TrainFloatSums
from rtl.core.train_totals import TrainTotals
from rtl.hierarchy import place


class TrainFloatTotals(TrainTotals):
    """As `TrainTotals`, of floats: products are aligned to the largest exponent among those that
    are added up, what is shifted out is dropped, and their sum is exact.

    Members
    -------
    products: of each lane its two operands.
    """

    sums = TrainFloatSums

    def _values(self, m: Module) -> list[Value]:
        design, path = self.design, self.design.dot.datapath
        products = [self._product(m, lane) for lane in range(design.lanes)]
        lanes = design.segment_lanes
        parts = [products[at : at + lanes] for at in range(0, design.lanes, lanes)]
        own = [
            self._largest(m, f"largest_{number}", [one.exponent for one in part])
            for number, part in enumerate(parts)
        ]
        flags = [
            Cat(
                reduce(or_, (one.nan for one in part)),
                reduce(or_, (one.infinite & ~one.negative for one in part)),
                reduce(or_, (one.infinite & one.negative for one in part)),
            )
            for part in parts
        ]
        largest = own
        if design.segments > 1:
            every = self._largest(m, "largest", own)
            largest = [Mux(self.split, one, every) for one in own]
        aligned = [
            sum_of([
                self._aligned(m, f"align_{number * lanes + lane}", one, exponent)
                for lane, one in enumerate(part)
            ])
            for number, (part, exponent) in enumerate(zip(parts, largest, strict=True))
        ]  # fmt: skip
        sums, specials = aligned, flags
        if design.segments > 1:
            whole, among = sum_of(aligned), reduce(or_, flags)
            sums = [Mux(self.split, one, whole) for one in aligned]
            specials = [Mux(self.split, one, among) for one in flags]
        found: list[Value] = []
        for number, (total, exponent, special) in enumerate(
            zip(sums, largest, specials, strict=True)
        ):
            partial = Signal(path.partial_bits, name=f"partial_{number}")
            m.d.comb += partial.eq(total)
            found.append(Cat(partial, exponent, special))
        return found

    def _product(self, m: Module, lane: int) -> FloatProduct:
        product = place(m, f"product_{lane}", FloatProduct, datapath=self.design.dot.datapath)
        both = 2 * self.design.operand_bits
        m.d.comb += Cat(product.a, product.b).eq(self.products.word_select(lane, both))
        return product

    def _largest(self, m: Module, name: str, exponents: list[Value]) -> Value:
        bits = self.design.dot.datapath.exponent_bits
        tree = place(m, name, MaximumExponent, lanes=len(exponents), bits=bits)
        m.d.comb += tree.i.eq(Cat(exponents))
        return tree.o

    def _aligned(self, m: Module, name: str, product: FloatProduct, largest: Value) -> Value:
        path = self.design.dot.datapath
        unit = place(
            m, name, Align, significand_bits=path.product_bits,
            fraction_bits=path.product_fraction_bits,
            aligned_fraction_bits=path.rules.aligned_fraction_bits,
            exponent_bits=path.exponent_bits,
        )  # fmt: skip
        m.d.comb += [
            unit.negative.eq(product.negative),
            unit.significand.eq(product.significand),
            unit.distance.eq(largest - product.exponent),
        ]
        return unit.o


__all__ = ["TrainFloatTotals"]
