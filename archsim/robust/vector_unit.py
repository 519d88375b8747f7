"""What is done between two matrix layers of a SimpleNet, by NumPy, in float64 to calibrate with;
[n, C, H, W].

A machine's array makes sums; normalisation, ReLU and pooling are vector work, which has no memory
of this model and no faults.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from workloads.simplenet import NormalizedConvolution
from workloads.simplenet_onnx import EPSILON
from workloads.threads import in_threads

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Values = TypeVar("Values", Floats, Doubles)

AT_ONCE = 1 << 17
"""Values."""


def within(values: Floats, largest: float) -> Floats:
    """Cut to ± largest, as an output stage that saturates does; what is no number is 0."""
    found = np.clip(values, np.float32(-largest), np.float32(largest)).astype(
        np.float32, copy=False
    )
    if np.isnan(found.min(initial=0)):  # one pass, which most machines need alone
        found[np.isnan(found)] = 0
    return found


def by_pictures(
    work: Callable[[slice], npt.NDArray[Any]], pictures: int, values: int
) -> npt.NDArray[Any]:
    """What work makes of slices of pictures of so many values each, one behind the other: few at
    once, so that they stay in a core's cache, by all threads."""
    each = max(1, AT_ONCE // values)
    parts = [slice(at, min(at + each, pictures)) for at in range(0, pictures, each)]
    return np.concatenate(in_threads(work, parts))


def behind(layer: NormalizedConvolution, sums: Values, weights: Mapping[str, Values]) -> Values:
    """Group normalisation, ReLU and maximum pooling of a layer's sums, which are written over."""
    pictures, channels, height, width = sums.shape
    grouped = sums.reshape(pictures, layer.groups, -1)
    grouped -= grouped.mean(axis=2, keepdims=True)
    spread = np.sqrt(np.square(grouped).mean(axis=2, keepdims=True) + np.float32(EPSILON))
    grouped /= spread
    found = grouped.reshape(pictures, channels, height, width)
    found *= (1 + weights[f"{layer.name}.scale"]).reshape(1, -1, 1, 1)
    found += weights[f"{layer.name}.shift"].reshape(1, -1, 1, 1)
    return pooled(np.maximum(found, 0, out=found), layer.pool)


def pooled(values: Values, side: int) -> Values:
    """Maxima of windows side by side; what is left at the edges is dropped."""
    if side == 1:
        return values
    rows, columns = values.shape[2] // side, values.shape[3] // side
    cut = values[:, :, : rows * side, : columns * side]
    found = cut[:, :, ::side, ::side].copy()
    for place in range(1, side * side):
        row, column = divmod(place, side)
        np.maximum(found, cut[:, :, row::side, column::side], out=found)
    return found


def convolved(values: Doubles, weight: Doubles, bias: Doubles) -> Doubles:
    """By weights [F, C, K, K], zeros around: [n, F, H, W]."""
    pictures, channels, height, width = values.shape
    kernel = weight.shape[2]
    reach = kernel // 2
    wide = np.pad(values, ((0, 0), (0, 0), (reach, reach), (reach, reach)))
    found = np.zeros((pictures, len(weight), height * width)) + bias[:, None]
    for row in range(kernel):
        for column in range(kernel):
            seen = wide[:, :, row : row + height, column : column + width]
            found += weight[:, :, row, column] @ seen.reshape(pictures, channels, -1)
    return found.reshape(pictures, -1, height, width)


def window_sums(channel_sums: Values, side: int) -> Values:
    """[n, 1, H, W]: sums of all channels within windows that keep the size, zeros around; of sums
    of all channels."""
    reach, (pictures, one, height, width) = side // 2, channel_sums.shape
    shape = pictures, one, height + 2 * reach, width + 2 * reach
    wide, found = np.zeros(shape, channel_sums.dtype), np.zeros_like(channel_sums)
    wide[:, :, reach : reach + height, reach : reach + width] = channel_sums
    for row in range(side):
        for column in range(side):
            found += wide[:, :, row : row + height, column : column + width]
    return found


__all__ = ["behind", "by_pictures", "convolved", "pooled", "window_sums", "within"]
