"""SqueezeNet v1.1 on photographs with quantised operands: the image network beside VS-Quant's.

The packaged ONNX graph runs a node at a time in ONNX Runtime; between the nodes the operands of
convolutions are quantised and taken back to float32.  Products are summed in float32, whose
rounding is far below that of any operand here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from archsim.errors import InputError
from archsim.papers.vsquant_node import Node
from archsim.papers.vsquant_points import (
    Alphas,
    Arithmetic,
    Array,
    Point,
    Quantising,
    Recorder,
    Watch,
    sqnr_db,
)
from workloads.optional import load_optional
from workloads.packaged import PHOTOS, packaged, photo

NETWORK = "squeezenet-imagenet"

BATCH = 5
"""Photographs that run together: a matrix product is then long enough for the library."""

EXAMPLES = 4
"""The first photographs, on which coarse scales of activations are calibrated."""

EXAMPLE_VALUES = 50_000
"""Of each layer's activations, at most about so many are looked at for that."""


@dataclass(frozen=True, kw_only=True)
class PhotoScore:
    """Of so many photographs: top class the label's; top class the float network's; noise.

    sqnr_db: of the 1000 logits of all photographs.  layers_db: of every convolution's result
    before its ReLU, in the first BATCH photographs; in the quantised network, so with the noise
    of all layers before.
    """

    photos: int
    correct: int
    agreeing: int
    sqnr_db: float
    layers_db: Mapping[str, float]


def logits(images: Array, arithmetic: Arithmetic) -> Array:
    """The network's numbers before its softmax, [n, 1000], for photographs [n, 3, H, W].

    An ifmap which two convolutions read is quantised once, under the name of its tensor.
    """
    nodes, constants = _graph()
    values: dict[str, Array] = {"image": images, **constants}
    ready: dict[str, Array] = {}
    for node in nodes:
        inputs = [values[name] for name in node.reads]
        if node.operator == "Softmax":
            return inputs[0]
        if node.operator == "Conv":
            ifmap = node.reads[0]
            if ifmap not in ready:
                ready[ifmap] = arithmetic.activation(ifmap, inputs[0])
            inputs[:2] = ready[ifmap], arithmetic.weight(node.name, inputs[1])
        values[node.writes] = node.run(*inputs)
        if node.operator == "Conv":
            arithmetic.product(node.name, values[node.writes])
    raise InputError(f"{NETWORK}: the network must end in a softmax")


@cache
def _graph() -> tuple[list[Node], dict[str, Array]]:
    """Nodes in order, and the constants by name."""
    onnx = load_optional("onnx", install="onnx", purpose="reading the trained SqueezeNet")
    model = packaged(NETWORK).model()
    opset = model.opset_import[0].version
    nodes = [Node.of(node, opset, model.ir_version) for node in model.graph.node]
    return nodes, {each.name: onnx.numpy_helper.to_array(each) for each in model.graph.initializer}


@cache
def _images(first: int, last: int) -> Array:
    return np.concatenate([photo(index)[0] for index in range(first, last)])


@cache
def _labels(count: int) -> npt.NDArray[np.int64]:
    return np.array([photo(index)[1] for index in range(count)])


@cache
def _examples() -> dict[str, Array]:
    recorder = Recorder()
    logits(_images(0, EXAMPLES), recorder)
    return recorder.thinned(EXAMPLE_VALUES)


_ALPHAS: Alphas = {}


@cache
def _float_logits(first: int, last: int) -> Array:
    return logits(_images(first, last), Arithmetic())


@cache
def _float_layers(last: int) -> Mapping[str, Array]:
    results: dict[str, Array] = {}
    logits(_images(0, last), Watch(results))
    return results


@cache
def score_photos(at: Point | None, photos: int = PHOTOS) -> PhotoScore:
    """The network quantised as a point says (None: in float) on the first photographs."""
    results: dict[str, Array] = {}
    arithmetic = Arithmetic() if at is None else Quantising(at, _examples(), _ALPHAS)
    batches = [(first, min(first + BATCH, photos)) for first in range(0, photos, BATCH)]
    noisy = [logits(_images(*batches[0]), Watch(results, arithmetic))]
    noisy += [logits(_images(*batch), arithmetic) for batch in batches[1:]]
    ours = np.concatenate(noisy)
    floats = np.concatenate([_float_logits(*batch) for batch in batches])
    exact = _float_layers(batches[0][1])
    return PhotoScore(
        photos=photos,
        correct=int((ours.argmax(axis=1) == _labels(photos)).sum()),
        agreeing=int((ours.argmax(axis=1) == floats.argmax(axis=1)).sum()),
        sqnr_db=sqnr_db(floats, ours),
        layers_db={layer: sqnr_db(exact[layer], results[layer]) for layer in results},
    )
