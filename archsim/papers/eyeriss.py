"""Chen et al., ISCA 2016 and JSSC 2017: shares of DRAM, buffers and arithmetic on AlexNet.

A weight-stationary core with Eyeriss' budget (12 × 14 PEs, 16 bits, 108 KB of buffers) is priced
with the paper's own ratios.  It has no register files: what moves between its PEs (an operand and
a partial sum a step) is priced as the paper's transfer between PEs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from archsim.machines.systolic.design import Systolic
from archsim.memory import Plain
from archsim.papers.evidence import Measured, count, switch
from archsim.papers.eyeriss_mapping import least_bytes, once_words
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

MISSING = (
    "row-stationary PEs with register files, and ifmaps compressed on their way (note 2), are not "
    "in our core"
)

OTHER_BATCH = 16


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
    conv, dense = _layers(EYERISS_BUDGET, BATCH)
    spent = {"conv": energies(conv), "fc": energies(dense)}
    mappings = _mappings(conv)
    per_mac = [replace(one, value=one.value * ratios()["DRAM"] / 1000) if one.kind == "switch"
               else one for one in mappings]  # fmt: skip
    return Comparison(
        paper="eyeriss",
        title=str(read_paper("eyeriss")["title"]),
        rows=(
            figures["conv_dram"].row(_accesses(conv), measured=mappings, missing=MISSING),
            figures["conv_dram_energy"].row(
                spent["conv"]["DRAM"] / sum(layer.macs for layer in conv),
                "as the accesses",
                measured=per_mac,
                missing=MISSING,
            ),
            figures["conv_share"].row(_share(conv, dense), measured=_batches(), missing=MISSING),
            *_shares(figures, spent),
        ),
        notes=NOTES,
    )


def _layers(design: Systolic, batch: int) -> tuple[list[LayerResult], list[LayerResult]]:
    """AlexNet's convolutions, and its fully connected layers."""
    result = simulate(design, builtin("alexnet", parameters={"batch": batch}))
    kinds = ("conv2d", "matmul")
    conv, dense = ([one for one in result.layers if one.kind == kind] for kind in kinds)
    return conv, dense


def _accesses(layers: Sequence[LayerResult]) -> float:
    """DRAM accesses of 16 bits per 1000 MACs."""
    words = sum(words_moved(layer, EYERISS_BUDGET)["DRAM"] for layer in layers)
    return 1000 * words / sum(layer.macs for layer in layers)


def _share(conv: Sequence[LayerResult], dense: Sequence[LayerResult]) -> float:
    """Of the convolutions in the energy, per cent."""
    first, second = _total(energies(conv)), _total(energies(dense))
    return 100 * first / (first + second)


def _mappings(conv: Sequence[LayerResult]) -> list[Measured]:
    """The accesses with other buffers and mappings, and how often every operand is read."""
    how = f"archsim.papers.eyeriss, AlexNet's convolutions, batch of {BATCH}"
    found = [
        switch(what, _accesses(_layers(buffers(*sizes), BATCH)[0]), how)
        for what, sizes in BUFFERS.items()
    ]
    for dataflow in ("weight_stationary", "input_stationary"):
        least = least_bytes(replace(EYERISS_BUDGET, dataflow=dataflow), BATCH)
        name = f"{dataflow.replace('_', '-')}, tilings of least traffic"
        found.append(switch(name, _accesses(least), how))
    once, macs = once_words(BATCH), sum(layer.macs for layer in conv)
    found.append(switch("every word once", 1000 * sum(once.values()) / macs, how))
    for port in ("ifmap", "weight", "ofmap"):
        moved = sum(layer.bytes_moved[port] for layer in conv) * 8 / WORD_BITS
        found.append(count(f"each {port} word crosses", moved / once[port], "times", how))
    return found


BUFFERS = {
    "buffers of 24, 12 and 72 KiB": (24, 12, 72),
    "each half as large as the buffer (no double buffering)": (96, 48, 72),
}
"""Ifmap, weight and accumulators, in KiB, beside `EYERISS_BUDGET`'s 48, 24 and 36."""


def buffers(ifmap: int, weight: int, accumulator: int) -> Systolic:
    """The core with buffers of so many KiB."""
    sizes = [Plain(capacity_bytes=1024 * size) for size in (ifmap, weight, accumulator)]
    return replace(
        EYERISS_BUDGET, ifmap_memory=sizes[0], weight_memory=sizes[1], accumulator_memory=sizes[2]
    )


def _batches() -> list[Measured]:
    conv, dense = _layers(EYERISS_BUDGET, OTHER_BATCH)
    how = f"archsim run --dim batch={OTHER_BATCH}, of Eyeriss' budget"
    return [switch(f"a batch of {OTHER_BATCH} instead of {BATCH}", _share(conv, dense), how)]


def _total(spent: Mapping[str, float]) -> float:
    return sum(spent.values())


def _shares(figures: dict[str, Figure], spent: Mapping[str, Mapping[str, float]]) -> list[Row]:
    return [
        figures[f"{kind}.{level}"].row(100 * energy / _total(by_level))
        for kind, by_level in spent.items()
        for level, energy in by_level.items()
    ]
