"""Layers for the sparse core with lists in failing cells, and two results laid side by side."""

from typing import Any

import numpy as np

from workloads.layers import Conv2d, MatMul
from workloads.pooling import MaxPool

CONV = Conv2d(
    name="conv", channels=3, filters=5, ifmap_height=9, ifmap_width=7, kernel_height=3,
    kernel_width=2, pad_top=1, pad_left=1, pad_bottom=1, stride_height=2, bias=True,
)  # fmt: skip
POOL = MaxPool(window=(2, 2), stride=(2, 2))
PRODUCT = MatMul(name="product", m=2, n=9, k=40)
SEEN = 1.5 * 2**-24
"""A rate at which cells may fail, and none of these does."""


def assert_alike(found: Any, right: Any) -> None:
    """Two timings of a layer (`layer_timing`) are the same in values, cycles and actions."""
    assert (found.ofmap == right.ofmap).all() and found.ofmap.shape == right.ofmap.shape
    assert (found.cycles, found.actions) == (right.cycles, right.actions)
    for own, other in zip(found.passes, right.passes, strict=True):
        for name in ("ends", "pe_ends", "weight_cycles", "ofmap_cycles"):
            assert np.array_equal(getattr(own, name), getattr(other, name)), name
        for name in ("products", "outside", "conflict", "skip", "pairs"):
            assert np.array_equal(getattr(own.pes, name), getattr(other.pes, name)), name
