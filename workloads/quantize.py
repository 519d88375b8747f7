"""Symmetric quantisation per tensor, and the integer requantisation of accumulators.

A tensor x is the integers q with x ~ q * scale; zero is the integer 0. The scheme's name in
results is `SCHEME`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from workloads.errors import WorkloadError

SCHEME = "per-tensor symmetric, scale = max|x| / (2^(bits-1) - 1), round half to even"
MAX_SHIFT = 47

Integers = NDArray[np.signedinteger[Any]]
AT_ONCE = 1 << 15
"""Values."""

Floats = NDArray[np.floating[Any]]


def check_bits(bits: int) -> None:
    """Raise WorkloadError unless an operand may have `bits` bits: 2 to 16."""
    if not 2 <= bits <= 16:
        raise WorkloadError(f"quantisation: bits must be 2 to 16, not {bits}")


def storage(bits: int) -> type[np.int8] | type[np.int16]:
    """NumPy type which holds signed integers of `bits` bits: int8 up to 8, else int16."""
    check_bits(bits)
    return np.int8 if bits <= 8 else np.int16


def scale_of(x: Floats, bits: int) -> float:
    """max|x| / (2^(bits-1) - 1); 1.0 for a tensor of zeros. Raises WorkloadError on NaN, inf."""
    check_bits(bits)
    largest = float(np.max(np.abs(x), initial=0.0))
    if not np.isfinite(largest):
        raise WorkloadError("quantisation: every value must be finite, not NaN or infinite")
    return largest / (2 ** (bits - 1) - 1) if largest else 1.0


def quantize_at(x: Floats, scale: float, bits: int) -> Integers:
    """Integers of x at a given scale: round half to even, clip to +-(2^(bits-1) - 1)."""
    limit, flat = 2 ** (bits - 1) - 1, np.ascontiguousarray(x).reshape(-1)
    found = np.empty(flat.shape, storage(bits))
    for start in range(0, len(flat), AT_ONCE):  # few at once stay in a core's cache
        levels = np.asarray(flat[start : start + AT_ONCE], np.float64) / scale
        if np.isnan(levels).any():
            raise WorkloadError("quantisation: every value must be finite, not NaN or infinite")
        np.clip(np.rint(levels, out=levels), -limit, limit, out=levels)
        found[start : start + AT_ONCE] = levels
    return found.reshape(np.shape(x))


def quantize_symmetric(x: Floats, bits: int) -> tuple[Integers, float]:
    """Integers (int8 up to 8 bits, else int16; shape of x) and their scale.

    scale = max|x| / (2^(bits-1) - 1), round half to even, clip to +-(2^(bits-1) - 1). Raises
    WorkloadError on NaN or infinity and for bits outside 2 to 16.
    """
    scale = scale_of(x, bits)
    return quantize_at(x, scale, bits), scale


def requantize_parameters(real_multiplier: float, multiplier_bits: int = 16) -> tuple[int, int]:
    """(multiplier, shift) with real_multiplier ~ multiplier / 2**shift.

    The largest shift of at most 47 with which 0 < multiplier < 2**multiplier_bits (unsigned),
    rounded half to even; so the relative error is at most 2**-multiplier_bits where the shift
    is below 47. Raises WorkloadError for a multiplier which is not positive and finite, or is
    too large or too small to be so written.
    """
    if not 0 < real_multiplier < float("inf"):
        raise WorkloadError(
            f"requantisation: the real multiplier must be positive, not {real_multiplier}"
        )
    for shift in range(MAX_SHIFT, -1, -1):
        multiplier = round(real_multiplier * 2.0**shift)
        if multiplier < 1 << multiplier_bits:
            if multiplier == 0:
                raise WorkloadError(
                    f"requantisation: the real multiplier must be at least 2^-{MAX_SHIFT + 1}, "
                    f"not {real_multiplier}"
                )
            return multiplier, shift
    raise WorkloadError(
        f"requantisation: the real multiplier must be below 2^{multiplier_bits}, "
        f"not {real_multiplier}"
    )


def round_shift(value: Integers, shift: int) -> Integers:
    """(value + 2**(shift-1)) >> shift: divide by 2**shift, round half up; shift 0 is value."""
    wide = value.astype(np.int64)
    return (wide + (1 << (shift - 1))) >> shift if shift else wide


def saturate(value: Integers, bits: int) -> Integers:
    """Clip to [-2^(bits-1), 2^(bits-1) - 1]; int8 up to 8 bits, else int16."""
    return np.clip(value, -(1 << (bits - 1)), (1 << (bits - 1)) - 1).astype(storage(bits))


def requantize(acc: Integers, multiplier: int, shift: int, relu: bool, bits: int) -> Integers:
    """saturate(relu((acc * multiplier + 2**(shift-1)) >> shift)), in 64-bit integers.

    `acc` holds accumulators with their bias added, any shape, |acc * multiplier| < 2**62; the
    shift is arithmetic, rounds half up, and rounds nothing where it is 0. Returns int8 up to
    8 bits, else int16.
    """
    scaled = round_shift(acc.astype(np.int64) * multiplier, shift)
    return saturate(np.maximum(scaled, 0) if relu else scaled, bits)
