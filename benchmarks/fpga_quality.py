"""Arrays, PEs and units on an ECP5-85k of speed 6: what they take, how fast they are placed.

    python benchmarks/fpga_quality.py             every row of fpga_quality.md
    python benchmarks/fpga_quality.py arrays      only arrays, or pes, or units
    python benchmarks/fpga_quality.py --seeds 3   placements a row

Each unit is mapped, wrapped, placed and routed (`fpga.place`); the clock is the median of the
placements of seeds 1, 2, …, with the least and the most behind it, the path that of the median.
PEs are mapped alone: they have no clock.  Answers are kept: a second run takes only what is new.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from amaranth.lib import wiring

from archsim.machine.registry import load_design, with_settings
from archsim.machines.vsq.design import Vsq
from fpga.cells import Cells
from fpga.devices import Target
from fpga.place import place, resources
from fpga.report import FpgaReport
from rtl.core.accumulating_array import AccumulatingArray
from rtl.core.pe import AccumulatingPE, StationaryPE
from rtl.core.stationary_array import StationaryArray
from rtl.core.train_pe import TrainPe
from rtl.core.vector_lane import VectorLane

WIDTHS: Mapping[str, int] = {"operand_bits": 8, "accumulator_bits": 32, "product_registers": 2}
Unit = Callable[[], wiring.Component]


def arrays() -> dict[str, tuple[Unit, str]]:
    """int8 operands, sums of 32 bits, with what is wanted."""
    found: dict[str, tuple[Unit, str]] = {}
    for size, wanted in ((4, "180 MHz"), (8, "140 MHz")):
        sizes: dict[str, Any] = {"rows": size, "columns": size, **WIDTHS}
        held = f"weight-stationary array {size} × {size}"
        kept = f"output-stationary array {size} × {size}"
        found[held] = (lambda sizes=sizes: StationaryArray(**sizes, across=False)), wanted
        found[kept] = (lambda sizes=sizes: AccumulatingArray(**sizes)), wanted
    return found


def pes() -> dict[str, tuple[Unit, str]]:
    """PEs alone."""
    return {
        "weight-stationary PE": (
            lambda: StationaryPE(**WIDTHS),
            "16 LUT4, 32 carry, 60 flip-flops, 1 DSP",
        ),
        "output-stationary PE": (
            lambda: AccumulatingPE(**WIDTHS),
            "60 LUT4, 76 flip-flops, 1 DSP",
        ),
    }


def units() -> dict[str, tuple[Unit, str]]:
    """Units of other machines."""
    train: Any = with_settings(load_design("sparsetrain"), ["rows=16", "columns=16", "pes=1"])
    return {
        "lane of vsq-16": (lambda: VectorLane(design=Vsq().lane), "75 MHz"),
        "PE of sparsetrain": (lambda: TrainPe(design=train), "75 MHz"),
    }


KINDS: Mapping[str, Callable[[], dict[str, tuple[Unit, str]]]] = {
    "arrays": arrays,
    "pes": pes,
    "units": units,
}

HEAD = """\
| unit | LUT4 | LUT RAM | carry | flip-flops | block RAM | DSP | MHz | wanted | slowest path |
|---|---|---|---|---|---|---|---|---|---|"""


def line(name: str, wanted: str, cells: Cells, placed: Sequence[FpgaReport]) -> str:
    """A line under `HEAD`."""
    counts = (cells.lut4, cells.lut_rams, cells.carry, cells.flip_flops)
    shown = " | ".join(f"{one:,}" for one in (*counts, cells.block_rams, cells.dsps))
    ordered = sorted(placed, key=lambda one: one.fmax_hz)
    if not ordered:
        return f"| {name} | {shown} | – | {wanted} | – |"
    clocks = [one.fmax_hz / 1e6 for one in ordered]
    middle = ordered[(len(ordered) - 1) // 2]
    spread = f" ({clocks[0]:.1f} to {clocks[-1]:.1f})" if len(clocks) > 1 else " (1 seed)"
    path = middle.path
    way = f"{path.start} to {path.end}: {path.logic_ns:.2f} + {path.routing_ns:.2f} ns"
    return f"| {name} | {shown} | {middle.fmax_hz / 1e6:.1f}{spread} | {wanted} | {way} |"


def main(arguments: Sequence[str]) -> int:
    """Print the table; a placement that is not kept is made."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="*", choices=[*KINDS, []], default=[])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", default="", help="rows whose name has this")
    options = parser.parse_args(arguments)
    print(HEAD)
    for kind in options.kinds or KINDS:
        for name, (make, wanted) in KINDS[kind]().items():
            if options.only not in name:
                continue
            unit = make()
            if kind == "pes":
                print(line(name, wanted, resources(unit), []), flush=True)
                continue
            clock_hz = 200e6 if "4 × 4" in name else 150e6 if kind == "arrays" else 100e6
            seeds = range(1, options.seeds + 1)
            placed = [place(unit, target=Target(clock_hz=clock_hz, seed=seed)) for seed in seeds]
            print(line(name, wanted, placed[0].cells, placed), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
