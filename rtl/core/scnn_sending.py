"""The operand stage of a PE with `pipelined_pes`: when products of a pair are sent is known as it
begins."""

from functools import reduce
from operator import or_
from typing import Any

from amaranth.hdl import Array, C, Cat, Module, Mux, Signal, Value, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from archsim.machines.scnn.command import COORDINATE_BITS
from archsim.machines.scnn.design import Scnn
from rtl.core.adder_tree import sum_of
from rtl.core.elastic import ElasticStages, stage_registers
from rtl.core.queue import HeadedQueue
from rtl.core.scnn_layouts import (
    PLACE_BITS,
    accumulator_address_bits,
    activation_layout,
    bank_bits,
    weight_layout,
)
from rtl.hierarchy import place

WAITING = 2
"""Pairs that wait in front of the stages, so that whether one more may come lies in registers."""

SENT, RANKED = range(2)
"""Stages of registers in front of the pair that is sent: which of its products are; how many are
before each in its bank."""


def issued_layout(design: Scnn) -> data.StructLayout:
    """A pair of vectors, or a block that is skipped: the PE's last one of its group, or not."""
    return data.StructLayout(
        {
            "weight": weight_layout(design),
            "activation": activation_layout(design),
            "skip": 1,
            "last": 1,
        }
    )


def sent_layout(design: Scnn) -> data.StructLayout:
    """A pair with the accumulators of its products, and which of them are to be sent."""
    products = design.ifmap_lanes * design.weight_lanes
    return data.StructLayout(
        {
            "activations": data.ArrayLayout(signed(design.operand_bits), design.ifmap_lanes),
            "weights": data.ArrayLayout(signed(design.operand_bits), design.weight_lanes),
            "addresses": data.ArrayLayout(accumulator_address_bits(design), products),
            "sent": products,
            "skip": 1,
            "last": 1,
        }
    )


def ranked_layout(design: Scnn) -> data.StructLayout:
    """The same with how many of a pair's products lie before each in its bank, and in each bank."""
    products = design.ifmap_lanes * design.weight_lanes
    return data.StructLayout(
        {
            "pair": sent_layout(design),
            "ranks": data.StructLayout({f"of_{n}": n.bit_length() for n in range(1, products)}),
            "counts": data.ArrayLayout(range(products + 1), design.banks),
        }
    )


class SendingStage(wiring.Component):
    """Sends what `Arbiter` sends, in as many cycles a pair, by distances in place of a choice.

    A bank adds a product a cycle, so a product is added as many cycles after its pair's first as
    its bank has products then, of pairs before and of lower i · F + f: its *distance*, that every
    cycle makes one less.  It is sent to the place of the bank's queue that is its distance, once
    there is one.  What banks have still to add is counted as pairs come.
    A block that is skipped is a pair without products.
    Latency: a pair that is taken begins ISSUE_CYCLES later at the earliest.  Throughput: a pair a
    cycle.  Back-pressure: i.ready is low while two pairs wait in front of the stages.

    Members
    -------
    i: pairs; rows, columns: of the region; active: a pair is being sent; ended: this is its last
    cycle; skip, last: of it; selected: its products that are sent in this cycle; places: where in
    the queue, one-hot; addresses, activations, weights: of all its products.
    """

    i: stream.Interface
    rows: Signal
    columns: Signal
    active: Signal
    ended: Signal
    skip: Signal
    last: Signal
    selected: Signal
    places: data.View
    addresses: data.View
    activations: data.View
    weights: data.View

    def __init__(self, *, design: Scnn) -> None:
        self.design = design
        self.products = design.ifmap_lanes * design.weight_lanes
        pair = sent_layout(design)
        super().__init__(
            {
                "i": In(stream.Signature(issued_layout(design))),
                "rows": In(COORDINATE_BITS),
                "columns": In(COORDINATE_BITS),
                **{name: Out(1) for name in ("active", "ended", "skip", "last")},
                "selected": Out(self.products),
                "places": Out(data.ArrayLayout(design.bank_queue, self.products)),
                **{name: Out(pair[name].shape) for name in ("addresses", "activations", "weights")},
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        self.stages = stages = place(m, "stages", ElasticStages, stages=RANKED + 1)
        layout = issued_layout(self.design)
        queue: Any = place(m, "queue", HeadedQueue, width=layout.size, depth=WAITING)
        issued: data.View = Signal(layout, name="issued")
        pair = stage_registers(m, self.stages, SENT, self._pair(m, issued))
        ranked = stage_registers(m, self.stages, RANKED, self._ranked(m, pair))
        m.d.comb += [
            queue.i.valid.eq(self.i.valid),
            queue.i.payload.eq(self.i.payload.as_value()),
            self.i.ready.eq(queue.i.ready),
            issued.eq(queue.o.payload),
            stages.i_valid.eq(queue.o.valid),
            queue.o.ready.eq(stages.i_ready),
        ]
        self._send(m, ranked, stages)
        return m

    def _pair(self, m: Module, i: data.View) -> data.View:
        """Which products are to be sent, and where to."""
        o: data.View = Signal(sent_layout(self.design), name="pair")
        m.d.comb += [o.skip.eq(i.skip), o.last.eq(i.last)]
        for lane in range(self.design.ifmap_lanes):
            m.d.comb += o.activations[lane].eq(i.activation.lanes[lane].value)
        for lane in range(self.design.weight_lanes):
            m.d.comb += o.weights[lane].eq(i.weight.lanes[lane].value)
        for number in range(self.products):
            a, w = (
                i.activation.lanes[number // self.design.weight_lanes],
                i.weight.lanes[number % self.design.weight_lanes],
            )
            row, column = (
                Signal(PLACE_BITS + 1, name=f"{axis}_{number}") for axis in ("row", "column")
            )
            inside = (row < self.rows) & (column < self.columns)
            m.d.comb += [
                row.eq(a.row - w.row),
                column.eq(a.column - w.column),
                o.addresses[number].eq(a.address + w.address),
                o.sent[number].eq((a.value != 0) & (w.value != 0) & inside),
            ]
        return o

    def _bank(self, address: Value) -> Value:
        """The bank of an accumulator."""
        return address[: bank_bits(self.design)]

    def _ranked(self, m: Module, i: data.View) -> data.View:
        """How many products lie before each in its bank, and in each bank."""
        o: data.View = Signal(ranked_layout(self.design), name="ranked")
        banks = [self._bank(i.addresses[number]) for number in range(self.products)]
        m.d.comb += o.pair.eq(i)
        for number in range(1, self.products):
            before = [i.sent[n] & (banks[n] == banks[number]) for n in range(number)]
            m.d.comb += o.ranks[f"of_{number}"].eq(sum_of(before))
        for number in range(self.design.banks):
            here = [i.sent[n] & (bank == number) for n, bank in enumerate(banks)]
            m.d.comb += o.counts[number].eq(sum_of(here))
        return o

    def _send(self, m: Module, ranked: data.View, stages: Any) -> None:
        """The pair that is sent, and what its banks have still to add.

        Whether the next one may come lies in a register of its own, which can be near the stages.
        """
        design, pair = self.design, ranked.pair
        queue, most = design.bank_queue, design.bank_queue + self.products
        waits = Signal(self.products)
        distances = [Signal(range(most), name=f"distance_{n}") for n in range(self.products)]
        begins = [Signal(range(most), name=f"begins_{n}") for n in range(self.products)]
        whole, free, taken = Signal(name="whole"), Signal(init=1), Signal(name="taken")
        m.d.comb += [
            self.ended.eq(self.active & whole),
            stages.o_ready.eq(free),
            taken.eq(stages.o_valid & free),
        ]
        behind = self._backlog(m, ranked.counts, taken)
        late: list[Value] = []
        for number in range(self.products):
            distance, begin = distances[number], begins[number]
            rank = ranked.ranks[f"of_{number}"] if number else C(0, 1)
            granted = waits[number] & (distance < queue)
            m.d.comb += [
                begin.eq(rank + self._before(behind, pair.addresses[number])),
                self.selected[number].eq(granted),
                self.places[number].eq(Cat(granted & (distance == at) for at in range(queue))),
            ]
            late.append(
                Mux(taken, pair.sent[number] & (begin >= queue), waits[number] & (distance > queue))
            )
            with m.If(taken):
                m.d.sync += [distance.eq(begin), waits[number].eq(pair.sent[number])]
            with m.Else():
                m.d.sync += [distance.eq(distance - 1), waits[number].eq(waits[number] & ~granted)]
        after = Signal(name="whole_after")
        m.d.comb += after.eq(~reduce(or_, late))
        m.d.sync += [whole.eq(after), free.eq(after | ~(taken | (self.active & ~self.ended)))]
        with m.If(taken):
            m.d.sync += self.active.eq(1)
            m.d.sync += [
                getattr(self, name).eq(getattr(pair, name))
                for name in ("addresses", "activations", "weights", "skip", "last")
            ]
        with m.Elif(self.ended):
            m.d.sync += self.active.eq(0)

    def _backlog(self, m: Module, counts: data.View, taken: Value) -> list[Signal]:
        """Of each bank, how many products of pairs so far it adds in cycles behind this one."""
        found: list[Signal] = []
        for number in range(self.design.banks):
            behind = Signal(range(self.design.bank_queue + self.products), name=f"behind_{number}")
            now = Signal.like(behind, name=f"now_{number}")
            m.d.comb += now.eq(behind + Mux(taken, counts[number], 0))
            m.d.sync += behind.eq(Mux(now == 0, 0, now - 1))
            found.append(behind)
        return found

    def _before(self, behind: list[Signal], address: Value) -> Value:
        """What a bank has to add before a pair that begins in the next cycle: no more than its
        queue has places for but one, since the pair before has ended."""
        most = (self.design.bank_queue - 1).bit_length()
        if most == 0:
            return C(0, 1)
        words = [one[:most] for one in behind]
        return Array(words)[self._bank(address)] if len(words) > 1 else words[0]
