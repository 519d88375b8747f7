"""The operand stage of a PE: which products of a pair of vectors go to their banks, and when."""

from functools import reduce
from operator import or_
from typing import Any, cast

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
from rtl.hierarchy import place


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
        bits, queue = bank_bits(self.design), self.design.bank_queue
        width = max(bits, 1)
        banks = Signal(width * self.products)
        m.d.comb += [
            banks.word_select(number, width).eq(self.addresses[number][:bits])
            for number in range(self.products)
        ]
        found: list[list[Value]] = []
        for number in range(self.products):
            bank = banks.word_select(number, width)
            earlier = waiting[:number], banks[: number * width]
            taken: list[Value] = [] if queue == 1 else [*self.occupied[0]]
            if queue > 1 and bits:
                given = {"bank": bank, "occupied": self.occupied}
                own = place(m, f"taken_{number}", TakenPlaces, given, design=self.design)
                taken = [*own.o]
            found.append(_total(m, bank, earlier, taken, queue, f"ahead_{number}"))
        return found


class TakenPlaces(wiring.Component):
    """o = occupied[bank]: which places of its bank's queue are taken as a product comes.

    Combinational; a module of its own, which all products share where it is emitted.

    Members
    -------
    bank: of the product; occupied: of all banks' queues.
    """

    bank: Signal
    occupied: data.View
    o: Signal

    def __init__(self, *, design: Scnn) -> None:
        super().__init__(
            {
                "bank": In(bank_bits(design)),
                "occupied": In(occupied_layout(design)),
                "o": Out(design.bank_queue - 1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        words = [self.occupied[n] for n in range(self.occupied.shape().length)]
        m.d.comb += self.o.eq(Array(words)[self.bank])
        return m


FLAT = 16
"""Counts that are added up where they are; more are a module, shared by all of as many."""


class Ahead(wiring.Component):
    """How many of some products that wait are of a bank, and of its places are taken, up to `most`.

    o: the first so many of its bits are 1.  Combinational.

    Members
    -------
    bank: the bank; waiting, banks: of the products, from bit 0 on; taken, with places: the first so
    many are 1.
    """

    bank: Signal
    waiting: Signal
    banks: Signal
    o: Signal

    def __init__(self, *, products: int, bank_bits: int, places: int, most: int) -> None:
        self.most, self.places = most, places
        count = min(products + places, most)
        super().__init__(
            {
                "bank": In(bank_bits),
                "waiting": In(products),
                "banks": In(bank_bits * products),
                **({"taken": In(places)} if places else {}),
                "o": Out(count),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m, own = Module(), cast("Any", self)
        taken = [*own.taken] if self.places else []
        earlier = self.waiting, self.banks
        m.d.comb += self.o.eq(Cat(*_sum_of_halves(m, self.bank, earlier, taken, self.most, "")))
        return m


_Products = tuple[Value, Value]
"""Whether each waits, a bit each, and its bank, one behind the other."""


def _total(
    m: Module, bank: Value, earlier: _Products, taken: list[Value], most: int, name: str
) -> list[Value]:
    """How many products of a bank wait, and of its places are taken, up to `most`: a list of bits,
    of which the first so many are 1, so that bit n is "more than n"."""
    waiting, banks = earlier
    if len(waiting) + bool(taken) <= FLAT:
        return _sum_of_halves(m, bank, earlier, taken, most, name)
    sizes = {"products": len(waiting), "bank_bits": len(bank), "places": len(taken), "most": most}
    given = {"bank": bank, "waiting": waiting, "banks": banks}
    if taken:
        given["taken"] = Cat(*taken)
    return [*place(m, name, Ahead, given, **sizes).o]


def _sum_of_halves(
    m: Module, bank: Value, earlier: _Products, taken: list[Value], most: int, name: str
) -> list[Value]:
    """The same, of both halves of all counts: a tree of additions, whose bit n is: the one at least
    i and the other at least n + 1 − i, for any i."""
    (waiting, banks), width = earlier, len(bank)
    parts = len(waiting) + bool(taken)
    here = [waits & (banks.word_select(n, width) == bank) for n, waits in enumerate(waiting)]
    if parts < 2:
        return taken or here
    if most == 1 and parts <= FLAT:
        return [reduce(or_, here)]
    middle = (parts + 1) // 2
    first = waiting[:middle], banks[: middle * width]
    second = waiting[middle:], banks[middle * width :]
    one = _total(m, bank, first, [], most, f"{name}_first")
    other = _total(m, bank, second, taken, most, f"{name}_second")
    total = Signal(min(len(one) + len(other), most), name="total")
    one, other = [C(1, 1), *one], [C(1, 1), *other]
    for n in range(len(total)):
        ways = (
            one[i] & other[n + 1 - i]
            for i in range(max(0, n + 2 - len(other)), min(len(one), n + 2))
        )
        m.d.comb += total[n].eq(reduce(or_, ways))
    return list(total)
