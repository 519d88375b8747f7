"""SCNN's and DCNN-opt's energy over DCNN's, by network, layer and density; and areas."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from archsim.machines.scnn.dense import DCNN
from archsim.machines.scnn.design import SCNN_ISCA17
from archsim.papers.evidence import Measured, switch
from archsim.papers.figures import Figure, Row, load_figures, read_paper
from archsim.papers.scnn_area import (
    MISSING,
    TECHNOLOGY,
    UM2_PER_MM2,
    evidence,
    part_areas_um2,
    printed_areas_um2,
)
from archsim.papers.scnn_energy import SUPPOSED, areas_um2, listed, relative
from archsim.papers.scnn_figures import layer_figures, quantity, unpublished
from archsim.papers.scnn_tally import Tally, total
from archsim.papers.scnn_what_if import Bars
from energy_models.technology import load_technology

KEYS = {"dcnn_opt": "DCNN-opt", "scnn": "SCNN"}
"""Of the data file, and the machine."""

NOTES = (
    "Note 8. Energies are of each machine's own hardware, counted, and priced in 16 nm (`archsim "
    "show 16nm`): memories from CACTI, logic from synthesis of the emitted blocks, LPDDR4. The "
    "paper's energies for each access are not published, nor its DRAM's: nothing is fitted. "
    "Weights cross the off-chip memory; activations only where they do not fit the PEs' memories "
    "(layers that SCNN cuts into strips, tensors above 1 MB in DCNN), and the image. DRAM is half "
    "of our DCNN's energy or more (8 pJ a bit); by figure 12, in which SparseA would spend about "
    "0.36 with no activation left, it is a third of the paper's at most. Vectors cross whole: "
    "where lists are short, SCNN's weights are mostly empty lanes (density 0.1: 0.37 of the dense "
    "bits, not an eighth). 'On chip alone' leaves DRAM out of both machines. Registers are "
    "clocked in every cycle, as in the emitted core; 'gated' leaves out what those spend that "
    "keep their data.",
    "Note 9. DCNN's structure is not published beyond its multipliers, 2 MB and 5.9 mm²: PEs of a "
    "dot product, FIFO and sums of SCNN's sizes, 16 KB each for inputs and outputs. DCNN-opt "
    "compresses activations off-chip and reads no weights of activations that are zero, and "
    "multiplies by no weight that is. In figure 12 it spends 0.28 at a density of 0.1, but "
    "SparseA, whose weights are dense, 0.45: so its weights seem to cross compressed too, "
    "although the text speaks of activations. 'Weights compressed too' is of that supposition.",
)


def network_energy_rows(figures: Mapping[str, Figure], network: str, ours: Bars) -> list[Row]:
    """A network's energies, and DCNN-opt's as note 9 supposes."""
    whole = total(ours.values())
    rows = [
        figures[f"{network}.{key}"].row(
            relative(whole.energy, machine),
            f"{_reason(whole, machine)}; % of DCNN's: {listed(whole.energy, 'DCNN')}",
            measured=_evidence(whole, machine),
            missing=PRICES,
        )
        for key, machine in KEYS.items()
    ]
    figure = unpublished(
        network,
        "dcnn_opt_weights",
        "networks: energy, DCNN's is 1 (figure 11)",
        f"{network}: DCNN-opt's energy, weights compressed too",
    )
    return [*rows, figure.row(relative(whole.energy, SUPPOSED), "note 9")]


def layer_energy_rows(measured: Bars) -> list[Row]:
    """Figure 11, for the bars that were measured."""
    figures = layer_figures()
    return [
        figures[f"{bar}.{key}"].row(
            relative(tally.energy, machine),
            _reason(tally, machine),
            measured=_evidence(tally, machine),
            missing=PRICES,
        )
        for key, machine in KEYS.items()
        for bar, tally in measured.items()
    ]


PRICES = "the paper's energies for each access, and its DRAM's, are not published (note 8)"


def _reason(tally: Tally, machine: str) -> str:
    """Where its energy went."""
    return f"% of it: {listed(tally.energy, machine)}"


def _evidence(tally: Tally, machine: str) -> list[Measured]:
    """What it would be without DRAM, with gated clocks, or as note 9 supposes."""
    energy, how = tally.energy, "archsim.papers.scnn_energy.relative"
    found = [
        switch("on chip alone", relative(energy, machine, without=("DRAM",)), how),
        switch("gated", relative(energy, machine, without=("held clocks",)), how),
        switch("both", relative(energy, machine, without=("DRAM", "held clocks")), how),
    ]
    if machine == "DCNN-opt":
        found.append(switch("weights compressed too", relative(energy, SUPPOSED), how))
    return found


def sweep_energy_rows(name: str, measured: Mapping[float, Tally]) -> list[Row]:
    """Figure 12, of the core of that name, for the densities measured; with SCNN DCNN-opt too."""
    paper = read_paper("scnn")
    machines = {name: "SCNN", **({"DCNN-opt": "DCNN-opt"} if name == "SCNN" else {})}
    rows: list[Row] = []
    for label, machine in machines.items():
        for density, published in zip(
            paper["sweep"]["densities"], paper["energy_sweep"][label], strict=True
        ):
            if density in measured:
                tally = measured[density]
                figure = quantity("energy", f"{label} at {density}", published)
                rows.append(
                    figure.row(
                        relative(tally.energy, machine),
                        _reason(tally, machine),
                        measured=_evidence(tally, machine),
                        missing=PRICES,
                    )
                )
    return rows


PE_PARTS = {
    "memories": ("iaram", "oaram"),
    "fifo": ("weight_fifo",),
    "alus": ("multipliers",),
    "crossbar": ("operand_stage", "crossbar", "queues"),
    "accumulators": ("accumulator",),
}
"""A row of Table 4, and the components of the emitted core that it has, by how they begin."""


def pe_areas_um2() -> dict[str, float]:
    """Of a PE of the emitted core, by row of Table 4."""
    ours = areas_um2(SCNN_ISCA17)
    return {
        key: sum(value for name, value in ours.items() if name.startswith(names)) / SCNN_ISCA17.pes
        for key, names in PE_PARTS.items()
    }


def area_rows(figures: Mapping[str, Figure]) -> list[Row]:
    """Tables 4 and 5, beside the components of the emitted core and of our DCNN."""
    emitted, table = pe_areas_um2(), load_figures("scnn-area")
    other = evidence(part_areas_um2(load_technology(TECHNOLOGY)))
    rows: list[Row] = []
    for key, names in PE_PARTS.items():
        kept = [one for one in other.get(key, ()) if not one.what.startswith("as emitted")]
        found = f"of the emitted core: {', '.join(names)}"
        rows.append(table[key].row(emitted[key], found, measured=kept, missing=MISSING))
    remark = "without wires, and without what Table 4 calls other; see archsim paper scnn-area"
    whole, dense = (sum(areas_um2(one).values()) / UM2_PER_MM2 for one in (SCNN_ISCA17, DCNN))
    missing = SCNN_ISCA17.pes * printed_areas_um2()["other"] / UM2_PER_MM2
    with_other = switch("with the printed 'other' of 64 PEs", whole + missing, "table scnn-2017")
    rows.append(figures["area.scnn"].row(whole, remark, measured=[with_other], missing=MISSING))
    rows.append(figures["area.dcnn"].row(dense, f"{remark}; note 9", missing=f"note 9; {MISSING}"))
    return rows


def energy_aims(rows: list[Row]) -> str:
    """How many energies are within what was aimed at, and their differences."""
    compared = [row for row in rows if row.published.value and "energy" in row.published.group]
    ratios = [row.ours / (row.published.value or 1) for row in compared]
    return (
        f"Note 10. Energies within a quarter: {sum(bool(row.within) for row in compared)} of "
        f"{len(compared)}; ours over the paper's, median {np.median(ratios):.2f}, "
        f"{min(ratios):.2f} to {max(ratios):.2f}."
    )


__all__ = [
    "NOTES",
    "area_rows",
    "energy_aims",
    "layer_energy_rows",
    "network_energy_rows",
    "sweep_energy_rows",
]
