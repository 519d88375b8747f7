"""A mapped hierarchy laid flat for simulation: every function a table, every net a number.

Net 0 is the constant 0 (undefined bits too), net 1 the constant 1. Functions stand in an order in
which each reads only what is settled before it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from energy_models.errors import EnergyError, require
from rtl.synthesis.cell_models import bitwise, names_in
from rtl.synthesis.gates import Energy, Gates, Net, PlacedCell
from rtl.synthesis.liberty import CellLibrary

__all__ = ["FlatNetlist", "Instance", "Memory", "Tables", "flatten"]

MOST_INPUTS = 6
"""Of a function: its table is a word of 64 bits."""

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Instance:
    """A module in its place: dots between levels, "" for the top. nets: local → number."""

    path: str
    module: str
    gates: Gates
    nets: Mapping[Net, int]

    @cached_property
    def costed(self) -> Numbers:
        """The numbers of the nets of `gates.costs`, in their order."""
        return np.array([self.nets[net] for net in self.gates.costs[0]], np.int64)

    def energy(self, toggles: npt.NDArray[np.int64]) -> Energy:
        """The energy of its own cells, given the toggles of all nets."""
        return self.gates.energy(toggles[self.costed].astype(np.float64))


@dataclass(frozen=True, kw_only=True)
class Memory:
    """A behavioural memory, the module `sram` or `held_sram`.

    Nets of each port, least significant bit first.
    """

    depth: int
    transparent: bool
    ports: Mapping[str, tuple[int, ...]]


@dataclass(frozen=True, kw_only=True)
class Tables:
    """Functions [n]: net of the output, table, and inputs `sources[first[i]:first[i + 1]]`.

    Bit j of a table is the output where the inputs, the first one least significant, read j.
    """

    outputs: Numbers
    tables: npt.NDArray[np.uint64]
    first: Numbers
    sources: Numbers


@dataclass(frozen=True, kw_only=True)
class FlatNetlist:
    """A netlist ready to be simulated. logic: in order. registers: of their next states."""

    nets: int
    ports: Mapping[str, tuple[int, ...]]
    instances: tuple[Instance, ...]
    logic: Tables
    registers: Tables
    memories: tuple[Memory, ...]


@dataclass(frozen=True)
class _Function:
    output: int
    table: int
    sources: tuple[int, ...]


@dataclass
class _Flattening:
    """What is gathered on the way down the hierarchy."""

    modules: Mapping[str, Any]
    library: CellLibrary
    clock: int = 0
    nets: int = 2
    instances: list[Instance] = field(default_factory=list[Instance])
    logic: list[_Function] = field(default_factory=list[_Function])
    registers: list[_Function] = field(default_factory=list[_Function])
    memories: list[Memory] = field(default_factory=list[Memory])
    gates: dict[str, Gates] = field(default_factory=dict[str, Gates])

    def visit(self, module: str, path: str, nets: dict[Net, int]) -> None:
        """Take in a module whose ports are already numbered in `nets`."""
        record = self.modules[module]
        if module not in self.gates:
            self.gates[module] = Gates.of(record, self.library)
        gates = self.gates[module]
        for placed in gates.cells:
            self._cell(placed, {pin: self._net(bit, nets) for pin, bit in placed.nets.items()})
        for name, cell in record["cells"].items():
            if cell["type"] in self.library.cells:
                continue
            bound = {
                port: tuple(self._net(bit, nets) for bit in bits)
                for port, bits in cell["connections"].items()
            }
            inner = f"{path}.{name}" if path else name
            self._instance(cell, inner, bound)
        self.instances.append(Instance(path=path, module=module, gates=gates, nets=nets))

    def _instance(self, cell: Any, path: str, bound: dict[str, tuple[int, ...]]) -> None:
        kind = cell["type"]
        if kind in ("sram", "held_sram"):
            parameters = {name: int(value, 2) for name, value in cell["parameters"].items()}
            transparent = bool(parameters.get("TRANSPARENT", 0))
            self.memories.append(
                Memory(depth=parameters["DEPTH"], transparent=transparent, ports=bound)
            )
            return
        require(kind in self.modules, f"{path}: the netlist has no module {kind}")
        inner: dict[Net, int] = {}
        ports = self.modules[kind]["ports"]
        for name in sorted(bound, key=lambda name: ports[name]["direction"] != "input"):
            for bit, net in zip(ports[name]["bits"], bound[name], strict=True):
                if isinstance(bit, int) and bit not in inner:
                    inner[bit] = net
                elif ports[name]["direction"] == "output":
                    # A constant, an input, or another output's bit: the outer net is a copy.
                    self.logic.append(_Function(net, 0b10, (self._net(bit, inner),)))
        self.visit(kind, path, inner)

    def _net(self, bit: Net, nets: dict[Net, int]) -> int:
        if isinstance(bit, str):
            return int(bit == "1")
        if bit not in nets:
            nets[bit] = self.fresh()
        return nets[bit]

    def fresh(self) -> int:
        """A new net."""
        self.nets += 1
        return self.nets - 1

    def _cell(self, placed: PlacedCell, nets: Mapping[str, int]) -> None:
        cell, storage = placed.cell, placed.cell.storage
        sources = dict(nets)
        if storage is not None:
            self._check_clock(placed, nets)
            state = self.fresh()
            sources[storage.variables[0]] = state
            self.registers.append(_function(storage.data, state, sources))
        for pin in cell.outputs:
            if pin.name not in nets:
                continue
            text = pin.function
            require(
                text is not None and pin.three_state is None,
                f"cell {cell.name} has no plain function at {pin.name}: it cannot be simulated",
            )
            assert text is not None
            if storage is not None and storage.variables[1] in names_in(text):
                require(text == storage.variables[1], f"cell {cell.name} mixes its states")
                text = f"!{storage.variables[0]}"
            self.logic.append(_function(text, nets[pin.name], sources))

    def _check_clock(self, placed: PlacedCell, nets: Mapping[str, int]) -> None:
        """Registers must sample at the rising edge of the one clock, and be forced by nothing."""
        cell, storage = placed.cell, placed.cell.storage
        assert storage is not None
        require(cell.is_register, f"{cell.name} is a latch: it cannot be simulated here")
        require(
            nets.get(storage.clock) == self.clock,
            f"{cell.name} is not clocked by the rising edge of clk: it cannot be simulated here",
        )
        for when in (storage.clear, storage.preset):
            if when is not None:
                held = _function(when, 0, nets)
                index = sum(net << place for place, net in enumerate(held.sources))
                constant = all(net in (0, 1) for net in held.sources)
                require(
                    constant and not held.table >> index & 1,
                    f"{cell.name} is forced by a signal: it cannot be simulated here",
                )


def flatten(modules: Mapping[str, Any], library: CellLibrary, top: str = "top") -> FlatNetlist:
    """Lay a netlist in Yosys' JSON (its "modules") flat.

    Raises `EnergyError` for cells of Yosys' own, latches, three-state outputs, registers that are
    clocked by anything but `clk` or forced asynchronously, and combinational loops.
    """
    work = _Flattening(modules, library)
    nets: dict[Net, int] = {}
    ports: dict[str, tuple[int, ...]] = {}
    for name, port in modules[top]["ports"].items():
        for bit in port["bits"]:
            if isinstance(bit, int) and bit not in nets:
                nets[bit] = work.fresh()
        ports[name] = tuple(nets[b] if isinstance(b, int) else int(b == "1") for b in port["bits"])
    work.clock = ports["clk"][0] if "clk" in ports else -1
    work.visit(top, "", nets)
    return FlatNetlist(
        nets=work.nets,
        ports=ports,
        instances=tuple(work.instances),
        logic=_tables(_in_order(work.logic)),
        registers=_tables(work.registers),
        memories=tuple(work.memories),
    )


@cache
def _table(text: str) -> int:
    """The truth table of a Liberty expression over its `names_in`."""
    names = names_in(text)
    require(
        0 < len(names) <= MOST_INPUTS,
        f"Liberty function {text!r} has {len(names)} inputs; at most {MOST_INPUTS} are simulated",
    )
    numbers = np.arange(1 << len(names))
    answer = bitwise(text)(*(numbers >> place & 1 for place in range(len(names)))) & 1
    return int(sum(int(bit) << number for number, bit in enumerate(answer)))


def _function(text: str, output: int, nets: Mapping[str, int]) -> _Function:
    """An expression over named nets; a pin without a net reads 0."""
    return _Function(output, _table(text), tuple(nets.get(name, 0) for name in names_in(text)))


def _in_order(functions: list[_Function]) -> list[_Function]:
    """The functions, each behind those whose outputs it reads."""
    readers: dict[int, list[int]] = {}
    driven = {function.output for function in functions}
    waits = [0] * len(functions)
    for number, function in enumerate(functions):
        for net in function.sources:
            if net in driven:
                readers.setdefault(net, []).append(number)
                waits[number] += 1
    ready = [number for number, count in enumerate(waits) if count == 0]
    for number in ready:
        for reader in readers.get(functions[number].output, ()):
            waits[reader] -= 1
            if waits[reader] == 0:
                ready.append(reader)
    if len(ready) < len(functions):
        raise EnergyError("the netlist has a combinational loop: it cannot be simulated")
    return [functions[number] for number in ready]


def _tables(functions: list[_Function]) -> Tables:
    sizes = [0, *(len(function.sources) for function in functions)]
    return Tables(
        outputs=np.array([function.output for function in functions], np.int64),
        tables=np.array([function.table for function in functions], np.uint64),
        first=np.cumsum(sizes, dtype=np.int64),
        sources=np.array([net for function in functions for net in function.sources], np.int64),
    )
