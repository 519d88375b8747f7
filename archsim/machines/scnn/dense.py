"""Dense cores beside which a sparse one is measured.

DCNN of the paper (Parashar et al., ISCA 2017) has the PEs, tiles and multipliers of SCNN, but
computes dot products of dense operands (PT-IS-DP-dense).  DCNN-opt compresses what crosses the
off-chip memory and gates multipliers whose operand is zero: it takes the same cycles
(`archsim.machines.scnn.dense_actions`).  The oracle keeps every multiplier busy with products of
values that are not zero.

What is chosen here: a dot product is over `vector` channels of one tap; a PE makes its own part of
the ofmap, so nothing is exchanged; memories never make it wait.  Its hardware:
`archsim.machines.scnn.dense_components`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, ClassVar

from archsim.errors import require_positive
from archsim.layer.problem import Problem, problem_of
from archsim.machines.scnn.design import Scnn
from archsim.numbers import ceil_div
from workloads.layers import Conv2d, MatMul
from workloads.steps import one_step, steps_in

if TYPE_CHECKING:
    from energy_models.component import Component


@dataclass(frozen=True, kw_only=True)
class Dcnn:
    """grid_rows × grid_columns PEs, each with a dot product of `vector` channels a cycle.

    activation_bytes: of a PE's memory for inputs, and of that for outputs.  accumulators: sums in
    one half.  filter_group: the most filters whose sums are there at a time.  Cycles depend on the
    first three alone.
    """

    grid_rows: int = 8
    grid_columns: int = 8
    vector: int = 16
    operand_bits: int = 16
    accumulator_bits: int = 24
    activation_bytes: int = 16384
    weight_fifo_vectors: int = 50
    accumulators: int = 1024
    filter_group: int = 8

    kind: ClassVar[str] = "dcnn"

    def __post_init__(self) -> None:
        require_positive(**asdict(self))

    @property
    def components(self) -> tuple[Component, ...]:
        """The hardware as components, from which energy and area are computed."""
        from archsim.machines.scnn.dense_components import dcnn_components

        return dcnn_components(self)

    @property
    def pes(self) -> int:
        """PEs of the grid."""
        return self.grid_rows * self.grid_columns

    @property
    def activation_vectors(self) -> int:
        """Words of an activation memory, each the operands of a dot product."""
        return 8 * self.activation_bytes // (self.vector * self.operand_bits)

    @property
    def multipliers(self) -> int:
        return self.pes * self.vector

    def cycles(self, layer: Conv2d | MatMul) -> int:
        """⌈P / grid_rows⌉ · ⌈Q / grid_columns⌉ · K · R · S · ⌈C / vector⌉ of every image and conv
        group: the PE with the largest tile.

        A matrix product is a row of M pixels (`archsim.layer.problem`), so it uses one row of PEs.
        """
        problem, times = problem_of(one_step(layer)), steps_in(layer)
        taps = problem.kernel_height * problem.kernel_width
        steps = times * problem.filters * taps * ceil_div(problem.channels, self.vector)
        return problem.images * problem.groups * self.tile(problem) * steps

    def tile(self, problem: Problem) -> int:
        """Outputs of one filter in the PE that has most."""
        rows = ceil_div(problem.out_height, self.grid_rows)
        return rows * ceil_div(problem.out_width, self.grid_columns)


def oracle_cycles(design: Scnn | Dcnn, products: int) -> int:
    """⌈products / multipliers⌉: a bound that no core with so many multipliers beats."""
    return ceil_div(products, design.multipliers)


DCNN = Dcnn()
"""1024 multipliers as 64 PEs of 16 and 2 MB of memory for activations, as the paper's dense cores
have; dot products of 16.  FIFO and sums have SCNN's sizes."""


__all__ = ["DCNN", "Dcnn", "oracle_cycles"]
