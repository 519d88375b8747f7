"""Sparse operands of a layer: drawn at given densities, or of a trained network that was pruned.

A density is the share of a tensor that is not zero; it is met exactly (the nearest whole count).

Drawn.  Every place has a key from the standard normal distribution, and the places with the
largest keys are those that are not zero.  Keys of weights are independent (of any
distribution, which changes nothing).  Those of activations
[N, C, H, W] are, with `clustering` c,

    key = √(1 − c²) · u + c · (0.7 · v + 0.7 · w + 0.14 · z)

u: independent for each place.  v: noise of each channel's plane, smoothed by a Gaussian whose
standard deviation is `PATCH` of the plane's sides, wrapped at the edges, scaled to variance 1.
w: one number for each channel of each image.  z: as v, the same for all channels of an image.
So c = 0 scatters zeros evenly; with more, they come in patches, channels differ in their density,
and so do, less, the parts of the image.  Of the packaged SqueezeNet's activations on photographs
the densities of tiles (an eighth of the plane's sides) spread as with c = `MEASURED_CLUSTERING`.

Pruned.  Of each layer's weights the smallest magnitudes become zero, as Han et al., "Learning both
Weights and Connections for Efficient Neural Networks", NIPS 2015, without their retraining: zeros
are where they would be, but the network's answers suffer.  Activations are those of the pruned
network, with the zeros of its ReLUs.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from math import prod, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from workloads.errors import WorkloadError, unknown_name
from workloads.layers import Conv2d, MatMul
from workloads.operands import Operands, operand_shapes
from workloads.optional import load_optional
from workloads.quantize import Integers, check_bits, storage

if TYPE_CHECKING:
    import onnx

Keys = NDArray[np.float32]

PATCH = 1 / 8
"""Standard deviation of the smoothing, in sides of the plane."""

SHARES = (0.7, 0.7, 0.14)
"""Of a key's patches, channel and image; the sum of their squares is 1."""

MEASURED_CLUSTERING = 0.8
"""Rounded to a tenth; `tests/workloads/test_sparse.py` measures it."""

NETWORK = "squeezenet-imagenet"


def sparse_operands(
    layer: Conv2d | MatMul,
    *,
    weight_density: float,
    ifmap_density: float,
    clustering: float = 0.0,
    bits: int = 16,
    seed: int = 0,
) -> Operands:
    """Operands drawn from `seed` and the layer's name: the same always, others for each layer.

    Values that are not zero are uniform: weights over ±1 … ±(2^(bits−1) − 1), activations, which
    come from a ReLU, over the positive ones.  There is no bias.  Raises WorkloadError unless both
    densities and `clustering` are 0 to 1.
    """
    check_bits(bits)
    ifmap_shape, weight_shape = operand_shapes(layer)
    random = np.random.default_rng([seed, zlib.crc32(layer.name.encode())])
    where = f"{layer.name}: ifmap"
    ifmap = sparse_activations(
        ifmap_shape, ifmap_density, clustering=clustering, bits=bits, random=random, where=where
    )
    _check_share(f"{layer.name}: weight", density=weight_density)
    kept = _largest(random.random(prod(weight_shape), np.float32), weight_density)
    weight = _values(random, kept, bits) * random.choice(
        np.array([-1, 1], storage(bits)), len(kept)
    )
    return Operands(
        ifmap=ifmap,
        weight=weight.reshape(weight_shape),
        bias=None,
        multiplier=1,
        shift=0,
        scheme=f"synthetic, densities {weight_density} (weight) and {ifmap_density} (ifmap), "
        f"clustering {clustering}, seed {seed}, {bits} bits",
        ifmap_scale=1.0,
        weight_scale=1.0,
        ofmap_scale=1.0,
    )


def sparse_activations(
    shape: tuple[int, ...],
    density: float,
    *,
    clustering: float = 0.0,
    bits: int = 16,
    random: np.random.Generator,
    where: str = "activations",
) -> Integers:
    """A tensor [N, C, H, W] (or [batch, M, K], clustered along M) of zeros and positive values."""
    _check_share(where, density=density, clustering=clustering)
    kept = _largest(_keys(random, shape, clustering).ravel(), density)
    return _values(random, kept, bits).reshape(shape)


def _check_share(where: str, **shares: float) -> None:
    for name, share in shares.items():
        if not 0 <= share <= 1:
            raise WorkloadError(f"{where}: {name} must be 0 to 1, not {share}")


def _keys(random: np.random.Generator, shape: tuple[int, ...], clustering: float) -> Keys:
    """Keys of activations (module docstring), of the shape [N, C, H, W] or [batch, M, K]."""
    scattered = random.standard_normal(shape, np.float32)
    if not clustering:
        return scattered
    planes = shape if len(shape) == 4 else (shape[0], shape[2], 1, shape[1])
    patches = _smoothed(random.standard_normal(planes, np.float32))
    channels = random.standard_normal((*planes[:2], 1, 1), np.float32)
    image = _smoothed(random.standard_normal((planes[0], 1, *planes[2:]), np.float32))
    own, channel, common = (np.float32(clustering * share) for share in SHARES)
    clustered = own * patches + channel * channels + common * image
    if len(shape) != 4:
        clustered = clustered[:, :, 0].transpose(0, 2, 1)
    return (clustered + scattered * np.float32(sqrt(1 - clustering**2))).astype(np.float32)


def _smoothed(noise: Keys) -> Keys:
    """Each plane of [N, C, H, W] smoothed (module docstring), of variance 1 in the mean."""
    height, width = noise.shape[2:]
    whole = np.outer(_response(np.fft.fftfreq(height)), _response(np.fft.fftfreq(width)))
    scale = sqrt(float(np.square(whole).mean()))
    spectrum = np.fft.rfft2(noise) * (whole[:, : width // 2 + 1] / scale)
    return np.fft.irfft2(spectrum, (height, width)).astype(np.float32)


def _response(frequencies: NDArray[Any]) -> NDArray[Any]:
    """A Gaussian of PATCH · side, at frequencies in cycles a place [side]."""
    return np.exp(-2 * np.square(np.pi * PATCH * len(frequencies) * frequencies))


def _largest(keys: NDArray[Any], density: float) -> NDArray[np.bool_]:
    """Flags of the round(density · count) largest keys of [count]."""
    count = round(density * len(keys))
    kept = np.zeros(len(keys), np.bool_)
    if count:
        kept[np.argpartition(keys, -count)[-count:]] = True
    return kept


def _values(random: np.random.Generator, kept: NDArray[np.bool_], bits: int) -> Integers:
    """Uniform over 1 … 2^(bits−1) − 1 where `kept`, else 0."""
    limit = (1 << (bits - 1)) - 1
    return random.integers(1, limit, len(kept), storage(bits), endpoint=True) * kept


def prune_magnitude(weight: NDArray[Any], density: float) -> NDArray[Any]:
    """The weights with all but the round(density · count) largest magnitudes set to zero.

    Raises WorkloadError unless the density is 0 to 1.
    """
    _check_share("pruning", density=density)
    kept = _largest(np.abs(weight.astype(np.float64)).ravel(), density)
    return np.where(kept.reshape(weight.shape), weight, weight.dtype.type(0))


def prune_model(model: onnx.ModelProto, densities: Mapping[str, float]) -> onnx.ModelProto:
    """A copy of an ONNX model whose Conv nodes named in `densities` are pruned to these.

    Biases and nodes that are not named stay.  Raises WorkloadError for a name that no Conv node
    with constant weights has, and for a density outside 0 to 1.
    """
    package = load_optional("onnx", install="onnx", purpose="pruning an ONNX model")
    pruned = package.ModelProto()
    pruned.CopyFrom(model)
    weights = _convolutions(pruned)
    for name, density in densities.items():
        if name not in weights:
            raise unknown_name("convolution", name, tuple(weights))
        tensor = weights[name]
        values = prune_magnitude(package.numpy_helper.to_array(tensor), density)
        tensor.CopyFrom(package.numpy_helper.from_array(values, tensor.name))
    return pruned


def prune_convolutions(model: onnx.ModelProto, density: float) -> onnx.ModelProto:
    """A copy of an ONNX model with the constant weights of every Conv node pruned to a density.

    Raises WorkloadError as `prune_model`, and for a model without such a node.
    """
    names = list(_convolutions(model))
    if not names:
        raise WorkloadError(f"{model.graph.name}: no convolution has constant weights to prune")
    return prune_model(model, dict.fromkeys(names, density))


def _convolutions(model: onnx.ModelProto) -> dict[str, Any]:
    """The constant weights of Conv nodes, by the node's name or its first output."""
    constants: dict[str, Any] = {each.name: each for each in model.graph.initializer}
    return {
        node.name or node.output[0]: constants[node.input[1]]
        for node in model.graph.node
        if node.op_type == "Conv" and node.input[1] in constants
    }


__all__ = [
    "MEASURED_CLUSTERING",
    "NETWORK",
    "PATCH",
    "prune_convolutions",
    "prune_magnitude",
    "prune_model",
    "sparse_activations",
    "sparse_operands",
]
