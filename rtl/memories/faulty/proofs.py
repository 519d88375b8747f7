"""What is proved of the fault layer and what is around it, for every key, address, word, rate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from archsim.machines.scnn.design import Scnn
from archsim.memories.faulty.cell_hash import HASH_BITS, THRESHOLD_BITS
from archsim.memories.faulty.fault_map import FaultMap
from archsim.memories.faulty.stream import FaultyStream
from rtl.core.sram import Sram
from rtl.formal import Proof, claim, opened, prove_always
from rtl.memories import read_back
from rtl.memories.faulty.fault_layer import RATE_BITS, FaultLayer, Layout
from rtl.memories.faulty.scratchpad import FaultyMemory
from rtl.memories.faulty.stream import FaultyActivations
from rtl.memories.read_back import sram_cells

BITS, ADDRESS_BITS = 3, 5
PORTS = ("ifmap", "ofmap")


class LayerProof(wiring.Component):
    """Two layers of one chip at two rates, over the same word.

    Where the lower one is wrong, so is the higher; at rate 0 nothing is, at rate 1 every bit that
    is not protected; a bit that reads 1 for a 0 is no fault of cells that only lose ones.
    """

    def __init__(self, **shares: Any) -> None:
        self.faults = FaultMap(
            words=1 << 6, word_bits=BITS, rate=0.5, protected_bits=(1,), **shares
        )
        super().__init__(
            {
                "half": In(1),
                "address": In(ADDRESS_BITS),
                "key": In(HASH_BITS),
                "low": In(RATE_BITS),
                "high": In(RATE_BITS),
                "i": In(BITS),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        own: Any = self
        wrong: list[Signal] = []
        for name, rate in (("lower", own.low), ("higher", own.high)):
            layer: Any = FaultLayer(
                faults=self.faults, bits=BITS, address_bits=ADDRESS_BITS, first_bit=0, latency=1
            )
            m.submodules[name] = layer
            m.d.comb += [
                layer.half.eq(own.half),
                layer.address.eq(own.address),
                layer.settings.eq(Cat(own.key, rate)),
                layer.i.eq(own.i),
            ]
            wrong.append(Signal(BITS, name=f"{name}_wrong"))
            m.d.comb += wrong[-1].eq(layer.o ^ own.i)
        low, high = wrong
        m.d.comb += [
            claim(m, "grows", (own.low > own.high) | ((low & ~high) == 0)),
            claim(m, "none", (own.low != 0) | (low == 0)),
            claim(m, "protected", ~high[1]),
        ]
        flips = self.faults.kind_limits == (256, 0)
        whole = own.low >= (1 << THRESHOLD_BITS)
        if flips:
            m.d.comb += claim(m, "all", ~whole | (low == 0b101))
        elif self.faults.one_to_zero == 1:
            m.d.comb += [
                claim(m, "lost", (high & ~own.i) == 0),
                claim(m, "all_lost", ~whole | (low == (own.i & 0b101))),
            ]
        return m


def layer_proofs() -> Iterator[Proof]:
    """Of cells that flip, and of cells that lose ones."""
    for what, shares in (("flip", {}), ("lose ones", {"one_to_zero": 1.0})):
        yield Proof(
            name=f"faults grow with the rate, cells that {what}",
            says="at a higher rate every fault of a lower one is there; none at rate 0, all at "
            f"rate 1, none in protected bits; for every chip and address, cells that {what}: "
            f"words of {BITS} bits",
            prove=lambda shares=shares: prove_always(LayerProof(**shares)),
        )


class FaultlessBank(wiring.Component):
    """A bank behind the layer, at a rate of 0: with the ports of an `Sram`."""

    def __init__(self, *, bits: int, depth: int, transparent: bool = False) -> None:
        self.depth, self.faults = depth, FaultMap(words=1 << 6, word_bits=bits, rate=0.0)
        self.sizes = {"bits": bits, "depth": depth, "transparent": transparent}
        super().__init__(Sram.ports(bits=bits, depth=depth))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        parameters = tuple(sorted(self.sizes.items()))
        behind: Any = FaultyMemory(
            unit=Sram, parameters=parameters, faults=self.faults, place=(0, 1), half=1
        )
        m.submodules.behind = behind
        for name, member in self.signature.members.items():
            mine, other = getattr(self, name), getattr(behind, name)
            m.d.comb += mine.eq(other) if member.flow == wiring.Out else other.eq(mine)
        m.d.comb += behind.settings.eq(Layout(faults=self.faults).settings().init)
        return m


def bank_proofs() -> Iterator[Proof]:
    """Of such a bank: what is written is read back."""

    def cells(bank: Any) -> list[Value]:
        return sram_cells(opened(opened(bank).submodules.behind).submodules.inner)

    return read_back.bank_proofs(FaultlessBank, cells)


class EndsProof(wiring.Component):
    """A PE's activations in failing cells: behind a memory's last vector stands one of nothing with
    its flag; flags of all others are read as they lie there.  Of either port, wherever its memory
    is."""

    def __init__(self, design: Scnn, faults: FaultMap) -> None:
        self.design, self.faults = design, faults
        unit = self._unit()
        self.inputs = ["exchanged", "number", "settings"]
        members = unit.ifmap.signature.members
        self.members = [name for name in members if name != "read_data"]
        ports = {
            f"{port}_{name}": In(members[name].shape) for port in PORTS for name in self.members
        }
        super().__init__({**{name: unit.signature.members[name] for name in self.inputs}, **ports})

    def _unit(self) -> Any:
        unit: Any = FaultyActivations(design=self.design, faults=self.faults)
        unit._MustUse__silence = True
        return unit

    def elaborate(self, platform: object) -> Module:
        m, unit = Module(), self._unit()
        inner: Any = opened(unit).submodules.inner
        m.submodules.unit = unit
        m.d.comb += [getattr(unit, name).eq(getattr(self, name)) for name in self.inputs]
        depths = self.design.iaram_vectors, self.design.oaram_vectors
        for port, second in zip(PORTS, (unit.exchanged, ~unit.exchanged), strict=True):
            given = {name: getattr(self, f"{port}_{name}") for name in self.members}
            m.d.comb += [getattr(getattr(unit, port), name).eq(one) for name, one in given.items()]
            behind, read = Signal(name=f"{port}_behind"), getattr(unit, port).read_data
            m.d.sync += behind.eq(given["read_address"] >= Mux(second, depths[1], depths[0]))
            end, flag = 1 << self.faults.word_bits, getattr(inner, port).read_data[-1]
            m.d.comb += claim(m, port, Mux(behind, read == end, read[-1] == flag))
        return m


def stream_proofs() -> Iterator[Proof]:
    """Of memories of 2 and 3 vectors."""
    for iaram, oaram in ((2, 3), (3, 2)):
        memory = FaultyStream(rate=0.5)
        design = replace(read_back.small_scnn(iaram, oaram), activation_memory=memory)
        faults = memory.words_map(design.stream_use("iaram").words)
        yield Proof(
            name=f"lists in failing cells end, memories of {iaram} and {oaram} vectors",
            says="behind a memory's last vector stands a vector of nothing that ends its list, and "
            "no other flag is read otherwise, for every chip, rate and exchange, for ever: "
            f"{iaram} and {oaram} vectors",
            prove=lambda design=design, faults=faults: prove_always(EndsProof(design, faults)),
        )


__all__ = [
    "EndsProof",
    "FaultlessBank",
    "LayerProof",
    "bank_proofs",
    "layer_proofs",
    "stream_proofs",
]
