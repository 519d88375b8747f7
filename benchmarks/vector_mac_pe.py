"""Area and energy of a PE of vector MACs with per-vector scales, from its generated RTL.

    python benchmarks/vector_mac_pe.py                    the table of vector_mac_pe.md, measured
    python benchmarks/vector_mac_pe.py 4/4/4/6 8/8/-/-    only these points
    python benchmarks/vector_mac_pe.py --write            also as data, into archsim/papers

The PE has LANES vector MACs of V = 16 products that share an activation vector, hold a weight
vector for 16 pixels and have 16 collectors each (`VectorArray`); a post-processing unit (PPU) that
turns a row of sums into values and their scale (`VectorRequantize`); and two buffers, whose rows
are vectors with their scales.  Array and PPU are mapped to standard cells and run, gate by gate and
without delays, on blocks of three layers of SqueezeNet (`archsim.papers.vsquant_operands`), every
output compared with the model.  Buffers are priced by `energy_models`.

Collectors have the bits of a term and 4 more: they hold 16 vectors, which for 8/8/-/- makes the 24
bits of the 5 nm chip.  They are flip-flops here.  Registers with an enable (held weights, a
collector's words, what a gated lane holds) are taken to have a gated clock: it costs in the cycles
in which they are written.  A point takes some ten seconds, all of them five minutes.
"""

from __future__ import annotations

import argparse
import datetime
import json
import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w

# The stubs leave rtlil out.
from amaranth.back import rtlil  # pyright: ignore[reportAttributeAccessIssue]
from amaranth.back.verilog import (
    _convert_rtlil_text as rtlil_to_verilog,  # pyright: ignore[reportAttributeAccessIssue]
)

from archsim.numbers import IntArray, pack_lanes, unpack_lanes
from archsim.papers.vsquant_hardware import (
    DATA,
    LANES,
    VECTOR,
    settings,
)
from archsim.papers.vsquant_operands import PIXELS, Block, blocks
from archsim.papers.vsquant_pe import Pe, Ports, array_ports, array_sums
from archsim.papers.vsquant_points import point
from energy_models.technology import load_technology
from rtl.core.vector_array import VectorArray
from rtl.core.vector_requantize import VectorRequantize
from rtl.hierarchy import sharing
from rtl.synthesis.buffers import FANOUT, add_buffers
from rtl.synthesis.cache import code_digest, kept
from rtl.synthesis.cells import roles_of
from rtl.synthesis.flat_netlist import FlatNetlist, flatten
from rtl.synthesis.gate_simulation import GateSimulation
from rtl.synthesis.liberty import DEFAULT_LIBRARY, CellLibrary, read_library
from rtl.synthesis.yosys import FLOW, map_to_cells
from rtl.toolchain import yosys_version
from workloads.quantize import requantize_parameters

TECHNOLOGY = "180nm"
COLLECTOR = "collector_words"
MULTIPLIER_BITS = 16
_MEMORY = re.compile(r"\bsram #\((.*?)\n  \) ", re.DOTALL)
_PARAMETER = re.compile(r"\.(\w+)\(32'd(\d+)\)")


def verilog(unit: Any) -> str:
    """A component with its modules; collectors as a module that is mapped, not a black box."""
    with sharing() as library:
        top = rtlil.convert(unit, name="top", emit_src=False)
    text = rtlil_to_verilog("\n".join([top, *library.texts.values()]))
    source = "".join(library.sources.values()).replace("module sram", f"module {COLLECTOR}")
    sizes = {tuple(_PARAMETER.findall(found)) for found in _MEMORY.findall(text)}
    assert len(sizes) <= 1, sizes
    for name, value in next(iter(sizes), ()):
        source = re.sub(rf"parameter {name} = \d+", f"parameter {name} = {value}", source)
    return _MEMORY.sub(f"{COLLECTOR} ", text) + source


def mapped(unit: Any, library: CellLibrary) -> FlatNetlist:
    """A component on cells, with buffers for its fan-out; kept between processes."""
    text = verilog(unit)

    def write(folder: Path) -> None:
        with tempfile.TemporaryDirectory(prefix="archsim-pe-") as work:
            modules = map_to_cells(text, library, Path(work), split=False).whole["modules"]
        buffer = roles_of(library).buffer
        if buffer is not None:
            add_buffers(modules, library, buffer, "top")
        (folder / "modules.json").write_text(json.dumps(modules), encoding="utf-8")

    key = (text, library.digest, yosys_version(), FLOW, str(FANOUT), code_digest())
    folder = kept(("vector_mac_pe", *key), write)
    return flatten(json.loads((folder / "modules.json").read_text(encoding="utf-8")), library)


def run(flat: FlatNetlist, ports: Ports, latency: int) -> tuple[GateSimulation, list[bytes]]:
    """Offer a word a cycle; count from when the pipeline is full to the last word.

    Returns what the only output port shows for each word.  The clock's toggles are added.
    """
    simulation = GateSimulation(flat)
    count = len(next(iter(ports.values()))[0])
    bits = {
        name: np.unpackbits(pack_lanes(lanes, widths), axis=1, bitorder="little")[:, : sum(widths)]
        for name, (lanes, widths) in ports.items()
    }
    out = "sums" if "sums" in flat.ports else "o"
    shown: list[bytes] = []
    for cycle in range(count + latency):
        for name, words in bits.items():
            simulation.drive_bits(name, words[cycle % count])
        simulation.settle()
        (simulation.count if latency <= cycle < count else simulation.skip)()
        if cycle >= latency:
            value = simulation.read(out)
            shown.append(value.to_bytes((len(flat.ports[out]) + 7) // 8, "little"))
        simulation.edge()
    simulation.toggles[flat.ports["clk"][0]] = 2 * simulation.cycles
    return simulation, shown


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Areas in µm² and energies of a step (LANES · V products) in pJ, by part of the PE."""

    area_um2: Mapping[str, float]
    energy_pj: Mapping[str, float]
    zero_steps: float
    steps: int


def measure(pe: Pe, library: CellLibrary) -> Measured:
    """A PE at a point.  Raises AssertionError for a netlist that differs from its model."""
    found = blocks(pe.at)
    sums, zeros = zip(*(array_sums(pe, block) for block in found), strict=True)
    lengths = [block.weight.shape[1] for block in found]
    steps = PIXELS * sum(lengths)
    zero = float(np.average(zeros, weights=lengths))
    area, energy = _array(pe, library, found, np.concatenate(sums), zero)
    ppu_area, row_pj = _ppu(pe, library, found, sums)
    area["ppu"], energy["ppu"] = ppu_area, row_pj * len(found) * PIXELS / steps
    technology = load_technology(TECHNOLOGY)
    for name, component in pe.buffers().items():
        each, read = technology.area_um2(component), technology.energy(component, "read")
        assert each is not None and read is not None
        area[name] = each.value
        energy[name] = read.value / (PIXELS if name == "weight_buffer" else 1)
    return Measured(area_um2=area, energy_pj=energy, zero_steps=zero, steps=steps)


def _array(
    pe: Pe, library: CellLibrary, found: Sequence[Block], sums: IntArray, zero: float
) -> tuple[dict[str, float], dict[str, float]]:
    """Area and energy of a step of lanes (with held weights) and of collectors."""
    flat = mapped(VectorArray(design=pe.lane, lanes=LANES), library)
    ports = array_ports(pe, found)
    simulation, shown = run(flat, ports, pe.lane.latency_cycles)
    bits = (pe.mac.accumulator_bits,) * LANES
    given = np.flatnonzero(ports["last"][0])
    words = np.array([list(shown[step]) for step in given], np.uint8)
    assert np.array_equal(unpack_lanes(words, bits, (True,) * LANES), sums)
    area: dict[str, float] = {"lanes": 0.0, "collectors": 0.0}
    energy = dict(area)
    for one in flat.instances:
        part = "collectors" if one.module == COLLECTOR else "lanes"
        area[part] += one.gates.area_um2
        spent = one.energy(simulation.toggles).times(1 / simulation.cycles)
        stopped = _stopped_share(pe, one.module, one.gates.registers, zero)
        energy[part] += spent.total_pj - stopped * spent.clock_pj
    return area, energy


def _stopped_share(pe: Pe, module: str, registers: int, zero: float) -> float:
    """The share of a module's clock that its registers' enables stop.

    zero: the share of steps in which a gated lane keeps still.
    """
    mac, zero = pe.mac, zero if pe.gated else 0.0
    if module == COLLECTOR:
        words = PIXELS * mac.accumulator_bits
        return words * (1 - (1 - zero) / PIXELS) / registers
    if module == "top":
        held = LANES * (VECTOR * mac.weight.bits + (mac.weight.scale_bits or 0))
        return held * (1 - 1 / PIXELS) / registers
    if module == "vector_lane" and zero:
        held = VECTOR * (mac.weight.bits + mac.activation.bits) + pe.lane.scale_bits
        return held * zero / registers
    return 0.0


def _ppu(
    pe: Pe, library: CellLibrary, found: Sequence[Block], sums: Sequence[IntArray]
) -> tuple[float, float]:
    """Area, and energy of a row while rows follow each other; between them its clock stands."""
    output = pe.output
    flat = mapped(VectorRequantize(output=output), library)
    multipliers, shifts, wanted = [], [], []
    none = np.zeros(LANES, np.int64)
    for block, each in zip(found, sums, strict=True):
        gammas = block.weight_coarse / block.weight_coarse.max()
        largest = float(np.abs(each * gammas).max()) / output.high
        multiplier, shift = requantize_parameters(1 / max(largest, 1 / (1 << 15)), MULTIPLIER_BITS)
        multipliers.append(np.tile(np.rint(multiplier * gammas).astype(np.int64), (PIXELS, 1)))
        shifts.append(np.full((PIXELS, 1), shift))
        q, s = output.compute(each, none, multipliers[-1][0], shift, True)
        wanted.append(np.concatenate([q, s], axis=1))
    acc = np.concatenate(sums)
    ports: Ports = {
        "acc": (acc, (output.sum_bits,) * LANES),
        "bias": (np.zeros_like(acc), (output.sum_bits,) * LANES),
        "multiplier": (np.concatenate(multipliers), (MULTIPLIER_BITS,) * LANES),
        "shift": (np.concatenate(shifts), (6,)),
        "relu": (np.ones((len(acc), 1), np.int64), (1,)),
    }
    simulation, shown = run(flat, ports, output.latency_cycles - 2)
    words = np.array([list(each) for each in shown], np.uint8)
    bits = (output.form.bits,) * LANES
    bits += (output.form.scale_bits,) if output.form.scale_bits else ()
    assert np.array_equal(unpack_lanes(words, bits, (False,) * len(bits)), np.concatenate(wanted))
    spent = sum(one.energy(simulation.toggles).total_pj for one in flat.instances)
    return sum(one.gates.area_um2 for one in flat.instances), spent / simulation.cycles


def print_larger_buffers(made: Sequence[tuple[str, Pe, Measured]]) -> None:
    """Area of a PE with more rows, of that of the first with as many."""
    technology = load_technology(TECHNOLOGY)

    def area(pe: Pe, measured: Measured, times: int) -> float:
        found = [technology.area_um2(one) for one in pe.buffers(times).values()]
        cells = sum(measured.area_um2[name] for name in ("lanes", "collectors", "ppu"))
        return cells + sum(each.value for each in found if each is not None)

    print(f"\n| W/A/ws/as | product | {' | '.join(f'× {times}' for times in ROWS)} |")
    print("|---|---|---|---|---|---|")
    for text, pe, measured in made:
        if pe.gated or text == made[0][0]:
            continue
        ratios = [area(pe, measured, n) / area(*made[0][1:], n) for n in ROWS]
        cells = " | ".join(f"{ratio:.3f}" for ratio in ratios)
        print(f"| {text} | {pe.product_bits or 'whole'} | {cells} |")


ROWS = (1, 2, 4, 8)


def record(pe: Pe, text: str, made: Measured) -> dict[str, Any]:
    """A measured point as the data file has it."""
    return {
        "arithmetic": text,
        "scale_product_bits": pe.product_bits or 0,
        "gated": pe.gated,
        "zero_steps": round(made.zero_steps, 4),
        "area_um2": {name: round(value, 1) for name, value in made.area_um2.items()},
        "energy_pj": {name: round(value, 3) for name, value in made.energy_pj.items()},
    }


TABLE_HEAD = """\
| W/A/ws/as | product | gated | zero | lanes | collectors | PPU | buffers a, w | lanes | \
collectors | PPU | buffers a, w |
|---|---|---|---|---|---|---|---|---|---|---|---|"""
"""Areas in mm², then energies of a step in pJ."""


def table_row(row: Mapping[str, Any]) -> str:
    """A record as a row under TABLE_HEAD."""
    area, energy = row["area_um2"].values(), row["energy_pj"].values()
    mm2 = [f"{each / 1e6:.3f}" for each in area]
    pj = [f"{each:,.0f}" for each in energy]
    cells = [
        row["arithmetic"],
        str(row["scale_product_bits"] or "whole"),
        "yes" if row["gated"] else "no",
        f"{100 * row['zero_steps']:.1f} %",
        *mm2[:3],
        ", ".join(mm2[3:]),
        *pj[:3],
        ", ".join(pj[3:]),
    ]
    return f"| {' | '.join(cells)} |"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description="Measure a PE of vector MACs at VS-Quant's points."
    )
    parser.add_argument("only", nargs="*", help="points as W/A/ws/as; all by default")
    parser.add_argument("--liberty", type=Path, default=DEFAULT_LIBRARY)
    parser.add_argument("--write", action="store_true", help="all points, into the data file")
    options = parser.parse_args(arguments)
    library = read_library(options.liberty)
    rows: list[dict[str, Any]] = []
    made: list[tuple[str, Pe, Measured]] = []
    print(TABLE_HEAD)
    for text, product_bits, gated in settings():
        if options.only and text not in options.only:
            continue
        print(f"{text}, product {product_bits or 'whole'}, gated {gated} …", file=sys.stderr)
        pe = Pe(at=point(text), product_bits=product_bits or None, gated=gated)
        made.append((text, pe, measure(pe, library)))
        rows.append(record(pe, text, made[-1][2]))
        print(table_row(rows[-1]))
    print_larger_buffers(made)
    if options.write and not options.only:
        head = {
            "library": library.name,
            "library_sha256": library.digest,
            "tools": f"Yosys {yosys_version()} ({FLOW}; buffers for a fan-out above {FANOUT})",
            "buffers": f"technology {TECHNOLOGY}",
            "date": datetime.date.today().isoformat(),
            "steps": PIXELS * 70,
        }
        DATA.write_text(HEADER + tomli_w.dumps({**head, "point": rows}), encoding="utf-8")


HEADER = "# A PE of vector MACs, measured; written by benchmarks/vector_mac_pe.py --write.\n\n"

if __name__ == "__main__":
    main()
