"""Operands of one layer as a vector MAC core takes them: integers, their scales, and the output's.

A layer's integer operands (`workloads.operands`) stand for real values.  These are quantised anew
with a scale for every V of them along the channels (`archsim.codecs.vsquant`).  A unit of what the
core sums (`archsim.codecs.vector_dot`) stands for gamma_w gamma_a 2^dropped, and the output stage
makes of the sums

    z = (sum + bias) · multiplier / 2^shift
    multiplier / 2^shift ~ gamma_w gamma_a 2^dropped / gamma_out

in units of gamma_out = max|real ofmap| / (Qmax Smax), so that the ofmap's largest value is the
largest integer of its format times the largest scale.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np
import numpy.typing as npt

from archsim.codecs.vector_dot import WIDEST, VectorMac
from archsim.codecs.vsquant import Floats, Integers, VectorFormat, quantize
from archsim.errors import InputError, require, require_whole
from archsim.numbers import AnyIntArray, IntArray, ceil_div, saturate
from workloads.errors import WorkloadError
from workloads.layers import Conv2d, MatMul
from workloads.operands import Operands, Origin, operand_shapes
from workloads.quantize import MAX_SHIFT, check_bits, requantize_parameters

__all__ = [
    "MULTIPLIER_BITS",
    "VectorOperands",
    "check_vector_operands",
    "storage",
    "vector_operands",
]

MULTIPLIER_BITS = 16
"""Bits of an unsigned multiplier."""

_SLICE = 1 << 17
"""Values quantised at a time, so that their float64 copies stay in the cache."""


@dataclass(frozen=True, kw_only=True, eq=False)
class VectorOperands:
    """Integer operands of one layer with a scale a vector, and how its sums become its ofmap.

    ifmap: Conv2d [N, C, H, W], MatMul [b, M, K].
    ifmap_scales: Conv2d [N, groups · J, H, W] with J = ⌈(C / groups) / V⌉, since no vector crosses
    groups; MatMul [b, M, J] with J = ⌈K / V⌉.
    weight: Conv2d [K, C / groups, R, S], MatMul [b, K, N].
    weight_scales: Conv2d [K, J, R, S], MatMul [b, J, N].
    bias, multiplier: int64 [filters]; the multiplier is unsigned, of 16 bits.
    shift: one for the layer, 0 to 47.
    ifmap_coarse, weight_coarse [filters], ofmap_coarse: gamma_a, gamma_w and gamma_out: what one
    unit of ifmap · scale, of weight · scale and of z stands for.
    scheme: how the values came about; weight_origin, ifmap_origin: from where.

    Values have the narrowest of int8, int16 and int32 that holds their format; scales are int32.
    Scales are None where the format has none: the core then has no port for them, and counts 1.
    """

    ifmap: AnyIntArray
    ifmap_scales: AnyIntArray | None
    weight: AnyIntArray
    weight_scales: AnyIntArray | None
    bias: IntArray
    multiplier: IntArray
    shift: int
    ifmap_coarse: float
    weight_coarse: Floats
    ofmap_coarse: float
    scheme: str
    weight_origin: Origin = "given"
    ifmap_origin: Origin = "given"

    def __post_init__(self) -> None:
        filters = self.bias.shape
        for name in ("multiplier", "weight_coarse"):
            shape = getattr(self, name).shape
            require(shape == filters, f"{name} must have the shape {filters} of bias, not {shape}")
        least, most = int(self.multiplier.min()), int(self.multiplier.max())
        largest = (1 << MULTIPLIER_BITS) - 1
        require(
            least >= 0 and most <= largest,
            f"multiplier must be 0 to {largest}, but ranges from {least} to {most}",
        )
        require_whole(0, "not be negative", shift=self.shift)
        require(self.shift <= MAX_SHIFT, f"shift must be at most {MAX_SHIFT}, not {self.shift}")


def vector_operands(
    layer: Conv2d | MatMul,
    operands: Operands,
    mac: VectorMac,
    ofmap: VectorFormat,
    bits: int = 8,
    sum_bits: int = 32,
) -> VectorOperands:
    """Quantise a layer's operands for a MAC and an ofmap's format.

    bits: to which `operands` are quantised; with it the largest real ofmap is
    ofmap_scale · (2^(bits-1) - 1).  sum_bits: of the sums to which biases are added, 2 to 62.

    Weights have a gamma a filter (products of a batch share it), activations one a tensor, of
    their largest magnitude.  bias = round(real bias / (gamma_w gamma_a 2^dropped)), clipped.  The
    shift is the largest, of at most 47, at which every multiplier fits.  Roundings are half to
    even.  Where gamma_w or gamma_a is 0, so are bias and multiplier: the bias is lost.
    Raises InputError for operands of other shapes, negative values in an unsigned format, scales
    that are not positive and finite, and gammas whose ratio no multiplier and shift can write.
    """
    _check(layer, operands, ofmap)
    _check_widths(layer.name, bits, sum_bits)
    ifmap, ifmap_scales, gamma_a = _activations(layer, operands, mac.activation)
    weight, weight_scales, gamma_w = _weights(layer, operands, mac.weight)
    step = gamma_w * gamma_a * 2.0**mac.dropped_bits
    gamma_out = operands.ofmap_scale * (2 ** (bits - 1) - 1) / (ofmap.largest * ofmap.largest_scale)
    multiplier, shift = _multipliers(layer.name, step / gamma_out)
    return VectorOperands(
        ifmap=ifmap,
        ifmap_scales=ifmap_scales,
        weight=weight,
        weight_scales=weight_scales,
        bias=_bias(operands, step, sum_bits),
        multiplier=multiplier,
        shift=shift,
        ifmap_coarse=gamma_a,
        weight_coarse=gamma_w,
        ofmap_coarse=gamma_out,
        scheme=f"{operands.scheme}; weights {_said(mac.weight)}; ifmap {_said(mac.activation)}",
        weight_origin=operands.weight_origin,
        ifmap_origin=operands.ifmap_origin,
    )


def check_vector_operands(
    layer: Conv2d | MatMul, operands: VectorOperands, mac: VectorMac, length: int
) -> None:
    """Raise InputError for operands that are not of the layer's shapes or beyond the MAC's formats.

    length: V.  Values are those of the format's bits: a signed one takes -2^(N-1) too, which
    quantisation never makes.
    """
    ifmap, weight = operand_shapes(layer)
    depth = weight[1]
    vectors = ceil_div(depth, length)
    if isinstance(layer, MatMul):
        ifmap_scales = (*ifmap[:2], vectors)
    else:
        ifmap_scales = (ifmap[0], layer.groups * vectors, *ifmap[2:])
    filters = layer.n if isinstance(layer, MatMul) else layer.filters
    _require_shape(layer.name, "bias", operands.bias, (filters,))
    for name, form, shape, scale_shape in (
        ("ifmap", mac.activation, ifmap, ifmap_scales),
        ("weight", mac.weight, weight, (weight[0], vectors, *weight[2:])),
    ):
        values, scales = getattr(operands, name), getattr(operands, f"{name}_scales")
        _require_shape(layer.name, name, values, shape)
        _require_within(f"{layer.name}: {name}", values, form.bits, form.signed)
        has, needs = scales is not None, form.scale_bits is not None
        if has != needs:
            right = "given" if needs else "None"
            said = f"{form.scale_bits} bits of scales" if needs else "no scales"
            raise InputError(
                f"{layer.name}: {name}_scales must be {right}, since its format has {said}"
            )
        if form.scale_bits is not None:
            _require_shape(layer.name, f"{name}_scales", scales, scale_shape)
            _require_within(f"{layer.name}: {name}_scales", scales, form.scale_bits, False)


def _require_shape(where: str, name: str, values: npt.NDArray[Any], shape: tuple[int, ...]) -> None:
    if values.shape != shape:
        raise InputError(f"{where}: {name} must have the shape {shape}, not {values.shape}")


def _require_within(what: str, values: AnyIntArray, bits: int, signed: bool) -> None:
    if values.dtype.kind not in "iu":
        raise InputError(f"{what} must hold integers, not {values.dtype}")
    lowest, highest = (
        (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    )
    least, most = int(values.min()), int(values.max())
    sign = "signed" if signed else "unsigned"
    require(
        lowest <= least and most <= highest,
        f"{what} must fit {bits} bits {sign}, but ranges from {least} to {most}",
    )


def _check(layer: Conv2d | MatMul, operands: Operands, ofmap: VectorFormat) -> None:
    ifmap, weight = operand_shapes(layer)
    filters = (layer.n if isinstance(layer, MatMul) else layer.filters,)
    for name, values, shape in (
        ("ifmap", operands.ifmap, ifmap),
        ("weight", operands.weight, weight),
        ("bias", operands.bias, filters),
    ):
        if values is not None:
            _require_shape(layer.name, name, values, shape)
    for name in ("ifmap_scale", "weight_scale", "ofmap_scale"):
        scale = float(getattr(operands, name))
        require(
            isfinite(scale) and scale > 0,
            f"{layer.name}: {name} must be positive and finite, not {scale:g}",
        )
    require(
        ofmap.vector is None or ofmap.scale_bits is not None,
        f"{layer.name}: the ofmap must have integer scales, not floating ones",
    )


def _check_widths(where: str, bits: int, sum_bits: int) -> None:
    try:
        check_bits(bits)
    except WorkloadError as error:
        raise InputError(f"{where}: {error}") from error
    require_whole(2, f"be 2 to {WIDEST}", sum_bits=sum_bits)
    require(sum_bits <= WIDEST, f"sum_bits must be 2 to {WIDEST}, not {sum_bits}")


def _activations(
    layer: Conv2d | MatMul, operands: Operands, form: VectorFormat
) -> tuple[AnyIntArray, AnyIntArray | None, float]:
    """Values and scales of the ifmap, and gamma_a."""
    x = operands.ifmap
    least, most = int(x.min()), int(x.max())
    require(
        form.signed or least >= 0,
        f"{layer.name}: ifmap must not be negative in the unsigned format of activations, as "
        f"{least} is; a signed format takes it",
    )
    channel, cut = 2, 1
    if isinstance(layer, Conv2d):
        x = x.reshape(layer.batch, layer.groups, -1, *x.shape[2:])
        cut = 3
    alpha = max(most, -least) * operands.ifmap_scale
    values, scales, coarse = _in_slices(x, operands.ifmap_scale, form, (channel, cut), alpha)
    if isinstance(layer, Conv2d):
        values = values.reshape(operands.ifmap.shape)
        if scales is not None:
            scales = scales.reshape(layer.batch, -1, *scales.shape[3:])
    return values, scales, float(coarse[0])


def _weights(
    layer: Conv2d | MatMul, operands: Operands, form: VectorFormat
) -> tuple[AnyIntArray, AnyIntArray | None, Floats]:
    """Values and scales of the weights, and gamma_w [filters]."""
    filter_axis = 2 if isinstance(layer, MatMul) else 0
    return _in_slices(operands.weight, operands.weight_scale, form, (1, filter_axis), None)


def _in_slices(
    x: npt.NDArray[Any],
    scale: float,
    form: VectorFormat,
    axes: tuple[int, int],
    alpha: float | None,
) -> tuple[AnyIntArray, AnyIntArray | None, Floats]:
    """`quantize(x · scale)`, a slice of x at a time: values, scales, and gamma along the cut.

    axes: that of the channels, and the one along which x is cut, whose entries have a gamma each;
    or one in common where alpha, the largest magnitude of all, is given.
    """
    channel, cut = axes
    size = x.shape[cut]
    step = max(1, _SLICE * size // x.size)
    values = np.empty(x.shape, storage(form.largest))
    scales: Integers | None = None
    if form.vector is not None:
        vectors = ceil_div(x.shape[channel], form.vector)
        scales = np.empty((*x.shape[:channel], vectors, *x.shape[channel + 1 :]), np.int32)
    coarse = np.empty(size)
    for start in range(0, size, step):
        part = (slice(None),) * cut + (slice(start, start + step),)
        found = quantize(
            x[part] * np.float64(scale),
            form,
            channel_axis=channel,
            coarse_axis=cut if alpha is None else None,
            alpha=alpha,
        )
        values[part] = found.values
        if scales is not None:
            scales[part] = found.scales
        coarse[start : start + step] = found.coarse.reshape(-1)
    return values, scales, coarse


def _multipliers(where: str, ratios: Floats) -> tuple[IntArray, int]:
    """Multipliers and their shift: multiplier / 2^shift ~ ratio."""
    largest = float(ratios.max())
    if largest == 0:
        return np.zeros(len(ratios), np.int64), MAX_SHIFT
    try:
        _, shift = requantize_parameters(largest, MULTIPLIER_BITS)
    except WorkloadError as error:
        raise InputError(f"{where}: {error}") from error
    return np.rint(ratios * 2.0**shift).astype(np.int64), shift


def _bias(operands: Operands, step: Floats, sum_bits: int) -> IntArray:
    """The bias in units of the sums; 0 where such a unit is 0."""
    if operands.bias is None:
        return np.zeros(len(step), np.int64)
    real = operands.bias.astype(np.float64) * (operands.ifmap_scale * operands.weight_scale)
    units = np.divide(real, np.where(step > 0, step, np.inf))
    reach = 2.0**WIDEST
    return saturate(np.clip(np.rint(units), -reach, reach).astype(np.int64), sum_bits)


def storage(largest: int) -> type[np.int8] | type[np.int16] | type[np.int32]:
    """The narrowest type of magnitudes up to `largest`."""
    return np.int8 if largest < 1 << 7 else np.int16 if largest < 1 << 15 else np.int32


def _said(form: VectorFormat) -> str:
    sign = "signed" if form.signed else "unsigned"
    scales = "" if form.vector is None else f", a scale of {form.scale_bits} bits for {form.vector}"
    return f"to {form.bits} bits {sign}{scales}"
