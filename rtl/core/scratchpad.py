"""Scratchpads: one builder for each kind of memory that a design can name."""

from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring

from archsim.compressed_memory import Boveda
from archsim.errors import InputError
from archsim.memory import Plain, Scratchpad
from rtl.core.sram import Sram, halves_ports
from rtl.hierarchy import place


class PlainScratchpad(wiring.Component):
    """Two halves of `depth` words; o[t + 1] = half[read_half[t]][read_address[t]].

    Latency: 1 cycle from address to data.  Throughput: one read and one write a cycle in each
    half.  A word written in cycle t can be read from cycle t + 1 on.  Never stalls.
    """

    write: Signal
    write_half: Signal
    write_address: Signal
    write_data: Signal
    read_half: Signal
    read_address: Signal
    read_data: Signal

    def __init__(self, *, bits: int, depth: int) -> None:
        self.bits = bits
        self.depth = depth
        super().__init__(halves_ports(bits=bits, depth=depth))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        outputs: list[Signal] = []
        for half in range(2):
            store = place(m, f"half_{half}", Sram, bits=self.bits, depth=self.depth)
            m.d.comb += [
                store.write.eq(self.write & (self.write_half == half)),
                store.write_address.eq(self.write_address),
                store.write_data.eq(self.write_data),
                store.read_address.eq(self.read_address),
            ]
            outputs.append(store.read_data)
        selected = Signal()
        m.d.sync += selected.eq(self.read_half)
        m.d.comb += self.read_data.eq(Mux(selected, outputs[1], outputs[0]))
        return m


@dataclass(frozen=True, kw_only=True)
class Words:
    """What a scratchpad holds: `lanes` of `bits`, signed or not, `depth` in each half."""

    lanes: int
    bits: int
    signed: bool
    depth: int


def scratchpad(
    m: Module, name: str, kind: Scratchpad, words: Words, *, straddles: bool = False
) -> Any:
    """Add a scratchpad of that kind to `m`; returns what has the ports of `PlainScratchpad`.

    A compressed one also has `write_last`, `read`, counts, and with `straddles` `read_next`
    (`rtl.core.compressed_scratchpad`).
    """
    if isinstance(kind, Plain):
        return place(m, name, PlainScratchpad, bits=words.lanes * words.bits, depth=words.depth)
    if isinstance(kind, Boveda):
        from rtl.core.compressed_scratchpad import CompressedScratchpad

        shape = {"lanes": words.lanes, "bits": words.bits, "signed": words.signed}
        return place(m, name, CompressedScratchpad, memory=kind, straddles=straddles, **shape)
    raise InputError(f"no RTL is known for the memory {type(kind).__name__}; known: Plain, Boveda")
