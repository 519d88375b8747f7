"""The accumulators of a PE: multipliers, a crossbar, and banks in two halves."""

from amaranth.hdl import Array, C, Module, Mux, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from archsim.designs.scnn import Scnn
from rtl.core.scnn_layouts import accumulator_address_bits, bank_bits
from rtl.core.sram import Sram, address_bits
from rtl.hierarchy import place


def operands_layout(design: Scnn) -> data.StructLayout:
    """What the operand stage sends in a cycle: values of all lanes, which products, and where."""
    products = design.ifmap_lanes * design.weight_lanes
    address = accumulator_address_bits(design)
    return data.StructLayout(
        {
            "activations": data.ArrayLayout(signed(design.operand_bits), design.ifmap_lanes),
            "weights": data.ArrayLayout(signed(design.operand_bits), design.weight_lanes),
            "addresses": data.ArrayLayout(address, products),
            "selected": products,
            "half": 1,
        }
    )


def drain_layout(design: Scnn) -> data.StructLayout:
    """The other port of the accumulators: a read and a write of any sum of one half."""
    address = accumulator_address_bits(design)
    return data.StructLayout(
        {
            "half": 1,
            "reads": 1,
            "read_address": address,
            "write": 1,
            "write_address": address,
            "write_data": design.accumulator_bits,
            "clear": 1,
        }
    )


def products_layout(design: Scnn) -> data.StructLayout:
    """Products on their way to the banks: which are sent, where, in which half."""
    products = design.ifmap_lanes * design.weight_lanes
    return data.StructLayout(
        {
            "sent": products,
            "half": 1,
            "addresses": data.ArrayLayout(accumulator_address_bits(design), products),
            "values": data.ArrayLayout(design.accumulator_bits, products),
        }
    )


class AccumulatorBank(wiring.Component):
    """half[entry] ← half[entry] + the product that is sent to this bank, if there is one.

    The second and third stage of `AccumulatorBanks`: the product is picked and what the bank holds
    is read in a cycle, and added and written in the next, with forwarding.

    Members
    -------
    number: of the bank; i: all products; drain: the other port; read_data: of the drain's
    read_address, a cycle later.
    """

    number: Signal
    i: data.View
    drain: data.View
    read_data: Signal

    def __init__(self, *, design: Scnn) -> None:
        self.design = design
        self.low = bank_bits(design)
        super().__init__(
            {
                "number": In(max(self.low, 1)),
                "i": In(products_layout(design)),
                "drain": In(drain_layout(design)),
                "read_data": Out(design.accumulator_bits),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bits, depth = self.design.accumulator_bits, self.design.bank_entries
        entry, target = Signal(address_bits(depth)), Signal(address_bits(depth), reset_less=True)
        hit, adding, half, shown = Signal(), Signal(), Signal(), Signal()
        value, addend = Signal(bits), Signal(bits, reset_less=True)
        for number in range(len(self.i.sent)):
            address = self.i.addresses[number]
            with m.If(self.i.sent[number] & self._here(address)):
                m.d.comb += [
                    hit.eq(1),
                    entry.eq(address[self.low :]),
                    value.eq(self.i.values[number]),
                ]
        m.d.sync += [adding.eq(hit), half.eq(self.i.half), addend.eq(value), target.eq(entry)]
        drain, chosen = self.drain, self._here(self.drain.write_address)
        halves: list[Value] = []
        for number in range(2):
            store = place(m, f"half_{number}", Sram, bits=bits, depth=depth, transparent=True)
            mine = drain.half == number
            m.d.comb += [
                store.read_address.eq(
                    Mux(drain.reads & mine, drain.read_address[self.low :], entry)
                ),
                store.write.eq(drain.clear | (drain.write & mine & chosen)),
                store.write_address.eq(drain.write_address[self.low :]),
                store.write_data.eq(Mux(drain.clear, 0, drain.write_data)),
            ]
            with m.If(adding & (half == number)):
                m.d.comb += [
                    store.write.eq(1),
                    store.write_address.eq(target),
                    store.write_data.eq(store.read_data + addend),
                ]
            halves.append(store.read_data)
        m.d.sync += shown.eq(drain.half)
        m.d.comb += self.read_data.eq(Mux(shown, halves[1], halves[0]))
        return m

    def _here(self, address: Value) -> Value:
        """Whether an accumulator is in this bank."""
        return address[: self.low] == self.number if self.low else C(1, 1)


class AccumulatorBanks(wiring.Component):
    """half[address] ← half[address] + activation · weight, of every selected product; sums wrap.

    Bank = address mod A, entry = address div A; no two selected products of a cycle are in one
    bank.  Stages: multiply; crossbar, and read of the banks; add and write, with forwarding.
    Latency: what is at i in a cycle can be read at the drain port from 4 cycles later on
    (LP = 3 from the cycle behind).  Throughput: i every cycle.  Never stalls.

    Members
    -------
    i: of the operand stage; drain: the port of halo and output, with `reads` in all cycles in which
    it has its half (i does not use that half then); `clear` writes 0 to the entry of write_address
    in all banks of both halves; read_data: of the drain's read_address, a cycle later.
    """

    i: data.View
    drain: data.View
    read_data: Signal

    def __init__(self, *, design: Scnn) -> None:
        self.design = design
        super().__init__(
            {
                "i": In(operands_layout(design)),
                "drain": In(drain_layout(design)),
                "read_data": Out(design.accumulator_bits),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        products = self._multiply(m)
        low = bank_bits(self.design)
        selected = Signal(max(low, 1))
        m.d.sync += selected.eq(self.drain.read_address[:low])
        reads: list[Value] = []
        for number in range(self.design.banks):
            bank = place(m, f"bank_{number}", AccumulatorBank, design=self.design)
            m.d.comb += [bank.number.eq(number), bank.i.eq(products), bank.drain.eq(self.drain)]
            reads.append(bank.read_data)
        m.d.comb += self.read_data.eq(Array(reads)[selected])
        return m

    def _multiply(self, m: Module) -> data.View:
        """Registers of products and where they go."""
        i = self.i
        layout = products_layout(self.design)
        products = Signal(layout, reset_less=True)
        sent = Signal(len(i.selected))
        m.d.sync += [sent.eq(i.selected), products.half.eq(i.half)]
        m.d.sync += products.addresses.eq(i.addresses)
        for number in range(len(i.selected)):
            lane, weight = divmod(number, self.design.weight_lanes)
            m.d.sync += products.values[number].eq(i.activations[lane] * i.weights[weight])
        whole = Signal(layout, name="sent_products")
        m.d.comb += [whole.eq(products), whole.sent.eq(sent)]
        return whole
