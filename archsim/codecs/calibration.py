"""Calibration of a coarse scale: the magnitude alpha up to which values are told apart.

max: the largest magnitude.  percentile: the magnitude that so many per cent do not exceed.
mse: least mean squared error of quantisation, among MSE_STEPS fractions of the largest magnitude.
entropy: least divergence of Kullback and Leibler between the histogram of magnitudes cut at alpha
and the same histogram after quantisation, as TensorRT does it (Migacz, "8-bit Inference with
TensorRT", GTC 2017; the published steps are in `_entropy`).

VS-Quant's baseline (arXiv:2102.04503v1, table 2) is calibrated in each of these ways.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from archsim.codecs.vsquant import Floats, VectorFormat, divide, finite, rounded_ratio
from archsim.errors import InputError, nearest, require

METHODS = ("max", "percentile", "entropy", "mse")

BINS = 2048
"""Of the histogram for entropy, as published."""

FEWEST_BINS = 128
"""Kept by any cut, as published."""

ENTROPY_BITS = 10
"""A histogram of 2048 bins cannot tell apart the levels of wider values."""

MSE_STEPS = 50


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """One of METHODS; `percentile`, above 0 to 100, counts for that one only."""

    method: str = "max"
    percentile: float = 99.99

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise InputError(f"no calibration {self.method!r}; {nearest(self.method, METHODS)}")
        require(
            0 < self.percentile <= 100,
            f"percentile must be above 0 and at most 100, not {self.percentile}",
        )


def calibrate(
    x: npt.NDArray[Any],
    form: VectorFormat,
    how: Calibration,
    *,
    coarse_axis: int | None = None,
    name: str = "values",
) -> Floats:
    """alpha for `quantize`: of length 1 along every axis of x but the coarse one.

    x is data like that which will be quantised: weights themselves, or activations of a few
    inputs; all zeros give 0.  Raises InputError for values that are not finite, negative values
    in an unsigned format, and entropy with more than ENTROPY_BITS bits.
    """
    values = finite(x, name)
    least = float(values.min())
    require(form.signed or least >= 0, f"{name} must not be negative if unsigned, as {least:g} is")
    magnitudes, shape = _rows(np.abs(values), coarse_axis)
    if how.method == "max":
        alpha = magnitudes.max(axis=1)
    elif how.method == "percentile":
        alpha = np.percentile(magnitudes, how.percentile, axis=1)
    elif how.method == "mse":
        alpha = _mse(magnitudes, form.largest)
    else:
        require(
            form.bits <= ENTROPY_BITS,
            f"entropy calibration is for at most {ENTROPY_BITS} bits, not {form.bits}",
        )
        alpha = np.array([_entropy(row, form.largest + 1) for row in magnitudes])
    return alpha.reshape(shape)


def _rows(x: Floats, coarse_axis: int | None) -> tuple[Floats, tuple[int, ...]]:
    """A row for each coarse channel, and the shape of their scales."""
    if coarse_axis is None:
        return x.reshape(1, -1), (1,) * x.ndim
    require(
        -x.ndim <= coarse_axis < x.ndim,
        f"coarse_axis must be an axis of shape {x.shape}, which {coarse_axis} is not",
    )
    rows = np.moveaxis(x, coarse_axis, 0).reshape(x.shape[coarse_axis], -1)
    shape = [1] * x.ndim
    shape[coarse_axis] = len(rows)
    return rows, tuple(shape)


def _mse(magnitudes: Floats, largest: int) -> Floats:
    """By row.  Of equally good fractions the larger, so that nothing is cut without gain."""
    top: Floats = magnitudes.max(axis=1)
    best: Floats = top
    least: Floats = np.full(len(top), np.inf)
    for step in range(MSE_STEPS, 0, -1):
        alpha = top * (step / MSE_STEPS)
        scale = divide(alpha, largest)[:, None]
        error = rounded_ratio(magnitudes, scale, 0, largest)
        error *= scale
        error -= magnitudes
        squared = np.einsum("kn,kn->k", error, error)
        best = np.where(squared < least, alpha, best)
        least = np.minimum(squared, least)
    return best


def _entropy(magnitudes: Floats, levels: int) -> float:
    """The published steps, for one row.

    A histogram of BINS bins.  For every cut i, from FEWEST_BINS (or `levels` if more): P is the
    first i bins with all beyond them counted in the last; Q is the first i bins merged into
    `levels` groups, the count of each spread evenly over its bins that are not empty.  The cut
    with the least sum of P log(P / Q) wins; alpha is (cut + 1/2) bins wide, at most the maximum.

    Zero needs no level, and the many zeros behind a ReLU would decide everything: the first bin
    counts what the second does, as NVIDIA's pytorch-quantization has it.
    """
    top = float(magnitudes.max())
    if divide(np.array(top), BINS) == 0:
        return top
    counts = np.histogram(magnitudes, bins=BINS, range=(0.0, top))[0].astype(np.float64)
    counts[0] = counts[1]
    cuts = np.arange(max(FEWEST_BINS, levels), BINS + 1)
    best = int(cuts[np.argmin(_divergences(counts, cuts, levels))])
    return min((best + 0.5) / BINS * top, top)


def _divergences(counts: Floats, cuts: npt.NDArray[np.int64], levels: int) -> Floats:
    """Sum of P log(P / Q) for every cut, after both are normalised.

    Infinite where Q is 0 and P is not: the last bin is empty, and there is something beyond it.
    Q is even over the filled bins of a level, so sums over bins are differences of running sums.
    """
    ends = np.arange(levels + 1) * cuts[:, None] // levels
    merged = np.diff(_running(counts)[ends])
    filled = np.diff(_running(counts > 0)[ends])
    log_q = _log(np.divide(merged, filled, out=np.zeros_like(merged), where=filled > 0))
    inside = _running(counts)[cuts]
    last, beyond = counts[cuts - 1], counts.sum() - inside
    p_log_p = _running(counts * _log(counts))[cuts - 1] + (last + beyond) * _log(last + beyond)
    p_log_q = (merged * log_q).sum(axis=1) + beyond * log_q[:, -1]
    total = inside + beyond
    known = (total > 0) & ((last > 0) | (beyond == 0))
    answer = np.full(len(cuts), np.inf)
    np.divide(p_log_p - p_log_q, total, out=answer, where=known)
    return answer + _log(inside) - _log(total)


def _running(values: npt.NDArray[Any]) -> Floats:
    """Sums of the first 0, 1, … values."""
    return np.concatenate([[0.0], np.cumsum(values, dtype=np.float64)])


def _log(values: Floats) -> Floats:
    """The logarithm, and 0 where the value is 0: only its product with that value is used."""
    return np.log(values, out=np.zeros_like(values), where=values > 0)
