"""LSTM and GRU layers as matrix products and cell work.

The products with the input do not depend on each other and are one MatMul with M = steps *
batch. The products with the hidden state do, so each step is a MatMul of its own with M =
batch; all steps use the weight of the first (`MatMul.weight_of`).
"""

from __future__ import annotations

from dataclasses import dataclass

from workloads.checks import positive
from workloads.errors import WorkloadError
from workloads.layers import Layer, MatMul, VectorWork

GATES = {"LSTM": 4, "GRU": 3}
CELL_OPERATIONS = {"LSTM": 17, "GRU": 14}
"""Operations per hidden unit and step.

LSTM: 4 sums of both products, 4 biases, 3 sigmoids, 2 tanh, 3 multiplications, 1 addition.
GRU: 3 sums, 3 biases, 2 sigmoids, 1 tanh, the reset's multiplication, and (1 - z) n + z h.
"""


@dataclass(frozen=True, kw_only=True)
class Recurrence:
    """Sizes of one recurrent layer: `kind` LSTM or GRU. Raises WorkloadError."""

    name: str
    kind: str
    steps: int
    batch: int
    inputs: int
    hidden: int
    directions: int = 1

    def __post_init__(self) -> None:
        if self.kind not in GATES:
            raise WorkloadError(f"{self.name}: kind must be LSTM or GRU, not {self.kind}")
        positive(self.name, steps=self.steps, batch=self.batch, inputs=self.inputs)
        positive(self.name, hidden=self.hidden, directions=self.directions)


def recurrent_layers(size: Recurrence) -> tuple[Layer, ...]:
    """Layers of one recurrent layer, direction by direction, step by step.

    Named NAME/input, NAME/step0, NAME/cell0, ...; a second direction's begin NAME/reverse.
    """
    layers: list[Layer] = []
    for direction in range(size.directions):
        prefix = size.name if direction == 0 else f"{size.name}/reverse"
        layers += _one_direction(size, prefix)
    return tuple(layers)


def _one_direction(size: Recurrence, prefix: str) -> list[Layer]:
    width = GATES[size.kind] * size.hidden
    rows = size.steps * size.batch
    layers: list[Layer] = [MatMul(name=f"{prefix}/input", m=rows, n=width, k=size.inputs)]
    first = f"{prefix}/step0"
    units = size.batch * size.hidden
    for step in range(size.steps):
        layers.append(
            MatMul(
                name=f"{prefix}/step{step}",
                m=size.batch,
                n=width,
                k=size.hidden,
                weight_of=first if step else "",
            )
        )
        layers.append(
            VectorWork(
                name=f"{prefix}/cell{step}",
                operator=f"{size.kind}Cell",
                input_elements=2 * size.batch * width + units,
                output_elements=2 * units if size.kind == "LSTM" else units,
                operations=CELL_OPERATIONS[size.kind] * units,
            )
        )
    return layers
