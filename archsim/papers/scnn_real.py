"""SCNN on real tensors: trained networks, pruned, on a photograph; beside zeros drawn evenly.

Two networks from packages.  SqueezeNet's weights are pruned here, by magnitude and without
retraining, to the densities of AlexNet's in the paper's figure 1: the first layer's, and the mean
of the others.  The face detector's were pruned in training.  Activations are those of the pruned
network in float, quantised to 8 bits; ofmaps are computed.  The paper has neither network.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np

from archsim.machines.scnn.design import SCNN_ISCA17
from archsim.machines.scnn.layer import layer_values
from archsim.papers.figures import Progress, Row, read_paper, silent
from archsim.papers.scnn_figures import unpublished
from archsim.papers.scnn_layers import SparseLayer, measure, measure_tensors, tensors_of
from archsim.papers.scnn_tally import Tally, total
from workloads.errors import WorkloadError
from workloads.layers import Conv2d
from workloads.onnx_import import import_onnx
from workloads.operands import Operands, from_onnx
from workloads.packaged import packaged
from workloads.sparse import NETWORK, prune_model

PRUNED = "face-detection-pruned"
BITS = 8
GROUP = "real tensors (ours)"

DEPTHWISE = "depthwise"
POINTWISE = "pruned 1 × 1"
"""Kinds of layers of the face detector."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RealLayer:
    """A convolution with its operands; the densities of its tensors are counted."""

    name: str
    layer: Conv2d
    operands: Operands

    @property
    def drawn(self) -> SparseLayer:
        """The layer with as many zeros, which are elsewhere."""
        return SparseLayer(
            bar=self.name,
            layer=self.layer,
            ifmap=_share(self.operands.ifmap),
            weight=_share(self.operands.weight),
            ofmap=_share(self.ofmap()),
        )

    def ofmap(self) -> np.ndarray:
        """[1, K, P, Q]."""
        return layer_values(SCNN_ISCA17, self.layer, self.operands)

    def tally(self) -> Tally:
        tensors = tensors_of(self.layer, self.operands, self.ofmap())
        return measure_tensors(SCNN_ISCA17, self.layer, tensors)


def _share(tensor: np.ndarray) -> float:
    return float(np.count_nonzero(tensor) / tensor.size)


def squeezenet_densities(names: list[str]) -> dict[str, float]:
    """AlexNet's in figure 1: of its first layer, and the mean of its others."""
    known: Mapping[str, tuple[float, float]] = read_paper("scnn")["densities"]["AlexNet"]
    first, *others = (weight for _, weight in known.values())
    return dict.fromkeys(names, float(np.mean(others))) | {names[0]: first}


@cache
def real_layers(name: str) -> tuple[RealLayer, ...]:
    """The convolutions of a packaged network on its first photograph.

    Raises WorkloadError without its package.
    """
    entry = packaged(name)
    model = entry.model()
    if name == NETWORK:
        convolutions = [node.name for node in model.graph.node if node.op_type == "Conv"]
        model = prune_model(model, squeezenet_densities(convolutions))
    operands = from_onnx(model, entry.input(), bits=BITS)
    return tuple(
        RealLayer(name=layer.name, layer=layer, operands=operands[layer.name])
        for layer in import_onnx(model, name=name).matrix_layers
        if isinstance(layer, Conv2d)
    )


def kind_of(one: RealLayer) -> str:
    """Of a layer of the face detector."""
    if one.layer.groups > 1:
        return DEPTHWISE
    return POINTWISE if _share(one.operands.weight) < 0.9 else "others"


NOTE = (
    "Note 12. Real tensors: SqueezeNet v1.1, its weights pruned by magnitude to AlexNet's "
    "densities of figure 1 without retraining, and MediaPipe's sparse face detector, pruned in "
    "training, each on one photograph, quantised to 8 bits. Beside them zeros drawn evenly at each "
    "layer's own densities. The detector's 1 × 1 layers have 8 to 64 channels: lists of a channel "
    "fill few vectors, and DCNN loses nothing there. Depthwise layers give either machine one "
    "channel at a time: DCNN fills 1 of 16 lanes, SCNN spends most of its time in halos and output."
)


def real_rows_or_reason(progress: Progress = silent) -> tuple[list[Row], str]:
    """The rows and their note; without the packages no rows, and what is missing."""
    try:
        return real_rows(progress), NOTE
    except WorkloadError as error:
        return [], f"Note 12. No real tensors: {error}."


def real_rows(progress: Progress = silent) -> list[Row]:
    """Speed-up over DCNN of real tensors, and of as many zeros drawn evenly."""
    progress("SqueezeNet, pruned, on a photograph")
    rows = _rows("SqueezeNet, pruned here", real_layers(NETWORK))
    face = real_layers(PRUNED)
    for kind in (POINTWISE, DEPTHWISE):
        progress(f"face detector: {kind}")
        chosen = tuple(one for one in face if kind_of(one) == kind)
        rows += _rows(f"face detector, {kind}", chosen)
    return rows


def _rows(name: str, layers: tuple[RealLayer, ...]) -> list[Row]:
    real = total(one.tally() for one in layers)
    drawn = total(measure(SCNN_ISCA17, one.drawn) for one in layers)
    weight, ifmap = (
        np.average([_share(tensor) for tensor in tensors], weights=[one.size for one in tensors])
        for tensors in (
            [one.operands.weight for one in layers],
            [one.operands.ifmap for one in layers],
        )
    )
    densities = f"{len(layers)} layers, densities {weight:.2f} of weights, {ifmap:.2f} of ifmaps"
    spent = {key: share for key, share in real.losses().items() if share >= 1}
    listed = ", ".join(f"{key} {share:.0f}" for key, share in spent.items())
    figures = {
        "speed-up": (real.speedup, f"{densities}; % of PE cycles: {listed}"),
        "speed-up, zeros drawn": (drawn.speedup, "the same densities, evenly scattered"),
        "speed-up, oracle": (real.oracle, densities),
    }
    return [
        unpublished(name, key, GROUP, f"{name}: {key}").row(value, reason)
        for key, (value, reason) in figures.items()
    ]


__all__ = ["GROUP", "real_layers", "real_rows", "real_rows_or_reason", "squeezenet_densities"]
