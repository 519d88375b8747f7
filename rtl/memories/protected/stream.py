"""A PE's activations with check bits: the twin of `archsim.memories.protected.stream`."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from archsim.memories.protected.code import Code
from rtl.core.sram import Sram
from rtl.hierarchy import members_of, place
from rtl.memories.protected.codec import between_coders

PORTS = ("ifmap", "ofmap")


class ProtectedActivations(wiring.Component):
    """The inner ones, written with check bits and read without; flags lie beside, as they are.

    Latency and throughput: those of the inner ones.  Never stalls.  Ports: their own, of the
    vectors alone.
    """

    def __init__(
        self, *, unit: Any, parameters: tuple[tuple[str, Any], ...], codes: tuple[Code, ...]
    ) -> None:
        """codes: of the code words of a vector, the lowest first."""
        self.unit, self.parameters, self.codes = unit, dict(parameters), codes
        members = members_of(unit, self.parameters)
        address = members["ifmap"].signature.members["read_address"].shape
        port = Sram.ports(bits=sum(code.data_bits for code in codes) + 1, depth=1 << address)
        self.inputs = [name for name in members if name not in PORTS]
        super().__init__({**members, **{name: Out(port) for name in PORTS}})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        inner: Any = place(m, "inner", self.unit, **self.parameters)
        m.d.comb += [getattr(inner, name).eq(getattr(self, name)) for name in self.inputs]
        for name in PORTS:
            own, other = getattr(self, name), getattr(inner, name)
            written, read = between_coders(
                m, self.codes, own.write_data, other.read_data, port=f"{name}_"
            )
            m.d.comb += [
                *(
                    getattr(other, member).eq(getattr(own, member))
                    for member in ("write", "write_address", "read_address")
                ),
                other.write_data.eq(Cat(written, own.write_data[-1])),
                own.read_data.eq(Cat(read, other.read_data[-1])),
            ]
        return m


__all__ = ["ProtectedActivations"]
