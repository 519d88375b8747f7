"""LSTM, GRU and RNN layers as matrix products and cell work.

The products with the input do not depend on each other and are one MatMul with M = steps *
batch. Those with the hidden state do: they are one MatMul of as many `steps`, of M = batch each, so
that a layer of a hundred thousand steps is no more to hold than one of two.

Sequences of the batch may end sooner than others. The products of a step are then of those that go
on, and the steps of one number of rows are a MatMul with its cell work.
"""

from __future__ import annotations

from dataclasses import dataclass

from workloads.checks import positive
from workloads.errors import WorkloadError
from workloads.layers import Layer, MatMul, VectorWork
from workloads.limits import check_limit

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
CELL_OPERATIONS = {"LSTM": 17, "GRU": 14, "RNN": 3}
"""Operations per hidden unit and step.

LSTM: 4 sums of both products, 4 biases, 3 sigmoids, 2 tanh, 3 multiplications, 1 addition.
GRU: 3 sums, 3 biases, 2 sigmoids, 1 tanh, the reset's multiplication, and (1 - z) n + z h.
RNN: a sum, a bias, a tanh.
"""

PEEPHOLE_OPERATIONS = 6
"""Operations more with an LSTM's peepholes: 3 multiplications, 3 additions."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """Steps, from `first` on, in each of which so many `rows` of the batch go on."""

    first: int
    steps: int
    rows: int


@dataclass(frozen=True, kw_only=True)
class Recurrence:
    """Sizes of one recurrent layer: `kind` LSTM, GRU or RNN.

    lengths: steps of each sequence of the batch, all `steps` of them by default. Raises
    WorkloadError.
    """

    name: str
    kind: str
    steps: int
    batch: int
    inputs: int
    hidden: int
    directions: int = 1
    peepholes: bool = False
    lengths: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in GATES:
            raise WorkloadError(f"{self.name}: kind must be {', '.join(GATES)}, not {self.kind}")
        positive(self.name, steps=self.steps, batch=self.batch, inputs=self.inputs)
        positive(self.name, hidden=self.hidden, directions=self.directions)
        wrong = [one for one in self.lengths if not 0 <= one <= self.steps]
        if wrong or len(self.lengths) not in (0, self.batch):
            raise WorkloadError(
                f"{self.name}: sequence lengths must be {self.batch} numbers from 0 to "
                f"{self.steps}, not {wrong[0] if wrong else len(self.lengths)}"
            )

    @property
    def runs(self) -> tuple[Run, ...]:
        """The steps, cut where sequences end."""
        if not self.lengths:
            return (Run(first=0, steps=self.steps, rows=self.batch),)
        ends = sorted(set(self.lengths) - {0})
        starts = [0, *ends[:-1]]
        return tuple(
            Run(first=start, steps=end - start, rows=sum(one > start for one in self.lengths))
            for start, end in zip(starts, ends, strict=True)
        )


def recurrent_layers(size: Recurrence) -> tuple[Layer, ...]:
    """Layers of one recurrent layer, direction by direction.

    Named NAME/input, NAME/steps, NAME/cells, where sequences differ in length NAME/steps0,
    NAME/cells0, NAME/steps7, ... by the first step; a second direction's begin NAME/reverse.
    """
    each = 2 * len(size.runs) + 1
    check_limit("layers", size.directions * each, f"{size.name}: layers of its runs")
    layers: list[Layer] = []
    for direction in range(size.directions):
        prefix = size.name if direction == 0 else f"{size.name}/reverse"
        layers += _one_direction(size, prefix)
    return tuple(layers)


def _one_direction(size: Recurrence, prefix: str) -> list[Layer]:
    width, runs = GATES[size.kind] * size.hidden, size.runs
    rows = sum(run.steps * run.rows for run in runs)
    if not rows:
        return []
    layers: list[Layer] = [MatMul(name=f"{prefix}/input", m=rows, n=width, k=size.inputs)]
    first = ""
    for run in runs:
        number = "" if len(runs) == 1 else f"{run.first}"
        product = MatMul(
            name=f"{prefix}/steps{number}",
            m=run.steps * run.rows,
            n=width,
            k=size.hidden,
            weight_of=first,
            steps=run.steps,
        )
        first = first or product.name
        layers += [product, _cells(size, f"{prefix}/cells{number}", run)]
    return layers


def _cells(size: Recurrence, name: str, run: Run) -> VectorWork:
    """What is done with the products of all steps of a run."""
    units = run.steps * run.rows * size.hidden
    operations = CELL_OPERATIONS[size.kind] + PEEPHOLE_OPERATIONS * size.peepholes
    return VectorWork(
        name=name,
        operator=f"{size.kind}Cell",
        input_elements=(2 * GATES[size.kind] + 1) * units,
        output_elements=2 * units if size.kind == "LSTM" else units,
        operations=operations * units,
    )


__all__ = ["GATES", "Recurrence", "Run", "recurrent_layers"]
