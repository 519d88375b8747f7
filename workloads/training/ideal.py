"""What skipping could gain at most: MACs of some passes over those that are left.

Perfect skipping of every zero operand and of every output that is not needed, masks independent of
one another, nothing lost to lanes, imbalance or memory: an upper bound for any machine.
"""

from __future__ import annotations

from collections.abc import Collection
from math import prod

from workloads.layers import Network

SKIPS = ("ifmap", "weight", "output")


def ideal_speedup(step: Network, *passes: str, skip: Collection[str] = SKIPS) -> float:
    """Of a training step with densities.

    passes: FP, BP, WG.  skip: what of `Densities` is skipped.  Infinite where nothing is left.
    """
    training = step.training
    if training is None:
        raise ValueError(f"{step.name} is no training step")
    whole, left = 0.0, 0.0
    for layer in step.matrix_layers:
        if training.passes[layer.name] in passes:
            densities = step.densities_of(layer)
            whole += layer.macs
            left += layer.macs * prod(getattr(densities, name) for name in skip)
    return whole / left if left else float("inf")


__all__ = ["SKIPS", "ideal_speedup"]
