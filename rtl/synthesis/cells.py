"""What synthesis needs of a cell library, found by what its cells compute, not by their names."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache

import numpy as np

from energy_models.errors import EnergyError
from rtl.synthesis.cell_models import bitwise, names_in
from rtl.synthesis.liberty import Cell, CellLibrary, Pin

__all__ = ["Buffer", "Roles", "roles_of"]


@dataclass(frozen=True, kw_only=True)
class Buffer:
    """The cell that fan-out is split with, and its pins."""

    cell: str
    i: str
    o: str


@dataclass(frozen=True, kw_only=True)
class Roles:
    """Cells of a library which synthesis needs, or measures by.

    gate_area_um2: of the smallest NAND of two inputs, the unit of "gate equivalents".
    buffer: the smallest one; None where the library has none, and fan-out stays as it is.
    """

    gate_area_um2: float
    buffer: Buffer | None


def roles_of(library: CellLibrary) -> Roles:
    """Find them. Raises `EnergyError` for a library that no design can be mapped to.

    Needed: a flip-flop without set or reset, an inverter, and a NAND of two inputs.
    """
    usable = [cell for cell in library.cells.values() if not cell.dont_use and cell.area > 0]
    plain = [cell for cell in usable if _is_plain_register(cell)]
    gates = [cell for cell in usable if cell.storage is None and len(cell.outputs) == 1]
    nands = [cell for cell in gates if _computes(cell, 2, lambda a, b: ~(a & b))]
    inverters = [cell for cell in gates if _computes(cell, 1, lambda a: ~a)]
    buffers = [cell for cell in gates if _computes(cell, 1, lambda a: a)]
    for found, what in (
        (plain, "flip-flop without set or reset"),
        (inverters, "inverter"),
        (nands, "NAND of two inputs"),
    ):
        if not found:
            raise EnergyError(
                f"{library.path} cannot be mapped to: its library {library.name} has no {what}"
            )
    return Roles(gate_area_um2=_smallest(nands).area, buffer=_buffer(buffers))


def _smallest(cells: Iterable[Cell]) -> Cell:
    return min(cells, key=lambda cell: (cell.area, cell.name))


def _buffer(cells: list[Cell]) -> Buffer | None:
    if not cells:
        return None
    cell = _smallest(cells)
    return Buffer(cell=cell.name, i=cell.inputs[0].name, o=cell.outputs[0].name)


def _is_plain_register(cell: Cell) -> bool:
    """It stores its data pin on a clock edge, and does nothing else."""
    storage = cell.storage
    return (
        storage is not None
        and cell.is_register
        and storage.clear is None
        and storage.preset is None
        and len(cell.inputs) == 2
    )


def _computes(cell: Cell, inputs: int, function: Callable[..., np.ndarray]) -> bool:
    """The cell's output is that function of all its inputs, none of which differs from another."""
    output = cell.outputs[0]
    if len(cell.inputs) != inputs or output.three_state is not None:
        return False
    values = [np.arange(1 << inputs) >> number & 1 for number in range(inputs)]
    answer = _answer(output, tuple(pin.name for pin in cell.inputs))
    return answer is not None and bool(np.all(answer == function(*values) & 1))


@cache
def _answer(output: Pin, inputs: tuple[str, ...]) -> np.ndarray | None:
    """The output for every combination of inputs, the first one alternating; None if unknown."""
    names = names_in(output.function or "")
    if not set(names) <= set(inputs) or not names:
        return None
    numbers = np.arange(1 << len(inputs))
    try:
        function = bitwise(output.function or "")
    except EnergyError:
        return None
    return function(*(numbers >> inputs.index(name) & 1 for name in names)) & 1
