"""The weight scratchpad and the addresses of its walk."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from archsim.memory import Scratchpad
from rtl.core.memory import Words, rtl_of, scratchpad, settings_port


class WeightReader(wiring.Component):
    """o = the next weight word of the tile, in the order in which it was written; 0 between.

    The walk goes back to the start of the step's words at the end of a block (`restart`) and to
    word 0 at the end of a tile.  Latency: 2 + `memory.read_latency_cycles` from `read` to o
    (address, memory, register).  Throughput: one word a cycle.  Never stalls.

    Members
    -------
    write, write_half, write_address, write_data: from the loader; write_last: the word is the
    tile's last; read: this issue uses a word; read_half: of which half; restart: behind this issue
    the walk goes back to the step's start; keep: the word behind this issue's is the next step's
    start; tile_end: the tile ends with this
    issue; o: the word; and what the memory counts (`rtl.core.memory.ScratchpadRtl`).  settings: of
    a memory that takes some.
    """

    write: Signal
    write_half: Signal
    write_address: Signal
    write_last: Signal
    write_data: Signal
    read: Signal
    read_half: Signal
    restart: Signal
    keep: Signal
    tile_end: Signal
    o: Signal
    settings: Signal

    def __init__(self, *, memory: Scratchpad, words: Words) -> None:
        self.memory = memory
        self.words = words
        self.depth = depth = words.depth
        rtl = rtl_of(memory)
        self.whole_words: bool = rtl.whole_words
        self.events: dict[str, Any] = rtl.events(words, by_lane=False)
        self.set = settings_port(memory, words)
        bits, address = words.lanes * words.bits, range(max(depth, 2))
        super().__init__(
            {
                "write": In(1),
                "write_half": In(1),
                "write_address": In(address),
                "write_last": In(1),
                "write_data": In(bits),
                "read": In(1),
                "read_half": In(1),
                "restart": In(1),
                "keep": In(1),
                "tile_end": In(1),
                "o": Out(bits),
                **self.events,
                **self.set,
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        store = scratchpad(m, "store", self.memory, self.words)
        wait = self.memory.read_latency_cycles
        at, step_start = Signal(range(self.depth + 1)), Signal(range(self.depth + 1))
        following, half, valid = Signal.like(at), Signal(), Signal(1 + wait)
        address = Signal(range(max(self.depth, 2)))
        m.d.comb += [
            following.eq(at + self.read),
            store.write.eq(self.write),
            store.write_half.eq(self.write_half),
            store.write_address.eq(self.write_address),
            store.write_data.eq(self.write_data),
            store.read_address.eq(address),
            store.read_half.eq(half),
            *(store.settings.eq(self.settings) for _ in self.set),
        ]
        if self.whole_words:
            m.d.comb += [
                store.write_last.eq(self.write_last),
                store.read.eq(valid[0]),
                *(getattr(self, event).eq(getattr(store, event)) for event in self.events),
            ]
        m.d.sync += [
            address.eq(at),
            half.eq(self.read_half),
            at.eq(Mux(self.restart, step_start, following)),
            valid.eq(Cat(self.read, valid)[: 1 + wait]),
            self.o.eq(Mux(valid[wait], store.read_data, 0)),
        ]
        with m.If(self.keep):
            m.d.sync += step_start.eq(following)
        with m.If(self.tile_end):
            m.d.sync += [at.eq(0), step_start.eq(0)]
        return m
