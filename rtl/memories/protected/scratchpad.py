"""A memory with check bits: the twin of `archsim.memories.protected`, scratchpads and banks."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from archsim.memories.protected.code import Code
from rtl.hierarchy import members_of, place
from rtl.memories.protected.codec import between_coders


class ProtectedMemory(wiring.Component):
    """The inner one, written with check bits and read without.

    Latency and throughput: those of the inner one.  Ports: its own, of the words alone.
    """

    write_data: Any
    read_data: Any

    def __init__(
        self, *, unit: Any, parameters: tuple[tuple[str, Any], ...], codes: tuple[Code, ...]
    ) -> None:
        """codes: of the code words of a word, the lowest first."""
        self.unit, self.parameters, self.codes = unit, dict(parameters), codes
        bits = sum(code.data_bits for code in codes)
        data = {"write_data": In(bits), "read_data": Out(bits)}
        super().__init__({**members_of(unit, self.parameters), **data})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        inner: Any = place(m, "inner", self.unit, **self.parameters)
        for name, member in self.signature.members.items():
            mine, other = getattr(self, name), getattr(inner, name)
            if name not in ("write_data", "read_data"):
                m.d.comb += mine.eq(other) if member.flow == wiring.Out else other.eq(mine)
        written, read = between_coders(m, self.codes, self.write_data, inner.read_data)
        m.d.comb += [inner.write_data.eq(written), self.read_data.eq(read)]
        return m


__all__ = ["ProtectedMemory"]
