"""How a file's quantised layer turns sums into integers: its rule, and a core's beside it.

The file's, as ONNX Runtime's integer kernels compute it, for the sum of filter k:

    acc = Σ (ifmap − zero_x) · (weight − zero_w[k]) + bias[k],        zero_x where there is padding
    o = clip(rint(float32(acc) · scale[k]), low − zero, high − zero) + zero

in float32, half to even, scale[k] = scale_x · scale_w[k] / scale_o; behind a ReLU o ≥ zero.

A core's, with an unsigned multiplier of 16 bits and one shift a layer, rounding half up:

    o = saturate(((acc + fold[k]) · multiplier[k] + 2^(shift−1)) >> shift)

fold[k] = rint((zero − centre) · 2^shift / multiplier[k]) puts the zero point in the bias; centre is
what makes unsigned integers signed.  Both rules see the same exact sums.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workloads.affine import IntegerType
from workloads.errors import WorkloadError
from workloads.quantize import requantize_parameters

RULE = "float32, half to even, as ONNX Runtime"
CORE_RULE = "16-bit multipliers and one shift, half up"
_LARGEST_FOLD = 2.0**31

Sums = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class FileScaling:
    """Beside `workloads.operands.Operands`, whose integers less these zero points are the file's.

    ifmap_zero: of `Operands.ifmap`; weight_zero [K]: of `Operands.weight`.  weight_scales [K].
    scale [K], float32: None where the sums themselves are the result.  zero, kind: of the ofmap.
    lacks: what a core would need beside its rule.  made: the ofmap by ONNX Runtime, in any shape of
    as many; None without a run.
    """

    ifmap_zero: int
    weight_zero: Sums
    weight_scales: NDArray[np.float32]
    scale: NDArray[np.float32] | None
    zero: int
    kind: IntegerType
    relu: bool
    lacks: tuple[str, ...] = ()
    made: NDArray[Any] | None = None

    def ofmap(self, sums: Sums) -> NDArray[np.integer[Any]]:
        """The file's integers, in its type, of sums [..., K] with their biases."""
        if self.scale is None:
            return sums.astype(self.kind.storage)
        zero = np.float32(self.zero)
        with np.errstate(over="ignore"):
            scaled = sums.astype(np.float32) * self.scale
        least = 0 if self.relu else self.kind.low - zero
        bounded = np.clip(np.rint(scaled), np.float32(least), self.kind.high - zero)
        return (bounded.astype(np.int64) + self.zero).astype(self.kind.storage)

    def by_core(self, sums: Sums) -> Sums | None:
        """The same by a core's rule; None where sums are the result, or no multiplier says it."""
        if self.scale is None or not self.multipliers[0].any():
            return None
        multiplier, shift = self.multipliers
        half = (1 << shift) >> 1
        scaled = ((sums + self.fold) * multiplier + half) >> shift
        least = self.zero if self.relu else self.kind.low
        return np.clip(scaled + self.kind.centre, least, self.kind.high)

    @property
    def multipliers(self) -> tuple[Sums, int]:
        """multiplier [K] and shift; zeros where the largest scale cannot be written so."""
        assert self.scale is not None
        ratios = self.scale.astype(np.float64)
        try:
            _, shift = requantize_parameters(float(ratios.max()))
        except WorkloadError:
            return np.zeros(len(ratios), np.int64), 0
        return np.rint(ratios * 2.0**shift).astype(np.int64), shift

    @property
    def fold(self) -> Sums:
        """What the ofmap's zero point adds to the bias [K]."""
        multiplier, shift = self.multipliers
        offset = float(self.zero - self.kind.centre) * 2.0**shift
        exact = np.divide(offset, multiplier, out=np.zeros(len(multiplier)), where=multiplier > 0)
        return np.clip(np.rint(exact), -_LARGEST_FOLD, _LARGEST_FOLD - 1).astype(np.int64)


__all__ = ["CORE_RULE", "RULE", "FileScaling"]
