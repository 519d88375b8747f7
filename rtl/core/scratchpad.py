"""Scratchpads: one builder for each kind of memory that a design can name."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from archsim.errors import InputError
from archsim.memory import Plain, Scratchpad


class PlainScratchpad(wiring.Component):
    """Two halves of `depth` words; o[t + 1] = half[read_half[t]][read_address[t]].

    Latency: 1 cycle from address to data.  Throughput: one read and one write a cycle in each
    half.  A word written in cycle t can be read from cycle t + 1 on.  Never stalls.
    """

    def __init__(self, *, bits: int, depth: int) -> None:
        self.bits = bits
        self.depth = depth
        address = range(max(depth, 2))
        super().__init__(
            {
                "write": In(1),
                "write_half": In(1),
                "write_address": In(address),
                "write_data": In(bits),
                "read_half": In(1),
                "read_address": In(address),
                "read_data": Out(bits),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        outputs: list[Signal] = []
        for half in range(2):
            store = memory.Memory(shape=self.bits, depth=max(self.depth, 2), init=[])
            m.submodules[f"half_{half}"] = store
            write, read = store.write_port(), store.read_port()
            m.d.comb += [
                write.en.eq(self.write & (self.write_half == half)),
                write.addr.eq(self.write_address),
                write.data.eq(self.write_data),
                read.en.eq(1),
                read.addr.eq(self.read_address),
            ]
            outputs.append(read.data)
        selected = Signal()
        m.d.sync += selected.eq(self.read_half)
        m.d.comb += self.read_data.eq(Mux(selected, outputs[1], outputs[0]))
        return m


def scratchpad(kind: Scratchpad, *, bits: int, depth: int) -> PlainScratchpad:
    """The RTL of a scratchpad of that kind."""
    if isinstance(kind, Plain):
        return PlainScratchpad(bits=bits, depth=depth)
    raise InputError(f"no RTL is known for the memory {type(kind).__name__}; known: Plain")
