"""What is proved of every code: all errors of up to two bits, in all words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from archsim.memories.protected.code import Code, parity, secded
from rtl.formal import Proof, claim, prove_combinational
from rtl.memories.protected.codec import Decoder, Encoder


class CodeProof(wiring.Component):
    """Encoder into decoder, with any two bits flipped, which may be the same one or none.

    Without errors and, of a code that corrects, with one the data come back; two are detected.  Of
    parity one is detected, and two of them are not.
    """

    def __init__(self, code: Code) -> None:
        self.code = code
        places = range(code.bits + 1)
        super().__init__({"i": In(code.data_bits), "first": In(places), "second": In(places)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        code = self.code
        ports: Any = self
        encoder: Any = Encoder(code=code)
        decoder: Any = Decoder(code=code)
        m.submodules.encoder, m.submodules.decoder = encoder, decoder
        one, other = Signal(code.bits), Signal(code.bits)
        errors = one ^ other
        there = [Signal(name=name) for name in ("first_there", "second_there")]
        m.d.comb += [
            one.eq(Cat(ports.first == at for at in range(code.bits))),
            other.eq(Cat(ports.second == at for at in range(code.bits))),
            there[0].eq(ports.first < code.bits),
            there[1].eq(ports.second < code.bits),
            encoder.i.eq(ports.i),
            decoder.i.eq(encoder.o ^ errors),
        ]
        same = ports.first == ports.second
        none = same | ~(there[0] | there[1])
        two = there[0] & there[1] & ~same
        single = ~none & ~two
        right = ~decoder.detected & (decoder.o == ports.i)
        zeros = decoder.detected & (decoder.o == 0)
        m.d.comb += [
            claim(m, "none", ~none | right),
            claim(m, "single", ~single | (right if code.corrects else zeros)),
            claim(m, "two", ~two | (zeros if code.corrects else ~decoder.detected)),
        ]
        return m


def code_proofs(*, corrects: bool) -> Iterator[Proof]:
    """Of the usual sizes."""
    for bits in (8, 16, 32, 64):
        code = secded(bits) if corrects else parity(bits)
        name = f"({code.bits}, {code.data_bits})"
        what = (
            "no error or one gives the data, any two are detected and read as zeros"
            if corrects
            else "no error gives the data, one is detected and reads as zeros, two are not detected"
        )
        yield Proof(
            name=f"all errors of up to two bits of {name}",
            says=f"{what}: every word, every place, {name}",
            prove=lambda code=code: prove_combinational(CodeProof(code)),
            slow=bits > 16,
        )


__all__ = ["CodeProof", "code_proofs"]
