"""A PE's activations in cells that fail: the twin of `archsim.memories.faulty.stream`."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib.wiring import In

from archsim.machines.scnn.design import Scnn
from archsim.memories.faulty.fault_map import FaultMap
from rtl.core.scnn_cells import number_bits
from rtl.core.scnn_memories import BoundedActivations
from rtl.hierarchy import place
from rtl.memories.faulty.fault_layer import FaultLayer, Layout
from rtl.memories.faulty.measured_layer import MeasuredLayer


class FaultyActivations(BoundedActivations):
    """`BoundedActivations`, of which values and indices are read with the faults of their cells;
    the flag is read as it was written.

    Latency and throughput: those of `ActivationMemories`.  Never stalls.

    Members
    -------
    exchanged, ifmap, ofmap: as there; number: of the PE, above a vector's address; settings: of
    both memories' cells (`Layout`), but for a measured map, which is built in.
    """

    number: Signal
    settings: Signal

    def __init__(self, *, design: Scnn, faults: FaultMap) -> None:
        self.faults = faults
        more = {"number": In(number_bits(design))}
        if not faults.measured:
            more["settings"] = In(Layout(faults=faults).settings().bits)
        super().__init__(design=design, kept_bits=faults.word_bits + 1, **more)

    def read(self, m: Module, name: str, half: Value, inner: Any) -> Value:
        own = getattr(self, name)
        row_bits = self.design.stream_use("iaram").row_bits
        bits = self.faults.word_bits
        kind = MeasuredLayer if self.faults.measured else FaultLayer
        layer = place(
            m, f"{name}_faults", kind, faults=self.faults, bits=bits,
            address_bits=row_bits + len(self.number), first_bit=0, latency=1,
        )  # fmt: skip
        m.d.comb += [
            layer.half.eq(half),
            layer.address.eq(Cat(own.read_address[:row_bits], self.number)),
            layer.i.eq(inner.read_data),
        ]
        if not self.faults.measured:
            m.d.comb += layer.settings.eq(self.settings)
        return Cat(layer.o, inner.read_data[bits:])


__all__ = ["FaultyActivations"]
