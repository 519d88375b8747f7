"""The operand stage of a PE: which products of a pair of vectors go to their banks, and when."""

from functools import reduce
from operator import or_

from amaranth.hdl import C, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from archsim.designs.scnn import Scnn
from archsim.sparse.scnn_command import COORDINATE_BITS
from rtl.core.scnn_layouts import (
    PLACE_BITS,
    accumulator_address_bits,
    activation_layout,
    bank_bits,
    weight_layout,
)


class Arbiter(wiring.Component):
    """Of the products of a pair, every bank gets one a cycle, the lowest i · F + f first.

    A product counts if both its values are non-zero and its output lies in the region:
    0 ≤ activation.row − weight.row < rows, columns alike.
    cost = max(1, most products of the pair in one bank): cycles from the first with `active` to
    `ended`, both counted; the operands stay as they are until then.  Combinational; a register
    keeps what is still to be sent.

    Members
    -------
    active: the operands are there; weight, activation: the operands; rows, columns: of the region;
    selected: products that are sent in this cycle; addresses: accumulators of all products; ended:
    this is the pair's last cycle.
    """

    active: Signal
    weight: data.View
    activation: data.View
    rows: Signal
    columns: Signal
    selected: Signal
    addresses: data.View
    ended: Signal

    def __init__(self, *, design: Scnn) -> None:
        self.design = design
        self.products = design.ifmap_lanes * design.weight_lanes
        address = accumulator_address_bits(design)
        super().__init__(
            {
                "active": In(1),
                "weight": In(weight_layout(design)),
                "activation": In(activation_layout(design)),
                "rows": In(COORDINATE_BITS),
                "columns": In(COORDINATE_BITS),
                "selected": Out(self.products),
                "addresses": Out(data.ArrayLayout(address, self.products)),
                "ended": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        fresh, left = Signal(init=1), Signal(self.products)
        counts, waiting, granted = (
            Signal(self.products, name=name) for name in ("counts", "waiting", "granted")
        )
        for number in range(self.products):
            m.d.comb += counts[number].eq(self._counts(m, number))
        m.d.comb += [
            waiting.eq(Mux(fresh, counts, left)),
            granted.eq(self._grant(m, waiting)),
            self.selected.eq(Mux(self.active, granted, 0)),
            self.ended.eq(self.active & (waiting == granted)),
        ]
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

    def _grant(self, m: Module, waiting: Signal) -> Value:
        """The lowest waiting product of every bank."""
        bits = bank_bits(self.design)
        banks = [self.addresses[number][:bits] for number in range(self.products)]
        grants: list[Value] = []
        for number, bank in enumerate(banks):
            lower = (waiting[before] & (banks[before] == bank) for before in range(number))
            blocked: Value = reduce(or_, lower, C(0, 1))
            grants.append(waiting[number] & ~blocked)
        return Cat(*grants)
