"""A layer as row vectors and column vectors, cut into steps of the design's lanes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from archsim.layer.layout import ifmap_view, weight_view
from archsim.layer.problem import Problem, margins
from archsim.machine.model import MatrixLayer
from archsim.numbers import IntArray
from workloads.operands import ofmap_shape

AnyArray = npt.NDArray[Any]
Words = npt.NDArray[np.uint64]

DOUBLE_BITS = 53
"""A double holds every integer up to 2^53."""

_BLOCK_VALUES = 1 << 22
"""Of rows that are multiplied at once."""


def window_vectors(layer: MatrixLayer, problem: Problem, ifmap: AnyArray) -> AnyArray:
    """What pixels of the ofmap see: [groups, images · P · Q, R · S · C], channels innermost."""
    split = ifmap_view(layer, problem, ifmap)
    padded = np.pad(split, ((0, 0), (0, 0), *margins(problem), (0, 0)))
    down, across = problem.dilation_height, problem.dilation_width
    reach = (problem.kernel_height - 1) * down + 1, (problem.kernel_width - 1) * across + 1
    seen = np.lib.stride_tricks.sliding_window_view(padded, reach, axis=(2, 3))
    seen = seen[:, :, :: problem.stride_height, :: problem.stride_width, :, ::down, ::across]
    seen = seen[:, :, : problem.out_height, : problem.out_width]
    ordered = seen.transpose(1, 0, 2, 3, 5, 6, 4)
    return ordered.reshape(problem.groups, -1, int(np.prod(ordered.shape[4:])))


def filter_vectors(layer: MatrixLayer, problem: Problem, weight: AnyArray) -> AnyArray:
    """Of each filter: [groups, K, R · S · C]."""
    split = weight_view(layer, problem, weight)
    return split.reshape(problem.groups, problem.filters, -1)


def outputs_of(problem: Problem, needed: AnyArray) -> AnyArray:
    """What a layer has for each output (as its ofmap) as [groups, images · P · Q, K]."""
    if needed.ndim == 3:
        return np.ascontiguousarray(needed.reshape(problem.groups, -1, problem.filters))
    split = needed.reshape(problem.images, problem.groups, problem.filters, -1)
    return np.ascontiguousarray(split.transpose(1, 0, 3, 2)).reshape(
        problem.groups, -1, problem.filters
    )


def ofmap_of(layer: MatrixLayer, problem: Problem, sums: AnyArray) -> AnyArray:
    """The inverse of `outputs_of`."""
    sizes = (problem.images, problem.out_height, problem.out_width)
    shape = ofmap_shape(layer)
    if len(shape) == 3:
        return sums.reshape(shape)
    split = sums.reshape(problem.groups, *sizes, problem.filters)
    return np.ascontiguousarray(split.transpose(1, 0, 4, 2, 3)).reshape(shape)


def dot_products(rows: AnyArray, columns: AnyArray, bits: int) -> IntArray:
    """[groups, rows, columns] of integers of so many bits [groups, vectors, depth], exactly.

    By doubles, a block of rows at a time, as long as they hold every sum.
    """
    groups, count, depth = rows.shape
    found = np.empty((groups, count, columns.shape[1]), np.int64)
    kind = np.float64 if depth.bit_length() + 2 * (bits - 1) <= DOUBLE_BITS else np.int64
    block = max(_BLOCK_VALUES // max(depth, 1), 1)
    for group in range(groups):
        right = columns[group].T.astype(kind)
        for first in range(0, count, block):
            part = slice(first, first + block)
            found[group, part] = rows[group, part].astype(kind) @ right
    return found


def in_steps(vectors: AnyArray, lanes: int) -> AnyArray:
    """[…, depth] as […, steps, lanes], filled with zeros."""
    short = -vectors.shape[-1] % lanes
    if short:
        vectors = np.pad(vectors, [(0, 0)] * (vectors.ndim - 1) + [(0, short)])
    return vectors.reshape(*vectors.shape[:-1], -1, lanes)


def non_zero(vectors: AnyArray, lanes: int) -> Words:
    """[…, depth] as a bit for each value that is not zero: […, steps], lane 0 lowest."""
    flags = in_steps(vectors != 0, lanes)
    packed = np.packbits(flags, axis=-1, bitorder="little")
    whole = np.zeros((*packed.shape[:-1], 8), np.uint8)
    whole[..., : packed.shape[-1]] = packed
    return whole.view("<u8")[..., 0].astype(np.uint64)


def stepped(vectors: IntArray, lanes: int) -> IntArray:
    """`in_steps`, as integers."""
    return in_steps(vectors, lanes).astype(np.int64)


__all__ = [
    "DOUBLE_BITS",
    "dot_products",
    "filter_vectors",
    "in_steps",
    "non_zero",
    "ofmap_of",
    "outputs_of",
    "stepped",
    "window_vectors",
]
