"""Number formats: what a pattern of bits stands for.

Patterns are unsigned integers in int64 arrays of any shape.  Floats are those of IEEE 754 (sign,
exponent, fraction; the largest exponent is for infinities and NaNs) in any width, so that small
ones can be tested exhaustively.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from archsim.errors import require, require_whole
from archsim.numbers import IntArray, wrap

__all__ = ["BF16", "FP16", "FP32", "INT4", "INT8", "INT32", "FloatFormat", "IntegerFormat"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class IntegerFormat:
    """Two's complement in `bits` bits, 2 to 32."""

    bits: int

    def __post_init__(self) -> None:
        _require_between(2, 32, bits=self.bits)

    def decode(self, patterns: IntArray) -> IntArray:
        """The signed integers that patterns stand for."""
        return wrap(patterns, self.bits)

    def encode(self, values: IntArray) -> IntArray:
        """The patterns of integers, modulo 2^bits."""
        return values & ((1 << self.bits) - 1)


@dataclass(frozen=True, kw_only=True)
class FloatFormat:
    """A sign, `exponent_bits` (2 to 8) and `fraction_bits` (1 to 23).

    Of a pattern with exponent field e and fraction f the value is
    ±(1 + f / 2^fraction_bits) · 2^(e - bias), subnormal ±(f / 2^fraction_bits) · 2^(1 - bias) if
    e = 0, and infinite (f = 0) or NaN (f > 0) if e is all ones.
    """

    exponent_bits: int
    fraction_bits: int

    def __post_init__(self) -> None:
        _require_between(2, 8, exponent_bits=self.exponent_bits)
        _require_between(1, 23, fraction_bits=self.fraction_bits)

    @property
    def bits(self) -> int:
        """Of a whole pattern."""
        return 1 + self.exponent_bits + self.fraction_bits

    @property
    def bias(self) -> int:
        """What is subtracted from the exponent field."""
        return (1 << (self.exponent_bits - 1)) - 1

    @property
    def special_exponent(self) -> int:
        """The exponent field of infinities and NaNs: all ones."""
        return (1 << self.exponent_bits) - 1

    @property
    def sign_mask(self) -> int:
        """The pattern of -0."""
        return 1 << (self.bits - 1)

    @property
    def infinity(self) -> int:
        """The pattern of +∞."""
        return self.special_exponent << self.fraction_bits

    @property
    def nan(self) -> int:
        """The one NaN that comes out of arithmetic: all ones but for the sign."""
        return self.sign_mask - 1

    def decode(self, patterns: IntArray) -> Floats:
        """The values that patterns stand for, exactly."""
        field = (patterns >> self.fraction_bits) & self.special_exponent
        fraction = patterns & ((1 << self.fraction_bits) - 1)
        significand = fraction + np.where(field > 0, 1 << self.fraction_bits, 0)
        exponent = np.maximum(field, 1) - self.bias - self.fraction_bits
        magnitude = np.ldexp(significand.astype(np.float64), exponent.astype(np.int32))
        special = np.where(fraction == 0, np.inf, np.nan)
        magnitude = np.where(field == self.special_exponent, special, magnitude)
        return np.where(patterns & self.sign_mask, -magnitude, magnitude)

    def encode(self, values: Floats) -> IntArray:
        """The patterns nearest to values, ties to even; ±∞ beyond the largest; NaNs as `nan`."""
        finite = np.isfinite(values)
        magnitude = np.where(finite, np.abs(values), 0.0)
        leading = np.where(magnitude > 0, np.frexp(magnitude)[1] - 1, 1 - self.bias)
        exponent = np.maximum(leading, 1 - self.bias).astype(np.int64)
        scale = (self.fraction_bits - exponent).astype(np.int32)
        significand = np.rint(np.ldexp(magnitude, scale)).astype(np.int64)
        pattern = ((exponent + self.bias - 1) << self.fraction_bits) + significand
        pattern = np.where(finite, np.minimum(pattern, self.infinity), self.infinity)
        pattern = np.where(np.signbit(values), pattern | self.sign_mask, pattern)
        return np.where(np.isnan(values), self.nan, pattern)


def _require_between(least: int, most: int, **values: int) -> None:
    for name, value in values.items():
        require_whole(least, f"be {least} to {most}", **{name: value})
        require(value <= most, f"{name} must be {least} to {most}, not {value}")


FP16 = FloatFormat(exponent_bits=5, fraction_bits=10)
BF16 = FloatFormat(exponent_bits=8, fraction_bits=7)
FP32 = FloatFormat(exponent_bits=8, fraction_bits=23)
INT4 = IntegerFormat(bits=4)
INT8 = IntegerFormat(bits=8)
INT32 = IntegerFormat(bits=32)
