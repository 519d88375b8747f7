"""Which gradients a training step has to compute: what learns, what is needed, by whom.

A tensor has a gradient where a weight that is trained lies before it and the network's end behind
it.  What nothing reads is an end, whose gradient the loss gives.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from workloads.errors import WorkloadError, unknown_name
from workloads.flow import Node
from workloads.layers import Conv2d, MatMul, Network, VectorWork

TABLES = ("Gather",)
"""Operators, not of matrix layers, with a table that is trained."""


@dataclass(frozen=True)
class Backward:
    """A network's flow, read for gradients.  frozen: names of nodes whose weights stay as they are.

    Raises WorkloadError for a network whose flow is not known, and for frozen names of none of its
    nodes with weights.
    """

    network: Network
    frozen: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if not self.network.flow:
            raise WorkloadError(
                f"{self.network.name}: what its operators read is not known, so there are no "
                "gradients; built-in networks and ONNX files say it"
            )
        known = [node.name for node in self.network.flow if self._weights(node)]
        for name in sorted(self.frozen):
            if name not in known:
                raise unknown_name("layer with weights", name, known)

    @cached_property
    def nodes(self) -> dict[str, Node]:
        return {node.name: node for node in self.network.flow}

    @cached_property
    def layers(self) -> dict[str, Conv2d | MatMul | VectorWork]:
        return {layer.name: layer for layer in self.network.layers}

    @cached_property
    def readers(self) -> dict[str, tuple[Node, ...]]:
        """Of every tensor, in order; one that reads it twice stands twice."""
        found: dict[str, list[Node]] = {name: [] for name in self.nodes}
        for node in self.network.flow:
            for name in node.reads:
                found.setdefault(name, []).append(node)
        return {name: tuple(nodes) for name, nodes in found.items()}

    def matrix(self, node: Node) -> tuple[Conv2d | MatMul, ...]:
        """The matrix layers of a node."""
        found = (self.layers[name] for name in node.layers)
        return tuple(layer for layer in found if not isinstance(layer, VectorWork))

    def _weights(self, node: Node) -> bool:
        products = self.matrix(node)
        of_weights = any(isinstance(one, Conv2d) or one.shared_weight for one in products)
        return of_weights or node.operator in TABLES

    def trains(self, node: Node) -> bool:
        """Whether weights of the node itself are trained."""
        return self._weights(node) and node.name not in self.frozen

    @cached_property
    def learning(self) -> frozenset[str]:
        """Tensors that depend on something trained: they have gradients."""
        found: set[str] = set()
        for node in self.network.flow:
            if self.trains(node) or not found.isdisjoint(node.reads):
                found.add(node.name)
        return frozenset(found)

    def wanted(self, node: Node) -> bool:
        """Whether the gradient of what a node reads is asked for."""
        return not self.learning.isdisjoint(node.reads)

    @cached_property
    def backwards(self) -> tuple[Node, ...]:
        """The nodes with gradients, last first."""
        return tuple(node for node in reversed(self.network.flow) if node.name in self.learning)

    def ends(self, node: Node) -> bool:
        """Whether nothing reads what the node makes."""
        return not self.readers[node.name]


__all__ = ["TABLES", "Backward"]
