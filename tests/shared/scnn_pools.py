"""Cores, poolings and layers in front of them, for the tests of the SCNN core's RTL."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scnn_passes import Shape, chained, random_run, with_gaps

from archsim.machines.scnn.design import Scnn
from archsim.machines.scnn.words import LayerRun
from rtl.sparse_conformance import SparseCase
from workloads.pooling import MaxPool

FOUR = Scnn(
    grid_rows=2, grid_columns=2, weight_lanes=2, ifmap_lanes=2, banks=4, bank_entries=24,
    weight_fifo_vectors=9, filter_group=2, iaram_bytes=400, oaram_bytes=400, index_bits=2,
    bank_queue=2,
)  # fmt: skip
SIX = replace(FOUR, grid_rows=3, bank_entries=19, bank_queue=1)
ROW = replace(FOUR, grid_rows=1)

THREE = MaxPool(window=(3, 3), stride=(2, 2))
TWO = MaxPool(window=(2, 2), stride=(2, 2))
PADDED = MaxPool(window=(3, 3), stride=(1, 2), pad=(1, 2), ceil=True)
APART = MaxPool(window=(2, 1), stride=(3, 2), pad=(1, 0), ceil=True)
ONE = MaxPool(window=(1, 1), stride=(1, 1))
WIDE = MaxPool(window=(3, 3), stride=(1, 1), pad=(1, 1))

PLANE = Shape(plane=(6, 7), channels=2, filters=3, kernel=(3, 3), pad=(1, 1), has_bias=True)
STRIDED = Shape(plane=(8, 7), filters=3, kernel=(3, 2), stride=(2, 1), pad=(1, 1), relu=True)
POINT = Shape(plane=(1, 1), filters=2)
FLAT = Shape(plane=(1, 9), channels=2, filters=3, kernel=(1, 3), has_bias=True)


@dataclass(frozen=True, kw_only=True)
class Chain:
    """Layers, some of whose ofmaps stay; longest: of the gaps of all ports; small: operands whose
    sums are seen as they are; below: and which are all below 0."""

    shapes: tuple[Shape, ...]
    design: Scnn = FOUR
    keeps: tuple[bool, ...] = ()
    longest: int = 0
    seed: int = 6
    small: bool = False
    below: bool = False

    @property
    def made(self) -> SparseCase:
        if self.keeps:
            runs = chained(self.design, self.shapes, self.keeps, seed=self.seed)
        else:
            runs = tuple(random_run(self.design, shape, seed=self.seed) for shape in self.shapes)
        if self.small or self.below:
            runs = tuple(_small(run, below=self.below) for run in runs)
        case = SparseCase(design=self.design, runs=runs)
        if not self.longest:
            return case
        idle = with_gaps(case, seed=self.seed, longest=self.longest)
        return replace(case, idle=idle | {"bias": np.zeros_like(idle["bias"])})


def _small(run: LayerRun, *, below: bool) -> LayerRun:
    operands = run.operands
    ifmap, weight = operands.ifmap % 13, operands.weight % 13
    if below:
        ifmap, weight = abs(ifmap) + 1, -abs(weight) - 1
    else:
        ifmap, weight = ifmap - 6 * (ifmap != 0), weight - 6 * (weight != 0)
    bias = None if operands.bias is None else operands.bias % 13 - 6
    small = replace(operands, ifmap=ifmap, weight=weight, bias=bias, multiplier=1, shift=0)
    return replace(run, operands=small)


def one(shape: Shape, pool: MaxPool, design: Scnn = FOUR, **more: Any) -> Chain:
    return Chain(shapes=(replace(shape, pool=pool),), design=design, **more)
