"""Gradient output sparsity: the ideal of each network from measured densities, beside the paper.

The ideal skips every zero and every output that nobody reads, at no cost: MACs over MACs left.
"""

from __future__ import annotations

from functools import cache

from archsim.papers.figures import Comparison, Progress, Row, load_figures, read_paper, silent
from workloads.builtin import builtin
from workloads.layers import Network
from workloads.training.ideal import ideal_speedup
from workloads.training.measured import measured_activity
from workloads.training.step import training_network

NAME = "sarma-cnn"

COLUMNS = {
    "FP": (("FP",), ("ifmap", "weight", "output")),
    "BP_output": (("BP",), ("output",)),
    "BP_input": (("BP",), ("ifmap", "weight")),
    "BP": (("BP",), ("ifmap", "weight", "output")),
    "WG": (("WG",), ("ifmap", "weight", "output")),
    "FP_BP": (("FP", "BP"), ("ifmap", "weight", "output")),
    "all": (("FP", "BP", "WG"), ("ifmap", "weight", "output")),
}
"""Passes, and what of `workloads.sparsity.Densities` is skipped."""

MEAN = "mean"

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
)


def compare(progress: Progress = silent) -> Comparison:
    """The ideal columns, and the ranges of the abstract."""
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
    return Comparison(
        paper=NAME, title=str(read_paper(NAME)["title"]), rows=tuple(rows), notes=NOTES
    )


def ideal(network: str, when: str, column: str) -> float:
    """Of a network at an epoch, or the mean of its training; column: of `COLUMNS`."""
    passes, skip = COLUMNS[column]
    return ideal_speedup(step_at(network, when), *passes, skip=skip)


@cache
def step_at(network: str, when: str) -> Network:
    """A training step with the densities measured then."""
    epoch = None if when == MEAN else int(when)
    return training_network(builtin(network), activity=measured_activity(network, epoch))


__all__ = ["COLUMNS", "MEAN", "RANGES", "compare", "ideal", "step_at"]
