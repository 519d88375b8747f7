"""Arrays, PEs, units and cores on an ECP5-85k of speed 6: what they take, how fast they are placed.

One array stands on an iCE40 UP5K, whose multipliers hold two products each.

    python benchmarks/fpga_quality.py             every row of fpga_quality.md
    python benchmarks/fpga_quality.py arrays      only arrays, or pes, or units, or cores
    python benchmarks/fpga_quality.py --seeds 3   placements of rows without a number of their own
    python benchmarks/fpga_quality.py --write     puts the rows into fpga_quality.md too

Each unit is mapped, wrapped, placed and routed (`fpga.place`); the clock is the median of the
placements of seeds 1, 2, …, with the least and the most behind it, the path that of the placement
at the median, or next below it.  PEs are mapped alone: they have no clock.  What is not placed is
mapped, and says why.  Answers are kept: a second run takes only what is new.
"""

from __future__ import annotations

import argparse
import re
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amaranth.lib import wiring

from archsim.machine.registry import load_design, with_settings
from archsim.machines.vsq.design import Vsq
from fpga.cells import Cells
from fpga.devices import Target
from fpga.place import place, resources
from fpga.report import FpgaReport
from fpga.units import TOP
from rtl.core.accumulating_array import AccumulatingArray
from rtl.core.pe import AccumulatingPE, StationaryPE
from rtl.core.pipelined_train_pe import PipelinedTrainPe
from rtl.core.stationary_array import StationaryArray
from rtl.core.train_pe import TrainPe
from rtl.core.vector_lane import VectorLane
from rtl.emit import emit

PAGE = Path(__file__).with_suffix(".md")
WIDTHS: Mapping[str, Any] = {"operand_bits": 8, "accumulator_bits": 32, "product_registers": 2}


@dataclass(frozen=True, kw_only=True)
class Row:
    """A line of the page.

    make: the unit, or Verilog. wanted: what is wanted of it. seeds: placements, where it is not as
    many as are asked for; 0 of what is not placed, for the reason `why`. chip: family and device.
    """

    make: Callable[[], wiring.Component | str]
    wanted: str
    clock_hz: float = 100e6
    seeds: int | None = None
    why: str = ""
    chip: tuple[str, str] = ("ecp5", "")

    def target(self, seed: int) -> Target:
        """Where it is placed, from a seed on."""
        family, device = self.chip
        return Target(family=family, device=device, clock_hz=self.clock_hz, seed=seed)


def arrays() -> dict[str, Row]:
    """int8 operands, sums of 32 bits."""
    found: dict[str, Row] = {}
    for size, wanted, clock_hz in ((4, "180 MHz", 200e6), (8, "140 MHz", 150e6)):
        sizes: dict[str, Any] = {"rows": size, "columns": size, **WIDTHS}
        makes: dict[str, Callable[[], wiring.Component]] = {
            "weight": lambda sizes=sizes: StationaryArray(**sizes, across=False),
            "output": lambda sizes=sizes: AccumulatingArray(**sizes),
        }
        for kept, make in makes.items():
            name = f"{kept}-stationary array {size} × {size}"
            found[name] = Row(make=make, wanted=wanted, clock_hz=clock_hz)
    name = "weight-stationary array"
    found[f"{name} 12 × 12"] = Row(
        make=lambda: StationaryArray(rows=12, columns=12, **WIDTHS, across=False),
        wanted="built: 144 of 156 multipliers",
        seeds=1,
    )
    found[f"{name} 16 × 16, 7 rows of look-up tables"] = Row(
        make=lambda: StationaryArray(rows=16, columns=16, **WIDTHS, across=False, lut_rows=7),
        wanted="built: a field",
        seeds=0,
        why="mapped: routing did not end",
    )
    found[f"{name} 4 × 4 on an iCE40 UP5K"] = Row(
        make=lambda: StationaryArray(rows=4, columns=4, **WIDTHS, across=False),
        wanted="16 products in 8 multipliers",
        clock_hz=48e6,
        seeds=3,
        chip=("ice40", "up5k"),
    )
    return found


def pes() -> dict[str, Row]:
    """PEs alone."""
    return {
        "weight-stationary PE": Row(
            make=lambda: StationaryPE(**WIDTHS),
            wanted="16 LUT4, 32 carry, 60 flip-flops, 1 DSP",
            seeds=0,
        ),
        "output-stationary PE": Row(
            make=lambda: AccumulatingPE(**WIDTHS),
            wanted="60 LUT4, 76 flip-flops, 1 DSP",
            seeds=0,
        ),
    }


def units() -> dict[str, Row]:
    """Units of other machines."""
    train: Any = with_settings(load_design("sparsetrain"), ["rows=16", "columns=16", "pes=1"])
    return {
        "lane of vsq-16": Row(make=lambda: VectorLane(design=Vsq().lane), wanted="75 MHz", seeds=3),
        "PE of sparsetrain": Row(make=lambda: TrainPe(design=train), wanted="75 MHz", seeds=1),
        "PE of sparsetrain, pipelined": Row(
            make=lambda: PipelinedTrainPe(design=train.for_fpga()),
            wanted="75 MHz",
            seeds=3,
        ),
    }


def core(design: str, settings: str, interface: str = "streams") -> Callable[[], str]:
    """Verilog of a core with the registers that an FPGA wants."""

    def make() -> str:
        chosen = with_settings(load_design(design), settings.split()).for_fpga()
        return emit(chosen, top=TOP, interface=interface).verilog

    return make


def memories(kibibytes: int, *names: str) -> str:
    """Settings of scratchpads of so many bytes each."""
    return " ".join(f"{name}_memory.capacity_bytes={kibibytes << 10}" for name in names)


def cores() -> dict[str, Row]:
    """Whole cores, bare but for those behind AXI."""
    small = f"rows=2 columns=2 {memories(1, 'ifmap', 'weight', 'accumulator')}"
    large = f"rows=8 columns=8 {memories(4, 'ifmap', 'weight', 'accumulator')}"
    boveda = "ifmap_memory.kind=boveda ifmap_memory.group"
    tensor = f"octets=1 group_columns=2 rows=4 {memories(1, 'ifmap', 'weight', 'accumulator')}"
    scnn = "grid_rows=2 grid_columns=2 iaram_bytes=1024 oaram_bytes=1024"
    tensor_int8 = f"{tensor} operand=int8 accumulator=int32"
    return {
        "edge-16, 2 × 2": Row(
            make=core("edge-16", small),
            wanted="–",
            seeds=0,
            why="not tried",
        ),
        "edge-16, 2 × 2, Boveda ifmap": Row(
            make=core("edge-16", f"{boveda}=2 {small}"), wanted="75 MHz", seeds=3
        ),
        "edge-16, 8 × 8, AXI": Row(
            make=core("edge-16", large, "axi"),
            wanted="90 MHz",
            seeds=3,
        ),
        "edge-16, 8 × 8, AXI, Boveda ifmap": Row(
            make=core("edge-16", f"{boveda}=8 {large}", "axi"),
            wanted="75 MHz",
            seeds=3,
        ),
        "tensor core, 8 products, int8": Row(
            make=core("volta", tensor_int8), wanted="75 MHz", seeds=3
        ),
        "tensor core, 8 products, fp16 in fp32": Row(
            make=core("volta", tensor),
            wanted="75 MHz",
            seeds=0,
            why="not placed: 45.6 ns by the estimate",
        ),
        "SCNN 2 × 2, PEs of 2 × 2, int8": Row(
            make=core("scnn", f"{scnn} weight_lanes=2 ifmap_lanes=2 banks=8 operand_bits=8"),
            wanted="75 MHz",
            seeds=1,
        ),
    }


KINDS: Mapping[str, Callable[[], dict[str, Row]]] = {
    "arrays": arrays,
    "pes": pes,
    "units": units,
    "cores": cores,
}

HEAD = """\
| unit | LUT4 | LUT RAM | carry | flip-flops | block RAM | DSP | MHz | wanted | slowest path |
|---|---|---|---|---|---|---|---|---|---|"""


def line(name: str, row: Row, cells: Cells, placed: Sequence[FpgaReport]) -> str:
    """A line under `HEAD`."""
    counts = (cells.lut4, cells.lut_rams, cells.carry, cells.flip_flops)
    shown = " | ".join(f"{one:,}" for one in (*counts, cells.block_rams, cells.dsps))
    ordered = sorted(placed, key=lambda one: one.fmax_hz)
    if not ordered:
        return f"| {name} | {shown} | {row.why or '–'} | {row.wanted} | – |"
    clocks = [one.fmax_hz / 1e6 for one in ordered]
    spread = f" ({clocks[0]:.1f} to {clocks[-1]:.1f})" if len(clocks) > 1 else " (1 seed)"
    path = ordered[(len(ordered) - 1) // 2].path
    ends = f"{_end(path.start)} to {_end(path.end)}"
    way = f"{ends}: {path.logic_ns:.2f} + {path.routing_ns:.2f} ns"
    return f"| {name} | {shown} | {statistics.median(clocks):.1f}{spread} | {row.wanted} | {way} |"


def _end(cell: str) -> str:
    """A cell's name in the design, without the unit's and without what yosys put behind it."""
    plain = re.sub(r"_(TRELLIS|LUT4|CCU2C|PFUMX|L6MUX21|DP16KD|PDPW16KD)(_\w+)*$", "", cell)
    return plain.removeprefix("unit.")


def measured(name: str, row: Row, seeds: int) -> str:
    """The line of a row."""
    unit = row.make()
    found = [
        place(unit, target=row.target(seed))
        for seed in range(1, (seeds if row.seeds is None else row.seeds) + 1)
    ]
    return line(
        name, row, found[0].cells if found else resources(unit, target=row.target(1)), found
    )


def write(lines: Mapping[str, str], page: Path = PAGE) -> None:
    """Put lines in the places of those of the same name; new ones behind the last.

    The table is made again in the script's order: what it does not know goes.
    """
    text = page.read_text(encoding="utf-8")
    head, _, rest = text.partition(HEAD.partition("\n")[0])
    old = rest[: rest.index("\n\n")].splitlines()[2:]
    kept = {one.split(" | ")[0].removeprefix("| "): one for one in old} | dict(lines)
    names = [name for kind in KINDS.values() for name in kind() if name in kept]
    table = "\n".join([HEAD, *(kept[name] for name in names)])
    page.write_text(f"{head}{table}{rest[rest.index(chr(10) * 2) :]}", encoding="utf-8")


def main(arguments: Sequence[str]) -> int:
    """Print the table; a placement that is not kept is made."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="*", choices=[*KINDS, []], default=[])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", default="", help="rows whose name has this")
    parser.add_argument("--write", action="store_true", help=f"into {PAGE.name} too")
    options = parser.parse_args(arguments)
    rows = {name: row for kind in options.kinds or KINDS for name, row in KINDS[kind]().items()}
    asked = {name: row for name, row in rows.items() if options.only in name}
    if not asked:
        parser.error(
            f"--only must be in the name of a row ({'; '.join(rows)}), not {options.only!r}"
        )
    print(HEAD)
    for name, row in asked.items():
        found = measured(name, row, options.seeds)
        print(found, flush=True)
        if options.write:
            write({name: found})
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
