"""Real tensors for Boveda's footprints: weights and activations of two trained networks, in float.

photographs: SqueezeNet v1.1 on one ImageNet photograph (`workloads.packaged`).  words: g2p-en, a
recurrent network, on words of the CMU dictionary (`archsim.papers.vsquant_words`).

Activations are those that a layer reads; what two layers read counts twice, as in
`archsim compress`.  Of a recurrent layer they are those of all steps.

Pruned: of each layer's weights the smallest magnitudes are zero, without retraining; activations
are those of the pruned network.  The densities are in boveda.toml.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from archsim.compression import Kind
from archsim.errors import require
from archsim.papers.figures import read_paper
from archsim.papers.vsquant_points import Arithmetic, Array
from archsim.papers.vsquant_words import sample, sound
from workloads.layers import Conv2d
from workloads.packaged import packaged
from workloads.sparse import NETWORK, prune_magnitude, prune_model

Name = Literal["photographs", "words"]
NAMES: tuple[Name, ...] = ("photographs", "words")

TITLES: Mapping[Name, str] = {"photographs": "SqueezeNet", "words": "g2p-en"}

WORDS = 100
"""Words whose activations are stored."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RealTensor:
    """Numbers [..., channels] of a layer; the first aligned_axes axes number the units.

    stride: of the convolution that reads it, or whose weights these are; 1 of other layers.
    """

    layer: str
    kind: Kind
    values: Array
    aligned_axes: int
    stride: int = 1

    @property
    def signed(self) -> bool:
        """Weights always are."""
        return self.kind == "weights" or bool((self.values < 0).any())


@cache
def real_tensors(name: Name, *, pruned: bool = False) -> tuple[RealTensor, ...]:
    """All tensors of a network, layer by layer.  Raises WorkloadError without its package."""
    return _photograph(pruned) if name == "photographs" else _words(pruned)


def densities() -> Mapping[str, float]:
    """Of pruned weights: `first` layer of the convolutional network, and all `others`."""
    return read_paper("boveda")["pruning"]


def pruned_squeezenet() -> Any:
    """The ONNX model of the packaged SqueezeNet, its weights pruned to `densities`."""
    model: Any = packaged(NETWORK).model()
    names = [node.name for node in model.graph.node if node.op_type == "Conv"]
    kept = {name: densities()["others"] for name in names} | {names[0]: densities()["first"]}
    return prune_model(model, kept)


def _photograph(pruned: bool) -> tuple[RealTensor, ...]:
    from workloads.onnx_import import trace
    from workloads.onnx_model import dims_of_inputs
    from workloads.onnx_operands import float_operands
    from workloads.onnx_runtime import capture

    known, feeds = packaged(NETWORK), packaged(NETWORK).input(0)
    model: Any = pruned_squeezenet() if pruned else known.model()
    traced = trace(model, dims=dims_of_inputs(model, feeds))
    steps = [(node, layers[0]) for node, layers in traced.steps if node.op_type == "Conv"]
    needed = [name for node, _ in steps for name in node.input]
    values = capture(traced.model, feeds, needed)
    found: list[RealTensor] = []
    for node, layer in steps:
        assert isinstance(layer, Conv2d)
        inputs = [values[name] for name in node.input]
        ifmap, weight, _ = float_operands(traced.graph, node, layer, inputs)
        found += _of_convolution(layer, ifmap, weight)
    return tuple(found)


def _of_convolution(layer: Conv2d, ifmap: Array, weight: Array) -> list[RealTensor]:
    def last(values: Array) -> Array:
        return np.ascontiguousarray(values.transpose(0, 2, 3, 1))

    stride = layer.stride_height
    return [
        RealTensor(
            layer=layer.name, kind="weights", values=last(weight), aligned_axes=1, stride=stride
        ),
        RealTensor(
            layer=layer.name, kind="activations", values=last(ifmap), aligned_axes=3, stride=stride
        ),
    ]


@dataclass
class _Kept(Arithmetic):
    """Float, with weights pruned to a density; keeps weights and activations by layer."""

    density: float
    weights: dict[str, Array] = field(default_factory=dict[str, Array])
    activations: dict[str, list[Array]] = field(default_factory=dict[str, list[Array]])

    def weight(self, layer: str, values: Array) -> Array:
        if layer not in self.weights:
            pruned: npt.NDArray[Any] = prune_magnitude(values, self.density)
            self.weights[layer] = values if self.density == 1 else pruned
        return self.weights[layer]

    def activation(self, layer: str, values: Array) -> Array:
        self.activations.setdefault(layer, []).append(values)
        return values


def _words(pruned: bool) -> tuple[RealTensor, ...]:
    kept = _Kept(densities()["others"] if pruned else 1.0)
    sound(sample(WORDS), kept)
    found: list[RealTensor] = []
    for layer, weight in kept.weights.items():
        rows = np.concatenate(kept.activations[layer])
        found.append(RealTensor(layer=layer, kind="weights", values=weight, aligned_axes=1))
        found.append(RealTensor(layer=layer, kind="activations", values=rows, aligned_axes=1))
    return tuple(found)


def fold_stride(tensor: RealTensor) -> RealTensor:
    """A tensor [n, H, W, C] of a strided convolution with the stride folded into channels.

    [n, ⌈H / s⌉, ⌈W / s⌉, s · s · C], what is beyond the edges zero: so DNNsim stores first layers,
    whose groups would else be three channels and zeros.  Raises InputError for other shapes.
    """
    require(tensor.values.ndim == 4, f"{tensor.layer} must be a convolution's to be folded")
    stride, values = tensor.stride, tensor.values
    count, height, width, channels = values.shape
    around = ((0, 0), (0, -height % stride), (0, -width % stride), (0, 0))
    padded = np.pad(values, around)
    rows, columns = padded.shape[1] // stride, padded.shape[2] // stride
    cells = padded.reshape(count, rows, stride, columns, stride, channels)
    folded = cells.transpose(0, 1, 3, 2, 4, 5).reshape(count, rows, columns, -1)
    return replace(tensor, values=np.ascontiguousarray(folded), stride=1)


__all__ = [
    "NAMES",
    "TITLES",
    "WORDS",
    "Name",
    "RealTensor",
    "densities",
    "fold_stride",
    "real_tensors",
]
