"""Values for a layer's tensors, in integers: drawn from a seed, or a real network's own."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from workloads.errors import WorkloadError
from workloads.file_scaling import FileScaling
from workloads.layers import Conv2d, MatMul
from workloads.limits import check_limit
from workloads.quantize import Integers, check_bits, requantize_parameters, storage

if TYPE_CHECKING:
    import onnx

Distribution = Literal["uniform", "normal"]

Origin = Literal["given", "drawn", "file", "input"]
"""Where values come from: a caller, a seed, a model's file, or a run of it on a real input."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Operands:
    """Integer operands of one layer, and how its accumulators become its ofmap.

    Conv2d: ifmap [N, C, H, W], weight [K, C/groups, R, S], bias [K]. MatMul: ifmap [batch, M,
    K], weight [1 or batch, K, N], bias [N]. ifmap and weight are int8 up to 8 bits, else int16;
    bias is int32 at ifmap_scale * weight_scale, or None. The ofmap is
    saturate(relu(((acc + bias) * multiplier + 2**(shift-1)) >> shift)), as
    `workloads.quantize.requantize`. A real value is integer * scale. `scheme` says how the
    values came about, `weight_origin` and `ifmap_origin` from where.

    With `file`, the integers are those of a quantised file, less what makes them fit, and the
    ofmap is as the file has it (`workloads.file_scaling`): its scales are a filter's own, of which
    `weight_scale` is the largest; multiplier and shift are that filter's.

    needed: of the ofmap's shape, which outputs anyone reads; None where all are.  The others are 0
    in what is computed (`workloads.reference.compute`, `LayerResult.ofmap`), whatever the bias; a
    machine that takes no notice computes them all the same, and its ports show them.
    """

    ifmap: Integers
    weight: Integers
    bias: Integers | None
    multiplier: int
    shift: int
    scheme: str
    ifmap_scale: float
    weight_scale: float
    ofmap_scale: float
    weight_origin: Origin = "given"
    ifmap_origin: Origin = "given"
    file: FileScaling | None = None
    needed: NDArray[np.bool_] | None = None


def ofmap_shape(layer: Conv2d | MatMul) -> tuple[int, ...]:
    """Shape of a layer's ofmap."""
    if isinstance(layer, MatMul):
        return layer.batch, layer.m, layer.n
    return layer.batch, layer.filters, layer.ofmap_height, layer.ofmap_width


def operand_shapes(layer: Conv2d | MatMul) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shapes of a layer's (ifmap, weight)."""
    if isinstance(layer, MatMul):
        return (layer.batch, layer.m, layer.k), (layer.batch, layer.k, layer.n)
    depth = layer.channels // layer.groups
    return (
        (layer.batch, layer.channels, layer.ifmap_height, layer.ifmap_width),
        (layer.filters, depth, layer.kernel_height, layer.kernel_width),
    )


def bias_shape(layer: Conv2d | MatMul) -> tuple[int, ...]:
    """Shape which broadcasts a layer's bias along its ofmap."""
    return (1, 1, layer.n) if isinstance(layer, MatMul) else (1, layer.filters, 1, 1)


def synthetic(
    layer: Conv2d | MatMul,
    *,
    bits: int = 8,
    density: float = 1.0,
    distribution: Distribution = "uniform",
    seed: int = 0,
) -> Operands:
    """Operands drawn from `seed` and the layer's name: the same always, others for each layer.

    Of ifmap and weight each, the fraction `density` is not zero (the nearest whole count), at
    random places. Non-zero values are uniform over +-1 ... +-(2^(bits-1) - 1), or the rounded
    normal distribution whose 3 sigma is that limit, clipped to it. A bias lies within +-1
    standard deviation of the accumulator. Multiplier and shift put 3 such deviations at the
    ofmap's limit, so that outputs neither all saturate nor all vanish. Raises WorkloadError.
    """
    _check_request(layer.name, bits, density, distribution)
    check_elements(layer)
    random = np.random.default_rng([seed, zlib.crc32(layer.name.encode())])
    ifmap, weight = (
        _draw(random, shape, bits, density, distribution) for shape in operand_shapes(layer)
    )
    deviation = sqrt(_taps(layer) * _mean_square(ifmap) * _mean_square(weight))
    limit = (1 << (bits - 1)) - 1
    real = min(1.0, limit / (3 * deviation)) if deviation else 1.0
    multiplier, shift = requantize_parameters(real)
    bias = None
    if layer.bias:
        reach = min(int(deviation), 2**31 - 1)
        bias = random.integers(-reach, reach, prod(bias_shape(layer)), np.int32, endpoint=True)
    return Operands(
        ifmap=ifmap,
        weight=weight,
        bias=bias,
        multiplier=multiplier,
        shift=shift,
        scheme=f"synthetic, {distribution}, density {density}, seed {seed}, {bits} bits",
        ifmap_scale=1.0,
        weight_scale=1.0,
        ofmap_scale=2**shift / multiplier,
        weight_origin="drawn",
        ifmap_origin="drawn",
    )


def check_elements(layer: Conv2d | MatMul) -> None:
    """Raise WorkloadError for tensors that are too large to be held (`workloads.limits`)."""
    for tensor in ("ifmap", "weight", "ofmap"):
        count: int = getattr(layer, f"{tensor}_elements")
        check_limit("elements", count, f"{layer.name}: {tensor} elements with values")


def _check_request(where: str, bits: int, density: float, distribution: str) -> None:
    given: Any = density
    if not isinstance(given, (int, float)) or not 0 <= given <= 1:
        raise WorkloadError(f"{where}: density must be 0 to 1, not {given!r}")
    if distribution not in ("uniform", "normal"):
        raise WorkloadError(
            f"{where}: distribution must be uniform or normal, not {distribution!r}"
        )
    check_bits(bits)


def _draw(
    random: np.random.Generator,
    shape: tuple[int, ...],
    bits: int,
    density: float,
    distribution: Distribution,
) -> Integers:
    limit = (1 << (bits - 1)) - 1
    count = prod(shape)
    kind = storage(bits)
    if distribution == "uniform":
        values = random.integers(-limit, limit, count, kind)
        values += values >= 0
    else:
        real = random.standard_normal(count, np.float32) * (limit / 3)
        whole = np.clip(np.rint(np.abs(real)), 1, limit)
        values = np.copysign(whole, real).astype(kind)
    if density < 1:
        values *= _mask(random, count, round(density * count))
    return values.reshape(shape)


def _mask(random: np.random.Generator, count: int, ones: int) -> NDArray[np.bool_]:
    """`count` flags of which exactly `ones`, at random places, are set.

    Each flag of the rarer kind is drawn by itself, a few too few; then random others are turned
    until the number is exact: several times faster than a shuffle for large tensors.
    """
    rarer = min(ones, count - ones)
    aim = max(rarer - 5 * sqrt(rarer), 0.0)
    mask = random.integers(0, 1 << 16, count, np.uint16) < int(aim * (1 << 16) / count)
    missing = rarer - int(np.count_nonzero(mask))
    while missing > 0:
        places = random.permutation(np.unique(random.integers(0, count, 2 * missing + 16)))
        turned = places[~mask[places]][:missing]
        mask[turned] = True
        missing -= len(turned)
    if missing < 0:
        mask[random.permutation(np.flatnonzero(mask))[:-missing]] = False
    return mask if rarer == ones else ~mask


def _taps(layer: Conv2d | MatMul) -> int:
    """Products which one accumulator sums."""
    if isinstance(layer, MatMul):
        return layer.k
    return layer.channels // layer.groups * layer.kernel_height * layer.kernel_width


def _mean_square(x: Integers) -> float:
    flat: NDArray[Any] = x.ravel()
    total = sum(
        float(np.square(flat[i : i + (1 << 20)], dtype=np.float64).sum())
        for i in range(0, flat.size, 1 << 20)
    )
    return total / flat.size


def from_onnx(
    model_or_path: str | Path | onnx.ModelProto,
    inputs: Mapping[str, NDArray[Any]],
    *,
    bits: int = 8,
    dims: Mapping[str, int] | None = None,
    as_file: bool = True,
) -> dict[str, Operands]:
    """Operands of every matrix layer of a model, from its weights and a real input.

    `inputs` gives each input of the network by name; dynamic dimensions are taken from their
    shapes where `dims` does not give them. Weights are the file's constants, however it has them;
    activations come from ONNX Runtime, which runs the network once with what is needed exposed.
    Floats are quantised per tensor and symmetrically; so is the ofmap's scale, after a fused ReLU.
    With `as_file`, the integers of a quantised model that fit `bits` stand as they are, with
    their scales and zero points (`Operands.file`); without, they are floats like others.
    Keys are the layer names of `import_onnx`. Raises WorkloadError.
    """
    from workloads.onnx_operands import Request, operands_of_model

    request = Request(bits=bits, dims=dims, as_file=as_file)
    return operands_of_model(model_or_path, inputs, request)
