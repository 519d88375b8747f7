"""A case of the sparse core whose ofmap grows beyond its memory, where cells fail."""

from dataclasses import replace

import numpy as np

from archsim.machines.scnn.design import Scnn
from archsim.machines.scnn.words import LayerRun
from rtl.sparse_conformance import SparseCase
from workloads.layers import Conv2d
from workloads.operands import synthetic


def growing(design: Scnn, plane: tuple[int, int] = (5, 4), filters: int = 3) -> SparseCase:
    """An ofmap of zeros as it is meant, twice: what is read wrong makes it longer than an OARAM."""
    layer = Conv2d(
        name="growing", channels=1, filters=filters, ifmap_height=plane[0], ifmap_width=plane[1],
        kernel_height=1, kernel_width=1, relu=True,
    )  # fmt: skip
    drawn = synthetic(layer, bits=6, density=0.9, seed=1)
    operands = replace(
        drawn, ifmap=np.abs(drawn.ifmap), weight=-np.abs(drawn.weight) - 1, shift=0, multiplier=1
    )
    run = LayerRun(layer=layer, operands=operands)
    return SparseCase(design=design, runs=(run, run))
