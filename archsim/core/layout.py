"""Operands and results as words: what the memory side sends for each tile, and gets back.

Tensors here are channels-last and split by groups: ifmap [images, groups, H, W, C],
weight [groups, K, R, S, C], bias [groups, K], ofmap [images, groups, P, Q, K].
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from archsim.core import commands as cmd
from archsim.core.problem import Problem
from archsim.numbers import IntArray
from workloads.layers import Conv2d, MatMul

Integer = TypeVar("Integer", bound=np.integer[Any])


def split_ifmap(
    layer: Conv2d | MatMul, problem: Problem, ifmap: npt.NDArray[Integer]
) -> npt.NDArray[Integer]:
    """A layer's ifmap ([N, C, H, W] or [b, M, K]) as [images, groups, H, W, C]."""
    if isinstance(layer, MatMul):
        shape = (1, problem.groups, 1, problem.width, problem.channels)
        return np.ascontiguousarray(ifmap).reshape(shape)
    sampled = ifmap[:, :, :: problem.row_sample, :: problem.column_sample]
    sampled = sampled[:, :, : problem.height, : problem.width]
    split = sampled.reshape(
        problem.images, problem.groups, problem.channels, problem.height, problem.width
    )
    return np.ascontiguousarray(split.transpose(0, 1, 3, 4, 2))


def split_weight(
    layer: Conv2d | MatMul, problem: Problem, weight: npt.NDArray[Integer]
) -> npt.NDArray[Integer]:
    """A layer's weight ([K, C, R, S] or [b, K, N]) as [groups, K, R, S, C]."""
    if isinstance(layer, MatMul):
        return np.ascontiguousarray(weight.transpose(0, 2, 1))[:, :, None, None, :]
    split = weight.reshape(
        problem.groups,
        problem.filters,
        problem.channels,
        problem.kernel_height,
        problem.kernel_width,
    )
    return np.ascontiguousarray(split.transpose(0, 1, 3, 4, 2))


def split_bias(layer: Conv2d | MatMul, problem: Problem, bias: IntArray) -> IntArray:
    """A layer's bias [filters] as [groups, K]; products of a batch share it."""
    if isinstance(layer, MatMul):
        return np.broadcast_to(bias.reshape(1, -1), (problem.groups, problem.filters))
    return bias.reshape(problem.groups, problem.filters)


def join_ofmap(layer: Conv2d | MatMul, problem: Problem, ofmap: IntArray) -> IntArray:
    """[images, groups, P, Q, K] as the layer's ofmap ([N, K, P, Q] or [b, M, N])."""
    if isinstance(layer, MatMul):
        return ofmap.reshape(layer.batch, layer.m, layer.n)
    joined = ofmap.transpose(0, 1, 4, 2, 3)
    return joined.reshape(layer.batch, layer.filters, layer.ofmap_height, layer.ofmap_width)


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


def ifmap_part(row: IntArray, ifmap: npt.NDArray[Integer]) -> npt.NDArray[Integer]:
    """A tile's ifmap region: [rows, columns, channels, …]."""
    width = row[cmd.PITCH] // row[cmd.TILE_CHANNELS]
    return ifmap[
        row[cmd.TILE_IMAGE],
        row[cmd.TILE_GROUP],
        row[cmd.IFMAP_ROW] : row[cmd.IFMAP_ROW] + row[cmd.HEIGHT],
        row[cmd.IFMAP_COLUMN] : row[cmd.IFMAP_COLUMN] + width,
        row[cmd.TILE_CHANNEL] : row[cmd.TILE_CHANNEL] + row[cmd.TILE_CHANNELS],
    ]


def ifmap_words(row: IntArray, ifmap: npt.NDArray[Integer], lanes: int) -> npt.NDArray[Integer]:
    """The words of a tile's ifmap region: rows, columns, channels, densely: [words, lanes]."""
    return blocks_of(ifmap_part(row, ifmap).reshape(-1), lanes, 0)


def weight_part(row: IntArray, weight: npt.NDArray[Integer]) -> npt.NDArray[Integer]:
    """The weights of a tile: [filters, R, S, channels, …]."""
    filters = slice(row[cmd.TILE_FILTER], row[cmd.TILE_FILTER] + row[cmd.TILE_FILTERS])
    channels = slice(row[cmd.TILE_CHANNEL], row[cmd.TILE_CHANNEL] + row[cmd.TILE_CHANNELS])
    return weight[row[cmd.TILE_GROUP], filters, :, :, channels]


def weight_words(
    row: IntArray, weight: npt.NDArray[Integer], lanes: int, *, moving: bool
) -> npt.NDArray[Integer]:
    """The words of a tile's weights, in the order of the walk: [words, lanes].

    Stationary in the array or moving down it: blocks of `lanes` filters, each kernel row, column,
    channel.  `moving` into the rows: runs in chunks of `lanes` elements, each filter.
    """
    part = weight_part(row, weight)
    filters = len(part)
    if not moving:
        blocks = blocks_of(part.reshape(filters, -1), lanes, 0)
        return blocks.transpose(0, 2, 1).reshape(-1, lanes)
    runs = part.reshape(filters, -1, row[cmd.RUN_LENGTH])
    chunks = blocks_of(runs, lanes, 2)
    return chunks.transpose(1, 2, 0, 3).reshape(-1, lanes)


def bias_words(row: IntArray, bias: IntArray, lanes: int) -> IntArray:
    """The bias words of an output tile: [words, lanes]."""
    part = bias[row[cmd.TILE_GROUP]]
    part = part[row[cmd.TILE_FILTER] : row[cmd.TILE_FILTER] + row[cmd.TILE_FILTERS]]
    return blocks_of(part, lanes, 0)


def ofmap_words(row: IntArray, ofmap: IntArray, columns: int, padding: IntArray | None) -> IntArray:
    """The words that leave an output tile: [words, columns].

    padding: None where columns are filters (lanes beyond the filters are 0); where columns are
    pixels, the value [groups, K] that a lane without a pixel shows: a requantised bias.
    """
    rows = row[cmd.PIXELS] // row[cmd.PIXEL_COLUMNS]
    part = ofmap[
        row[cmd.TILE_IMAGE],
        row[cmd.TILE_GROUP],
        row[cmd.TILE_ROW] : row[cmd.TILE_ROW] + rows,
        row[cmd.TILE_COLUMN] : row[cmd.TILE_COLUMN] + row[cmd.PIXEL_COLUMNS],
        row[cmd.TILE_FILTER] : row[cmd.TILE_FILTER] + row[cmd.TILE_FILTERS],
    ].reshape(row[cmd.PIXELS], row[cmd.TILE_FILTERS])
    if padding is None:
        return blocks_of(part, columns, 1).transpose(1, 0, 2).reshape(-1, columns)
    blocks = blocks_of(part, columns, 0)
    short = blocks.shape[0] * columns - len(part)
    if short:
        filters = slice(row[cmd.TILE_FILTER], row[cmd.TILE_FILTER] + row[cmd.TILE_FILTERS])
        blocks[-1, columns - short :, :] = padding[row[cmd.TILE_GROUP], filters]
    return blocks.transpose(0, 2, 1).reshape(-1, columns)
