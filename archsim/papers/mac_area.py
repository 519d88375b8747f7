"""Ratios of arithmetic: our synthesis beside a count of cells by hand and published ratios.

Ratios of two widths, or of two operations, hardly depend on library and node; so they can be
compared where absolute figures cannot.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from archsim.papers.evidence import Measured, count
from archsim.papers.figures import (
    Comparison,
    Figure,
    Progress,
    Row,
    load_figures,
    read_paper,
    silent,
)
from energy_models.component import Component
from energy_models.logic import LogicEstimator

LIBRARIES = ("sky130", "osu018")
SUM_BITS = 32

NOTES = (
    "Note 1. Ours are the measured blocks of the shipped coefficient files: SkyWater 130 nm and "
    "OSU 180 nm, mapped by Yosys, without wires.",
    "Note 2. Energies are of uniform random operands on the netlist without delays; glitches, "
    "which a multiplier has most of, are not in them.",
)


def hand_count(bits: int, cells: Mapping[str, float], sum_bits: int = 0) -> float:
    """Gate equivalents of an array multiplier of bits × bits, and of the addition to a sum."""
    multiplier = (
        bits * bits * cells["and"]
        + bits * (bits - 2) * cells["full_adder"]
        + bits * cells["half_adder"]
    )
    return multiplier + sum_bits * cells["full_adder"]


def compare(_progress: Progress = silent) -> Comparison:
    """Published and counted ratios, ours beside them: a row a library."""
    figures = load_figures("mac-area")
    rows = [
        _of_library(figures[key], library, value)
        for key in figures
        for library, value in ((name, _measured(name)[key]) for name in LIBRARIES)
    ]
    return Comparison(
        paper="mac-area", title=str(read_paper("mac-area")["title"]), rows=tuple(rows), notes=NOTES
    )


def _of_library(figure: Figure, library: str, value: float) -> Row:
    named = replace(figure, figure=f"{figure.figure} ({library})")
    return named.row(value, measured=_cells(figure.key, library))


def _cells(key: str, library: str) -> list[Measured]:
    """Of the larger block, over the smaller: what the mapper made of them, in cells."""
    points = LogicEstimator(library).coefficients.points
    adders = {point.sizes["bits"]: point.cells for point in points["adder"]}
    multipliers = {
        point.sizes["a_bits"]: point.cells
        for point in points["multiplier"]
        if point.sizes["a_bits"] == point.sizes["b_bits"]
    }
    above, below, what = {
        "hand.mac": (multipliers[4], multipliers[8], "cells of multipliers, 4 over 8 bits"),
        "hand.multiplier": (multipliers[4], multipliers[8], "cells, 4 over 8 bits"),
    }.get(key, (adders[32], adders[8], "cells of our adders, 32 over 8 bits"))
    if "multiplier_adder" in key:
        above, below, what = multipliers[8], adders[8], "cells, multiplier over adder of 8 bits"
    where = f"energy_models/coefficients/{library}.toml, cells"
    return [count(what, above / below, "", where)]


def _measured(library: str) -> dict[str, float]:
    """Our ratios in a library, by the key of the figure."""
    estimator = LogicEstimator(library)

    def area(kind: str, **sizes: int) -> float:
        return estimator.area_um2(Component(name=kind, kind=kind, attributes=sizes)).value

    def energy(kind: str, action: str, **sizes: int) -> float:
        component = Component(name=kind, kind=kind, attributes=sizes)
        return estimator.energy_pj(component, action).value

    macs = [area("mac", operand_bits=bits, accumulator_bits=SUM_BITS) for bits in (4, 8)]
    multipliers = [area("multiplier", a_bits=bits, b_bits=bits) for bits in (4, 8)]
    adders = [area("adder", bits=bits) for bits in (8, 32)]
    additions = [energy("adder", "add", bits=bits) for bits in (8, 32)]
    return {
        "hand.mac": macs[0] / macs[1],
        "hand.multiplier": multipliers[0] / multipliers[1],
        "area.multiplier_adder": multipliers[1] / adders[0],
        "area.adder_adder": adders[1] / adders[0],
        "energy.multiplier_adder": energy("multiplier", "multiply", a_bits=8, b_bits=8)
        / additions[0],
        "energy.adder_adder": additions[1] / additions[0],
    }
