"""The operand stage of a PE: which products of a pair of vectors go to their banks, and when."""

from functools import reduce
from operator import or_

from amaranth.hdl import Array, C, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from archsim.machines.scnn.command import COORDINATE_BITS
from archsim.machines.scnn.design import Scnn
from rtl.core.scnn_banks import occupied_layout
from rtl.core.scnn_layouts import (
    PLACE_BITS,
    accumulator_address_bits,
    activation_layout,
    bank_bits,
    weight_layout,
)


class Arbiter(wiring.Component):
    """Of the waiting products of a pair, a bank gets in a cycle as many as its queue has places for
    (Q less what waits there already), those with the lowest i · F + f.

    A product counts if both its values are non-zero and its output lies in the region:
    0 ≤ activation.row − weight.row < rows, columns alike.  It goes to the place of its bank's queue
    behind what waits there and behind the waiting products before it, if there are so many.
    cost: cycles from the first with `active` to `ended`, both counted; with Q = 1 max(1, most
    products of the pair in one bank).  The operands stay as they are until then.
    Combinational; a register keeps what is still to be sent.

    Members
    -------
    active: the operands are there; weight, activation: the operands; rows, columns: of the region;
    occupied, with Q > 1: places of the banks' queues that are taken; selected: products that are
    sent in this cycle; places: where in the queue, one-hot; addresses: accumulators of all
    products; ended: this is the pair's last cycle.
    """

    active: Signal
    weight: data.View
    activation: data.View
    rows: Signal
    columns: Signal
    occupied: data.View
    selected: Signal
    places: data.View
    addresses: data.View
    ended: Signal

    def __init__(self, *, design: Scnn) -> None:
        self.design = design
        self.products = design.ifmap_lanes * design.weight_lanes
        address = accumulator_address_bits(design)
        queue = {"occupied": In(occupied_layout(design))} if design.bank_queue > 1 else {}
        super().__init__(
            {
                "active": In(1),
                "weight": In(weight_layout(design)),
                "activation": In(activation_layout(design)),
                "rows": In(COORDINATE_BITS),
                "columns": In(COORDINATE_BITS),
                **queue,
                "selected": Out(self.products),
                "places": Out(data.ArrayLayout(design.bank_queue, self.products)),
                "addresses": Out(data.ArrayLayout(address, self.products)),
                "ended": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        fresh, left = Signal(init=1), Signal(self.products)
        self.fresh, self.left = fresh, left
        counts, waiting, granted = (
            Signal(self.products, name=name) for name in ("counts", "waiting", "granted")
        )
        for number in range(self.products):
            m.d.comb += counts[number].eq(self._counts(m, number))
        m.d.comb += [
            waiting.eq(Mux(fresh, counts, left)),
            self.selected.eq(Mux(self.active, granted, 0)),
            self.ended.eq(self.active & (waiting == granted)),
        ]
        for number, ahead in enumerate(self._ahead(m, waiting)):
            full, places = self._place(ahead)
            m.d.comb += granted[number].eq(waiting[number] & ~full)
            m.d.comb += self.places[number].eq(Mux(self.selected[number], places, 0))
        with m.If(self.active):
            m.d.sync += [fresh.eq(self.ended), left.eq(waiting & ~granted)]
        return m

    def _counts(self, m: Module, number: int) -> Value:
        """Whether product `number` is to be sent at all; drives its address."""
        i, f = divmod(number, self.design.weight_lanes)
        a, w = self.activation.lanes[i], self.weight.lanes[f]
        row, column = (
            Signal(PLACE_BITS + 1, name=f"{axis}_{number}") for axis in ("row", "column")
        )
        m.d.comb += [
            row.eq(a.row - w.row),
            column.eq(a.column - w.column),
            self.addresses[number].eq(a.address + w.address),
        ]
        inside = (row < self.rows) & (column < self.columns)
        return (a.value != 0) & (w.value != 0) & inside

    def _place(self, ahead: list[Value]) -> tuple[Value, Value]:
        """Whether no place is left for a product behind `ahead`; if one is, which; one-hot."""
        queue = self.design.bank_queue
        *reached, full = C(1, 1), *ahead, *[C(0, 1)] * (queue - len(ahead))
        beyond = [*reached[1:], C(0, 1)]
        return full, Cat(here & ~after for here, after in zip(reached, beyond, strict=True))

    def _ahead(self, m: Module, waiting: Signal) -> list[list[Value]]:
        """For each product, how many places of its bank's queue lie before it, as far as Q: those
        that are taken, and one for each waiting product before it."""
        bits = bank_bits(self.design)
        queue = self.design.bank_queue
        banks = [self.addresses[number][:bits] for number in range(self.products)]
        found: list[list[Value]] = []
        for number, bank in enumerate(banks):
            parts = [[waiting[n] & (banks[n] == bank)] for n in range(number)]
            if queue > 1:
                taken = Signal(queue - 1, name=f"taken_{number}")
                words = [self.occupied[n] for n in range(self.design.banks)]
                m.d.comb += taken.eq(Array(words)[bank] if bits else words[0])
                parts.append(list(taken))
            found.append(_total(m, parts, queue))
        return found


def _total(m: Module, parts: list[list[Value]], most: int) -> list[Value]:
    """The sum of counts, none above `most`.

    A count is a list of bits, of which the first so many are 1: bit n is "more than n".  A tree of
    additions, whose bit n is: the one at least i and the other at least n + 1 − i, for any i.
    """
    if len(parts) < 2:
        return parts[0] if parts else []
    if most == 1:
        return [reduce(or_, (bit for part in parts for bit in part))]
    middle = (len(parts) + 1) // 2
    one, other = (_total(m, half, most) for half in (parts[:middle], parts[middle:]))
    total = Signal(min(len(one) + len(other), most), name="total")
    one, other = [C(1, 1), *one], [C(1, 1), *other]
    for n in range(len(total)):
        ways = (
            one[i] & other[n + 1 - i]
            for i in range(max(0, n + 2 - len(other)), min(len(one), n + 2))
        )
        m.d.comb += total[n].eq(reduce(or_, ways))
    return list(total)
