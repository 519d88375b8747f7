"""Tensors of a layer channels-last and split by groups, as every machine takes them.

ifmap [images, groups, H, W, C], weight [groups, K, R, S, C], bias [groups, K],
ofmap [images, groups, P, Q, K].
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from archsim.layer.problem import Problem
from archsim.numbers import IntArray
from workloads.layers import Conv2d, MatMul

Integer = TypeVar("Integer", bound=np.integer[Any])


def split_ifmap(
    layer: Conv2d | MatMul, problem: Problem, ifmap: npt.NDArray[Integer]
) -> npt.NDArray[Integer]:
    """A layer's ifmap ([N, C, H, W] or [b, M, K]) as [images, groups, H, W, C], in that order."""
    return np.ascontiguousarray(ifmap_view(layer, problem, ifmap))


def ifmap_view(
    layer: Conv2d | MatMul, problem: Problem, ifmap: npt.NDArray[Integer]
) -> npt.NDArray[Integer]:
    """The same, in the layer's own order: not copied where it need not be."""
    if isinstance(layer, MatMul):
        shape = (1, problem.groups, 1, problem.width, problem.channels)
        return np.ascontiguousarray(ifmap).reshape(shape)
    sampled = ifmap[:, :, :: problem.row_sample, :: problem.column_sample]
    sampled = sampled[:, :, : problem.height, : problem.width]
    split = sampled.reshape(
        problem.images, problem.groups, problem.channels, problem.height, problem.width
    )
    return split.transpose(0, 1, 3, 4, 2)


def split_weight(
    layer: Conv2d | MatMul, problem: Problem, weight: npt.NDArray[Integer]
) -> npt.NDArray[Integer]:
    """A layer's weight ([K, C, R, S] or [b, K, N]) as [groups, K, R, S, C], in that order."""
    return np.ascontiguousarray(weight_view(layer, problem, weight))


def weight_view(
    layer: Conv2d | MatMul, problem: Problem, weight: npt.NDArray[Integer]
) -> npt.NDArray[Integer]:
    """The same, in the layer's own order: not copied where it need not be."""
    if isinstance(layer, MatMul):
        return weight.transpose(0, 2, 1)[:, :, None, None, :]
    split = weight.reshape(
        problem.groups,
        problem.filters,
        problem.channels,
        problem.kernel_height,
        problem.kernel_width,
    )
    return split.transpose(0, 1, 3, 4, 2)


def split_bias(layer: Conv2d | MatMul, problem: Problem, bias: IntArray) -> IntArray:
    """A layer's bias [filters] as [groups, K]; products of a batch share it."""
    if isinstance(layer, MatMul):
        return np.broadcast_to(bias.reshape(1, -1), (problem.groups, problem.filters))
    return bias.reshape(problem.groups, problem.filters)


def join_ofmap(
    layer: Conv2d | MatMul, problem: Problem, ofmap: npt.NDArray[Integer]
) -> npt.NDArray[Integer]:
    """[images, groups, P, Q, K] as the layer's ofmap ([N, K, P, Q] or [b, M, N])."""
    if isinstance(layer, MatMul):
        return ofmap.reshape(layer.batch, layer.m, layer.n)
    joined = ofmap.transpose(0, 1, 4, 2, 3)
    return joined.reshape(layer.batch, layer.filters, layer.ofmap_height, layer.ofmap_width)


def side_by_side(
    values: npt.NDArray[Integer], groups: int, axes: tuple[int, int]
) -> npt.NDArray[Integer]:
    """Groups of a split array in blocks: [… G … C …] as [… ⌈G / groups⌉ … groups · C …].

    axes: of the groups, and of what is counted in each, behind it.  Empty groups, which fill the
    last block up, are zeros.
    """
    if groups == 1:
        return values
    outer, inner = axes[0] % values.ndim, axes[1] % values.ndim
    blocks = np.moveaxis(blocks_of(values, groups, outer), outer + 1, inner)
    size = groups * values.shape[inner]
    shape = (*blocks.shape[:inner], size, *blocks.shape[inner + 2 :])
    return np.ascontiguousarray(blocks.reshape(shape))


def block_diagonal(weight: npt.NDArray[Integer], groups: int) -> npt.NDArray[Integer]:
    """Weights [G, K, R, S, C, …] in blocks: [⌈G / groups⌉, groups · K, R, S, groups · C, …].

    A filter's weights are 0 in the channels of other groups of its block.
    """
    if groups == 1:
        return weight
    split = blocks_of(weight, groups, 0)
    blocks, _, filters, rows, columns, channels = split.shape[:6]
    shape = (blocks, groups, filters, rows, columns, groups, channels, *split.shape[6:])
    whole = np.zeros(shape, weight.dtype)
    for group in range(groups):
        whole[:, group, :, :, :, group] = split[:, group]
    sizes = (blocks, groups * filters, rows, columns, groups * channels)
    return whole.reshape(*sizes, *split.shape[6:])


def blocks_of(values: npt.NDArray[Integer], size: int, axis: int) -> npt.NDArray[Integer]:
    """Pad `axis` with zeros to a multiple of `size` and split it into [blocks, size]."""
    axis %= values.ndim
    short = -values.shape[axis] % size
    padded = values
    if short:
        padding = [(0, short if at == axis else 0) for at in range(values.ndim)]
        padded = np.pad(values, padding)
    shape = (*values.shape[:axis], padded.shape[axis] // size, size, *values.shape[axis + 1 :])
    return padded.reshape(shape)
