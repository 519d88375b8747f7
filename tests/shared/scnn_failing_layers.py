"""Layers for the sparse core with lists in failing cells, and two results laid side by side."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

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

LAYERS = pytest.mark.parametrize(
    ("layer", "pool"),
    [
        (CONV, None),
        (replace(CONV, ifmap_height=100, relu=True), None),
        (replace(CONV, stride_height=1, groups=1, batch=2), POOL),
        (PRODUCT, None),
    ],
    ids=["strided", "strips", "pooled", "product"],
)


def assert_alike(found: Any, right: Any) -> None:
    """Two timings of a layer (`layer_timing`) are the same in values, cycles and actions."""
    assert (found.ofmap == right.ofmap).all() and found.ofmap.shape == right.ofmap.shape
    assert (found.cycles, found.actions) == (right.cycles, right.actions)
    for own, other in zip(found.passes, right.passes, strict=True):
        for name in ("ends", "pe_ends", "weight_cycles", "ofmap_cycles"):
            assert np.array_equal(getattr(own, name), getattr(other, name)), name
        for name in ("products", "outside", "conflict", "skip", "pairs"):
            assert np.array_equal(getattr(own.pes, name), getattr(other.pes, name)), name


@st.composite
def any_layer(draw: st.DrawFn) -> Conv2d:
    """Also of one pixel, one tap or one channel, with strides, groups and borders, a channel a
    group, planes of strips."""
    groups, own, filters = (draw(st.sampled_from(one)) for one in ([1, 2, 3], [1, 2, 5], [1, 3, 7]))
    height, width = draw(st.sampled_from([1, 3, 7, 12, 29])), draw(st.sampled_from([1, 5, 11]))
    rows, columns = (min(draw(st.integers(1, 4)), size) for size in (height, width))
    pads = [draw(st.integers(0, (rows, rows, columns, columns)[at] - 1)) for at in range(4)]
    return Conv2d(
        name="any", channels=own * groups, filters=filters * groups, groups=groups,
        ifmap_height=height, ifmap_width=width, kernel_height=rows, kernel_width=columns,
        stride_height=draw(st.integers(1, 3)), stride_width=draw(st.integers(1, 3)),
        pad_top=pads[0], pad_bottom=pads[1], pad_left=pads[2], pad_right=pads[3],
        batch=draw(st.integers(1, 2)), relu=draw(st.booleans()), bias=draw(st.booleans()),
    )  # fmt: skip
