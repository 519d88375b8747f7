"""Dense cores beside which a sparse one is measured.

DCNN of the paper (Parashar et al., ISCA 2017) has the PEs, tiles and multipliers of SCNN, but
computes dot products of dense operands (PT-IS-DP-dense).  DCNN-opt compresses what crosses the
off-chip memory and gates multipliers whose operand is zero: it takes the same cycles.  The oracle
keeps every multiplier busy with products of values that are not zero.

What is chosen here: a dot product is over `vector` channels of one tap; a PE makes its own part of
the ofmap, so nothing is exchanged; memories never make it wait.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from archsim.core.problem import problem_of
from archsim.designs.scnn import Scnn
from archsim.errors import require_positive
from archsim.numbers import ceil_div
from workloads.layers import Conv2d, MatMul


@dataclass(frozen=True, kw_only=True)
class Dcnn:
    """grid_rows × grid_columns PEs, each with a dot product of `vector` channels a cycle."""

    grid_rows: int = 8
    grid_columns: int = 8
    vector: int = 16

    kind: ClassVar[str] = "dcnn"

    def __post_init__(self) -> None:
        require_positive(
            grid_rows=self.grid_rows, grid_columns=self.grid_columns, vector=self.vector
        )

    @property
    def multipliers(self) -> int:
        return self.grid_rows * self.grid_columns * self.vector

    def cycles(self, layer: Conv2d | MatMul) -> int:
        """⌈P / grid_rows⌉ · ⌈Q / grid_columns⌉ · K · R · S · ⌈C / vector⌉ of every image and conv
        group: the PE with the largest tile.

        A matrix product is a row of M pixels (`archsim.core.problem`), so it uses one row of PEs.
        """
        problem = problem_of(layer)
        tile = ceil_div(problem.out_height, self.grid_rows) * ceil_div(
            problem.out_width, self.grid_columns
        )
        taps = problem.kernel_height * problem.kernel_width
        steps = problem.filters * taps * ceil_div(problem.channels, self.vector)
        return problem.images * problem.groups * tile * steps


def oracle_cycles(design: Scnn | Dcnn, products: int) -> int:
    """⌈products / multipliers⌉: a bound that no core with so many multipliers beats."""
    return ceil_div(products, design.multipliers)


DCNN = Dcnn()
"""1024 multipliers as 64 PEs of 16, as the paper's dense cores have; dot products of 16."""


__all__ = ["DCNN", "Dcnn", "oracle_cycles"]
