"""Encoder and decoder of a code word: the twin of `archsim.memories.protected.code`."""

from __future__ import annotations

from functools import reduce
from operator import xor
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from archsim.memories.protected.code import Code
from rtl.hierarchy import place


def checks_of(code: Code, data: Value) -> list[Value]:
    """The check bits of data."""
    counted = ([data[bit] for bit in code.covered(at)] for at in range(code.check_bits))
    return [reduce(xor, bits) if bits else Const(0, 1) for bits in counted]


class Encoder(wiring.Component):
    """o = i, and its check bits above.  Combinational."""

    i: Signal
    o: Signal

    def __init__(self, *, code: Code) -> None:
        self.code = code
        super().__init__({"i": In(code.data_bits), "o": Out(code.bits)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.comb += self.o.eq(Cat(self.i, *checks_of(self.code, self.i)))
        return m


class Decoder(wiring.Component):
    """o = the data that i is taken to be, 0 where an error is detected and not corrected.

    Combinational.  detected: in this word.
    """

    i: Signal
    o: Signal
    detected: Signal

    def __init__(self, *, code: Code) -> None:
        self.code = code
        super().__init__({"i": In(code.bits), "o": Out(code.data_bits), "detected": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        code, data = self.code, self.i[: self.code.data_bits]
        syndrome = Signal(code.check_bits)
        m.d.comb += syndrome.eq(Cat(checks_of(code, data)) ^ self.i[code.data_bits :])
        known: list[Any] = [syndrome == 0]
        flips: Value = Const(0, code.data_bits)
        if code.corrects:
            flips = Cat(syndrome == column for column in code.columns)
            known += [flips.any(), *(syndrome == 1 << at for at in range(code.check_bits))]
        m.d.comb += [
            self.detected.eq(~Cat(known).any()),
            self.o.eq(Mux(self.detected, 0, data ^ flips)),
        ]
        return m


def between_coders(
    m: Module, codes: tuple[Code, ...], write_data: Value, read_data: Value, port: str = ""
) -> tuple[Value, Value]:
    """What is written of data with check bits, and the data that are read of a coded word.

    codes: of the code words of a word, the lowest first; port: of the memory, in the coders' names.
    """
    written: list[Value] = []
    read: list[Value] = []
    at = coded = 0
    for number, code in enumerate(codes):
        encoder = place(m, f"{port}encoder_{number}", Encoder, code=code)
        decoder = place(m, f"{port}decoder_{number}", Decoder, code=code)
        m.d.comb += [
            encoder.i.eq(write_data[at : at + code.data_bits]),
            decoder.i.eq(read_data[coded : coded + code.bits]),
        ]
        written.append(encoder.o)
        read.append(decoder.o)
        at, coded = at + code.data_bits, coded + code.bits
    return Cat(written), Cat(read)


__all__ = ["Decoder", "Encoder", "between_coders", "checks_of"]
