"""Boveda's units and memories on FPGAs, and on the project's own standard cells.

    python benchmarks/compression_fpga.py               every row of compression_fpga.md, measured
    python benchmarks/compression_fpga.py units         only units, or memories, or cores
    python benchmarks/compression_fpga.py --seeds 3     three placements a row
    python benchmarks/compression_fpga.py --chips 85k   only on these; --chips with none: only cells

Each row is mapped, wrapped, placed and routed (`fpga.place`); the clock is the median of the
placements of seeds 1, 2, …, with the least and the most behind it.  What does not fit says so.
Whole cores are mapped, not placed, which takes many minutes each: they have no clock.
Cells are those of `rtl.synthesis`, memories left out; the critical path is OpenSTA's, without
wires.  Answers are kept: a second run takes only what is new.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amaranth.lib import wiring

from archsim.errors import InputError
from archsim.machines.systolic.design import Systolic
from archsim.memories.boveda.scratchpad import Boveda
from archsim.memory import Plain
from energy_models.component import Component
from energy_models.technology import load_technology
from fpga.cells import Cells
from fpga.devices import DEVICES, Target
from fpga.place import place, resources
from fpga.report import FpgaReport
from fpga.units import TOP, unit_verilog
from rtl.boveda import Compressor, Decompressor
from rtl.core.align import AlignedBanks
from rtl.core.memory import Words
from rtl.emit import emit
from rtl.memories.boveda.scratchpad import CompressedScratchpad
from rtl.memories.plain import PlainScratchpad
from rtl.synthesis.buffers import FANOUT, add_buffers
from rtl.synthesis.cache import code_digest, kept
from rtl.synthesis.cells import roles_of
from rtl.synthesis.liberty import DEFAULT_LIBRARY, CellLibrary, read_library
from rtl.synthesis.timing import critical_path
from rtl.synthesis.yosys import FLOW, map_to_cells, write_netlist
from rtl.toolchain import ToolchainError, opensta_version, yosys_version

BITS = 8
ROWS = {"ecp5": 1024, "ice40": 256}
"""Of a half: plain scratchpads of 16 lanes fit."""

TECHNOLOGY = "180nm"
UNIT_TARGETS = (Target(), Target(family="ice40"), Target(family="ice40", device="up5k"))
MEMORY_TARGETS = UNIT_TARGETS[:2]
CORE_TARGETS = (Target(),)
"""Of cores only the cells are counted."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """A line of the table: a name, and what is placed on each target."""

    name: str
    unit: Callable[[Target], wiring.Component | str]
    targets: Sequence[Target]


def units() -> Iterator[Row]:
    """Compressor and decompressor, signed."""
    for kind in (Compressor, Decompressor):
        for bits in (8, 16):
            for group in (4, 8, 16):
                form: dict[str, Any] = {"group": group, "container_bits": bits, "signed": True}
                name = f"{kind.__name__.lower()}, G = {group}, B = {bits}"
                yield Row(
                    name=name,
                    unit=lambda _, kind=kind, form=form: kind(**form),
                    targets=UNIT_TARGETS,
                )


def memories() -> Iterator[Row]:
    """Weight and ifmap scratchpads of as many rows, plain and compressed; G is the lanes."""
    for lanes in (8, 16):
        for place_of in ("weight", "ifmap"):
            for compressed in (False, True):
                kind = "compressed" if compressed else "plain"
                yield Row(
                    name=f"{place_of}, {lanes} lanes, {kind}",
                    unit=lambda target, lanes=lanes, where=place_of, compressed=compressed: memory(
                        target, lanes, where, compressed
                    ),
                    targets=MEMORY_TARGETS,
                )


def memory(target: Target, lanes: int, where: str, compressed: bool) -> wiring.Component:
    """One scratchpad; that of ifmaps with its rotation and mask."""
    word, rows = lanes * BITS, ROWS[target.family]
    capacity = 2 * rows * word // 8
    boveda = Boveda(capacity_bytes=capacity, group=lanes)
    if where == "ifmap":
        kind = boveda if compressed else Plain(capacity_bytes=capacity)
        words = Words(lanes=lanes, bits=BITS, signed=True, depth=kind.depth(word))
        return AlignedBanks(memory=kind, words=words)
    if compressed:
        shape = {"lanes": lanes, "bits": BITS, "signed": True, "straddles": False}
        return CompressedScratchpad(memory=boveda, **shape)
    return PlainScratchpad(bits=word, depth=rows)


def core(compressed: bool) -> Systolic:
    """8 × 8 with scratchpads of 16 KiB, those of ifmaps and weights plain or compressed."""
    size = 16 * 1024
    kind = Boveda(capacity_bytes=size, group=8) if compressed else Plain(capacity_bytes=size)
    return Systolic(
        rows=8,
        columns=8,
        ifmap_memory=kind,
        weight_memory=kind,
        accumulator_memory=Plain(capacity_bytes=size),
        bias_words=64,
    )


def cores() -> Iterator[Row]:
    """A whole small core."""
    for compressed in (False, True):
        yield Row(
            name=f"core 8 × 8, {'compressed' if compressed else 'plain'}",
            unit=lambda _, compressed=compressed: emit(core(compressed), top=TOP).verilog,
            targets=CORE_TARGETS,
        )


KINDS: Mapping[str, Callable[[], Iterator[Row]]] = {
    "units": units,
    "memories": memories,
    "cores": cores,
}


def placements(row: Row, target: Target, seeds: int) -> list[FpgaReport] | Cells | str:
    """Placements of all seeds, or why there is none; of a core its cells."""
    unit = row.unit(target)
    if row.targets is CORE_TARGETS:
        return resources(unit, target=target)
    found: list[FpgaReport] = []
    for seed in range(1, seeds + 1):
        aimed = Target(family=target.family, device=target.chip.name, seed=seed)
        try:
            found.append(place(unit, target=aimed, name=row.name))
        except (InputError, ToolchainError) as error:
            return str(error)
    return found


FPGA_HEAD = """\
| unit | chip | LUT4 | carry | flip-flops | LUT RAM | block RAM | DSP | MHz |
|---|---|---|---|---|---|---|---|---|"""


def fpga_line(row: Row, target: Target, found: Sequence[FpgaReport] | Cells | str) -> str:
    """A line under `FPGA_HEAD`."""
    chip = f"{target.chip.family} {target.chip.name}"
    if isinstance(found, str):
        return f"| {row.name} | {chip} | does not fit: {found.partition(': ')[2]} | | | | | | |"
    cells = found if isinstance(found, Cells) else found[0].cells
    placed = [] if isinstance(found, Cells) else found
    assert all(one.cells == cells for one in placed)
    clocks = [one.fmax_hz / 1e6 for one in placed]
    of_wrapper = "" if all(one.path.in_unit for one in placed) else " (wrapper)"
    spread = f" ({min(clocks):.0f} to {max(clocks):.0f})" if len(clocks) > 1 else ""
    figures = (cells.lut4, cells.carry, cells.flip_flops, cells.lut_rams, cells.block_rams)
    shown = " | ".join(f"{one:,}" for one in (*figures, cells.dsps))
    clock = f"{statistics.median(clocks):.0f}{spread}{of_wrapper}" if clocks else "–"
    return f"| {row.name} | {chip} | {shown} | {clock} |"


CELL_HEAD = """\
| unit | cells | flip-flops | area, mm² | critical path, ns | memory bits | memory macros, mm² |
|---|---|---|---|---|---|---|"""


def on_cells(unit: wiring.Component | str, library: CellLibrary) -> dict[str, Any]:
    """Cells, area and critical path of a unit on standard cells, and its memories; kept."""
    text = unit if isinstance(unit, str) else unit_verilog(unit)

    def write(folder: Path) -> None:
        with tempfile.TemporaryDirectory(prefix="archsim-cells-") as name:
            (folder / "cells.json").write_text(json.dumps(_map(text, library, Path(name))))

    tools = (yosys_version(), str(opensta_version()), FLOW, str(FANOUT))
    key = ("compression_fpga", text, library.digest, *tools, code_digest())
    return json.loads((kept(key, write) / "cells.json").read_text(encoding="utf-8"))


def _map(text: str, library: CellLibrary, folder: Path) -> dict[str, Any]:
    netlist = map_to_cells(text, library, folder, top=TOP, split=False).whole
    buffer = roles_of(library).buffer
    if buffer is not None:
        add_buffers(netlist["modules"], library, buffer, TOP)
    verilog = write_netlist(netlist, folder, top=TOP)
    path = None if opensta_version() is None else critical_path(verilog, folder, top=TOP)
    total: dict[str, Any] = {"cells": 0, "flip_flops": 0, "area_um2": 0.0, "memories": []}
    _add(netlist["modules"], TOP, library, total)
    return {**total, "path_ns": None if path is None else path.period_ns}


def _add(
    modules: Mapping[str, Any], name: str, library: CellLibrary, total: dict[str, Any]
) -> None:
    """Add all that lies below one instance of a module."""
    for cell in modules[name]["cells"].values():
        kind = cell["type"]
        if kind in ("sram", "held_sram"):
            sizes = (cell["parameters"][key] for key in ("BITS", "DEPTH"))
            total["memories"].append([int(size, 2) for size in sizes])
        elif kind in library.cells:
            total["cells"] += 1
            total["flip_flops"] += int(library.cells[kind].is_register)
            total["area_um2"] += library.cells[kind].area
        elif kind in modules:
            _add(modules, kind, library, total)


def cell_line(row: Row, found: Mapping[str, Any]) -> str:
    """A line under `CELL_HEAD`."""
    technology = load_technology(TECHNOLOGY)
    macros = 0.0
    for bits, depth in found["memories"]:
        sizes = {"word_bits": bits, "depth": depth, "read_ports": 1, "write_ports": 1}
        area = technology.area_um2(Component(name="memory", kind="sram", attributes=sizes))
        assert area is not None
        macros += area.value
    bits = sum(bits * depth for bits, depth in found["memories"])
    path = "–" if found["path_ns"] is None else f"{found['path_ns']:.2f}"
    return (
        f"| {row.name} | {found['cells']:,} | {found['flip_flops']:,} | "
        f"{found['area_um2'] / 1e6:.3f} | {path} | {bits:,} | {macros / 1e6:.3f} |"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Print both tables, a line as soon as it is measured."""
    parser = argparse.ArgumentParser(description="Boveda's units and memories on FPGAs.")
    parser.add_argument("only", nargs="*", help=f"of {', '.join(KINDS)}; all by default")
    parser.add_argument("--seeds", type=int, default=1, help="placements a row")
    parser.add_argument("--chips", nargs="*", choices=list(DEVICES), default=list(DEVICES))
    options = parser.parse_args(arguments)
    if unknown := set(options.only) - set(KINDS):
        parser.error(f"{', '.join(sorted(unknown))}: not one of {', '.join(KINDS)}")
    rows = [row for kind in options.only or KINDS for row in KINDS[kind]()]
    print(FPGA_HEAD)
    for row in rows:
        for target in row.targets:
            if target.chip.name not in options.chips:
                continue
            print(f"{row.name}, {target.chip.name} …", file=sys.stderr)
            print(fpga_line(row, target, placements(row, target, options.seeds)), flush=True)
    library = read_library(DEFAULT_LIBRARY)
    print(f"\n{CELL_HEAD}")
    for row in rows:
        print(f"{row.name}, cells …", file=sys.stderr)
        print(cell_line(row, on_cells(row.unit(row.targets[0]), library)), flush=True)


if __name__ == "__main__":
    main()
