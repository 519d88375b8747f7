"""How tensors flow through a network: what every operator reads and makes.

Layers alone do not tell: a ReLU may be fused, a tensor read by several, views make no layer.
"""

from __future__ import annotations

from dataclasses import dataclass

from workloads.pooling import MaxPool

INPUT = "input"
"""The tensor that a network begins with, where it has one name only."""


@dataclass(frozen=True, kw_only=True)
class Node:
    """One operator: the tensor that it makes bears its name.

    operator: as ONNX calls it.  reads: tensors, nodes or inputs of the network; shape: of what is
    made.  layers: names of those that compute it, none of a view.  relu: a ReLU is fused behind it.
    normalised: so is a batch normalisation before that, folded into weights and bias for inference;
    training has to compute it.  pool: the window of a MaxPool or an AveragePool, both of which
    divide by the places within the plane.  dropout: training drops some of what it reads, as it
    does of every recurrent layer.
    """

    name: str
    operator: str
    reads: tuple[str, ...]
    shape: tuple[int, ...]
    layers: tuple[str, ...] = ()
    relu: bool = False
    normalised: bool = False
    pool: MaxPool | None = None
    dropout: bool = False


__all__ = ["INPUT", "Node"]
