"""A layer as dot products: of each output the vectors whose product it is."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from workloads.layers import Conv2d, MatMul

Integers = NDArray[np.int64]


def dot_vectors(
    layer: Conv2d | MatMul, ifmap: NDArray[Any], weight: NDArray[Any]
) -> tuple[Integers, Integers]:
    """Of each output of a layer, in the order of its ofmap, the ifmap's values and the weights'.

    ifmap [N, C, H, W] and weight [K, C/groups, R, S], or [b, M, K] and [1 or b, K, N]; both answers
    are [outputs, depth], where depth is C/groups · R · S in that order, with zeros for padding, or
    K.  They take outputs · depth values each: meant for layers that are simulated word by word.
    """
    ifmap, weight = ifmap.astype(np.int64), weight.astype(np.int64)
    if isinstance(layer, MatMul):
        shape = (layer.batch, layer.m, layer.n, layer.k)
        left = np.broadcast_to(ifmap[:, :, None, :], shape)
        right = np.broadcast_to(weight.transpose(0, 2, 1)[:, None], shape)
        return left.reshape(-1, layer.k), right.reshape(-1, layer.k)
    pads = ((layer.pad_top, layer.pad_bottom), (layer.pad_left, layer.pad_right))
    padded = np.pad(ifmap, ((0, 0), (0, 0), *pads))
    down, across = layer.dilation_height, layer.dilation_width
    reach = ((layer.kernel_height - 1) * down + 1, (layer.kernel_width - 1) * across + 1)
    seen = np.lib.stride_tricks.sliding_window_view(padded, reach, axis=(2, 3))
    seen = seen[:, :, :: layer.stride_height, :: layer.stride_width, ::down, ::across]
    groups, filters = layer.groups, layer.filters // layer.groups
    images, _, rows, columns = seen.shape[:4]
    seen = seen.reshape(images, groups, 1, -1, rows, columns, *seen.shape[4:])
    seen = seen.transpose(0, 1, 2, 4, 5, 3, 6, 7)
    kernel = weight.reshape(groups, filters, 1, 1, *weight.shape[1:])
    shape = (images, groups, filters, rows, columns, *kernel.shape[4:])
    depth = int(np.prod(kernel.shape[4:]))
    left, right = (np.broadcast_to(one, shape).reshape(-1, depth) for one in (seen, kernel))
    return left, right


__all__ = ["dot_vectors"]
