"""The scratchpad of flip-flops in hardware."""

from collections.abc import Iterable, Sequence
from typing import Any

from amaranth.hdl import Array, Module, Mux, Signal
from amaranth.lib import wiring

from rtl.core.memory import Placed
from rtl.core.sram import Sram
from rtl.formal import Proof, opened
from rtl.memories.plain import PlainScratchpadRtl
from rtl.memories.read_back import scratchpad_proofs


def cells(bank: Any) -> Sequence[Signal]:
    """What lies in a bank of flip-flops, for proofs that look inside."""
    opened(bank)
    return bank.words


class RegisterBank(wiring.Component):
    """read_data[t + 1] = words[read_address[t]], as an `Sram`.

    Latency: 1 cycle.  Throughput: a read and a write a cycle.  Never stalls.
    """

    write: Signal
    write_address: Signal
    write_data: Signal
    read_address: Signal
    read_data: Signal

    def __init__(self, *, bits: int, depth: int, transparent: bool = False) -> None:
        self.bits, self.depth, self.transparent = bits, max(depth, 2), transparent
        super().__init__(Sram.ports(bits=bits, depth=depth))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        names = [f"word_{number}" for number in range(self.depth)]
        self.words = words = Array(Signal(self.bits, name=name) for name in names)
        for number, word in enumerate(words):
            with m.If(self.write & (self.write_address == number)):
                m.d.sync += word.eq(self.write_data)
        forward = self.write & (self.write_address == self.read_address) & self.transparent
        m.d.sync += self.read_data.eq(Mux(forward, self.write_data, words[self.read_address]))
        return m


class RegistersRtl(PlainScratchpadRtl):
    """Halves of flip-flops."""

    def bank(self, *, bits: int, depth: int, transparent: bool) -> Placed:
        sizes = {"bits": bits, "depth": depth}
        return RegisterBank, {**sizes, "transparent": True} if transparent else sizes

    @staticmethod
    def proofs() -> Iterable[Proof]:
        return scratchpad_proofs(RegisterBank, cells)
