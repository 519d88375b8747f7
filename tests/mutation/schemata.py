"""Many faulty variants of a module in one: which of them it is, an input says while it runs.

What variants have in common is there once: a register of one name, a module within and a memory are
shared, and of operators those with the same operands.  Only where a variant differs, at what a
register takes next or what goes into or out of a module, the input chooses.  So a fault costs a few
operators, and some hundred faulty designs are one simulator: mutant schemata (Untch, Offutt and
Harrold, "Mutation Analysis Using Mutant Schemata", ISSTA 1993), of netlists.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Any

from tests.mutation.netlist import Bit, Bits, Cell, Netlist

CHOICE = "chosen_variant"
CHOICE_BITS = 12
SOUND = 0
"""The variant without a fault."""

Key = tuple[Any, ...]


class CannotMergeError(Exception):
    """A variant that has to be made by itself."""


@dataclass
class _Sink:
    """What a shared register, module or port takes, by variant."""

    by_variant: dict[int, Bits] = field(default_factory=dict[int, Bits])


@dataclass
class _Shared:
    """A cell that keeps state: as it is first met, its outputs here, and what goes in."""

    cell: Cell
    outputs: dict[str, Bits]
    inputs: dict[str, _Sink]
    init: str


class Merged:
    """One module, with a number of variants.

    outputs: of every type of module, the names of its outputs.  choosing: the types of modules in
    it that have variants themselves.
    """

    def __init__(self, outputs: Mapping[str, frozenset[str]], choosing: frozenset[str]) -> None:
        self.outputs, self.choosing = outputs, choosing
        self.bits = 2  # the least that yosys takes
        self.operators: dict[Key, dict[str, Bits]] = {}
        self.shared: dict[Key, _Shared] = {}
        self.ports_in: dict[str, Bits] = {}
        self.ports_out: dict[str, _Sink] = {}
        self.widths: dict[str, int] = {}
        self.cells: list[dict[str, Any]] = []
        self.wires: dict[str, dict[str, Any]] = {}
        self.choice = self._fresh(CHOICE_BITS)

    def _fresh(self, width: int) -> Bits:
        self.bits += width
        return tuple(range(self.bits - width, self.bits))

    def add(self, variant: int, netlist: Netlist) -> None:
        """One more variant; the sound one first.

        Raises `CannotMergeError` for a loop of operators, and for ports of other widths.
        """
        here: dict[Bit, Bit] = {}
        for name, port in netlist.ports.items():
            width = self.widths.setdefault(name, len(port.bits))
            if width != len(port.bits):
                raise CannotMergeError(f"port {name} has {width} bits, and {len(port.bits)}")
            if port.direction == "input":
                bits = self.ports_in.get(name) or self._fresh(width)
                self.ports_in[name] = bits
                here |= dict(zip(port.bits, bits, strict=True))
        names = _names_of(netlist)
        keeping = [(cell, self._kept(cell, names, here)) for cell in netlist.cells
                   if cell.keeps_state]  # fmt: skip
        for cell in _in_order([cell for cell in netlist.cells if not cell.keeps_state]):
            self._operator(cell, here)
        for cell, shared in keeping:
            for port, bits in cell.connections.items():
                if port not in shared.outputs:
                    sink = shared.inputs.setdefault(port, _Sink())
                    sink.by_variant[variant] = _mapped(bits, here)
        for name, port in netlist.ports.items():
            if port.direction == "output":
                sink = self.ports_out.setdefault(name, _Sink())
                sink.by_variant[variant] = _mapped(port.bits, here)

    def _kept(self, cell: Cell, names: Mapping[Bit, tuple[str, int, str]],
              here: dict[Bit, Bit]) -> _Shared:  # fmt: skip
        """The shared cell that stands for one of a variant, made if it is the first."""
        init = ""
        if cell.type == "$dff":
            q = cell.connections["Q"]
            name, at, _ = names.get(q[0], (cell.name, 0, ""))
            init = "".join(names[bit][2] if bit in names else "x" for bit in q)
            key: Key = "$dff", name, at, len(q), init, cell.parameters
        else:
            widths = tuple(sorted((port, len(bits)) for port, bits in cell.connections.items()
                                  if self._is_output(cell, port)))  # fmt: skip
            key = cell.type, cell.name, cell.parameters, widths
        if key not in self.shared:
            outputs = {port: self._fresh(len(bits)) for port, bits in cell.connections.items()
                       if self._is_output(cell, port)}  # fmt: skip
            self.shared[key] = _Shared(cell=cell, outputs=outputs, inputs={}, init=init)
        shared = self.shared[key]
        for port, bits in shared.outputs.items():
            here |= dict(zip(cell.connections[port], bits, strict=True))
        return shared

    def _is_output(self, cell: Cell, port: str) -> bool:
        if cell.type == "$dff":
            return port == "Q"
        if cell.type == "$mem_v2":
            return port == "RD_DATA"
        return port in self.outputs[cell.type]

    def _operator(self, cell: Cell, here: dict[Bit, Bit]) -> None:
        ins = {port: _mapped(bits, here) for port, bits in cell.connections.items() if port != "Y"}
        key: Key = cell.type, cell.parameters, tuple(sorted(ins.items()))
        if key not in self.operators:
            out = self._fresh(len(cell.connections["Y"]))
            self.operators[key] = {"Y": out}
            self._cell(cell.type, dict(cell.parameters), ins | {"Y": out}, out=("Y",))
        here |= dict(zip(cell.connections["Y"], self.operators[key]["Y"], strict=True))

    def _cell(self, kind: str, parameters: Mapping[str, Any], connections: Mapping[str, Bits],
              out: Iterable[str], name: str = "") -> None:  # fmt: skip
        directions = {port: "output" if port in out else "input" for port in connections}
        for port in out:
            self.wires[f"$word${len(self.wires)}"] = {
                "hide_name": 1, "bits": connections[port], "attributes": {}
            }  # fmt: skip
        self.cells.append(
            {"name": name or f"$merged${len(self.cells)}", "type": kind, "attributes": {},
             "parameters": parameters, "port_directions": directions,
             "connections": {port: list(bits) for port, bits in connections.items()}}
        )  # fmt: skip

    def _is_chosen(self, variants: Sequence[int]) -> Bit:
        """A bit: one of these variants is chosen."""
        single = [self._operation("$eq", A=self.choice, B=_constant(one)) for one in variants]
        if len(single) == 1:
            return single[0]
        return self._operation("$reduce_or", A=tuple(single))

    def _operation(self, kind: str, **ins: Bits) -> Bit:
        key: Key = kind, (), tuple(sorted(ins.items()))
        if key not in self.operators:
            widths = {f"{port}_WIDTH": len(bits) for port, bits in ins.items()}
            signs = {f"{port}_SIGNED": 0 for port in ins}
            self.operators[key] = {"Y": self._fresh(1)}
            self._cell(kind, widths | signs | {"Y_WIDTH": 1}, ins | self.operators[key], out=("Y",))
        return self.operators[key]["Y"][0]

    def _settled(self, sink: _Sink) -> Bits:
        """What goes in or out, of the chosen variant; of one that has no say, as of the first."""
        usual = sink.by_variant.get(SOUND) or next(iter(sink.by_variant.values()))
        others: dict[Bits, list[int]] = {}
        for variant, bits in sink.by_variant.items():
            fitted = (*bits, *("0" * (len(usual) - len(bits))))[: len(usual)]  # as Verilog does
            if fitted != usual:
                others.setdefault(fitted, []).append(variant)
        if not others:
            return usual
        chosen = tuple(self._is_chosen(variants) for variants in others.values())
        found = self._fresh(len(usual))
        parameters = {"WIDTH": len(usual), "S_WIDTH": len(others)}
        arms = tuple(bit for bits in others for bit in bits)
        ports = {"A": usual, "B": arms, "S": chosen, "Y": found}
        kind = "$pmux"
        if len(others) == 1:
            kind, parameters = "$mux", {"WIDTH": len(usual)}
        self._cell(kind, parameters, ports, out=("Y",))
        return found

    def module(self) -> dict[str, Any]:
        """As yosys' JSON has it."""
        taken: dict[str, int] = {}
        for shared in self.shared.values():
            cell = shared.cell
            again = taken[cell.name] = taken.get(cell.name, -1) + 1
            name = f"{cell.name}${again}" if again else cell.name
            parameters = dict(cell.parameters)
            if cell.type == "$mem_v2":
                parameters["MEMID"] = f"{parameters['MEMID']}${again}"
            ins = {port: self._settled(sink) for port, sink in shared.inputs.items()}
            if cell.type in self.choosing:
                ins[CHOICE] = self.choice
            self._cell(cell.type, parameters, ins | shared.outputs, shared.outputs, name)
            if set(shared.init) - {"x"}:
                word = f"$word${len(self.wires) - 1}"
                self.wires[word]["attributes"] = {"init": shared.init[::-1]}
        ports: dict[str, Any] = {CHOICE: {"direction": "input", "bits": self.choice}}
        ports |= {name: {"direction": "input", "bits": bits}
                  for name, bits in self.ports_in.items()}  # fmt: skip
        ports |= {name: {"direction": "output", "bits": self._settled(sink)}
                  for name, sink in self.ports_out.items()}  # fmt: skip
        cells = {cell.pop("name"): cell for cell in self.cells}
        return {"attributes": {}, "ports": ports, "cells": cells, "netnames": self.wires}


def _constant(number: int) -> Bits:
    return tuple(str(number >> bit & 1) for bit in range(CHOICE_BITS))


def _mapped(bits: Bits, here: Mapping[Bit, Bit]) -> Bits:
    return tuple(bit if isinstance(bit, str) else here.get(bit, "x") for bit in bits)


def _names_of(netlist: Netlist) -> dict[Bit, tuple[str, int, str]]:
    """By bit, a wire that it is in, where in it, and its value at power-up."""
    found: dict[Bit, tuple[str, int, str]] = {}
    for name, (bits, init) in sorted(netlist.wires.items(), key=lambda one: not one[1][1]):
        values = init[::-1].ljust(len(bits), "x")
        for at, bit in enumerate(bits):
            found.setdefault(bit, (name, at, values[at]))
    return found


def _in_order(cells: Sequence[Cell]) -> list[Cell]:
    """Operators, each behind those that it takes values of."""
    makers = {bit: number for number, cell in enumerate(cells) for bit in cell.connections["Y"]}
    order: TopologicalSorter[int] = TopologicalSorter()
    for number, cell in enumerate(cells):
        taken = (bit for port, bits in cell.connections.items() if port != "Y" for bit in bits)
        order.add(number, *{makers[bit] for bit in taken if bit in makers})
    try:
        return [cells[number] for number in order.static_order()]
    except CycleError as error:
        raise CannotMergeError("a loop of operators") from error


__all__ = ["CHOICE", "CHOICE_BITS", "SOUND", "CannotMergeError", "Merged"]
