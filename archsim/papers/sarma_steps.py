"""Training steps with measured densities, and the ideal speedup of their passes."""

from __future__ import annotations

from functools import cache

from workloads.builtin import builtin
from workloads.layers import Network
from workloads.training.ideal import ideal_speedup
from workloads.training.measured import measured_activity
from workloads.training.step import training_network

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


def ideal(network: str, when: str, column: str) -> float:
    """Of a network at an epoch, or the mean of its training; column: of `COLUMNS`."""
    passes, skip = COLUMNS[column]
    return ideal_speedup(step_at(network, when), *passes, skip=skip)


@cache
def step_at(network: str, when: str) -> Network:
    """A training step with the densities measured then."""
    epoch = None if when == MEAN else int(when)
    return training_network(builtin(network), activity=measured_activity(network, epoch))


__all__ = ["COLUMNS", "MEAN", "ideal", "step_at"]
