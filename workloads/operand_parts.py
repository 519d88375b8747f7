"""What is known of a layer's tensors before they are operands, and how they become integers."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workloads.affine import Affine, IntegerType, along, one_value
from workloads.errors import WorkloadError
from workloads.layers import Conv2d, MatMul
from workloads.operands import Operands, Origin
from workloads.quantize import SCHEME, Floats, Integers, quantize_symmetric, storage

Layer = Conv2d | MatMul
_SLICE = 1 << 20
"""Values at a time, so that their copies stay small."""

NEEDED = "operands that a network computes need an input, or must be drawn"


@dataclass(frozen=True, kw_only=True, eq=False)
class Tensor:
    """An operand in the layer's shape; values are None where they are to be drawn."""

    values: Affine | Floats | None
    origin: Origin


@dataclass(frozen=True, kw_only=True, eq=False)
class Ofmap:
    """What is known of a layer's results.

    scale, zero, kind: a file's.  sums: they are the accumulators.  largest: their largest
    magnitude in real numbers, from a run; None where there was none.  made: the integers of a run.
    """

    scale: float | None = None
    zero: int = 0
    kind: IntegerType | None = None
    sums: bool = False
    largest: float | None = None
    made: NDArray[Any] | None = None

    def scale_at(self, bits: int) -> float | None:
        """A symmetric scale of `bits` for the range that a file or a run says; None if neither."""
        largest = self.largest
        if self.scale is not None and self.kind is not None:
            largest = self.scale * max(self.kind.high - self.zero, self.zero - self.kind.low)
        return None if largest is None else largest / (2 ** (bits - 1) - 1) or 1.0


@dataclass(frozen=True, kw_only=True, eq=False)
class Parts:
    """A layer's tensors.  bias: integers at the scale of the sums, or real numbers, or None.
    factor: by which all products are multiplied.  drawn: stands in for tensors without values."""

    ifmap: Tensor
    weight: Tensor
    bias: NDArray[Any] | None
    ofmap: Ofmap
    factor: float = 1.0
    drawn: Operands | None = None

    def scheme(self, bits: int, whole: tuple[bool, bool] = (False, False)) -> str:
        """How the operands came about; whole: ifmap, weight are a file's integers as they are."""
        drawn = "drawn" in (self.ifmap.origin, self.weight.origin)
        text = ""
        if drawn or any(whole):
            text = f"{_said('weights', self.weight, whole[1])}, "
            text += _said("activations", self.ifmap, whole[0])
            if drawn and self.drawn is not None:
                text += f" ({self.drawn.scheme})"
            if all(whole):
                return text
            text += "; "
        text += f"{SCHEME}, {bits} bits"
        again = [
            isinstance(tensor.values, Affine) and not kept
            for tensor, kept in zip((self.ifmap, self.weight), whole, strict=True)
        ]
        return f"{text}, a file's integers quantised again" if any(again) else text


_WHENCE = {"drawn": "drawn", "file": "of the file", "input": "of the input", "given": "given"}


def _said(name: str, tensor: Tensor, whole: bool) -> str:
    integers = whole and tensor.origin in ("file", "input")
    whence = _WHENCE[tensor.origin]
    return f"{name} as the integers {whence}" if integers else f"{name} {whence}"


@dataclass(frozen=True, kw_only=True, eq=False)
class Level:
    """Signed integers with their scale and zero point, of the tensor [1] or of filters [K].

    whole: they are a file's, less a number.
    """

    values: Integers
    scale: NDArray[np.float32]
    zero: NDArray[np.int64]
    whole: bool = False


def whole_ifmap(values: Affine | Floats | None, bits: int) -> Level | None:
    """A file's integers less their zero point, if all of their type so fit signed `bits`, or less
    their type's centre; None where they are none, too wide, or have several scales."""
    if not isinstance(values, Affine) or values.kind.bits > bits:
        return None
    scale, zero = one_value(values.scale), one_value(values.zero)
    if scale is None or zero is None:
        return None
    check_scales(np.array(scale))
    kind, limit = values.kind, 1 << (bits - 1)
    fits = -limit <= kind.low - zero and kind.high - zero < limit
    taken = zero if fits else kind.centre
    level = (values.values.astype(np.int32) - taken).astype(storage(bits))
    return Level(
        values=level,
        scale=np.array([scale], np.float32),
        zero=np.array([zero - taken], np.int64),
        whole=True,
    )


def whole_weight(values: Affine | Floats | None, filter_axis: int, bits: int) -> Level | None:
    """A file's integers less their zero points, if they so fit signed `bits`, or less their type's
    centre; None where they are none, too wide, or scales differ within a filter."""
    if not isinstance(values, Affine) or values.kind.bits > bits:
        return None
    shape = values.values.shape
    scale = along(values.scale, filter_axis, shape)
    zero = along(values.zero, filter_axis, shape)
    if scale is None or zero is None:
        return None
    check_scales(scale)
    less, limit = values.less_zero, 1 << (bits - 1)
    rest = np.zeros_like(zero)
    if int(less.min()) < -limit or int(less.max()) >= limit:
        less = values.values.astype(np.int64) - values.kind.centre
        rest = zero - values.kind.centre
    return Level(values=less.astype(storage(bits)), scale=scale, zero=rest, whole=True)


def level_of(tensor: Tensor, drawn: Integers | None, bits: int, factor: float = 1.0) -> Level:
    """Real values, times `factor`, quantised symmetrically; or drawn ones of RMS 1."""
    if tensor.values is None:
        if drawn is None:
            raise WorkloadError(NEEDED)
        levels, scale = drawn, factor / (sqrt(mean_square(drawn)) or 1.0)
    else:
        values = tensor.values
        real = values.real if isinstance(values, Affine) else values
        levels, scale = quantize_symmetric(real * np.float32(factor), bits)
    return Level(values=levels, scale=np.array([scale]), zero=np.zeros(1, np.int64))


def bias_at(bias: NDArray[Any] | None, scale: NDArray[Any]) -> Integers | None:
    """The bias at the scale of the sums: real numbers rounded half to even, clipped to int32."""
    if bias is None or bias.dtype.kind in "iu":
        return bias
    if not np.isfinite(bias).all():
        raise WorkloadError("quantisation: every value must be finite, not NaN or infinite")
    limits = np.iinfo(np.int32)
    whole = np.rint(np.asarray(bias, np.float64) / scale)
    return np.clip(whole, limits.min, limits.max).astype(np.int32)


def step_of(layer: Layer, ifmap: Tensor, weight: Tensor) -> NDArray[Any] | None:
    """The scale of the sums [K] or [1] of a file's integers; None where it is not of a filter."""
    if not isinstance(ifmap.values, Affine) or not isinstance(weight.values, Affine):
        return None
    axis = 2 if isinstance(layer, MatMul) else 0
    one = one_value(ifmap.values.scale)
    each = along(weight.values.scale, axis, weight.values.values.shape)
    return None if one is None or each is None else np.float32(one) * each


def deviation(levels: tuple[Level, Level], bias: Integers | None) -> float:
    """Standard deviation of the sums, in their units, of values that do not depend on each other.

    Zero points are as far from zero as they are.
    """
    ifmap, weight = levels
    taps = weight.values.shape[1] if weight.values.ndim == 3 else weight.values[0].size
    squares = [
        mean_square(level.values) + float(np.square(level.zero.astype(np.float64)).mean())
        for level in (ifmap, weight)
    ]
    added = 0.0 if bias is None else mean_square(bias)
    return sqrt(taps * squares[0] * squares[1] + added)


def mean_square(values: NDArray[Any]) -> float:
    """Of integers, in slices."""
    flat = values.reshape(-1)
    total = sum(
        float(np.square(flat[at : at + _SLICE], dtype=np.float64).sum())
        for at in range(0, flat.size, _SLICE)
    )
    return total / max(flat.size, 1)


def check_scales(scales: NDArray[Any]) -> None:
    """Raise WorkloadError unless all are positive and finite."""
    bad = ~(np.isfinite(scales) & (scales > 0))
    if bad.any():
        wrong = float(scales[bad].reshape(-1)[0])
        raise WorkloadError(f"scales must be positive and finite, not {wrong:g}")


def draw_integers(drawn: Integers, scale: float, zero: int, kind: IntegerType) -> Affine:
    """Drawn integers stretched to a type's range about its zero point; zeros stay zeros."""
    limit = max(int(drawn.max(initial=0)), -int(drawn.min(initial=0)), 1)
    above, below = kind.high - zero, zero - kind.low
    levels = np.arange(-limit, limit + 1, dtype=np.int64)
    if not above or not below:
        levels = np.abs(levels) if above else -np.abs(levels)
    reach = np.where(levels > 0, above, below)
    stretched = np.sign(levels) * -(-np.abs(levels) * reach // limit)
    table = (stretched + zero).astype(kind.storage)
    flat, values = drawn.reshape(-1), np.empty(drawn.size, kind.storage)
    for at in range(0, flat.size, _SLICE):
        values[at : at + _SLICE] = table[flat[at : at + _SLICE].astype(np.intp) + limit]
    return Affine(
        values=values.reshape(drawn.shape),
        scale=np.array(scale, np.float32),
        zero=np.array(zero, np.int64),
        kind=kind,
    )


__all__ = [
    "Layer",
    "Level",
    "Ofmap",
    "Parts",
    "Tensor",
    "bias_at",
    "check_scales",
    "deviation",
    "draw_integers",
    "level_of",
    "mean_square",
    "step_of",
    "whole_ifmap",
    "whole_weight",
]
