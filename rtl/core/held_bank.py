"""A double-buffered bank that reads a word only when its output does not hold it already."""

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.core.held_sram import HeldSram
from rtl.core.sram import halves_ports
from rtl.hierarchy import place


class HeldBank(wiring.Component):
    """read_data[t + 1] = half[read_half[t]][read_address[t]] if wanted[t], else what it was.

    A tag keeps half and address of the word that the output holds.  A memory is read (`reads`) if
    a word is wanted that is not the held one; then the tag becomes that word's.
    A held word is never stale: a half is written only while it is not read, its words are read
    only behind `forget`, the write of its tile's last word, and `forget` clears a tag of the half
    that is written, also one that is set in the same cycle.
    Latency: 1 cycle from address to data.  Throughput: one read and one write a cycle.  Never
    stalls.

    Members
    -------
    write, write_half, write_address, write_data: the word to write; forget: the words of
    write_half are others from the next cycle on; wanted, read_half, read_address: the word to
    read; read_data: the word; reads: one of the memories is read in this cycle.
    """

    write: Signal
    write_half: Signal
    write_address: Signal
    write_data: Signal
    forget: Signal
    wanted: Signal
    read_half: Signal
    read_address: Signal
    read_data: Signal
    reads: Signal

    def __init__(self, *, bits: int, depth: int) -> None:
        self.bits = bits
        self.depth = depth
        super().__init__(
            {
                **halves_ports(bits=bits, depth=depth),
                "forget": In(1),
                "wanted": In(1),
                "reads": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        holds, half = Signal(), Signal(reset_less=True)
        address = Signal.like(self.read_address, name="held_address", reset_less=True)
        m.d.comb += self.reads.eq(self.wanted & ~self._is_held(holds, half, address))
        outputs: list[Signal] = []
        for number in range(2):
            store = place(m, f"half_{number}", HeldSram, bits=self.bits, depth=self.depth)
            m.d.comb += [
                store.write.eq(self.write & (self.write_half == number)),
                store.write_address.eq(self.write_address),
                store.write_data.eq(self.write_data),
                store.read.eq(self.reads & (self.read_half == number)),
                store.read_address.eq(self.read_address),
            ]
            outputs.append(store.read_data)
        m.d.comb += self.read_data.eq(Mux(half, outputs[1], outputs[0]))
        with m.If(self.reads):
            m.d.sync += [holds.eq(1), half.eq(self.read_half), address.eq(self.read_address)]
        with m.If(self._is_forgotten(Mux(self.reads, self.read_half, half))):
            m.d.sync += holds.eq(0)
        return m

    def _is_held(self, holds: Value, half: Value, address: Value) -> Value:
        """Whether the tag is that of the word to read."""
        return holds & (half == self.read_half) & (address == self.read_address)

    def _is_forgotten(self, half: Value) -> Value:
        """Whether the half of which the output holds a word from the next cycle on has others."""
        return self.forget & (self.write_half == half)
