"""How far the model of area and energy is from whole designs on standard cells.

    python benchmarks/design_fit.py                            OSU 180 nm, as Debian packages it
    python benchmarks/design_fit.py --liberty sky130hd_tt.lib.gz --technology 130nm
    python benchmarks/design_fit.py energy                     only this; or area

The model prices `design.components` with blocks that were synthesised on their own.  No design is
in that fit, but for control, whose coefficient is of the control modules of a 4 × 4 core.  Area is
compared with `archsim synth`, energy with the toggles of the same netlist while it computes random
operands (`archsim power`).  Syntheses take half a minute to two minutes each the first time and
are kept.  Prints the tables of design_fit.md.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from archsim import EDGE_16, OffChip, Systolic, simulate
from archsim.designs.systolic import DATAFLOWS
from archsim.energy import account
from archsim.simulate import plan_tiling
from energy_models.technology import Technology, load_technology
from rtl.conformance import Case, free_services
from rtl.synthesis.liberty import DEFAULT_LIBRARY
from rtl.synthesis.power import PowerMeter
from rtl.synthesis.synthesize import synthesize
from workloads.layers import MatMul, Network
from workloads.operands import synthetic

SIZES = ((4, 4, 8), (6, 10, 8), (8, 8, 4), (8, 8, 8), (8, 8, 16), (12, 12, 8), (16, 16, 8))
"""Rows, columns, operand bits of the areas."""

SMALL = ((4, 4, 8), (4, 4, 4), (6, 10, 8))
"""Of the energies."""

OUTSIDE = ("sram", "dram")
"""Kinds that are no standard cells."""


@dataclass(frozen=True, kw_only=True)
class Compared:
    """One design by the model and by its netlist, in the unit of the table."""

    design: Systolic
    model: float
    netlist: float

    @property
    def error(self) -> float:
        return self.model / self.netlist - 1

    def row(self) -> str:
        design = self.design
        return (
            f"| {design.rows} × {design.columns} | {design.operand_bits} | {design.dataflow} | "
            f"{self.model:.3f} | {self.netlist:.3f} | {100 * self.error:+.1f} % |"
        )


def designs(sizes: Sequence[tuple[int, int, int]]) -> Iterator[Systolic]:
    """Every size in every dataflow, with memory that never waits."""
    for rows, columns, bits in sizes:
        for dataflow in DATAFLOWS:
            print(f"{rows} × {columns}, {bits} bits, {dataflow} …", file=sys.stderr)
            yield replace(
                EDGE_16,
                rows=rows,
                columns=columns,
                operand_bits=bits,
                dataflow=dataflow,
                off_chip=OffChip(),
            )


def area(design: Systolic, library: Path, technology: Technology) -> Compared:
    """Cells in mm², memory macros left out."""
    total = 0.0
    for component in design.components:
        if component.kind not in OUTSIDE:
            found = technology.area_um2(component)
            assert found is not None
            total += component.count * found.value
    made = synthesize(design, library).synthesis.total.area_um2
    return Compared(design=design, model=total / 1e6, netlist=made / 1e6)


def energy(design: Systolic, library: Path, technology: Technology) -> Compared:
    """Nanojoules of a product of dense random matrices, memories left out."""
    layer = MatMul(name="random", m=32, n=4 * design.columns, k=4 * design.rows)
    result = simulate(design, Network(name="random", source="benchmark", layers=(layer,)))
    cost = account(result, technology)
    cells = [one.kind not in OUTSIDE for one in cost.price_list.components]
    case = Case(
        design=design,
        layer=layer,
        tiling=plan_tiling(design, layer, None),
        operands=synthetic(layer, bits=design.operand_bits),
        services=free_services(),
    )
    found = PowerMeter.of(design, library).run(case)
    assert found.verdict is not None and found.verdict.equal
    return Compared(
        design=design,
        model=float(cost.dynamic[0, cells].sum()) / 1e3,
        netlist=found.energy_per_mac_pj() * layer.macs / 1e3,
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Measure the error of the area and energy model.")
    parser.add_argument("what", nargs="*", choices=["area", "energy", []], help="both by default")
    parser.add_argument("--liberty", type=Path, default=DEFAULT_LIBRARY)
    parser.add_argument("--technology", default="180nm", help="of the library's node, unscaled")
    options = parser.parse_args(arguments)
    technology = load_technology(options.technology)
    tables = {"area": (area, SIZES, "mm²"), "energy": (energy, SMALL, "nJ")}
    for what in options.what or tables:
        compare, sizes, unit = tables[what]
        found = [compare(design, options.liberty, technology) for design in designs(sizes)]
        print(f"\n| design | bits | dataflow | model {unit} | netlist {unit} | error |")
        print("|---|---|---|---|---|---|")
        print("\n".join(one.row() for one in found))
        errors = [100 * abs(one.error) for one in found]
        print(
            f"\n{what}, {options.technology}: median error {statistics.median(errors):.1f} %, "
            f"worst {max(errors):.1f} %, {len(found)} designs"
        )


if __name__ == "__main__":
    main()
