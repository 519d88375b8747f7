"""Vector work of the backward pass: the counting rule of `workloads.vector_work`, of gradients.

What reads a tensor and what it makes of the gradient, in operations an element of it:

* Relu, and each other function with a threshold: a selection (LeakyRelu: and a multiplication).
* Sigmoid dy·y·(1 − y): 3.  Tanh dy·(1 − y²): 3.  Exp dy·y: 1.  Sqrt, Reciprocal: 3.  Gelu, of
  0.5·x·(1 + erf(x/√2)): erf (as in forward: 2), a square, an exp, 3 multiplications, 2 additions.
  HardSwish: 4.  Swish: 5.
* Softmax y·(dy − Σ dy·y): 4.  A Softmax at the network's end, with the cross entropy behind it:
  y − 1 of the right class, 1.
* LayerNormalization, with sums of dγ and dβ: 9.  RMSNormalization: 6.
* BatchNormalization in training, forward: mean 1, variance 3, normalise 1, scale and shift 2.
  Backward: dβ 1, dγ 2, and γ/σ · (dy − dβ/n − x̂ · dγ/n): 5.
* LRN over n channels: n − 1 additions and 7 more.
* MaxPool: an addition for each pooled element; AveragePool: one for each element of each window,
  and the division; GlobalAveragePool: a division a channel.
* Add, Concat and the like pass gradients on or move them; Mul: a multiplication for each operand;
  Sub, Neg: 1.  Gather of a table of embeddings: an addition for each element.
* A tensor that several read: an addition for each reader after the first.
* Cells of LSTM, per unit and step: 4 derivatives of gates at 3, dc through tanh 4, and 7
  multiplications and additions between them: 23; of GRU 21; of RNN 3.
* A bias: an addition for each element of the layer's ofmap.
"""

from __future__ import annotations

from math import prod

from workloads.errors import WorkloadError
from workloads.flow import Node
from workloads.layers import VectorWork

PER_ELEMENT = {
    "Relu": 1, "LeakyRelu": 2, "PRelu": 3, "Clip": 2, "Sigmoid": 3, "Tanh": 3, "Exp": 1,
    "Sqrt": 3, "Reciprocal": 3, "Gelu": 9, "HardSwish": 4, "HardSigmoid": 2, "Swish": 5, "Neg": 1,
    "Sub": 1, "Mul": 2, "Softmax": 4, "LayerNormalization": 9, "RMSNormalization": 6, "Gather": 1,
    "BatchNormalization": 8, "RotaryEmbedding": 3,
}  # fmt: skip
"""Operations for each element of what is made (module docstring)."""

MOVING = ("Add", "Concat", "Reshape", "Transpose", "Slice", "Split", "Expand", "Pad", "Flatten",
          "Identity", "Dropout", "Squeeze", "Unsqueeze")  # fmt: skip
"""Gradients are passed on, or moved; views do not even move them."""

CELLS = {"LSTM": 23, "GRU": 21, "RNN": 3}
NORMALISATION_FORWARD = 7
"""Batch normalisation with the batch's own mean and variance, an element."""

VALUES_KEPT = {
    "BatchNormalization": 1, "LayerNormalization": 1, "RMSNormalization": 1, "LRN": 2, "Sigmoid": 1,
    "Tanh": 1, "Exp": 1, "Sqrt": 1, "Reciprocal": 1, "Gelu": 1, "HardSwish": 1, "Swish": 1,
    "Softmax": 1, "LSTM": 6, "GRU": 5, "RNN": 1,
}  # fmt: skip
"""Values kept for the backward pass, an element of what is made: x̂, y or the gates."""


def operations(node: Node, *, at_end: bool) -> int:
    """Operations of a node's gradient; at_end: no other reads it.  Raises WorkloadError for an
    operator whose gradient is not defined here."""
    elements = prod(node.shape)
    if node.operator == "Softmax" and at_end:
        return elements
    if node.operator in PER_ELEMENT:
        return PER_ELEMENT[node.operator] * elements
    if node.operator in MOVING:
        return 0
    if node.operator in CELLS:
        return CELLS[node.operator] * elements
    if node.operator == "LRN":
        return 12 * elements
    if node.operator in ("MaxPool", "GlobalAveragePool"):
        return elements
    if node.operator == "AveragePool" and node.pool:
        return elements * (prod(node.pool.window) + 1)
    known = ", ".join(sorted({*PER_ELEMENT, *MOVING, *CELLS}))
    raise WorkloadError(
        f"the gradient of node {node.name} is not defined: its operator is {node.operator}; those "
        f"with one are matrix layers, poolings, LRN, {known}"
    )


def vector(name: str, operator: str, read: int, made: int, operations: int) -> VectorWork:
    """Work of so many operations between elements read and made."""
    return VectorWork(name=name, operator=operator, input_elements=read, output_elements=made,
                      operations=operations)  # fmt: skip


__all__ = ["CELLS", "MOVING", "NORMALISATION_FORWARD", "PER_ELEMENT", "VALUES_KEPT", "operations",
           "vector"]  # fmt: skip
