"""The outputs of a PE: compressed into the memory that holds them, and read from there."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from archsim.machines.scnn.design import Scnn
from rtl.core.memory import rtl_of
from rtl.core.scnn_cells import lists_overflow
from rtl.core.scnn_layouts import vector_layout
from rtl.core.sram import address_bits


class Compressor(wiring.Component):
    """Values, one behind the other, as lists of (value, zeros before it), in vectors of lanes.

    A run of 2^index_bits zeros becomes a placeholder (0, 2^index_bits − 1) at once; the vector with
    the last non-zero value is kept as it then was, and ends the list, so that placeholders behind
    it are taken back, also those for which the memory has no place.  A list without values is one
    vector of zeros.  Where lists may be longer than the memory (`lists_overflow`), all that is
    written behind its last vector is dropped, and addresses stay behind it.
    Latency: a list can be read from the cycle after `ends` on.  Throughput: a value or an end a
    cycle.  Never stalls.

    Members
    -------
    store: of the memory (`rtl.core.scnn_memories`), of `depth` vectors at most; clear: a layer
    begins; valid, value: the next value; ends: the list ends (not with valid); step: to the next
    vector of the memory; o: the vector that it stands at.
    """

    store: wiring.PureInterface
    clear: Signal
    valid: Signal
    value: Signal
    ends: Signal
    step: Signal
    o: data.View

    def __init__(self, *, design: Scnn) -> None:
        self.design = design
        self.lanes = design.ifmap_lanes
        self.overflows = lists_overflow(design)
        self.word_layout = vector_layout(design, self.lanes)
        self.depth = max(design.iaram_entries, design.oaram_entries)
        self.address_bits = address_bits(self.depth + 1)
        super().__init__(
            {
                "store": In(rtl_of(design.activation_memory).port(design)),
                **{name: In(1) for name in ("clear", "valid", "ends", "step")},
                "value": In(signed(design.operand_bits)),
                "o": Out(self.word_layout),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        longest = (1 << self.design.index_bits) - 1
        run, lane = Signal(self.design.index_bits), Signal(range(self.lanes))
        vector, kept, grown = (
            Signal(len(self.o.lanes.as_value()), name=name) for name in ("vector", "kept", "grown")
        )
        at, kept_at = (Signal(self.address_bits, name=name) for name in ("at", "kept_at"))
        element, full, counts = Signal(), Signal(), Signal()
        m.d.comb += [
            counts.eq(self.value != 0),
            element.eq(self.valid & (counts | (run == longest))),
            full.eq(element & (lane == self.lanes - 1)),
            grown.eq(vector | self._element(run) << (lane * self._element(run).shape().width)),
        ]
        with m.If(self.valid):
            m.d.sync += run.eq(Mux(element, 0, run + 1))
        with m.If(element):
            m.d.sync += [lane.eq(Mux(full, 0, lane + 1)), vector.eq(Mux(full, 0, grown))]
        with m.If(full):
            m.d.sync += at.eq(at + (at != self.depth))
        with m.If(self.valid & counts):
            m.d.sync += [kept.eq(grown), kept_at.eq(at)]
        after = self._behind(kept_at)
        with m.If(self.ends | self.clear):
            m.d.sync += [run.eq(0), lane.eq(0), vector.eq(0), kept.eq(0)]
            m.d.sync += [at.eq(Mux(self.clear, 0, after)), kept_at.eq(Mux(self.clear, 0, after))]
        self._write(
            m, Mux(self.ends, Cat(kept, 1), Cat(grown, 0)), Mux(self.ends, kept_at, at), full
        )
        if self.design.activation_memory.stepped:  # a vector that is already there keeps its values
            store: Any = self.store
            m.d.comb += [
                store.append.eq(full | (kept_at == at)),
                store.count.eq(at),
                store.step.eq(self.step),
            ]
        else:
            self._read(m)
        return m

    def _behind(self, address: Signal) -> Value:
        """The next address; the last one, where lists go on behind it."""
        if not self.overflows:
            return address + 1
        return Mux(address == self.depth, self.depth, address + 1)

    def _element(self, run: Signal) -> Value:
        return Cat(self.value, run)

    def _write(self, m: Module, word: Value, at: Value, full: Signal) -> None:
        store: Any = self.store
        m.d.comb += [
            store.write.eq(full | self.ends),
            store.write_address.eq(at),
            store.write_data.eq(word),
            self.o.as_value().eq(store.read_data),
        ]

    def _read(self, m: Module) -> None:
        """The address of the vector that leaves in the next cycle."""
        reading, next_reading = (
            Signal(self.address_bits, name=name) for name in ("reading", "next_reading")
        )
        store: Any = self.store
        m.d.comb += [
            store.read_address.eq(next_reading),
            next_reading.eq(Mux(self.clear, 0, Mux(self.step, self._behind(reading), reading)))
            if self.overflows
            else next_reading.eq(Mux(self.clear, 0, reading + self.step)),
        ]
        m.d.sync += reading.eq(next_reading)
