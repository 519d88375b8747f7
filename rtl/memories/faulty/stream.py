"""A PE's activations in cells that fail: the twin of `archsim.memories.faulty.stream`."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from archsim.machines.scnn.design import Scnn
from archsim.memories.faulty.fault_map import FaultMap
from rtl.core.memory import number_bits
from rtl.core.scnn_memories import ActivationMemories, address_port
from rtl.hierarchy import place
from rtl.memories.faulty.fault_layer import FaultLayer, Layout


class BoundedActivations(wiring.Component):
    """`ActivationMemories` whose cells are sound, where lists may be longer than a memory for what
    other cells do: what is read behind the last vector is a vector of nothing that ends its list.

    Latency and throughput: those of `ActivationMemories`.  Never stalls.  Members: as there.
    """

    exchanged: Signal
    ifmap: Any
    ofmap: Any

    def __init__(self, *, design: Scnn) -> None:
        self.design = design
        port = address_port(design)
        super().__init__({"exchanged": In(1), "ifmap": Out(port), "ofmap": Out(port)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        inner = place(m, "inner", ActivationMemories, design=self.design)
        m.d.comb += inner.exchanged.eq(self.exchanged)
        depths = self.design.iaram_vectors, self.design.oaram_vectors
        for name, half in (("ifmap", self.exchanged), ("ofmap", ~self.exchanged)):
            own, other = getattr(self, name), getattr(inner, name)
            bits = len(own.read_data) - 1
            beyond = Signal(name=f"{name}_beyond")
            m.d.sync += beyond.eq(own.read_address >= Mux(half, depths[1], depths[0]))
            m.d.comb += [
                *(
                    getattr(other, member).eq(getattr(own, member))
                    for member in ("write", "write_address", "write_data", "read_address")
                ),
                own.read_data.eq(Mux(beyond, 1 << bits, other.read_data)),
            ]
        return m


class FaultyActivations(wiring.Component):
    """`ActivationMemories`, of which values and indices are read with the faults of their cells;
    the flag is read as it was written.

    What is read behind the last vector of a memory is a vector of nothing that ends its list, so
    that who reads lists that were longer than the memory comes to their end.
    Latency and throughput: those of `ActivationMemories`.  Never stalls.

    Members
    -------
    exchanged, ifmap, ofmap: as there; number: of the PE, above a vector's address; settings: of
    both memories' cells (`Layout`).
    """

    exchanged: Signal
    number: Signal
    settings: Signal
    ifmap: Any
    ofmap: Any

    def __init__(self, *, design: Scnn, faults: FaultMap) -> None:
        self.design, self.faults = design, faults
        port = address_port(design)
        super().__init__(
            {
                "exchanged": In(1),
                "number": In(number_bits(design)),
                "settings": In(Layout(faults=faults).settings().bits),
                "ifmap": Out(port),
                "ofmap": Out(port),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        inner = place(m, "inner", ActivationMemories, design=self.design)
        m.d.comb += inner.exchanged.eq(self.exchanged)
        depths = self.design.iaram_vectors, self.design.oaram_vectors
        for name, half in (("ifmap", self.exchanged), ("ofmap", ~self.exchanged)):
            own, other = getattr(self, name), getattr(inner, name)
            row_bits = self.design.stream_use("iaram").row_bits
            bits = self.faults.word_bits
            layer = place(
                m, f"{name}_faults", FaultLayer, faults=self.faults, bits=bits,
                address_bits=row_bits + len(self.number), first_bit=0, latency=1,
            )  # fmt: skip
            beyond = Signal(name=f"{name}_beyond")
            m.d.sync += beyond.eq(own.read_address >= Mux(half, depths[1], depths[0]))
            m.d.comb += [
                *(
                    getattr(other, member).eq(getattr(own, member))
                    for member in ("write", "write_address", "write_data", "read_address")
                ),
                layer.half.eq(half),
                layer.address.eq(Cat(own.read_address[:row_bits], self.number)),
                layer.settings.eq(self.settings),
                layer.i.eq(other.read_data),
                own.read_data.eq(Mux(beyond, 1 << bits, Cat(layer.o, other.read_data[bits:]))),
            ]
        return m


__all__ = ["BoundedActivations", "FaultyActivations"]
