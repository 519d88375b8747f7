"""Max pooling behind the layers of a sparse core: windows along an axis, and layers that have one.

Along an axis, window u begins at output u · stride − pad of the layer and has `size` of them; those
beside the plane do not count.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from archsim.errors import InputError
from archsim.layer import layout
from archsim.layer.problem import Problem
from archsim.numbers import IntArray
from workloads.errors import WorkloadError
from workloads.layers import Conv2d, MatMul
from workloads.pooling import MaxPool, max_pool

LOWEST = np.iinfo(np.int64).min
"""What is below every output, beside the plane of a window."""


@dataclass(frozen=True, kw_only=True)
class Window:
    """Windows along an axis.  outputs: U, how many there are; without pooling the others are 1, 1
    and 0, and a window is an output of the layer."""

    size: int = 1
    stride: int = 1
    pad: int = 0
    outputs: int

    def seen(self, windows: range, plane: int) -> range:
        """The outputs of the layer, of so many, from the first to the last in some windows."""
        if not windows:
            return range(0)
        first = windows[0] * self.stride - self.pad
        return range(max(first, 0), min(windows[-1] * self.stride - self.pad + self.size, plane))

    def cut(self, windows: range) -> Window:
        """Some of them, of a plane that begins with the first output that they see."""
        pad = max(self.pad - windows[0] * self.stride, 0)
        return replace(self, pad=pad, outputs=len(windows))


def windows_of(pool: MaxPool | None, plane: tuple[int, int]) -> tuple[Window, Window]:
    """Of the rows and the columns of a layer's plane (P, Q); None: every output is a window."""
    if pool is None:
        return Window(outputs=plane[0]), Window(outputs=plane[1])
    rows, columns = (
        Window(size=size, stride=stride, pad=pad, outputs=outputs)
        for size, stride, pad, outputs in zip(
            pool.window, pool.stride, pool.pad, pool.pooled(plane), strict=True
        )
    )
    return rows, columns


def largest_of_windows(window: Window, given: range, first: int, plane: IntArray) -> IntArray:
    """[given, ...] of a plane [outputs, ...] that begins with output `first` of the layer: the
    largest of each of the given windows, which is one output without pooling; what is beside the
    plane does not count."""
    windows = np.array(given, np.int64)
    found = np.full((len(windows), *plane.shape[1:]), LOWEST)
    for place in range(window.size):
        at = windows * window.stride - window.pad + place - first
        inside = (at >= 0) & (at < len(plane))
        found[inside] = np.maximum(found[inside], plane[at[inside]])
    return found


def pooled_plane(plane: IntArray, windows: tuple[Window, Window]) -> IntArray:
    """[U, V, K] of [P, Q, K]: the largest of each window, which is one output without pooling."""
    if all(window.size == window.stride == 1 and not window.pad for window in windows):
        return plane
    for axis, window in enumerate(windows):
        moved = np.moveaxis(plane, axis, 0)
        found = largest_of_windows(window, range(window.outputs), 0, moved)
        plane = np.moveaxis(found, 0, axis)
    return plane


def check_pool(layer: Conv2d | MatMul, pool: MaxPool | None) -> None:
    """Raise InputError for a pooling that the layer cannot have."""
    if pool is None:
        return
    if isinstance(layer, MatMul):
        raise InputError(f"{layer.name}: a matrix product must have no pooling, not {pool}")
    try:
        pool.pooled((layer.ofmap_height, layer.ofmap_width))
    except WorkloadError as error:
        raise InputError(f"{layer.name}: {error}") from None


def pooled_values(ofmap: IntArray, pool: MaxPool | None) -> IntArray:
    """ofmap [images, groups, P, Q, K], pooled if the layer is."""
    return ofmap if pool is None else max_pool(ofmap, pool)


def join_pooled(
    layer: Conv2d | MatMul, problem: Problem, ofmap: IntArray, pool: MaxPool | None
) -> npt.NDArray[np.int64]:
    """[images, groups, U, V, K] as the layer's ofmap, [N, K, U, V] (of a product [b, M, N])."""
    if pool is None:
        return layout.join_ofmap(layer, problem, ofmap)
    images, groups, rows, columns, filters = ofmap.shape
    return ofmap.transpose(0, 1, 4, 2, 3).reshape(images, groups * filters, rows, columns)


__all__ = ["Window", "check_pool", "join_pooled", "pooled_plane", "pooled_values", "windows_of"]
