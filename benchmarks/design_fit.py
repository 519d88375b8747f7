"""How far the model of area and energy is from whole designs on standard cells.

    python benchmarks/design_fit.py                            OSU 180 nm, as Debian packages it
    python benchmarks/design_fit.py --liberty sky130hd_tt.lib.gz --technology 130nm
    python benchmarks/design_fit.py energy                     only this; or area, or cores,
                                                               or cores-energy, or sparse,
                                                               or sparse-energy

cores, cores-energy: of vector MAC cores with scales and of tensor cores.  sparse, sparse-energy: of
SCNN's.

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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from archsim import EDGE_16, OffChip, simulate
from archsim.energy import account
from archsim.layer.intake import Drawing
from archsim.machine.design import Design
from archsim.machines.scnn.design import Scnn
from archsim.machines.systolic.design import DATAFLOWS
from archsim.machines.tensorcore.design import TensorCore
from archsim.machines.vsq.design import Vsq
from energy_models.technology import Technology, load_technology
from rtl.layer_case import layer_case, random_layer
from rtl.synthesis.liberty import DEFAULT_LIBRARY
from rtl.synthesis.power import PowerMeter
from rtl.synthesis.synthesize import synthesize
from workloads.layers import Conv2d, MatMul, Network
from workloads.operands import Operands

SIZES = ((4, 4, 8), (6, 10, 8), (8, 8, 4), (8, 8, 8), (8, 8, 16), (12, 12, 8), (16, 16, 8))
"""Rows, columns, operand bits of the areas."""

SMALL = ((4, 4, 8), (4, 4, 4), (6, 10, 8))
"""Of the energies."""

VSQ = {
    "4/4/4/6": Vsq(lanes=4, vector=4, hold_cycles=4),
    "4/4/8/8 to 8, gated": Vsq(
        lanes=4,
        vector=4,
        hold_cycles=4,
        weight_scale_bits=8,
        activation_scale_bits=8,
        scale_product_bits=8,
        gated=True,
    ),
    "8/8/-/-": Vsq(
        lanes=4,
        vector=4,
        hold_cycles=4,
        weight_bits=8,
        activation_bits=8,
        weight_scale_bits=0,
        activation_scale_bits=0,
    ),
}
TENSOR = {
    "int8": TensorCore(octets=1, group_columns=2, rows=4, operand="int8", accumulator="int32"),
    "fp16 in fp32": TensorCore(octets=1, group_columns=2, rows=4),
    "fp16 in fp16": TensorCore(octets=1, group_columns=2, rows=4, accumulator="fp16"),
}
"""Numbers of each, and a small core that computes with them."""

ONE_PE = Scnn(grid_rows=1, grid_columns=1)
SPARSE = (
    replace(
        ONE_PE,
        weight_lanes=2,
        ifmap_lanes=2,
        banks=8,
        operand_bits=8,
        accumulator_bits=20,
        bank_queue=2,
    ),
    replace(ONE_PE, weight_lanes=2, ifmap_lanes=2, banks=8),
    replace(ONE_PE, weight_lanes=2, banks=16),
    replace(ONE_PE, bank_queue=1),
    replace(ONE_PE, bank_queue=2),
    ONE_PE,
    replace(ONE_PE, operand_bits=8, accumulator_bits=16),
    Scnn(grid_rows=2, grid_columns=2, weight_lanes=2, ifmap_lanes=2, banks=8),
)
"""Sparse cores of few PEs; what is not said is as published."""

SPARSE_RUNS = (
    (SPARSE[0], 1.0),
    (SPARSE[0], 0.4),
    (SPARSE[2], 0.4),
    (ONE_PE, 1.0),
    (ONE_PE, 0.4),
    (SPARSE[-1], 1.0),
    (SPARSE[-1], 0.4),
)
"""Sparse cores, and the densities of weights and ifmap."""

OUTSIDE = ("sram", "dram")
"""Kinds that are no standard cells."""


@dataclass(frozen=True, kw_only=True)
class Compared:
    """One design by the model and by its netlist, in the unit of the table."""

    label: str
    model: float
    netlist: float

    @property
    def error(self) -> float:
        return self.model / self.netlist - 1

    def row(self) -> str:
        return (
            f"| {self.label} | {self.model:.3f} | {self.netlist:.3f} | {100 * self.error:+.1f} % |"
        )


HEADINGS = {
    "area": "bits | dataflow",
    "energy": "bits | dataflow",
    "sparse": "banks | bits",
    "sparse-energy": "banks | bits, density",
}
"""Of the second and third column, where they are not numbers and kind."""

Labelled = tuple[str, Any]
"""The first cells of a row, and the design, or what it computes."""


@dataclass(frozen=True, kw_only=True)
class Work:
    """What a design computes; operands: None where its cycles and actions do not depend on them."""

    design: Design
    layer: Conv2d | MatMul
    operands: Operands | None = None


def arrays(sizes: Sequence[tuple[int, int, int]]) -> Iterator[Labelled]:
    """Systolic arrays: every size in every dataflow, with memory that never waits."""
    for rows, columns, bits in sizes:
        for dataflow in DATAFLOWS:
            design = replace(
                EDGE_16,
                rows=rows,
                columns=columns,
                operand_bits=bits,
                dataflow=dataflow,
                off_chip=OffChip(),
            )
            yield f"{rows} × {columns} | {bits} | {dataflow}", design


def cores() -> Iterator[Labelled]:
    """Vector MAC cores with scales, and tensor cores."""
    for numbers, design in (*VSQ.items(), *TENSOR.items()):
        yield f"{design.size} | {numbers} | {design.kind}", design


def sparse_cores() -> Iterator[Labelled]:
    """SCNNs: grid and lanes, banks and places of each queue, bits of operands and sums."""
    for design in SPARSE:
        yield sparse_label(design), design


def sparse_label(design: Scnn) -> str:
    banks = f"{design.banks} banks, Q = {design.bank_queue}"
    return f"{design.size} | {banks} | {design.operand_bits} in {design.accumulator_bits}"


def products(designs: Iterator[Labelled]) -> Iterator[Labelled]:
    """A product of matrices for each design, as large as its array asks for."""
    for label, design in designs:
        yield label, Work(design=design, layer=random_layer(design))


def convolutions() -> Iterator[Labelled]:
    """A convolution of 64 channels for each of `SPARSE_RUNS`."""
    for design, density in SPARSE_RUNS:
        layer = replace(random_layer(design), channels=64)
        operands = design.intake.synthetic(layer, Drawing(density=density))
        work = Work(design=design, layer=layer, operands=operands)
        yield f"{sparse_label(design)}, {density:g}", work


def area(label: str, design: Design, library: Path, technology: Technology) -> Compared:
    """Cells in mm², memories left out, also those of a few words."""
    total = 0.0
    for component in design.components:
        if component.kind not in OUTSIDE:
            found = technology.area_um2(component)
            assert found is not None
            total += component.count * found.value
    made = synthesize(design, library).synthesis.total.area_um2
    return Compared(label=label, model=total / 1e6, netlist=made / 1e6)


def energy(label: str, work: Work, library: Path, technology: Technology) -> Compared:
    """Nanojoules of a layer of random operands, memories left out."""
    design, layer, operands = work.design, work.layer, work.operands
    network = Network(name="random", source="benchmark", layers=(layer,))
    given = None if operands is None else {layer.name: operands}
    cost = account(simulate(design, network, operands=given), technology)
    cells = [one.kind not in OUTSIDE for one in cost.price_list.components]
    drawn = operands or design.intake.synthetic(layer, Drawing())
    found = PowerMeter.of(design, library).run(layer_case(design, layer, drawn))
    assert found.verdict is not None and found.verdict.equal
    return Compared(
        label=label,
        model=float(cost.dynamic[0, cells].sum()) / 1e3,
        netlist=found.energy_per_mac_pj() * layer.macs / 1e3,
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Measure the error of the area and energy model.")
    parser.add_argument(
        "what",
        nargs="*",
        choices=["area", "energy", "cores", "cores-energy", "sparse", "sparse-energy", []],
        help="all by default",
    )
    parser.add_argument("--liberty", type=Path, default=DEFAULT_LIBRARY)
    parser.add_argument("--technology", default="180nm", help="of the library's node, unscaled")
    options = parser.parse_args(arguments)
    technology = load_technology(options.technology)
    tables: dict[str, tuple[Callable[..., Compared], Iterator[Labelled], str]] = {
        "area": (area, arrays(SIZES), "mm²"),
        "energy": (energy, products(arrays(SMALL)), "nJ"),
        "cores": (area, cores(), "mm²"),
        "sparse": (area, sparse_cores(), "mm²"),
        "cores-energy": (energy, products(cores()), "nJ"),
        "sparse-energy": (energy, convolutions(), "nJ"),
    }
    for what in options.what or tables:
        compare, designs, unit = tables[what]
        found: list[Compared] = []
        for label, design in designs:
            print(f"{label} …", file=sys.stderr)
            found.append(compare(label, design, options.liberty, technology))
        heading = HEADINGS.get(what, "bits | kind")
        print(f"\n| design | {heading} | model {unit} | netlist {unit} | error |")
        print("|---|---|---|---|---|---|")
        print("\n".join(one.row() for one in found))
        errors = [100 * abs(one.error) for one in found]
        print(
            f"\n{what}, {options.technology}: median error {statistics.median(errors):.1f} %, "
            f"worst {max(errors):.1f} %, {len(found)} designs"
        )


if __name__ == "__main__":
    main()
