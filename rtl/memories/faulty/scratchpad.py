"""A memory whose cells fail: the twin of `archsim.memories.faulty`, of scratchpads and banks."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from archsim.memories.faulty.fault_map import FaultMap
from rtl.hierarchy import members_of, place
from rtl.memories.faulty.fault_layer import FaultLayer, Layout
from rtl.memories.faulty.measured_layer import MeasuredLayer


class FaultyMemory(wiring.Component):
    """What the inner one reads, with the faults of the word's cells.

    Latency and throughput: those of the inner one.  Ports: its own, and settings (`Layout`),
    but for a measured map, which is built in.
    """

    read_data: Any

    def __init__(
        self, *, unit: Any, parameters: tuple[tuple[str, Any], ...], faults: FaultMap,
        place: tuple[int, int], half: int | None = None, number_bits: int = 0,
    ) -> None:  # fmt: skip
        """place: the first bit of the word in the map's, and the inner one's read latency.

        half: of which the words are, of a bank; None: of a scratchpad, which is told.  number_bits:
        of a port `number`, above the address, which tells banks alike apart.
        """
        self.unit, self.parameters = unit, dict(parameters)
        self.faults, self.place, self.half = faults, place, half
        members = members_of(unit, self.parameters)
        self.inner_names = list(members)
        more = {} if faults.measured else {"settings": In(Layout(faults=faults).settings().bits)}
        self.number_bits = number_bits
        number = {"number": In(number_bits)} if number_bits else {}
        super().__init__({**members, **more, **number})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        inner: Any = place(m, "inner", self.unit, **self.parameters)
        own: Any = self
        first_bit, latency = self.place
        kind = MeasuredLayer if self.faults.measured else FaultLayer
        layer = place(
            m, "faults", kind, faults=self.faults, bits=len(own.read_data),
            address_bits=len(own.read_address) + self.number_bits, first_bit=first_bit,
            latency=latency,
        )  # fmt: skip
        for name in self.inner_names:
            mine, other = getattr(own, name), getattr(inner, name)
            if name == "read_data":
                m.d.comb += [layer.i.eq(other), mine.eq(layer.o)]
            else:
                is_out = self.signature.members[name].flow == wiring.Out
                m.d.comb += mine.eq(other) if is_out else other.eq(mine)
        m.d.comb += [
            layer.half.eq(own.read_half if self.half is None else self.half),
            layer.address.eq(
                Cat(own.read_address, own.number) if self.number_bits else own.read_address
            ),
        ]
        if not self.faults.measured:
            m.d.comb += layer.settings.eq(own.settings)
        return m


__all__ = ["FaultyMemory"]
