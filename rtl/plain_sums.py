"""The sums of a layer, tap by tap, of its tensors as they are: no vectors, no windows laid out."""

from typing import Any

import numpy as np

from archsim.numbers import IntArray
from workloads.layers import Conv2d, MatMul


def plain_sums(layer: Conv2d | MatMul, operands: Any) -> IntArray:
    """Without bias, in 64 bits: as the layer's ofmap."""
    ifmap, weight = operands.ifmap.astype(np.int64), operands.weight.astype(np.int64)
    return ifmap @ weight if isinstance(layer, MatMul) else _convolved(layer, ifmap, weight)


def _convolved(layer: Conv2d, ifmap: IntArray, weight: IntArray) -> IntArray:
    """ifmap [N, C, H, W], weight [K, C / groups, R, S]."""
    rows, columns = layer.ofmap_height, layer.ofmap_width
    found = np.zeros((layer.batch, layer.filters, rows, columns), np.int64)
    filters, channels = layer.filters // layer.groups, layer.channels // layer.groups
    for p, q, r, s in np.ndindex(rows, columns, layer.kernel_height, layer.kernel_width):
        y = p * layer.stride_height + r * layer.dilation_height - layer.pad_top
        x = q * layer.stride_width + s * layer.dilation_width - layer.pad_left
        if not (0 <= y < layer.ifmap_height and 0 <= x < layer.ifmap_width):
            continue
        for group in range(layer.groups):
            of, at = (slice(group * size, (group + 1) * size) for size in (filters, channels))
            found[:, of, p, q] += ifmap[:, at, y, x] @ weight[of, :, r, s].T
    return found


__all__ = ["plain_sums"]
