"""A module of mapped cells: area, leakage, and what a toggle of each of its nets costs.

Energy of a toggle of a net: ½·C·V² with C the input pins on it (no wires), what the cells behind
these pins spend inside at it, and what the driving cell spends inside. A pin is counted in the
module where it is; so is its driver, at the load that it has in that module.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from energy_models.errors import require
from rtl.synthesis.cell_models import names_in
from rtl.synthesis.liberty import Cell, CellLibrary

__all__ = ["Energy", "Gates", "Net", "PlacedCell"]

Net = int | str
"""A bit of a Yosys netlist: its number, or the constant "0", "1" or "x"."""


@dataclass(frozen=True, kw_only=True)
class Energy:
    """Dynamic energy in pJ: charging the loads, inside the cells, and at the clock pins."""

    switching_pj: float = 0.0
    internal_pj: float = 0.0
    clock_pj: float = 0.0

    @property
    def total_pj(self) -> float:
        return self.switching_pj + self.internal_pj + self.clock_pj

    def __add__(self, other: Energy) -> Energy:
        return Energy(
            switching_pj=self.switching_pj + other.switching_pj,
            internal_pj=self.internal_pj + other.internal_pj,
            clock_pj=self.clock_pj + other.clock_pj,
        )

    def times(self, factor: float) -> Energy:
        """Every part multiplied."""
        return Energy(
            switching_pj=self.switching_pj * factor,
            internal_pj=self.internal_pj * factor,
            clock_pj=self.clock_pj * factor,
        )


@dataclass(frozen=True, kw_only=True)
class PlacedCell:
    """A cell of the library in a module, and the net at each of its connected pins."""

    cell: Cell
    nets: Mapping[str, Net]

    def driven(self) -> Iterable[tuple[str, Net]]:
        """Its output pins and their nets."""
        return ((pin.name, self.nets[pin.name]) for pin in self.cell.outputs if pin.name in self)

    def __contains__(self, pin: str) -> bool:
        return pin in self.nets


@dataclass(frozen=True)
class Gates:
    """The cells of one module, and its ports: nets of each, least significant bit first."""

    cells: tuple[PlacedCell, ...]
    ports: Mapping[str, tuple[Net, ...]]
    directions: Mapping[str, str]
    voltage_v: float

    @classmethod
    def of(cls, module: Mapping[str, Any], library: CellLibrary) -> Gates:
        """The library's cells in a module of Yosys' JSON; instances of other modules are left out.

        Raises `EnergyError` for a cell that is of Yosys itself: the netlist is not mapped.
        """
        placed: list[PlacedCell] = []
        for name, instance in module["cells"].items():
            kind = instance["type"]
            require(
                not kind.startswith("$_") and kind != "$mem_v2",
                f"cell {name} is a {kind}, which {library.name} has no cell for",
            )
            if kind in library.cells:
                nets = {pin: bits[0] for pin, bits in instance["connections"].items() if bits}
                placed.append(PlacedCell(cell=library.cells[kind], nets=nets))
        return cls(
            tuple(placed),
            {name: tuple(port["bits"]) for name, port in module["ports"].items()},
            {name: port["direction"] for name, port in module["ports"].items()},
            library.voltage_v,
        )

    @property
    def area_um2(self) -> float:
        return sum(placed.cell.area for placed in self.cells)

    @property
    def leakage_mw(self) -> float:
        return sum(placed.cell.leakage_mw or 0.0 for placed in self.cells)

    @property
    def registers(self) -> int:
        """How many flip-flops there are."""
        return sum(placed.cell.is_register for placed in self.cells)

    @cached_property
    def loads_pf(self) -> Mapping[Net, float]:
        """The input pins on every net."""
        loads: dict[Net, float] = {}
        for placed in self.cells:
            for pin in placed.cell.inputs:
                if pin.name in placed:
                    net = placed.nets[pin.name]
                    loads[net] = loads.get(net, 0.0) + pin.capacitance_pf
        return loads

    @cached_property
    def toggle_energies(self) -> Mapping[Net, Energy]:
        """What one toggle of every net costs."""
        found: dict[Net, Energy] = {}
        half_square = self.voltage_v**2 / 2
        for placed in self.cells:
            storage = placed.cell.storage
            clocks = names_in(storage.clock) if storage is not None else ()
            for pin in placed.cell.pins.values():
                net = placed.nets.get(pin.name)
                if net is None or isinstance(net, str):
                    continue
                load = self.loads_pf.get(net, 0.0) if pin.direction == "output" else 0.0
                inside = pin.energy.mean_pj(load) if pin.energy is not None else 0.0
                charge = pin.capacitance_pf * half_square
                cost = (
                    Energy(clock_pj=inside + charge)
                    if pin.name in clocks
                    else Energy(switching_pj=charge, internal_pj=inside)
                )
                found[net] = found.get(net, Energy()) + cost
        return found

    @cached_property
    def costs(self) -> tuple[tuple[Net, ...], npt.NDArray[np.float64]]:
        """The nets of `toggle_energies`, and [nets, 3]: switching, internal and clock in pJ."""
        found = self.toggle_energies
        parts = [(one.switching_pj, one.internal_pj, one.clock_pj) for one in found.values()]
        return tuple(found), np.array(parts, np.float64).reshape(-1, 3)

    def energy(self, toggles: npt.NDArray[np.float64]) -> Energy:
        """The energy of so many toggles of each net of `costs`: [nets]."""
        switching, internal, clock = (float(part) for part in toggles @ self.costs[1])
        return Energy(switching_pj=switching, internal_pj=internal, clock_pj=clock)
