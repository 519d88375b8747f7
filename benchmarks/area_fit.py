"""How far the area model is from the synthesis of whole designs.

    python benchmarks/area_fit.py                            OSU 180 nm, as Debian packages it
    python benchmarks/area_fit.py --liberty sky130hd_tt.lib.gz --technology 130nm
    python benchmarks/area_fit.py --markdown                 the table of area_fit.md

The model prices `design.components` with blocks that were synthesised on their own; none of these
designs is in that fit, but for control, whose coefficient is of one design's control modules.
Syntheses take from half a minute to two minutes each the first time and are kept.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from archsim import EDGE_16, Systolic
from archsim.designs.systolic import DATAFLOWS
from energy_models.technology import Technology, load_technology
from rtl.synthesis.liberty import DEFAULT_LIBRARY
from rtl.synthesis.synthesize import synthesize

SIZES = ((4, 4, 8), (6, 10, 8), (8, 8, 4), (8, 8, 8), (8, 8, 16), (12, 12, 8), (16, 16, 8))
"""Rows, columns, operand bits."""


@dataclass(frozen=True, kw_only=True)
class Compared:
    """One design: µm² of its cells by the model and by synthesis, memories left out."""

    design: Systolic
    model_um2: float
    synthesis_um2: float

    @property
    def error(self) -> float:
        return self.model_um2 / self.synthesis_um2 - 1

    def record(self) -> dict[str, Any]:
        return {
            "rows": self.design.rows,
            "columns": self.design.columns,
            "operand_bits": self.design.operand_bits,
            "dataflow": self.design.dataflow,
            "model_um2": self.model_um2,
            "synthesis_um2": self.synthesis_um2,
            "error": self.error,
        }


def logic_area_um2(design: Systolic, technology: Technology) -> float:
    """Cells of a design by the model: every component but memories."""
    total = 0.0
    for component in design.components:
        if component.kind not in ("sram", "dram"):
            found = technology.area_um2(component)
            assert found is not None
            total += component.count * found.value
    return total


def compare(library: Path, technology: Technology) -> Iterator[Compared]:
    """Every size in every dataflow, as they are synthesised."""
    for rows, columns, bits in SIZES:
        for dataflow in DATAFLOWS:
            design = replace(
                EDGE_16, rows=rows, columns=columns, operand_bits=bits, dataflow=dataflow
            )
            print(f"synthesising {rows} × {columns}, {bits} bits, {dataflow} …", file=sys.stderr)
            yield Compared(
                design=design,
                model_um2=logic_area_um2(design, technology),
                synthesis_um2=synthesize(design, library).synthesis.total.area_um2,
            )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Measure the error of the area model.")
    parser.add_argument("--liberty", type=Path, default=DEFAULT_LIBRARY)
    parser.add_argument("--technology", default="180nm", help="of the library's node, unscaled")
    shape = parser.add_mutually_exclusive_group()
    shape.add_argument("--json", action="store_true")
    shape.add_argument("--markdown", action="store_true")
    options = parser.parse_args(arguments)
    found = list(compare(options.liberty, load_technology(options.technology)))
    if options.json:
        print(json.dumps([one.record() for one in found], indent=2))
        return
    edge = "|" if options.markdown else " "
    print("| design | bits | dataflow | model mm² | synthesis mm² | error |")
    print("|---|---|---|---|---|---|")
    for one in found:
        design = one.design
        print(
            f"{edge} {design.rows} × {design.columns} | {design.operand_bits} | "
            f"{design.dataflow} | {one.model_um2 / 1e6:.3f} | {one.synthesis_um2 / 1e6:.3f} | "
            f"{100 * one.error:+.1f} % {edge}"
        )
    errors = [abs(one.error) for one in found]
    print(
        f"\nmedian error {100 * statistics.median(errors):.1f} %, "
        f"worst {100 * max(errors):.1f} %, {len(found)} designs"
    )


if __name__ == "__main__":
    main()
