"""What is done between two matrix layers of a SimpleNet: float32, [n, C, H, W].

A machine's array makes sums; normalisation, ReLU and pooling are vector work, which has no memory
of this model and no faults.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from workloads.simplenet import NormalizedConvolution
from workloads.simplenet_onnx import EPSILON

Floats = npt.NDArray[np.float32]


def within(values: Floats, largest: float) -> Floats:
    """Cut to ± largest, as an output stage that saturates does; what is no number is 0."""
    found = np.nan_to_num(values, nan=0.0, posinf=largest, neginf=-largest)
    return np.clip(found, -largest, largest).astype(np.float32, copy=False)


def behind(layer: NormalizedConvolution, sums: Floats, weights: Mapping[str, Floats]) -> Floats:
    """Group normalisation, ReLU and maximum pooling of a layer's sums."""
    pictures, channels, height, width = sums.shape
    grouped = sums.reshape(pictures, layer.groups, -1)
    mean = grouped.mean(axis=2, keepdims=True)
    centred = grouped - mean
    spread = np.sqrt(np.square(centred).mean(axis=2, keepdims=True) + np.float32(EPSILON))
    normal = (centred / spread).reshape(pictures, channels, height, width)
    scale = (1 + weights[f"{layer.name}.scale"]).reshape(1, -1, 1, 1)
    found = np.maximum(normal * scale + weights[f"{layer.name}.shift"].reshape(1, -1, 1, 1), 0)
    return pooled(found.astype(np.float32, copy=False), layer.pool)


def pooled(values: Floats, side: int) -> Floats:
    """Maxima of windows side by side; what is left at the edges is dropped."""
    if side == 1:
        return values
    pictures, channels, height, width = values.shape
    rows, columns = height // side, width // side
    cut = values[:, :, : rows * side, : columns * side]
    return cut.reshape(pictures, channels, rows, side, columns, side).max(axis=(3, 5))


def window_sums(values: Floats, side: int) -> Floats:
    """[n, 1, H, W]: sums of all channels within windows that keep the size, zeros around."""
    flat = values.sum(axis=1, keepdims=True)
    reach = side // 2
    wide = np.pad(flat, ((0, 0), (0, 0), (reach, reach), (reach, reach)))
    height, width = flat.shape[2:]
    found = np.zeros_like(flat)
    for row in range(side):
        for column in range(side):
            found += wide[:, :, row : row + height, column : column + width]
    return found


__all__ = ["behind", "pooled", "window_sums", "within"]
