"""The weight FIFO of a PE: blocks of vectors, read again for every activation vector."""

from typing import Any

from amaranth.hdl import C, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from archsim.machines.scnn.design import Scnn
from archsim.machines.scnn.widths import pointer_bits
from rtl.core.credits import Credits
from rtl.core.memory import Banks, bank_for
from rtl.core.scnn_cells import number_bits, weight_settings, weight_words, weights_may_fail
from rtl.core.scnn_layouts import vector_layout, weight_layout
from rtl.core.sram import Sram
from rtl.hierarchy import place


def stored_layout(design: Scnn) -> data.StructLayout:
    """A vector of weights as a FIFO holds it: decoded, or as it crosses."""
    if design.weights_as_crossed:
        return vector_layout(design, design.weight_lanes)
    return weight_layout(design)


class WeightFifo(wiring.Component):
    """word = the vector that the PE stands at; `step` goes on, `again` goes back to the block's
    first.

    A pointer is a place and, above it, in which turn around the places it lies, so that a full
    FIFO differs from an empty one.
    Latency: a vector written in a cycle is at `word` in the next one.  Throughput: one vector in,
    one step a cycle.  Back-pressure: `room` is low while all places hold vectors; a place given
    back in a cycle can be written in the next one.  With `pipelined_pes` that is `WeightRoom`'s.

    Members
    -------
    write, i: from the broadcast; room: there is a place; arrived, word: the vector is here;
    complete: the whole block is; step: the vector is done with; again, with step: the block is
    walked once more; release, with step: its place is given back; skip: the rest of the block is
    given back unread; block_end: the block is over.  With `pipelined_pes`: released, a pointer to
    the first place that is held, in place of room.  Where vectors lie there as they cross, their
    flags beside: start, a layer begins, with the first place; where cells may fail: number, of the
    PE; settings, of the cells.
    """

    write: Signal
    i: data.View
    room: Signal
    released: Signal
    arrived: Signal
    complete: Signal
    word: data.View
    step: Signal
    again: Signal
    release: Signal
    skip: Signal
    block_end: Signal

    def __init__(self, *, design: Scnn) -> None:
        self.design = design
        self.depth = design.weight_fifo_vectors
        self.as_crossed = design.weights_as_crossed
        self.pipelined = design.pipelined_pes
        layout = stored_layout(design)
        settings, start = weight_settings(design), ("start",) if self.as_crossed else ()
        more = {"number": In(number_bits(design))} if weights_may_fail(design) else {}
        if settings is not None:
            more["settings"] = In(settings.bits)
        orders = ("write", "step", "again", "release", "skip", "block_end", *start)
        if self.pipelined:
            more["released"] = Out(pointer_bits(design))
        else:
            more["room"] = Out(1)
        super().__init__(
            {
                **{name: In(1) for name in orders},
                "i": In(layout),
                "arrived": Out(1),
                "complete": Out(1),
                "word": Out(layout),
                **more,
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        self._ends(m)
        written, reading = self._pointer("written"), self._pointer("reading")
        released = self.released if self.pipelined else self._pointer("released")
        after = self._after(reading)
        next_written, next_reading = (
            self._pointer(name) for name in ("next_written", "next_reading")
        )
        m.d.comb += [
            next_written.eq(Mux(self.write, self._after(written), written)),
            next_reading.eq(reading),
        ]
        with m.If(self.skip):
            m.d.comb += next_reading.eq(self.block_after)
            m.d.sync += released.eq(self.block_after)
        with m.Elif(self.step):
            m.d.comb += next_reading.eq(Mux(self.again, released, after))
            with m.If(self.release):
                m.d.sync += released.eq(after)
        with m.If(self.write & self.i.last):
            m.d.comb += self.end_written.eq(1)
        m.d.comb += self.end_pointer.eq(self._after(written))
        if self.as_crossed:
            own: Any = self
            with m.If(own.start):
                m.d.comb += [next_reading.eq(0), next_written.eq(0)]
                m.d.sync += released.eq(0)
        m.d.sync += [reading.eq(next_reading), written.eq(next_written)]
        if self.pipelined:
            m.d.sync += self.arrived.eq(next_reading != next_written)
        else:
            m.d.comb += self.arrived.eq(reading != written)
            m.d.comb += self.room.eq(~is_full(written, released))
        self._stores(m, (address_of(written), address_of(next_reading)))
        return m

    def _stores(self, m: Module, places: tuple[Value, Value]) -> None:
        """What holds the vectors; the bit that ends a list lies beside such as crossed, and where
        there are registers, so that what comes next is known before the vector is read."""
        bits, read = self.i.as_value(), self.word.as_value()
        if self.as_crossed or self.pipelined:
            flags = place(m, "flags", Sram, bits=1, depth=self.depth, transparent=True)
            self._connect(m, flags, places, bits[-1], read[-1])
            bits, read = bits[:-1], read[:-1]
        if self.as_crossed:
            store = self._failing(m)
        else:
            sizes = {"bits": len(bits), "depth": self.depth}
            banks = Banks(memory=self.design.weight_memory)
            store = banks.place(m, self, "store", 0, transparent=True, **sizes)
        self._connect(m, store, places, bits, read)

    def _failing(self, m: Module) -> Any:
        """What holds vectors as they cross."""
        own: Any = self
        words = weight_words(self.design)
        kind, parameters = bank_for(self.design.weight_memory, words, transparent=True)
        store = place(m, "store", kind, **parameters)
        m.d.comb += [
            getattr(store, name).eq(getattr(own, name))
            for name in ("number", "settings")
            if name in store.signature.members
        ]
        return store

    def _connect(
        self, m: Module, store: Any, places: tuple[Value, Value], written: Value, read: Value
    ) -> None:
        m.d.comb += [
            store.write.eq(self.write),
            store.write_address.eq(places[0]),
            store.write_data.eq(written),
            store.read_address.eq(places[1]),
            read.eq(store.read_data),
        ]

    def _ends(self, m: Module) -> None:
        """Where the blocks in the FIFO end: a queue of pointers, as long as there are places."""
        self.end_written, self.end_pointer = Signal(), self._pointer("end_pointer")
        self.block_after = self._pointer("block_after")
        sizes = {"bits": len(self.end_pointer), "depth": self.depth}
        banks = Banks(memory=self.design.weight_memory)
        store = banks.place(m, self, "ends", 0, transparent=True, **sizes)
        head, next_head, tail = (self._pointer(name) for name in ("head", "next_head", "tail"))
        m.d.comb += [
            next_head.eq(Mux(self.block_end, self._after(head), head)),
            self.complete.eq(self._complete(m, head, tail)),
            store.write.eq(self.end_written),
            store.write_address.eq(address_of(tail)),
            store.write_data.eq(self.end_pointer),
            store.read_address.eq(address_of(next_head)),
            self.block_after.eq(store.read_data),
        ]
        m.d.sync += head.eq(next_head)
        with m.If(self.end_written):
            m.d.sync += tail.eq(self._after(tail))

    def _complete(self, m: Module, head: Signal, tail: Signal) -> Value:
        """Whether a whole block is held."""
        if not self.pipelined:
            return head != tail
        blocks = place(m, "blocks", Credits, initial=0, limit=self.depth, ahead=True)
        m.d.comb += [blocks.give.eq(self.end_written), blocks.take.eq(self.block_end)]
        return blocks.available

    def _pointer(self, name: str) -> Signal:
        return Signal(pointer_bits(self.design), name=name)

    def _after(self, pointer: Signal) -> Value:
        return place_after(pointer, self.depth)


class WeightRoom(wiring.Component):
    """room = a vector of weights may cross: with `pipelined_pes`, the FIFO of every PE that is used
    has a place for it.

    It stands beside the decoder, as a vector that crosses takes a place at once, and one way from
    the PEs, whose pointers say what has been given back.
    Latency: one cycle from a place given back, none from one taken.  Never stalls.

    Members
    -------
    used: which PEs the layer uses; reserve: a vector crosses, which will be written in those;
    released [PEs]: of the FIFOs; room: there is a place.  Where vectors lie there as they cross:
    start, a layer begins, with the first place.
    """

    used: Signal
    reserve: Signal
    released: data.View
    room: Signal

    def __init__(self, *, design: Scnn) -> None:
        self.depth = design.weight_fifo_vectors
        self.begins_anew = design.weights_as_crossed
        super().__init__(
            {
                "used": In(design.pes),
                "reserve": In(1),
                "released": In(data.ArrayLayout(pointer_bits(design), design.pes)),
                "room": Out(1),
                **({"start": In(1)} if self.begins_anew else {}),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        own: Any = self
        begins = own.start if self.begins_anew else C(0, 1)
        full = Signal()
        filled: list[Value] = []
        for number, used in enumerate(self.used):
            released = self.released[number]
            reserved, after = (
                Signal.like(released, name=f"{of}_{number}") for of in ("reserved", "after")
            )
            before, then = (is_full(of, released) for of in (reserved, after))
            m.d.comb += after.eq(place_after(reserved, self.depth))
            filled.append(used & Mux(self.reserve, then, before))
            m.d.sync += reserved.eq(Mux(begins, 0, Mux(self.reserve & used, after, reserved)))
        m.d.comb += self.room.eq(~full)
        m.d.sync += full.eq(Cat(*filled).any() & ~begins)
        return m


def place_after(pointer: Signal, depth: int) -> Value:
    """A pointer one place on: behind the last place the first one, in the other turn."""
    first = Cat(C(0, len(pointer) - 1), ~pointer[-1])
    return Mux(address_of(pointer) == depth - 1, first, pointer + 1)


def address_of(pointer: Signal) -> Value:
    """Where a pointer's place lies."""
    return pointer[:-1]


def is_full(written: Signal, released: Signal) -> Value:
    """Whether all places are taken, by pointers to where they begin and end."""
    return written == Cat(released[:-1], ~released[-1])
