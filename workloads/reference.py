"""Layers in plain NumPy, made to be obviously right and not to be fast."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from workloads.errors import WorkloadError
from workloads.file_scaling import FileScaling
from workloads.layers import Conv2d, MatMul
from workloads.operands import Operands, bias_shape
from workloads.quantize import Integers, requantize


def accumulate(layer: Conv2d | MatMul, ifmap: Integers, weight: Integers) -> NDArray[np.int64]:
    """Exact accumulators of a layer, without bias.

    Conv2d: ifmap [N, C, H, W], weight [K, C/groups, R, S] to [N, K, P, Q]. MatMul: ifmap
    [batch, M, K], weight [1 or batch, K, N] to [batch, M, N]. Raises WorkloadError for other
    shapes.
    """
    if isinstance(layer, MatMul):
        _check(layer.name, "ifmap", ifmap, (layer.batch, layer.m, layer.k))
        _check(layer.name, "weight", weight, (layer.batch, layer.k, layer.n))
        return np.einsum("bmk,bkn->bmn", ifmap.astype(np.int64), weight.astype(np.int64))
    return _convolve(layer, ifmap, weight)


def _convolve(layer: Conv2d, ifmap: Integers, weight: Integers) -> NDArray[np.int64]:
    groups = layer.groups
    depth = layer.channels // groups
    kernel = (layer.kernel_height, layer.kernel_width)
    plane = (layer.ifmap_height, layer.ifmap_width)
    _check(layer.name, "ifmap", ifmap, (layer.batch, layer.channels, *plane))
    _check(layer.name, "weight", weight, (layer.filters, depth, *kernel))
    pads = ((0, 0), (0, 0), (layer.pad_top, layer.pad_bottom), (layer.pad_left, layer.pad_right))
    padded = np.pad(ifmap.astype(np.int64), pads)
    padded = padded.reshape(layer.batch, groups, depth, *padded.shape[2:])
    taps = weight.astype(np.int64).reshape(groups, layer.filters // groups, depth, *kernel)
    height, width = layer.ofmap_height, layer.ofmap_width
    result = np.zeros((layer.batch, groups, layer.filters // groups, height, width), np.int64)
    for r in range(layer.kernel_height):
        for s in range(layer.kernel_width):
            top, left = r * layer.dilation_height, s * layer.dilation_width
            seen = padded[
                :,
                :,
                :,
                top : top + (height - 1) * layer.stride_height + 1 : layer.stride_height,
                left : left + (width - 1) * layer.stride_width + 1 : layer.stride_width,
            ]
            result += np.einsum("ngchw,gkc->ngkhw", seen, taps[..., r, s], optimize=True)
    return result.reshape(layer.batch, layer.filters, height, width)


def compute(
    layer: Conv2d | MatMul, operands: Operands, *, bits: int = 8
) -> NDArray[np.integer[Any]]:
    """The layer's integer ofmap: accumulate, add bias, requantise, ReLU, saturate.

    Shapes of `accumulate`; int8 up to 8 bits, else int16. Of a quantised file's operands the
    file's integers, by its rule and in its type. Outputs that are not needed are 0. Raises
    WorkloadError.
    """
    ofmap = _all_outputs(layer, operands, bits)
    return ofmap if operands.needed is None else ofmap * operands.needed


def _all_outputs(layer: Conv2d | MatMul, operands: Operands, bits: int) -> NDArray[np.integer[Any]]:
    if operands.file is not None:
        return _compute_file(layer, operands, operands.file)
    acc = accumulate(layer, operands.ifmap, operands.weight)
    if operands.bias is not None:
        acc = acc + operands.bias.astype(np.int64).reshape(bias_shape(layer))
    return requantize(acc, operands.multiplier, operands.shift, layer.relu, bits)


def _compute_file(
    layer: Conv2d | MatMul, operands: Operands, scaling: FileScaling
) -> NDArray[np.integer[Any]]:
    axis = 2 if isinstance(layer, MatMul) else 1
    weight_axis = 2 if isinstance(layer, MatMul) else 0
    ifmap = operands.ifmap.astype(np.int64) - scaling.ifmap_zero
    weight = np.moveaxis(operands.weight.astype(np.int64), weight_axis, -1) - scaling.weight_zero
    acc = np.moveaxis(accumulate(layer, ifmap, np.moveaxis(weight, -1, weight_axis)), axis, -1)
    if operands.bias is not None:
        acc = acc + operands.bias
    return np.moveaxis(scaling.ofmap(acc), -1, axis)


def _check(layer: str, name: str, array: NDArray[Any], shape: tuple[int, ...]) -> None:
    if array.shape != shape:
        raise WorkloadError(f"{layer}: {name} must have shape {shape}, not {array.shape}")
