"""What is proved of every code: all errors of up to two bits, in all words."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from archsim.machines.scnn.design import Scnn
from archsim.memories.protected.code import Code, parity, secded
from rtl.core.scnn_memories import ActivationMemories
from rtl.core.sram import Sram
from rtl.formal import Proof, claim, opened, prove_combinational
from rtl.memories import read_back
from rtl.memories.protected.codec import Decoder, Encoder
from rtl.memories.protected.scratchpad import ProtectedMemory
from rtl.memories.protected.stream import ProtectedActivations
from rtl.memories.read_back import sram_cells

FAST, LARGEST = 8, 16
"""Data bits of a code that corrects up to which the second proof takes seconds; and at all."""


class ErrorProof(wiring.Component):
    """Errors in the word of zeros: any two bits flipped, which may be the same one or none.

    Without errors and, of a code that corrects, with one zeros come back; two are detected.  Of
    parity one is detected, and two of them are not.
    """

    def __init__(self, code: Code) -> None:
        self.code = code
        places = range(code.bits + 1)
        super().__init__({"first": In(places), "second": In(places)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        code = self.code
        ports: Any = self
        decoder: Any = Decoder(code=code)
        m.submodules.decoder = decoder
        one = Cat(ports.first == at for at in range(code.bits))
        other = Cat(ports.second == at for at in range(code.bits))
        there = (ports.first < code.bits) + (ports.second < code.bits)
        errors = Signal(range(3))
        m.d.comb += [
            errors.eq(Mux(ports.first == ports.second, 0, there)),
            decoder.i.eq(one ^ other),
        ]
        right = ~decoder.detected & (decoder.o == 0)
        single = right if code.corrects else decoder.detected
        two = decoder.detected if code.corrects else ~decoder.detected
        m.d.comb += [
            claim(m, "none", (errors != 0) | right),
            claim(m, "single", (errors != 1) | single),
            claim(m, "two", (errors != 2) | two),
        ]
        return m


class LinearProof(wiring.Component):
    """The decoder treats errors in any code word as it treats them in the word of zeros."""

    def __init__(self, code: Code) -> None:
        self.code = code
        super().__init__({"i": In(code.data_bits), "errors": In(code.bits)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        ports: Any = self
        encoder: Any = Encoder(code=self.code)
        decoder: Any = Decoder(code=self.code)
        alone: Any = Decoder(code=self.code)
        m.submodules.encoder, m.submodules.decoder, m.submodules.alone = encoder, decoder, alone
        m.d.comb += [
            encoder.i.eq(ports.i),
            decoder.i.eq(encoder.o ^ ports.errors),
            alone.i.eq(ports.errors),
        ]
        moved = Mux(alone.detected, 0, alone.o ^ ports.i)
        m.d.comb += [
            claim(m, "detected", decoder.detected == alone.detected),
            claim(m, "moved", decoder.o == moved),
        ]
        return m


def code_proofs(*, corrects: bool) -> Iterator[Proof]:
    """Of the usual sizes; both of a size together are of all such errors in all words."""
    for bits in (8, 16, 32, 64):
        code = secded(bits) if corrects else parity(bits)
        name = f"({code.bits}, {code.data_bits})"
        what = (
            "no error or one gives the data, any two are detected"
            if corrects
            else "no error gives the data, one is detected, two are not"
        )
        yield Proof(
            name=f"errors of up to two bits of {name}",
            says=f"{what}, and what is detected reads as zeros: every place, {name}",
            prove=lambda code=code: prove_combinational(ErrorProof(code)),
        )
        if corrects and bits > LARGEST:
            continue
        yield Proof(
            name=f"errors in any word of {name}",
            says=f"the decoder treats errors of any weight alike in every word: {name}",
            prove=lambda code=code: prove_combinational(LinearProof(code)),
            slow=corrects and bits > FAST,
        )


def coded_bank(make: Callable[[int], Code]) -> Callable[..., ProtectedMemory]:
    """Banks with check bits, with the ports of an `Sram`."""

    def bank(*, bits: int, depth: int, transparent: bool = False) -> ProtectedMemory:
        code = make(bits)
        sizes = {"bits": code.bits, "depth": depth, "transparent": transparent}
        found = ProtectedMemory(unit=Sram, parameters=tuple(sorted(sizes.items())), codes=(code,))
        found.depth = depth  # pyright: ignore[reportAttributeAccessIssue]
        return found

    return bank


def bank_proofs(make: Callable[[int], Code]) -> Iterator[Proof]:
    """What is written to such a bank is read back."""

    def cells(bank: Any) -> list[Value]:
        inside, found = opened(bank), list[Value]()
        for address, cell in enumerate(sram_cells(inside.submodules.inner)):
            inside.submodules[f"cell_{address}"] = decoder = Decoder(code=bank.codes[0])
            inside.d.comb += decoder.i.eq(cell)
            found.append(decoder.o)
        return found

    return read_back.bank_proofs(coded_bank(make), cells)


class ExchangedWithChecks(read_back.Exchanged):
    """Those with check bits around every vector."""

    def __init__(self, make: Callable[[int], Code]) -> None:
        self.make = make

    def unit(self, design: Scnn) -> ProtectedActivations:
        """The component."""
        code = self.make(design.ifmap_vector_bits)
        parameters = {"design": design, "kept_bits": code.bits + 1}
        return ProtectedActivations(
            unit=ActivationMemories, parameters=tuple(parameters.items()), codes=(code,)
        )

    def cells(self, unit: Any) -> tuple[list[Value], list[Value]]:
        """As they are decoded."""
        inside, found = opened(unit), list[list[Value]]()
        for name, cells in zip(
            ("iaram", "oaram"), super().cells(inside.submodules.inner), strict=True
        ):
            found.append([])
            for address, cell in enumerate(cells):
                inside.submodules[f"{name}_{address}"] = decoder = Decoder(code=unit.codes[0])
                inside.d.comb += decoder.i.eq(cell[:-1])
                found[-1].append(Cat(decoder.o, cell[-1]))
        return found[0], found[1]


def stream_proofs(make: Callable[[int], Code]) -> Iterator[Proof]:
    """What is written to such memories is read back, through exchanges."""
    return read_back.exchanged_proofs(ExchangedWithChecks(make))


__all__ = ["ErrorProof", "LinearProof", "bank_proofs", "code_proofs", "stream_proofs"]
