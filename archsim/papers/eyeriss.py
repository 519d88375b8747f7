"""Chen et al., ISCA 2016 and JSSC 2017: shares of DRAM, buffers and arithmetic on AlexNet.

A weight-stationary core with Eyeriss' budget (12 × 14 PEs, 16 bits, 108 KB of buffers) is priced
with the paper's own ratios.  It has no register files: what moves between its PEs (an operand and
a partial sum a step) is priced as the paper's transfer between PEs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from archsim.designs.systolic import Systolic
from archsim.memory import Plain
from archsim.papers.figures import (
    Comparison,
    Figure,
    Progress,
    Row,
    load_figures,
    read_paper,
    silent,
)
from archsim.result import LayerResult
from archsim.simulate import simulate
from energy_models.table import load_table
from workloads.builtin import builtin

WORD_BITS = 16
BATCH = 4

EYERISS_BUDGET = Systolic(
    rows=12,
    columns=14,
    operand_bits=WORD_BITS,
    accumulator_bits=40,
    ifmap_memory=Plain(capacity_bytes=48 * 1024),
    weight_memory=Plain(capacity_bytes=24 * 1024),
    accumulator_memory=Plain(capacity_bytes=36 * 1024),
    clock_hz=200e6,
)
"""PEs, operand width, buffer capacity and clock of JSSC 2017; dataflow and split are ours."""

NOTES = (
    "Note 1. Priced with the ratios of ISCA 2016, table IV, an access of 16 bits each: DRAM 200, "
    "global buffer 6, transfer between PEs 2, MAC 1 (`eyeriss-2016`).",
    "Note 2. Eyeriss keeps rows of weights, ifmaps and sums in a register file of each PE (row-"
    "stationary) and compresses ifmaps on their way to DRAM; this core does neither. A partial "
    "sum of 40 bits moves one PE further with every MAC.",
    "Note 3. The papers' figures show shares as bars without numbers: of those, ours stand alone.",
)

COMPRESSION = (
    "ifmaps are not compressed here, and weights are fetched again for every image and block of "
    "pixels; row-stationary PEs reuse them from register files"
)


def words_moved(layer: LayerResult, design: Systolic) -> dict[str, float]:
    """Accesses of 16 bits by level: DRAM, buffer, array (between PEs), MAC."""
    actions = layer.actions
    sums = design.accumulator_bits / WORD_BITS
    return {
        "DRAM": layer.total_bytes * 8 / WORD_BITS,
        "buffer": design.rows * actions["ifmap_read"]
        + design.ifmap_lanes * actions["ifmap_write"]
        + design.weight_lanes * (actions["weight_read"] + actions["weight_write"])
        + design.columns * sums * (actions["accumulator_read"] + actions["accumulator_write"]),
        "array": design.rows * design.columns * (1 + sums) * actions["array_step"],
        "MAC": layer.macs,
    }


def ratios() -> dict[str, float]:
    """Energy of one access of 16 bits, or one MAC, relative to a MAC: table IV as shipped."""
    entries = load_table("eyeriss-2016").entries
    buffers = [entry.figure for entry in entries if entry.component == "sram"]
    single = {entry.component: entry.figure for entry in entries if entry.component != "sram"}
    return {
        "DRAM": single["dram"],
        "buffer": max(buffers),
        "array": single["inter_pe"],
        "MAC": single["mac"],
    }


def energies(layers: Sequence[LayerResult]) -> dict[str, float]:
    """Energy of the layers by level, in MACs."""
    costs = ratios()
    moved = [words_moved(layer, EYERISS_BUDGET) for layer in layers]
    return {level: cost * sum(one[level] for one in moved) for level, cost in costs.items()}


def compare(_progress: Progress = silent) -> Comparison:
    """The papers' figures, ours beside them."""
    figures = load_figures("eyeriss")
    result = simulate(EYERISS_BUDGET, builtin("alexnet", parameters={"batch": BATCH}))
    conv = [layer for layer in result.layers if layer.kind == "conv2d"]
    dense = [layer for layer in result.layers if layer.kind == "matmul"]
    spent = {"conv": energies(conv), "fc": energies(dense)}
    macs = sum(layer.macs for layer in conv)
    accesses = sum(words_moved(layer, EYERISS_BUDGET)["DRAM"] for layer in conv)
    share = 100 * _total(spent["conv"]) / (_total(spent["conv"]) + _total(spent["fc"]))
    batch = f"weights of the fully connected layers serve only {BATCH} images"
    return Comparison(
        paper="eyeriss",
        title=str(read_paper("eyeriss")["title"]),
        rows=(
            figures["conv_dram"].row(1000 * accesses / macs, COMPRESSION),
            figures["conv_dram_energy"].row(spent["conv"]["DRAM"] / macs, "as the accesses"),
            figures["conv_share"].row(share, batch),
            *_shares(figures, spent),
        ),
        notes=NOTES,
    )


def _total(spent: Mapping[str, float]) -> float:
    return sum(spent.values())


def _shares(figures: dict[str, Figure], spent: Mapping[str, Mapping[str, float]]) -> list[Row]:
    return [
        figures[f"{kind}.{level}"].row(100 * energy / _total(by_level))
        for kind, by_level in spent.items()
        for level, energy in by_level.items()
    ]
