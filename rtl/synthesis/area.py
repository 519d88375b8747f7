"""Area of a hierarchical netlist: of each module alone, by class, and summed over instances."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rtl.synthesis.buffers import BUFFER_PREFIX
from rtl.synthesis.liberty import CellLibrary
from rtl.synthesis.yosys import CLASSES, Mapped, class_module

__all__ = ["BUFFERS", "CONTROL", "Area", "Memory", "Module", "modules_of"]

CONTROL = "control and other"
"""The class of cells in none of `CLASSES`: state machines, comparisons, gating."""

BUFFERS = "fan-out buffers"
"""The class of the buffers which `add_buffers` adds."""

MEMORIES = ("sram", "held_sram")
"""The module of every memory."""


@dataclass(frozen=True, kw_only=True)
class Area:
    """Cells, how many of them are flip-flops, their area and their leakage.

    leakage_mw: None where the library states no leakage of a cell.
    """

    cells: int = 0
    flip_flops: int = 0
    area_um2: float = 0.0
    leakage_mw: float | None = 0.0

    def __add__(self, other: Area) -> Area:
        known = self.leakage_mw is not None and other.leakage_mw is not None
        return Area(
            cells=self.cells + other.cells,
            flip_flops=self.flip_flops + other.flip_flops,
            area_um2=self.area_um2 + other.area_um2,
            leakage_mw=(self.leakage_mw or 0.0) + (other.leakage_mw or 0.0) if known else None,
        )

    def times(self, count: int) -> Area:
        """That many of it."""
        return Area(
            cells=self.cells * count,
            flip_flops=self.flip_flops * count,
            area_um2=self.area_um2 * count,
            leakage_mw=None if self.leakage_mw is None else self.leakage_mw * count,
        )


@dataclass(frozen=True, kw_only=True)
class Memory:
    """A memory macro: `depth` words of `bits` bits. It has no area here."""

    bits: int
    depth: int


@dataclass(frozen=True, kw_only=True)
class Module:
    """A module of the hierarchy, each of whose instances is the same.

    own: its cells without those of instances below. instances: the module of each, by instance
    name. memories: by instance name. classes: its own cells by class, each class mapped apart,
    so that they add up to a little more than `own`.
    """

    name: str
    own: Area
    instances: Mapping[str, str] = field(default_factory=dict[str, str])
    memories: Mapping[str, Memory] = field(default_factory=dict[str, Memory])
    classes: Mapping[str, Area] = field(default_factory=dict[str, Area])

    def record(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "own": vars(self.own),
            "instances": dict(self.instances),
            "memories": {name: vars(memory) for name, memory in self.memories.items()},
            "classes": {name: vars(area) for name, area in self.classes.items()},
        }

    @classmethod
    def from_record(cls, name: str, record: Mapping[str, Any]) -> Module:
        """The inverse of `record`."""
        return cls(
            name=name,
            own=Area(**record["own"]),
            instances=record["instances"],
            memories={one: Memory(**memory) for one, memory in record["memories"].items()},
            classes={one: Area(**area) for one, area in record["classes"].items()},
        )


def modules_of(mapped: Mapped, library: CellLibrary, top: str) -> dict[str, Module]:
    """Every module under `top`, by name; `mapped.whole` has its buffers already."""
    whole, split = mapped.whole["modules"], mapped.split["modules"]
    found: dict[str, Module] = {}
    waiting = [top]
    while waiting:
        name = waiting.pop()
        if name not in found:
            cells = whole[name]["cells"]
            instances = {
                one: cell["type"]
                for one, cell in cells.items()
                if cell["type"] in whole and cell["type"] not in MEMORIES
            }
            classes = _classes(split, name, library)
            classes[BUFFERS] = _area(
                {one: cell for one, cell in cells.items() if one.startswith(BUFFER_PREFIX)}, library
            )
            found[name] = Module(
                name=name,
                own=_area(cells, library),
                instances=instances,
                memories={
                    one: _memory(cell) for one, cell in cells.items() if cell["type"] in MEMORIES
                },
                classes={one: area for one, area in classes.items() if area.cells},
            )
            waiting += instances.values()
    return found


def _area(cells: Mapping[str, Any], library: CellLibrary) -> Area:
    """The library's cells among `cells`, added up."""
    total = Area()
    for instance in cells.values():
        cell = library.cells.get(instance["type"])
        if cell is not None:
            total += Area(
                cells=1,
                flip_flops=int(cell.is_register),
                area_um2=cell.area,
                leakage_mw=cell.leakage_mw,
            )
    return total


def _classes(split: Mapping[str, Any], name: str, library: CellLibrary) -> dict[str, Area]:
    """A module's own cells by class."""
    found = {CONTROL: _area(split[name]["cells"], library)}
    for one in CLASSES:
        part = split.get(class_module(name, one))
        if part is not None:
            found[one] = _area(part["cells"], library)
    return found


def _memory(cell: Mapping[str, Any]) -> Memory:
    parameters = cell["parameters"]
    return Memory(bits=int(parameters["BITS"], 2), depth=int(parameters["DEPTH"], 2))
