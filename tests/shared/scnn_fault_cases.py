"""Small layers on small SCNN cores, in which a fault of the RTL shows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scnn_passes import Shape, random_run, with_gaps

from archsim.machines.scnn.design import Scnn
from archsim.machines.scnn.words import LayerRun
from rtl.sparse_conformance import SparseCase
from workloads.operands import Operands

ONE = Scnn(
    grid_rows=1, grid_columns=1, weight_lanes=2, ifmap_lanes=2, banks=2, bank_entries=32,
    weight_fifo_vectors=9, filter_group=2, iaram_bytes=700, oaram_bytes=700, index_bits=2,
    bank_queue=2,
)  # fmt: skip
ACROSS = replace(ONE, grid_columns=2)
DOWN = replace(ONE, grid_rows=2)


PLAIN = Shape(plane=(3, 4), channels=2, filters=5, kernel=(3, 3), pad=(1, 1), has_bias=True)
STRIDED = replace(PLAIN, plane=(5, 5), stride=(2, 2))
FLAT = Shape(plane=(1, 9), channels=3, filters=3)
DOT = Shape(plane=(1, 1), has_bias=True)
FULL = Shape(plane=(1, 8), channels=2, filters=5, kernel=(1, 3), pad=(0, 1))
HALO = Shape(plane=(3, 3), filters=2, kernel=(3, 3), pad=(1, 1))


@dataclass(frozen=True, kw_only=True)
class Case:
    """Layers on one core; weight_gap: idle cycles before every vector of weights."""

    design: Scnn = ONE
    shapes: tuple[Shape, ...]
    density: float = 0.5
    weight_gap: int | None = None

    @property
    def made(self) -> SparseCase:
        """With the operands, and gaps on every port; its answer is the model's."""
        runs = tuple(self._run(shape) for shape in self.shapes)
        case = SparseCase(design=self.design, runs=runs)
        idle = with_gaps(case, seed=9, longest=2)
        idle["bias"][:] = 0
        for port in ("weight", "ofmap"):  # what is of the next layer is offered before it begins
            counts = [len(one.words[port]) for one in case.passes]
            idle[port][np.cumsum([0, *counts[:-1]])] = 0
        if self.weight_gap is not None:
            idle["weight"][:] = self.weight_gap
        return replace(case, idle=idle)

    def _run(self, shape: Shape) -> LayerRun:
        """Small operands, whose sums are seen as they are; the last channel may be empty."""
        run = random_run(self.design, shape, seed=9, density=(self.density, 0.6))
        operands = run.operands
        ifmap, weight = (values % 13 - 6 * (values != 0) for values in _tensors(operands))
        bias = None if operands.bias is None else operands.bias % 13 - 6
        if self.weight_gap is not None:
            ifmap[:, -1] = 0
        small = replace(operands, ifmap=ifmap, weight=weight, bias=bias, multiplier=1, shift=0)
        return replace(run, operands=small)


def _tensors(operands: Operands) -> tuple[Any, Any]:
    return operands.ifmap, operands.weight
