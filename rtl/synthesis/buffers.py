"""Fan-out that a gate can drive: trees of buffers on the nets of a hierarchical netlist.

Yosys maps logic and leaves a net that feeds a thousand pins to one small gate, whose delay would
then hide every other path. Layout tools put buffers there; so does this, once for each module:
a net drives at most `FANOUT` pins, those inside an instance counted, and what is above that goes
through a tree of the library's smallest buffer. Clocks are left alone (a clock tree is not
modelled).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rtl.synthesis.cell_models import names_in
from rtl.synthesis.cells import Buffer
from rtl.synthesis.liberty import CellLibrary

__all__ = ["BUFFER_PREFIX", "FANOUT", "add_buffers"]

FANOUT = 16
"""Pins which a gate drives at most."""

BUFFER_PREFIX = "fanout_buffer_"
"""How the instances of the buffers are named."""

CLOCK = "clk"
"""The clock's port, in every module."""


@dataclass(frozen=True)
class _Sink:
    """A bit of a pin, and how many pins of cells are behind it."""

    bits: list[Any]
    place: int
    pins: int


def add_buffers(modules: dict[str, Any], library: CellLibrary, buffer: Buffer, top: str) -> None:
    """Add them to the modules of a netlist in yosys' JSON, in place, from the leaves to `top`."""
    known: dict[str, Mapping[str, list[int]]] = {}

    def visit(name: str) -> None:
        if name in known:
            return
        module = modules[name]
        for cell in module["cells"].values():
            if cell["type"] in modules:
                visit(cell["type"])
        known[name] = _Fanout(module, library, buffer, known).limited()

    visit(top)


class _Fanout:
    """The nets of one module. known: for the modules below, the pins behind each input bit."""

    def __init__(
        self,
        module: dict[str, Any],
        library: CellLibrary,
        buffer: Buffer,
        known: Mapping[str, Mapping[str, list[int]]],
    ) -> None:
        self.module = module
        self.library = library
        self.buffer = buffer
        self.sinks: dict[int, list[_Sink]] = {}
        self.fixed: dict[int, int] = {}
        """Output ports on a net: they stay where they are."""
        ports = module["ports"]
        self.free = 1 + max(
            (bit for net in self._all_bits() for bit in net if isinstance(bit, int)), default=0
        )
        self.number = 0
        for cell in module["cells"].values():
            for pin, bits in cell["connections"].items():
                for place, pins in enumerate(self._pins(cell["type"], pin, len(bits), known)):
                    if pins and isinstance(bits[place], int):
                        self.sinks.setdefault(bits[place], []).append(_Sink(bits, place, pins))
        for port in ports.values():
            if port["direction"] == "output":
                for bit in port["bits"]:
                    self.fixed[bit] = self.fixed.get(bit, 0) + 1

    def _all_bits(self) -> list[list[Any]]:
        nets = [net["bits"] for net in self.module["netnames"].values()]
        nets += [port["bits"] for port in self.module["ports"].values()]
        for cell in self.module["cells"].values():
            nets += cell["connections"].values()
        return nets

    def _pins(
        self, kind: str, pin: str, width: int, known: Mapping[str, Mapping[str, list[int]]]
    ) -> list[int]:
        """Pins of cells behind each bit of an instance's pin; none of a clock or an output."""
        if kind in self.library.cells:
            cell = self.library.cells[kind]
            clock = cell.storage is not None and pin in names_in(cell.storage.clock)
            return [int(cell.pins[pin].direction == "input" and not clock)] * width
        if kind in known:
            return known[kind].get(pin, [0] * width)
        return [int(pin not in (CLOCK, "read_data"))] * width  # a memory

    def limited(self) -> dict[str, list[int]]:
        """Add the buffers; returns the pins behind each bit of every input port."""
        for net, sinks in list(self.sinks.items()):
            self.sinks[net] = self._tree(net, sinks)
        return {
            name: [
                sum(sink.pins for sink in self.sinks.get(bit, ())) + self.fixed.get(bit, 0)
                for bit in port["bits"]
            ]
            for name, port in self.module["ports"].items()
            if port["direction"] == "input" and name != CLOCK
        }

    def _tree(self, net: int, sinks: list[_Sink]) -> list[_Sink]:
        """Group sinks behind buffers until the net itself drives few enough; returns the roots."""
        while sum(sink.pins for sink in sinks) + self.fixed.get(net, 0) > FANOUT:
            groups: list[list[_Sink]] = [[]]
            for sink in sinks:
                if groups[-1] and sum(one.pins for one in groups[-1]) + sink.pins > FANOUT:
                    groups.append([])
                groups[-1].append(sink)
            if len(groups) == len(sinks) and all(sink.pins == 1 for sink in sinks):
                break
            sinks = [self._behind_buffer(net, group) for group in groups]
        return sinks

    def _behind_buffer(self, net: int, group: list[_Sink]) -> _Sink:
        """Drive the group from a new buffer on the net; returns the buffer's input."""
        for sink in group:
            sink.bits[sink.place] = self.free
        i = [net]
        self.module["cells"][f"{BUFFER_PREFIX}{self.number}"] = {
            "type": self.buffer.cell,
            "parameters": {},
            "attributes": {},
            "connections": {self.buffer.i: i, self.buffer.o: [self.free]},
        }
        self.free += 1
        self.number += 1
        return _Sink(i, 0, 1)
