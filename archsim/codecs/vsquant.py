"""Per-vector scaled quantisation: N-bit values, a scale for every V of them along the channels.

Dai et al., "VS-Quant: Per-vector Scaled Quantization for Accurate Low-Precision Neural Network
Inference" (arXiv:2102.04503v1, MLSys 2021), equations 7a to 7j, with k the coarse channel, i the
vector and j the element:

    7a  xmax(k, i) = max over j of |x(k, j, i)|    7b  s(k, i) = xmax / largest
    7c  xq = clip(round(x / s))                    7e  smax(k) = max over i of s(k, i)
    7f  gamma(k) = smax / (2^M - 1)                7g  sq(k, i) = clip(round(s / gamma))
    7j  x ~ xq sq gamma

A coarse channel is an output channel of weights and a whole layer of activations.  What the paper
leaves open is chosen here:

* `round` is half to even, as everywhere in NumPy and IEEE 754.
* `largest` is 2^(N-1) - 1 for signed values, and 2^N - 1 for unsigned ones.  The paper prints
  2^(N-1) - 1 for both, which would leave one bit of an unsigned value without use.
* The scale of a vector of zeros is 0, its values are 0, and so is what they stand for.  A scale
  below the smallest normal float64 counts as 0.
* sq may be 0: where s < gamma / 2 the whole vector is rounded to zero, though xq is not.
* xq comes from the scale before its own rounding, as 7c is printed: the error of a vector with
  integer scales is at most largest gamma / 2 more than with floating ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from archsim.errors import InputError, require, require_positive, require_whole
from archsim.numbers import ceil_div

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int32]

FLOAT_SCALE_BITS = 32
"""Stored bits of a floating scale, for `overhead`."""

_SMALLEST = np.finfo(np.float64).tiny


@dataclass(frozen=True, kw_only=True)
class VectorFormat:
    """How values are stored.

    bits: N, 2 to 16.  signed: False for what comes out of a ReLU.
    vector: V, values along the channels that share a scale; None for one scale a coarse channel.
    scale_bits: M, 1 to 16, of the unsigned scales; None for floating scales.
    """

    bits: int
    signed: bool = True
    vector: int | None = None
    scale_bits: int | None = None

    def __post_init__(self) -> None:
        _require_bits(2, bits=self.bits)
        if self.vector is not None:
            require_positive(vector=self.vector)
        if self.scale_bits is not None:
            _require_bits(1, scale_bits=self.scale_bits)
            require(self.vector is not None, "scale_bits need a vector, which is None")

    @property
    def largest(self) -> int:
        """The largest integer; the smallest is its negative, or 0 if unsigned."""
        return 2 ** (self.bits - 1) - 1 if self.signed else 2**self.bits - 1

    @property
    def largest_scale(self) -> int:
        """2^M - 1; 1 where there are no integer scales."""
        return 1 if self.scale_bits is None else 2**self.scale_bits - 1

    @property
    def overhead(self) -> float:
        """M / (V N): bits of scales a bit of values.  Coarse scales are not counted."""
        if self.vector is None:
            return 0.0
        return (self.scale_bits or FLOAT_SCALE_BITS) / (self.vector * self.bits)

    @property
    def bits_per_value(self) -> float:
        """N (1 + overhead)."""
        return self.bits * (1 + self.overhead)


@dataclass(frozen=True, kw_only=True)
class Quantized:
    """Values as they are stored: x ~ values · scales · coarse.

    values: xq, integers in the shape of x.
    scales: that shape with ⌈C / V⌉ instead of C; integers sq, or floats where the format has no
    scale_bits; integer ones of shape [1, …] where it has no vector.
    coarse: gamma, of length 1 along every axis but the coarse one; ones with floating scales.
    """

    format: VectorFormat
    channel_axis: int
    values: Integers
    scales: Integers | Floats
    coarse: Floats

    def dequantize(self) -> Floats:
        """What the integers stand for, in the shape of `values`.

        The product of the integers is exact, and is rounded once when multiplied by gamma.
        """
        if self.format.vector is None:
            return self.values * self.coarse
        blocks = blocked(self.values, self.format.vector, self.channel_axis)
        scaled = blocks * np.expand_dims(self.scales.astype(np.float64), self.channel_axis + 1)
        product = _joined(scaled, self.values.shape, self.channel_axis)
        return product if self.format.scale_bits is None else product * self.coarse

    @property
    def stored_bits(self) -> int:
        """Bits of values and of the scales of vectors; a short last vector has a whole scale."""
        values = self.format.bits * self.values.size
        if self.format.vector is None:
            return values
        return values + (self.format.scale_bits or FLOAT_SCALE_BITS) * self.scales.size


def quantize(
    x: npt.NDArray[Any],
    form: VectorFormat,
    *,
    channel_axis: int = 1,
    coarse_axis: int | None = None,
    alpha: npt.ArrayLike | None = None,
    name: str = "values",
) -> Quantized:
    """Quantise an array of any shape.

    channel_axis: along which vectors lie; the last one is short where V does not divide it.
    coarse_axis: whose entries have a gamma each (0 for weights [K, C, R, S]); None for one gamma.
    alpha: the calibrated magnitude that the coarse scale covers, a number or one for each coarse
    channel as `calibrate` answers; larger values, or scales, are clipped.  Without it, the
    largest magnitude.  name: what the values are, in messages.

    Raises InputError for values that are not finite, negative values in an unsigned format, axes
    that x does not have, and an alpha with floating scales, which have nothing coarse.
    """
    values = finite(x, name)
    channel, kept = _axis(values, channel_axis, "channel_axis"), _kept_axes(values, coarse_axis)
    least = float(values.min())
    require(form.signed or least >= 0, f"{name} must not be negative if unsigned, as {least:g} is")
    if form.vector is None:
        top = np.abs(values).max(axis=kept, keepdims=True) if alpha is None else _alpha(alpha)
        coarse = _coarse_shape(divide(top, form.largest), values, kept)
        ones = np.ones((1,) * values.ndim, np.int32)
        integers = _integers(values, coarse, form)
        return Quantized(
            format=form, channel_axis=channel, values=integers, scales=ones, coarse=coarse
        )
    blocks = blocked(values, form.vector, channel)
    floating = divide(_magnitude(blocks, channel + 1, form.signed), form.largest)
    integers = _joined(
        _integers(blocks, np.expand_dims(floating, channel + 1), form), values.shape, channel
    )
    scales, coarse = _scales(floating, form, kept, alpha)
    return Quantized(
        format=form, channel_axis=channel, values=integers, scales=scales, coarse=coarse
    )


def divide(x: Floats, by: int) -> Floats:
    """A scale: x / by, and 0 where that is not a normal number."""
    scale = x / by
    return np.where(scale < _SMALLEST, 0.0, scale)


def rounded_ratio(x: Floats, scale: Floats, least: int, largest: int) -> Floats:
    """clip(round(x / scale)), half to even; 0 where the scale is 0."""
    ratio = np.divide(x, np.where(scale > 0, scale, np.inf))
    np.rint(ratio, out=ratio)
    return np.clip(ratio, least, largest, out=ratio)


def finite(x: npt.NDArray[Any], name: str) -> Floats:
    """x as float64; raises InputError where it is empty or not finite."""
    try:
        values = np.asarray(x, np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be numbers, not of type {x.dtype}") from error
    require(values.size > 0, f"{name} must not be empty, as shape {values.shape} is")
    wrong = ~np.isfinite(values)
    if wrong.any():
        at = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise InputError(f"{name} must be finite, not {values[at]} at {list(at)}")
    return values


def blocked(x: npt.NDArray[Any], vector: int, axis: int) -> npt.NDArray[Any]:
    """x with `axis` cut into [⌈C / V⌉, V], the last vector filled up with zeros.

    V is at most C: a longer vector is a vector of C.
    """
    channels = x.shape[axis]
    length = min(vector, channels)
    count = ceil_div(channels, length)
    if count * length != channels:
        pads = [(0, 0)] * x.ndim
        pads[axis] = (0, count * length - channels)
        x = np.pad(x, pads)
    return x.reshape(*x.shape[:axis], count, length, *x.shape[axis + 1 :])


def _joined(blocks: npt.NDArray[Any], shape: tuple[int, ...], axis: int) -> npt.NDArray[Any]:
    """The inverse of `blocked`."""
    padded = blocks.reshape(*shape[:axis], -1, *shape[axis + 1 :])
    return padded[(slice(None),) * axis + (slice(shape[axis]),)]


def _magnitude(blocks: Floats, axis: int, signed: bool) -> Floats:
    top: Floats = blocks.max(axis=axis)
    return np.maximum(top, -blocks.min(axis=axis)) if signed else top


def _integers(x: Floats, scale: Floats, form: VectorFormat) -> Integers:
    least = -form.largest if form.signed else 0
    return rounded_ratio(x, scale, least, form.largest).astype(np.int32)


def _scales(
    floating: Floats,
    form: VectorFormat,
    kept: tuple[int, ...],
    alpha: npt.ArrayLike | None,
) -> tuple[Integers | Floats, Floats]:
    """7e to 7g: scales and gamma."""
    if form.scale_bits is None:
        require(alpha is None, "alpha is for a coarse scale, and floating scales have none")
        return floating, np.ones((1,) * floating.ndim)
    if alpha is None:
        top = floating.max(axis=kept, keepdims=True)
    else:
        top = divide(_alpha(alpha), form.largest)
    coarse = _coarse_shape(divide(top, form.largest_scale), floating, kept)
    return rounded_ratio(floating, coarse, 0, form.largest_scale).astype(np.int32), coarse


def _alpha(alpha: npt.ArrayLike) -> Floats:
    values = finite(np.asarray(alpha), "alpha")
    require(bool((values >= 0).all()), f"alpha must not be negative, as {values.min():g} is")
    return values


def _coarse_shape(scale: Floats, x: Floats, kept: tuple[int, ...]) -> Floats:
    shape = tuple(1 if axis in kept else size for axis, size in enumerate(x.shape))
    if scale.size == 1:
        return np.broadcast_to(scale.reshape(()), shape).copy()
    require(
        scale.shape == shape, f"alpha must be one number or of shape {shape}, not {scale.shape}"
    )
    return scale


def _kept_axes(x: Floats, coarse_axis: int | None) -> tuple[int, ...]:
    """The axes over which a coarse scale reaches."""
    own = None if coarse_axis is None else _axis(x, coarse_axis, "coarse_axis")
    return tuple(axis for axis in range(x.ndim) if axis != own)


def _axis(x: Floats, axis: int, name: str) -> int:
    require(
        -x.ndim <= axis < x.ndim, f"{name} must be an axis of shape {x.shape}, which {axis} is not"
    )
    return axis % x.ndim


def _require_bits(least: int, **values: object) -> None:
    require_whole(least, f"be {least} to 16", **values)
    for name, value in values.items():
        require(
            isinstance(value, int) and value <= 16, f"{name} must be {least} to 16, not {value}"
        )
