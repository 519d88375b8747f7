"""What a PE of vector MACs computes with in the hardware comparison: SqueezeNet's own tensors.

Blocks of 16 pixels by 16 filters of three of its layers, quantised as a point says: weights with a
gamma a filter, ifmaps (behind a ReLU, so unsigned) with one a photograph.  The same tensors serve
the paper's BERT points, for which there is no network here whose activations are like BERT's.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from archsim.codecs.vsquant import Floats, Quantized, quantize
from archsim.errors import require
from archsim.numbers import IntArray
from archsim.papers.vsquant_photos import logits
from archsim.papers.vsquant_points import Arithmetic, Array, Point
from workloads.packaged import photo

__all__ = ["FILTERS", "LAYERS", "PIXELS", "Block", "blocks"]

LAYERS = {
    "fire4/expand3x3": "fire4/squeeze1x1/relu",
    "fire5/squeeze1x1": "fire4/concat",
    "fire9/expand3x3": "fire9/squeeze1x1/relu",
}
"""Layer → the tensor it reads: 18, 16 and 36 vectors of 16 channels an output.  Each layer is
taken on a photograph of its own, the first to the third."""

PIXELS = 16
"""Of a block, one after the other from the middle of the ofmap: for so many weights are held."""

FILTERS = 16
"""The first of the layer."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Block:
    """Operands of FILTERS filters at PIXELS pixels, J vectors of V values each; int64.

    weight [FILTERS, J, V], weight_scale [FILTERS, J], activation [PIXELS, J, V],
    activation_scale [PIXELS, J]: in the order of accumulation, tap by tap, in a tap by rising
    channel; scales are 1 where the point has none.
    weight_coarse [FILTERS], activation_coarse: gamma_w, gamma_a.
    """

    layer: str
    weight: IntArray
    weight_scale: IntArray
    activation: IntArray
    activation_scale: IntArray
    weight_coarse: Floats
    activation_coarse: float


@dataclass
class _Kept(Arithmetic):
    """Float; keeps the weights and the ifmaps of LAYERS."""

    weights: dict[str, Array] = field(default_factory=dict[str, Array])
    ifmaps: dict[str, Array] = field(default_factory=dict[str, Array])

    def weight(self, layer: str, values: Array) -> Array:
        if layer in LAYERS:
            self.weights[layer] = values[:FILTERS]
        return values

    def activation(self, layer: str, values: Array) -> Array:
        if layer in LAYERS.values():
            self.ifmaps[layer] = values
        return values


@cache
def _tensors() -> tuple[tuple[str, Array, Array], ...]:
    """Layer, weights [FILTERS, C, R, S] and ifmap [1, C, H, W], in float."""
    found: list[tuple[str, Array, Array]] = []
    for number, (layer, ifmap) in enumerate(LAYERS.items()):
        kept = _Kept()
        logits(photo(number)[0], kept)
        found.append((layer, kept.weights[layer], kept.ifmaps[ifmap]))
    return tuple(found)


def blocks(at: Point) -> list[Block]:
    """The blocks of LAYERS, quantised.  Raises InputError where V does not divide the channels."""
    found: list[Block] = []
    for layer, weight, ifmap in _tensors():
        require(
            weight.shape[1] % at.vector == 0,
            f"vector must divide the {weight.shape[1]} channels of {layer}, not be {at.vector}",
        )
        forms = [at.format(weight=is_weight, signed=is_weight) for is_weight in (True, False)]
        w = quantize(weight, forms[0], coarse_axis=0, name=layer)
        a = quantize(ifmap, forms[1], name=f"ifmap of {layer}")
        w_values, w_scales = _vectors(w, at.vector)
        a_values, a_scales = _vectors(_windows(a, weight.shape[2]), at.vector)
        found.append(
            Block(
                layer=layer,
                weight=w_values,
                weight_scale=w_scales,
                activation=a_values,
                activation_scale=a_scales,
                weight_coarse=w.coarse.reshape(-1),
                activation_coarse=float(a.coarse.reshape(-1)[0]),
            )
        )
    return found


def _windows(ifmap: Quantized, kernel: int) -> Quantized:
    """The windows [PIXELS, C, R, S] of the middle pixels, with zeros around the ifmap."""
    height, width = ifmap.values.shape[2:]
    first = height // 2 * width
    pixels = [divmod(first + number, width) for number in range(PIXELS)]

    def cut(x: Any) -> Any:
        around = kernel // 2
        padded = np.pad(x[0], ((0, 0), (around, around), (around, around)))
        return np.stack([padded[:, y : y + kernel, x : x + kernel] for y, x in pixels])

    scaled = ifmap.format.vector is not None
    return Quantized(
        format=ifmap.format,
        channel_axis=1,
        values=cut(ifmap.values),
        scales=cut(ifmap.scales) if scaled else ifmap.scales,
        coarse=ifmap.coarse,
    )


def _vectors(stored: Quantized, vector: int) -> tuple[IntArray, IntArray]:
    """Values [rows, J, V] and scales [rows, J]."""
    rows = len(stored.values)
    values = np.moveaxis(stored.values.astype(np.int64), 1, -1).reshape(rows, -1, vector)
    if stored.format.vector is None:
        return values, np.ones(values.shape[:2], np.int64)
    return values, np.moveaxis(stored.scales.astype(np.int64), 1, -1).reshape(rows, -1)
