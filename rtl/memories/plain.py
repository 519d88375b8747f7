"""Plain memories: SRAMs that keep words as they are, for each way of access."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring

from archsim.memory import Memory, StreamUse
from archsim.memory.plain import joined_depth
from rtl.core.memory import Placed, Words
from rtl.core.scnn_cells import ofmaps_grow
from rtl.core.scnn_memories import ActivationMemories, BoundedActivations, address_port
from rtl.core.sram import Sram, halves_ports
from rtl.hierarchy import place

if TYPE_CHECKING:
    from rtl.formal import Proof


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

    def __init__(self, *, bits: int, depth: int, bank: type[wiring.Component] = Sram) -> None:
        """bank: what each half is, with the ports of an `Sram`."""
        self.bits = bits
        self.depth = depth
        self.bank = bank
        super().__init__(halves_ports(bits=bits, depth=depth))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        outputs: list[Signal] = []
        for half in range(2):
            store = place(m, f"half_{half}", self.bank, bits=self.bits, depth=self.depth)
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


class JoinedScratchpad(PlainScratchpad):
    """The same with both halves in one bank.

    The second half begins at a power of two, so that the half is the highest bit of an address.
    """

    def elaborate(self, platform: object) -> Module:
        m = Module()
        store = place(m, "both", self.bank, bits=self.bits, depth=joined_depth(self.depth))
        m.d.comb += [
            store.write.eq(self.write),
            store.write_address.eq(Cat(self.write_address, self.write_half)),
            store.write_data.eq(self.write_data),
            store.read_address.eq(Cat(self.read_address, self.read_half)),
            self.read_data.eq(store.read_data),
        ]
        return m


class PlainBankRtl:
    """An SRAM; nothing of a plain memory but its size matters."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory

    def bank(self, *, bits: int, depth: int, transparent: bool) -> Placed:
        """An SRAM."""
        sizes = {"bits": bits, "depth": depth}
        return Sram, {**sizes, "transparent": True} if transparent else sizes

    @staticmethod
    def proofs() -> Iterable[Proof]:
        """What is written to a bank is read back."""
        from rtl.memories.read_back import bank_proofs

        return bank_proofs()


class PlainScratchpadRtl(PlainBankRtl):
    """Two banks, or one, which are SRAMs unless a subclass says otherwise in `bank`."""

    whole_words = False

    def unit(self, words: Words, *, by_lane: bool) -> Placed:
        """`PlainScratchpad`, or `JoinedScratchpad`, whichever lanes are read."""
        sizes = {"bits": words.lanes * words.bits, "depth": words.depth}
        bank, _ = self.bank(**sizes, transparent=False)
        memory: Any = self.memory
        kind = JoinedScratchpad if memory.joined_halves else PlainScratchpad
        return kind, {**sizes, **({} if bank is Sram else {"bank": bank})}

    def events(self, words: Words, *, by_lane: bool) -> dict[str, Any]:
        """Nothing beside words read and written."""
        return {}

    @staticmethod
    def proofs() -> Iterable[Proof]:
        """What is written to a half is read back."""
        from rtl.memories.read_back import scratchpad_proofs

        return scratchpad_proofs()


class PlainStreamRtl(PlainBankRtl):
    """An SRAM for each of the two memories, read by addresses."""

    def unit(self, design: Any, use: StreamUse | None = None) -> Placed:
        """Both memories of a PE; where ofmaps may be larger than meant, with an end behind their
        last vectors."""
        more = {} if use is None else {"kept_bits": use.kept_bits}
        if ofmaps_grow(design):
            return BoundedActivations, {"design": design, **more}
        return ActivationMemories, {"design": design, **more}

    def port(self, design: Any) -> wiring.Signature:
        """Of either."""
        return address_port(design)

    def events(self, design: Any) -> dict[str, int]:
        """Nothing is counted."""
        return {}

    @staticmethod
    def proofs() -> Iterable[Proof]:
        """What is written is read back, through exchanges."""
        from rtl.memories.read_back import exchanged_proofs

        return exchanged_proofs()


__all__ = [
    "JoinedScratchpad",
    "PlainBankRtl",
    "PlainScratchpad",
    "PlainScratchpadRtl",
    "PlainStreamRtl",
]
