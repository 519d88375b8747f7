"""Fixed-point weights that bear bit errors: every step from plain quantisation to RQuant.

Stutz, Chandramoorthy, Hein, Schiele, "Bit Error Robustness for Energy-Efficient DNN Accelerators"
(MLSys 2021), section 4.1 and the authors' published implementation.  A tensor is stored as codes of
m bits.  With its range [low, high], every value cut to +-clip first:

    asymmetric   u = 2 (w - low) / (high - low) - 1,  delta = (1 + EPSILON) / (2^(m-1) - 1)
    symmetric    u = w,                               delta = q / (2^(m-1) - 1)
    signed       v = cut(u / delta), two's complement of m bits
    unsigned     v = cut(u / delta + 2^(m-1)), at most 2^m - 1

`cut` drops the fraction (truncating) or rounds half to even.  q is the largest magnitude plus
EPSILON, at most the clip where there is one.  Back: u = v delta (less the 2^(m-1)), cut to what u
can be, and w = (u + 1) / 2 (high - low) + low.  The range is a layer's own, or one for all.

Chosen here, where the implementation divides by zero or has no such case: a tensor of one value is
stored as u = 0 and read back exactly; signed codes of fewer than 8 bits are two's complement of as
many bits, so that errors strike those alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from archsim.errors import InputError, require, require_whole

Codes = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float32]

EPSILON = 0.001
"""By how much the largest magnitude stays within the codes."""

FEWEST_BITS, MOST_BITS = 2, 8


@dataclass(frozen=True, kw_only=True)
class RobustScheme:
    """How weights become codes.

    bits: m, 2 to 8.  clip: the largest magnitude, or None.  one_range: all tensors share a range.
    """

    bits: int = 8
    symmetric: bool = False
    signed: bool = False
    rounding: bool = True
    one_range: bool = False
    clip: float | None = None

    def __post_init__(self) -> None:
        require_whole(FEWEST_BITS, f"be at least {FEWEST_BITS}", bits=self.bits)
        require(self.bits <= MOST_BITS, f"bits must be at most {MOST_BITS}, not {self.bits}")
        if self.clip is not None:
            require(0 < self.clip < float("inf"), f"clip must be positive, not {self.clip}")

    @property
    def half(self) -> int:
        """2^(m-1)."""
        return 1 << (self.bits - 1)

    def range_of(self, tensors: Iterable[npt.ArrayLike]) -> Range:
        """The range that holds all of these tensors, each with at least one finite value."""
        low, high = float("inf"), -float("inf")
        for tensor in tensors:
            values = self.clipped(np.asarray(tensor, np.float64))
            require(values.size > 0, "a tensor without values has no range")
            low, high = min(low, float(values.min())), max(high, float(values.max()))
        if not (np.isfinite(low) and np.isfinite(high)):
            raise InputError("weights must be finite")
        if self.symmetric:
            high = max(abs(low), abs(high)) + EPSILON
            high = high if self.clip is None else min(high, self.clip)
            low = -high
        return Range(low, high)

    def clipped(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The values cut to +-clip."""
        return values if self.clip is None else np.clip(values, -self.clip, self.clip)

    def quantize(self, tensor: npt.ArrayLike, of: Range | None = None) -> Quantized:
        """A tensor's codes; `of`: the range to use, its own if None.  Raises InputError."""
        found = self.range_of([tensor]) if of is None else of
        values = np.clip(self.clipped(np.asarray(tensor, np.float64)), found.low, found.high)
        scaled = self._unit(values, found) / self._delta(found)
        if self.signed:
            whole = np.rint(scaled) if self.rounding else np.trunc(scaled)
            stored = whole.astype(np.int16) & (2 * self.half - 1)
        else:
            shifted = np.minimum(scaled + self.half, 2 * self.half - 1)
            stored = np.rint(shifted) if self.rounding else np.floor(shifted)
        return Quantized(self, stored.astype(np.uint8), found)

    def dequantize(self, codes: Codes, of: Range) -> Floats:
        """What codes stand for, also those that only errors make; bits beyond m are not read."""
        number = self.numbers(codes)
        most = of.high if self.symmetric else 1.0
        unit = np.clip(number * self._delta(of), -most, most)
        if self.symmetric:
            return unit.astype(np.float32)
        values = (unit + 1) / 2 * (of.high - of.low) + of.low
        return np.clip(values, of.low, of.high).astype(np.float32)

    def numbers(self, codes: Codes) -> npt.NDArray[np.int16]:
        """The signed numbers v (less 2^(m-1) of unsigned codes) that codes hold.

        As two's complement of m bits they are the codes, of unsigned ones with their highest bit
        inverted: a bit that flips in one flips in the other.
        """
        stored = (codes & np.uint8(2 * self.half - 1)).astype(np.int16)
        return (stored ^ self.half) - self.half if self.signed else stored - self.half

    def line(self, of: Range) -> tuple[float, float]:
        """(a, b) of value = a v + b, for v whose value is not cut to the range."""
        if self.symmetric:
            return self._delta(of), 0.0
        reach = (of.high - of.low) / 2
        return self._delta(of) * (reach or 1.0), (of.high + of.low) / 2

    def _unit(self, values: npt.NDArray[Any], of: Range) -> npt.NDArray[Any]:
        if self.symmetric:
            return values
        if of.high == of.low:
            return np.zeros_like(values)
        return 2 * (values - of.low) / (of.high - of.low) - 1

    def _delta(self, of: Range) -> float:
        return (of.high if self.symmetric else 1 + EPSILON) / (self.half - 1)


@dataclass(frozen=True)
class Range:
    """The least and the largest value that codes stand for."""

    low: float
    high: float


@dataclass(frozen=True)
class Quantized:
    """A tensor as codes, of its own shape; `of`: its range."""

    scheme: RobustScheme
    codes: Codes
    of: Range

    def values(self, codes: Codes | None = None) -> Floats:
        """What the codes stand for, or others in their place (with errors in them)."""
        return self.scheme.dequantize(self.codes if codes is None else codes, self.of)


def quantize_network(
    scheme: RobustScheme, tensors: Mapping[str, npt.ArrayLike]
) -> dict[str, Quantized]:
    """Every tensor of a network by name, with its own range or, if so said, one for all."""
    shared = scheme.range_of(tensors.values()) if scheme.one_range else None
    return {name: scheme.quantize(tensor, shared) for name, tensor in tensors.items()}


def normal(bits: int = 8, clip: float | None = None) -> RobustScheme:
    """ "Normal": per layer, symmetric, signed, truncating."""
    return RobustScheme(bits=bits, symmetric=True, signed=True, rounding=False, clip=clip)


def rquant(bits: int = 8, clip: float | None = None) -> RobustScheme:
    """ "RQuant": per layer, asymmetric, unsigned, rounding."""
    return RobustScheme(bits=bits, clip=clip)


def steps(bits: int = 8, clip: float | None = None) -> dict[str, RobustScheme]:
    """The paper's steps from one range for all layers to RQuant, in its order."""
    plain = RobustScheme(bits=bits, clip=clip, rounding=False)
    return {
        "one range for all layers": replace(normal(bits, clip), one_range=True),
        "per layer (Normal)": normal(bits, clip),
        "+ asymmetric": replace(plain, signed=True),
        "+ unsigned": plain,
        "+ rounding (RQuant)": rquant(bits, clip),
    }


__all__ = [
    "Quantized",
    "Range",
    "RobustScheme",
    "normal",
    "quantize_network",
    "rquant",
    "steps",
]
