"""What the forward pass leaves for the others: values, each tensor once, and flags.

Kept are: the ifmap of each layer whose weight is trained, and both operands of a product of two;
what the gradient of vector work reads (`rules.VALUES_KEPT`).  A ReLU's flags are those of its
output where that is kept, and one bit an element where it is not; a MaxPool keeps which place of
its window has won.
"""

from __future__ import annotations

from math import prod

from workloads.flow import Node
from workloads.layers import MatMul
from workloads.training.backward import Backward
from workloads.training.rules import VALUES_KEPT

THRESHOLDS = ("Relu", "LeakyRelu", "Clip", "PRelu", "HardSigmoid")


def kept_values(backward: Backward) -> tuple[int, int]:
    """(elements, bits of flags)."""
    kept, flags = dict[str, int](), 0
    for node in backward.network.flow:
        if node.name in backward.learning:
            kept.update(_read_again(backward, node))
    for node in backward.network.flow:
        if node.name not in backward.learning:
            continue
        if (node.relu or node.operator in THRESHOLDS) and node.name not in kept:
            flags += prod(node.shape)
        if node.operator == "MaxPool" and node.pool and backward.wanted(node):
            flags += prod(node.shape) * (prod(node.pool.window) - 1).bit_length()
    return sum(kept.values()), flags


def _read_again(backward: Backward, node: Node) -> dict[str, int]:
    """Elements of the tensors that a node's gradients read, by name."""
    found: dict[str, int] = {}
    products = backward.matrix(node)
    computed = any(isinstance(one, MatMul) and not one.shared_weight for one in products)
    if products and (backward.trains(node) or computed):
        names = [_made(backward, name) for name in node.reads]
        found.update({name: _elements(backward, name, node) for name in names})
    if node.operator == "Mul":
        found.update({name: prod(node.shape) for name in node.reads})
    if node.operator in VALUES_KEPT:
        found[f"{node.name} of its own"] = VALUES_KEPT[node.operator] * prod(node.shape)
    if node.normalised:
        found[f"{node.name}/batch_norm"] = prod(node.shape)
    return found


def _elements(backward: Backward, name: str, reader: Node) -> int:
    made = backward.nodes.get(name)
    if made is not None:
        return prod(made.shape)
    return max(one.ifmap_elements for one in backward.matrix(reader))


def _made(backward: Backward, name: str) -> str:
    """The tensor that a view shows."""
    node = backward.nodes.get(name)
    while node is not None and not node.layers and len(node.reads) == 1:
        name = node.reads[0]
        node = backward.nodes.get(name)
    return name


__all__ = ["kept_values"]
