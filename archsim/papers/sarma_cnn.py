"""Gradient output sparsity: the ideal of each network from measured densities, beside the paper.

The ideal skips every zero and every output that nobody reads, at no cost: MACs over MACs left.
"""

from __future__ import annotations

from archsim.papers.figures import Comparison, Progress, Row, load_figures, read_paper, silent
from archsim.papers.sarma_machine import machine_rows
from archsim.papers.sarma_steps import MEAN, ideal

NAME = "sarma-cnn"

RANGES = {
    "bp.lowest": ("resnet50", "1", "BP"),
    "bp.highest": ("vgg16", MEAN, "BP"),
    "both.lowest": ("resnet50", "1", "FP_BP"),
    "both.highest": ("vgg16", MEAN, "FP_BP"),
}
"""Of our networks the one whose ideal is lowest, or highest."""

MISSING = (
    "ours is the ideal of {network}, {when}, a bound for every machine; of which networks, epochs "
    "and machine the paper's figure is, its abstract does not say"
)

NOTES = (
    "Note 1. Densities: SparseTrainTests' measurements over whole trainings on ImageNet "
    "(workloads/training/measured.toml); masks are taken as independent where they meet.",
    "Note 2. The gradient of a network's first layer's input is not computed. Under a max pooling "
    "of 2 × 2 at most a quarter of the places has a gradient; batch normalisation makes gradients "
    "dense, so that ResNets have no zeros of inputs in BP.",
    "Note 3. sparsetrain is timed cycle by cycle, one image, one mask a tensor. What bounds it "
    "below the ideal: its window takes at most three rows a step, its PEs wait for one another, "
    "and dot products that are no multiple of its lanes leave some empty. Windows see padding, "
    "whose zeros it skips and the ideal counts as work: where little else is lost, it passes the "
    "ideal.",
    "Note 4. Of cycles: products, as if every multiplier always had one; ends, what dot products "
    "leave empty in their last cycle if the window had no bounds; window, what it does not reach; "
    "imbalance, PEs that wait for the longest; loads, waits for operands and ofmap; control.",
    "Note 5. Estimates by epoch are of densities alone, no operands drawn: dot products are "
    "sampled with zeros scattered evenly (archsim/machines/sparsetrain/estimate.py).",
)


def compare(progress: Progress = silent) -> Comparison:
    """The ideal columns, the ranges of the abstract, and our machine."""
    rows = [*ideal_rows(progress), *machine_rows(progress)]
    return Comparison(
        paper=NAME, title=str(read_paper(NAME)["title"]), rows=tuple(rows), notes=NOTES
    )


def ideal_rows(progress: Progress = silent) -> list[Row]:
    """Arithmetic on measured densities."""
    rows: list[Row] = []
    for key, figure in load_figures(NAME).items():
        if key in RANGES:
            network, when, column = RANGES[key]
            said = "mean of the training" if when == MEAN else f"epoch {when}"
            missing = MISSING.format(network=network, when=said)
            rows.append(figure.row(ideal(network, when, column), missing=missing))
            continue
        network, when, column = key.rsplit(".", 2)
        progress(f"{network}, {when}")
        rows.append(figure.row(ideal(network, when, column)))
    return rows


__all__ = ["RANGES", "compare", "ideal_rows"]
