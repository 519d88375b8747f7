"""The queue before a bank of accumulators."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from archsim.machines.scnn.design import Scnn
from rtl.core.scnn_layouts import accumulator_address_bits, bank_bits


def queued_layout(design: Scnn) -> data.StructLayout:
    """A product in its bank, and which sum it belongs to: groups follow one another in a queue.

    A bank of one sum has no bits of entry.
    """
    return data.StructLayout(
        {
            "valid": 1,
            "half": 1,
            "entry": accumulator_address_bits(design) - bank_bits(design),
            "value": design.accumulator_bits,
        }
    )


class ProductQueue(wiring.Component):
    """Q places, of which `o` is the first: one product leaves a cycle, and all behind it move up.

    In every place is either what has waited there or what comes in this cycle, so both are ORed.
    Products come to the places behind those that wait, without a gap, so they leave in the order of
    their places.
    Latency: what comes to place n leaves n cycles later, 0 if the queue is empty.  Throughput: up
    to Q products in, one out a cycle.  Never stalls: `occupied` says how many places are taken.

    Members
    -------
    i: what comes to each place, Q of them, all 0 if nothing does; o: what leaves, if its `valid` is
    1; occupied: bit n is 1 if more than n products wait in the next cycle, Q − 1 bits.
    """

    i: data.View
    o: data.View
    occupied: Signal

    def __init__(self, *, design: Scnn) -> None:
        self.design = design
        self.places = design.bank_queue
        layout = queued_layout(design)
        super().__init__(
            {
                "i": In(data.ArrayLayout(layout, self.places)),
                "o": Out(layout),
                "occupied": Out(self.places - 1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        layout = queued_layout(self.design)
        held = Signal(self.places - 1)
        there = [Signal(layout, name=f"place_{number}") for number in range(self.places)]
        for number in range(self.places - 1):
            waits = Signal(layout, name=f"waits_{number}", reset_less=True)
            m.d.sync += waits.eq(there[number + 1])
            m.d.comb += [
                there[number].eq(
                    (waits.as_value() & held[number].replicate(layout.size))
                    | self.i[number].as_value()
                ),
                there[number].valid.eq(held[number] | self.i[number].valid),
            ]
        m.d.comb += [
            there[-1].eq(self.i[self.places - 1]),
            self.o.eq(there[0]),
            self.occupied.eq(Cat(place.valid for place in there[1:])),
        ]
        m.d.sync += held.eq(self.occupied)
        return m
