"""Edo et al., MLSys 2021: Boveda's footprints, on networks that come in packages, and on SCNN.

Of the paper only the abstract could be had.  Its three numbers stand beside what the same format
takes for the tensors there are here; the rows below them show how much of it the choice of number
format decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from archsim.papers import boveda_scnn_machine
from archsim.papers.boveda_footprint import chosen
from archsim.papers.boveda_machines import ACCUMULATOR_KIBIBYTES, MACHINES, sweep
from archsim.papers.boveda_rows import (
    STATES,
    footprint_rows,
    layer_records,
    machine_rows,
    sparse_rows,
    sparse_words,
)
from archsim.papers.boveda_schemes import schemes
from archsim.papers.boveda_scnn import Index, Words
from archsim.papers.boveda_scnn_machine import SPARSE_MACHINES
from archsim.papers.boveda_tensors import NAMES, TITLES, WORDS, Name, densities
from archsim.papers.evidence import Measured, switch
from archsim.papers.figures import (
    Comparison,
    Figure,
    Progress,
    Row,
    load_figures,
    read_paper,
    silent,
)
from archsim.papers.scnn_layers import NETWORKS

INDICES: tuple[Index, ...] = ("value", "word")

MISSING = "the paper's networks and number formats are not published (notes 1 and 2)"


@dataclass(frozen=True, kw_only=True)
class LayerComparison(Comparison):
    """A comparison whose record has the tensors of every layer too."""

    layers: tuple[dict[str, Any], ...] = ()

    def record(self) -> dict[str, Any]:
        """The table as plain data, and under "layers" every tensor in every number format."""
        return {**super().record(), "layers": list(self.layers)}


def compare(progress: Progress = silent) -> LayerComparison:
    """The published figures, ours beside them, and the footprints of every number format."""
    figures = load_figures("boveda")
    for name in NAMES:
        progress(f"{TITLES[name]}: number formats")
        schemes(name)
    sparse = sparse_words(progress)
    rows = [*_published(figures, sparse)]
    for name in NAMES:
        for pruned, state in STATES.items():
            progress(f"{TITLES[name]}: {state}")
            rows += footprint_rows(name, pruned=pruned)
    rows += sparse_rows(sparse)
    for machine in MACHINES:
        rows += machine_rows(machine, sweep(machine, progress=progress))
    for machine in SPARSE_MACHINES:
        points = boveda_scnn_machine.sweep(machine, progress=progress)
        rows += boveda_scnn_machine.machine_rows(machine, points)
    return LayerComparison(
        paper="boveda",
        title=str(read_paper("boveda")["title"]),
        rows=tuple(rows),
        notes=notes(),
        layers=tuple(layer_records()),
    )


def _published(figures: Mapping[str, Figure], sparse: Mapping[tuple[str, str], Words]) -> list[Row]:
    """The figures of the data file, with ours nearest to them: 16 bits, profiled points."""
    rows: dict[str, Row] = {}
    for name in NAMES:
        rows |= _dense_rows(figures, name)
    for network in ("SqueezeNet", *NETWORKS):
        values = "real" if network == "SqueezeNet" else "drawn"
        words, strict = sparse[network, "profiled"], sparse[network, "strict"]
        for index in INDICES:
            key = f"{network}.{index}"
            rows[key] = figures[key].row(
                100 - words.reduction(index),
                values,
                measured=[_kept(100 - strict.reduction(index))],
                missing=MISSING,
            )
    return [rows[key] for key in figures]


def _dense_rows(figures: Mapping[str, Figure], name: Name) -> dict[str, Row]:
    """Of a network's dense tensors: Boveda's bits, ShapeShifter's with 8 and with 16 bits."""
    title, known = TITLES[name], schemes(name)
    whole = {key: chosen(name, each, first="folded") for key, each in known.items()}
    pruned = chosen(name, known["tensor-8"], pruned=True, first="folded")
    folded = "conv1 folded (note 3)" if name == "photographs" else ""
    traffic = {key: each.others["shapeshifter"] for key, each in whole.items()}
    thinned = switch(
        "weights pruned, without retraining", pruned.others["shapeshifter"], f"{HOW}.chosen"
    )
    asked: dict[str, tuple[float, list[Measured]]] = {
        "dense": (whole["profiled"].boveda, [_kept(whole["strict"].boveda), _one_more(name)]),
        "shapeshifter8": (traffic["tensor-8"], [thinned]),
        "shapeshifter16": (traffic["profiled"], [_kept(traffic["strict"])]),
    }
    return {
        f"{title}.{key}": figures[f"{title}.{key}"].row(
            ours, folded, measured=measured, missing=MISSING
        )
        for key, (ours, measured) in asked.items()
    }


HOW = "archsim.papers.boveda_footprint"


def _kept(value: float) -> Measured:
    return switch("with every answer kept, right or wrong", value, f"{HOW}, scheme strict")


def _one_more(name: Name) -> Measured:
    """What a fraction bit more of weights and of activations takes."""
    scheme = schemes(name)["profiled"]
    assert scheme.fractions is not None
    finer = replace(scheme, fractions=(scheme.fractions[0] + 1, scheme.fractions[1] + 1))
    value = chosen(name, finer, first="folded").boveda
    return switch("with one more fraction bit", value, f"{HOW}.chosen")


def notes() -> tuple[str, ...]:
    """What many rows have in common."""
    first, others = densities()["first"], densities()["others"]
    return (
        "Note 1. The body of the paper could not be had: not its networks, number formats, "
        "memories, or how means are taken. Only the numbers of its abstract are judged, within "
        "ten points of ours or a quarter of them; nothing is fitted to them. The format is that "
        "of the group's patent application and of their simulator DNNsim, with what neither says "
        "chosen here (docs/boveda.md). What the abstract's 47 % is of is not said; it is read as "
        "a footprint of 53 %.",
        "Note 2. Number formats: a scale a tensor puts its largest magnitude at the end of the "
        "container, so that only groups far below it leave bits. One binary point for the whole "
        "network leaves bits in layers whose largest is smaller. DNNsim's generic points are 15 "
        "fraction bits for weights and 2 for activations, clipped. Profiled points have the "
        "fewest fraction bits with which no fewer answers are right than in float, on 20 "
        "photographs or 200 words, as the group's papers find precisions, for each layer and on "
        "many more pictures. Twenty photographs cannot tell how few bits are enough: this is a "
        "lower bound, and keeping every answer, right or wrong, the upper one. The two are far "
        "apart, so a match within the tolerance says little.",
        "Note 3. Groups of 16 along the channels. SqueezeNet's conv1 reads 3 channels, so 13 of 16 "
        "values of each group are zeros that fill it; folding its stride of 2 into channels, as "
        "DNNsim does, makes 12 of them. Every (x, y) of activations begins in a new row: with 16 "
        "channels a row holds one group, whatever its width, which is most of the padding. "
        "SqueezeNet is on one photograph; g2p-en has the states of all steps of "
        f"{WORDS} words, signed and hardly ever zero.",
        f"Note 4. Pruned: {first:g} of conv1's and {others:g} of all other weights stay, the "
        "largest, without retraining; activations are the pruned network's own. SCNN's lists "
        "begin a new word at every channel of a PE's tile and of 8 filters. Values of AlexNet, "
        "VGG-16 and GoogLeNet are drawn at SCNN's densities, 3 standard deviations at the largest "
        "magnitude of each layer: over all 16 bits, and over as many as SqueezeNet's "
        "integers. They lack the differences between layers and channels that real ones have, and "
        "these bits decide: one more of mean width takes 5 points off with an index a value, 5.9 "
        "with an index a word.",
        "Note 5. 'bare' is without widths and pointers; padding is the rest of units' last rows. "
        "Other codecs as archsim.codecs.reference_codecs describes them: ShapeShifter also leaves "
        "out zeros, 'per layer' is one width for a tensor in Boveda's columns, zero-run are SCNN's "
        "values with 4 bits of run, entropy is the limit of codes for single values. "
        "--json has all tensors of all layers.",
        "Note 6. Machines: 1,024 MACs and 16 bytes from off chip a cycle, "
        f"{ACCUMULATOR_KIBIBYTES} KiB of accumulators, ifmap and weight memories of the size that "
        "the row gives; SqueezeNet's own values on one photograph, without folding. Bytes of a "
        "compressed memory are those of its rows and directory; it holds at most twice the words "
        "of its rows, so that at best about half of it is saved. Off-chip data are not compressed: "
        "traffic falls only where memory was too small, in steps, since tiles are whole. Groups "
        "are of a word's lanes: channels of activations (16, or 32 in two groups), but of weights "
        "the filters that the array's columns work at. Energy (45 nm) is with as many bytes of "
        "rows and the directory beside them.",
        "Note 7. SCNN's IARAM and OARAM, of the size that the row gives in each PE, with as many "
        "bytes of rows, and entries beside for twice the vectors (docs/contracts/"
        "compressed-stream.md). Values have 8 bits, since products of 16 would not fit the "
        "accumulators; in containers of 16 that alone halves them, in containers of 8 only what "
        "values leave is saved. Traffic falls where a plane is cut into fewer strips, each of "
        "which loads the weights anew. Energy of memories is with what packs and unpacks, and "
        "that is clocked in every cycle.",
    )


__all__ = ["LayerComparison", "compare", "notes"]
