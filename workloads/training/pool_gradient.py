"""Windows of a pooling as arrays, and the way back: which place of a window has won."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workloads.pooling import MaxPool
from workloads.training.pass_layer import Array

Winners = NDArray[np.intp]
"""Of each window [N, C, U, V], its place: row · columns of the window + column."""


def seen(x: Array, pool: MaxPool, fill: Any) -> Array:
    """What windows see of x [N, C, H, W]: [places, N, C, U, V], `fill` off the plane."""
    return np.stack([_padded(x, pool, fill)[:, :, rows, columns]
                     for rows, columns in _places(x.shape, pool)])  # fmt: skip


def winners(x: Array, pool: MaxPool) -> Winners:
    """The first largest value of each window."""
    low = np.iinfo(x.dtype).min if x.dtype.kind == "i" else -np.inf
    return np.argmax(seen(x, pool, low), axis=0)


def to_winners(gradient: Array, won: Winners, shape: tuple[int, ...], pool: MaxPool) -> Array:
    """A pooled gradient [N, C, U, V] at the places that have won, summed: [N, C, H, W].

    Of flags, whether any has.
    """
    whole = np.zeros(_padded_shape(shape, pool), gradient.dtype)
    for place, (rows, columns) in enumerate(_places(shape, pool)):
        whole[:, :, rows, columns] += gradient * (won == place)
    (top, left), (height, width) = pool.pad, shape[2:]
    return whole[:, :, top : top + height, left : left + width]


def spread(gradient: Array, shape: tuple[int, ...], pool: MaxPool) -> Array:
    """A gradient [N, C, U, V] to every place of its window, summed: [N, C, H, W]."""
    whole = np.zeros(_padded_shape(shape, pool), gradient.dtype)
    for rows, columns in _places(shape, pool):
        whole[:, :, rows, columns] += gradient
    (top, left), (height, width) = pool.pad, shape[2:]
    return whole[:, :, top : top + height, left : left + width]


def _padded_shape(shape: tuple[int, ...], pool: MaxPool) -> tuple[int, int, int, int]:
    """The plane with its padding, and as far behind as the last window reaches."""
    sizes = [
        max((outputs - 1) * step + window, size + pad)
        for outputs, step, window, size, pad in zip(
            pool.pooled((shape[2], shape[3])), pool.stride, pool.window, shape[2:], pool.pad,
            strict=True,
        )
    ]  # fmt: skip
    return shape[0], shape[1], sizes[0], sizes[1]


def _padded(x: Array, pool: MaxPool, fill: Any) -> Array:
    whole = np.full(_padded_shape(x.shape, pool), fill, x.dtype)
    (top, left), (height, width) = pool.pad, x.shape[2:]
    whole[:, :, top : top + height, left : left + width] = x
    return whole


def _places(shape: tuple[int, ...], pool: MaxPool) -> Iterator[tuple[slice, slice]]:
    """Of each place of a window, row by row, what all windows have there."""
    pooled = pool.pooled((shape[2], shape[3]))
    for row in range(pool.window[0]):
        for column in range(pool.window[1]):
            yield _every(row, pool.stride[0], pooled[0]), _every(column, pool.stride[1], pooled[1])


def _every(first: int, step: int, count: int) -> slice:
    return slice(first, first + (count - 1) * step + 1, step)


__all__ = ["Winners", "seen", "spread", "to_winners", "winners"]
