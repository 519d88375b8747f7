"""The accumulators of a PE: multipliers, a crossbar, and banks in two halves."""

from dataclasses import replace
from typing import Any, cast

from amaranth.hdl import Array, C, Cat, Module, Mux, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from archsim.machines.scnn.design import Scnn
from rtl.core.memory import bank_for
from rtl.core.one_hot import chosen
from rtl.core.scnn_cells import number_bits, sum_settings, sum_words, sums_may_fail
from rtl.core.scnn_layouts import accumulator_address_bits, bank_bits
from rtl.core.scnn_queue import ProductQueue, queued_layout
from rtl.hierarchy import place


def operands_layout(design: Scnn) -> data.StructLayout:
    """What the operand stage sends in a cycle: values of all lanes, and where products go.

    places: the place of its bank's queue that each product goes to, one-hot; 0: it is not sent.
    """
    products = design.ifmap_lanes * design.weight_lanes
    address = accumulator_address_bits(design)
    return data.StructLayout(
        {
            "activations": data.ArrayLayout(signed(design.operand_bits), design.ifmap_lanes),
            "weights": data.ArrayLayout(signed(design.operand_bits), design.weight_lanes),
            "addresses": data.ArrayLayout(address, products),
            "places": data.ArrayLayout(design.bank_queue, products),
            "half": 1,
        }
    )


def drain_layout(design: Scnn) -> data.StructLayout:
    """The other port of the accumulators: a read and a write of any sum of one half.

    What is written is 0, or, where `adds` is 1, what was read in the cycle before with the addend:
    in the bank, so that no sum crosses all banks and comes back in a cycle.
    """
    address = accumulator_address_bits(design)
    return data.StructLayout(
        {
            "half": 1,
            "reads": 1,
            "read_address": address,
            "write": 1,
            "write_address": address,
            "adds": 1,
            "addend": design.accumulator_bits,
            "clear": 1,
            "erase": 1,
        }
    )


def products_layout(design: Scnn) -> data.StructLayout:
    """Products on their way to the banks: to which places, sums and half."""
    products = design.ifmap_lanes * design.weight_lanes
    return data.StructLayout(
        {
            "places": data.ArrayLayout(design.bank_queue, products),
            "half": 1,
            "addresses": data.ArrayLayout(accumulator_address_bits(design), products),
            "values": data.ArrayLayout(design.accumulator_bits, products),
        }
    )


def occupied_layout(design: Scnn) -> data.ArrayLayout:
    """How many places of each bank's queue are taken: so many of its Q − 1 bits are 1, from bit 0
    on."""
    return data.ArrayLayout(design.bank_queue - 1, design.banks)


def cell_inputs(design: Scnn) -> dict[str, Any]:
    """Ports of banks whose cells may fail: of which PE they are; settings."""
    found, settings = dict[str, Any](), sum_settings(design)
    if sums_may_fail(design):
        found["pe"] = In(number_bits(design))
    if settings is not None:
        found["settings"] = In(settings.bits)
    return found


def is_in(address: Value, number: Value, bits: int) -> Value:
    """Whether an accumulator is in a bank of that number, of so many bits."""
    return address[:bits] == number if bits else C(1, 1)


class Arrival(wiring.Component):
    """What comes to a place of a bank's queue: one product at most, for the arbiter sends no two.

    Combinational; all 0 if nothing comes.

    Members
    -------
    number: of the bank; sent: which products go to this place of their banks' queues; half,
    addresses, values: of `products_layout`; o: the product.
    """

    number: Signal
    sent: Signal
    half: Signal
    addresses: data.View
    values: data.View
    o: data.View

    def __init__(self, *, design: Scnn) -> None:
        self.low = bank_bits(design)
        products = products_layout(design)
        fields = ("half", "addresses", "values")
        super().__init__(
            {
                "number": In(max(self.low, 1)),
                "sent": In(design.ifmap_lanes * design.weight_lanes),
                **{name: In(products[name].shape) for name in fields},
                "o": Out(queued_layout(design)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        choices: list[tuple[Value, Value]] = []
        for lane, sent in enumerate(self.sent):
            address = self.addresses[lane]
            comes = sent & is_in(address, self.number, self.low)
            choices.append((comes, Cat(C(1, 1), self.values[lane], address[self.low :])))
        m.d.comb += [
            Cat(self.o.valid, self.o.value, self.o.entry).eq(chosen(choices)),
            self.o.half.eq(self.half & self.o.valid),
        ]
        return m


class AccumulatorBank(wiring.Component):
    """half[entry] ← half[entry] + the first product of this bank's queue, if there is one.

    The second and third stage of `AccumulatorBanks`: products are picked, and what the bank holds
    for the first of its queue (`ProductQueue`; none with Q = 1) is read in a cycle; it is added
    and written in the next, with forwarding.

    Members
    -------
    number: of the bank; i: all products; drain: the other port; read_data: of the drain's
    read_address, a cycle later; adding: a sum is written; occupied, with Q > 1: of the queue; pe,
    settings: where cells may fail.
    """

    number: Signal
    i: data.View
    drain: data.View
    read_data: Signal
    adding: Signal
    occupied: Signal

    def __init__(self, *, design: Scnn) -> None:
        self.design = design
        self.low = bank_bits(design)
        queue = {"occupied": Out(design.bank_queue - 1)} if design.bank_queue > 1 else {}
        super().__init__(
            {
                "number": In(max(self.low, 1)),
                "i": In(products_layout(design)),
                "drain": In(drain_layout(design)),
                "read_data": Out(design.accumulator_bits),
                "adding": Out(1),
                **queue,
                **cell_inputs(design),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        first = self._first(m)
        target = Signal(max(len(first.entry), 1), reset_less=True)
        addend = Signal(self.design.accumulator_bits, reset_less=True)
        half, shown = Signal(), Signal()
        m.d.sync += [
            self.adding.eq(first.valid),
            half.eq(first.half),
            addend.eq(first.value),
            target.eq(first.entry),
        ]
        drain, chosen = self.drain, is_in(self.drain.write_address, self.number, self.low)
        halves: list[Value] = []
        for number in range(2):
            store = self._store(m, number)
            mine, own = drain.half == number, self.adding & (half == number)
            total = store.read_data + Mux(own, addend, drain.addend)
            m.d.comb += [
                store.read_address.eq(
                    Mux(drain.reads & mine, drain.read_address[self.low :], first.entry)
                ),
                store.write.eq(own | drain.clear | (mine & (drain.erase | (drain.write & chosen)))),
                store.write_address.eq(Mux(own, target, drain.write_address[self.low :])),
                store.write_data.eq(Mux(own | drain.adds, total, 0)),
            ]
            halves.append(store.read_data)
        m.d.sync += shown.eq(drain.half)
        m.d.comb += self.read_data.eq(Mux(shown, halves[1], halves[0]))
        return m

    def _store(self, m: Module, half: int) -> Any:
        """What holds the sums of a half; its cells are told apart by PE and bank."""
        words, own = sum_words(self.design), cast("Any", self)
        words = replace(words, use=self.design.use("accumulator").in_half(half))
        kind, parameters = bank_for(self.design.accumulator_memory, words, transparent=True)
        store = place(m, f"half_{half}", kind, **parameters)
        if "number" in store.signature.members:
            m.d.comb += store.number.eq(Cat(self.number[: self.low], own.pe))
        if "settings" in store.signature.members:
            m.d.comb += store.settings.eq(own.settings)
        return store

    def _first(self, m: Module) -> data.View:
        """The product that is added next."""
        arrivals = [self._arrival(m, number) for number in range(self.design.bank_queue)]
        if len(arrivals) == 1:
            return arrivals[0]
        queue = place(m, "queue", ProductQueue, design=self.design)
        m.d.comb += [queue.i[number].eq(arrival) for number, arrival in enumerate(arrivals)]
        m.d.comb += self.occupied.eq(queue.occupied)
        return queue.o

    def _arrival(self, m: Module, number: int) -> data.View:
        """What comes to a place of the queue."""
        places = self.i.places
        given = {
            "number": self.number,
            "sent": Cat(places[lane][number] for lane in range(places.shape().length)),
            **{name: self.i[name] for name in ("half", "addresses", "values")},
        }
        arrival: Arrival = place(m, f"arrival_{number}", Arrival, given, design=self.design)
        return arrival.o


class AccumulatorBanks(wiring.Component):
    """half[address] ← half[address] + activation · weight, of every selected product; sums wrap.

    Bank = address mod A, entry = address div A; of the products of a cycle that are in one bank,
    each goes to another place of its queue.  Stages: multiply; crossbar, queue, and read of the
    banks; add and write, with forwarding.
    Latency: what is at i in a cycle can be read at the drain port from 3 + Q cycles later on
    (LP = 2 + Q from the cycle behind).  Throughput: i every cycle.  Never stalls: a product must
    not be sent to a place that is occupied.

    Members
    -------
    i: of the operand stage; drain: the port of halo and output, with `reads` in all cycles in which
    it has its half (i does not use that half then); `clear` writes 0 to the entry of write_address
    in all banks of both halves, `erase` of its half; read_data: of the drain's read_address, a
    cycle later, when it is what `adds` adds to; updates: of which banks a sum is written; occupied,
    with Q > 1: bit n of a bank is 1 if a product at i must go to a place behind n; pe, settings:
    where cells may fail.
    """

    i: data.View
    drain: data.View
    read_data: Signal
    updates: Signal
    occupied: data.View

    def __init__(self, *, design: Scnn) -> None:
        self.design = design
        super().__init__(
            {
                "i": In(operands_layout(design)),
                "drain": In(drain_layout(design)),
                "read_data": Out(design.accumulator_bits),
                "updates": Out(design.banks),
                **({"occupied": Out(occupied_layout(design))} if design.bank_queue > 1 else {}),
                **cell_inputs(design),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        products = self._multiply(m)
        low = bank_bits(self.design)
        selected = Signal(max(low, 1))
        m.d.sync += selected.eq(self.drain.read_address[:low])
        cells = {name: getattr(self, name) for name in cell_inputs(self.design)}
        reads: list[Value] = []
        for number in range(self.design.banks):
            given = {"number": C(number, max(low, 1)), "i": products, "drain": self.drain, **cells}
            bank = place(m, f"bank_{number}", AccumulatorBank, given, design=self.design)
            m.d.comb += self.updates[number].eq(bank.adding)
            reads.append(bank.read_data)
            if self.design.bank_queue > 1:
                m.d.comb += self.occupied[number].eq(bank.occupied)
        m.d.comb += self.read_data.eq(Array(reads)[selected])
        return m

    def _multiply(self, m: Module) -> data.View:
        """Registers of products and where they go."""
        i = self.i
        layout = products_layout(self.design)
        products = Signal(layout, reset_less=True)
        places = Signal(layout["places"].shape)
        m.d.sync += [places.eq(i.places), products.half.eq(i.half)]
        m.d.sync += products.addresses.eq(i.addresses)
        for number in range(len(i.addresses)):
            lane, weight = divmod(number, self.design.weight_lanes)
            m.d.sync += products.values[number].eq(i.activations[lane] * i.weights[weight])
        whole = Signal(layout, name="sent_products")
        m.d.comb += [whole.eq(products), whole.places.eq(places)]
        return whole
