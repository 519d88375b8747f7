"""The arithmetic of `archsim.arithmetic.float_dot` in float64, as parts of kernels: powers of two,
rounding, patterns.  What calls them says why every step is exact there.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from archsim.arithmetic.float_datapath import FloatDatapath
from archsim.kernels import kernel

__all__ = ["LOW", "Unit", "over", "pattern_of", "power_of", "rounded", "term_of", "unit_of"]

LOW, _HIGH = 2.0**-300, 2.0**200
"""Below and above the powers of all finite numbers (and of products, below)."""


class Unit(NamedTuple):
    """The datapath's widths and rules, as numbers that the kernels use."""

    aligned_bits: int
    fraction_bits: int
    bias: int
    aligned_step: float
    fraction_step: float
    least_normal: float
    least_input: float
    least_output: float
    limit: float
    joins: float
    nearest: bool


def unit_of(datapath: FloatDatapath) -> Unit:
    """A datapath's widths and rules for the kernels."""
    form, rules = datapath.accumulator, datapath.rules
    least_normal = 2.0 ** (1 - form.bias)
    least = least_normal * 2.0**-form.fraction_bits
    return Unit(
        aligned_bits=rules.aligned_fraction_bits,
        fraction_bits=form.fraction_bits,
        bias=form.bias,
        aligned_step=2.0**-rules.aligned_fraction_bits,
        fraction_step=2.0**-form.fraction_bits,
        least_normal=least_normal,
        least_input=least if rules.subnormal_inputs else least_normal,
        least_output=least if rules.subnormal_outputs else least_normal,
        limit=2.0 ** (form.bias + 1),
        joins=float(rules.accumulator_joins),
        nearest=rules.rounding == "nearest_even",
    )


@kernel
def power_of(value: Any, least_normal: float) -> float:
    """2^(exponent of a number that is not 0), at least `least_normal`; finite for ∞ and NaN."""
    bits = np.float64(value).view(np.int64) & 0x7FF0000000000000
    return min(max(np.int64(bits).view(np.float64), least_normal), _HIGH)


@kernel
def over(power: Any, bits: int) -> float:
    """2^bits / power, of a power of two."""
    inverse = (2046 << 52) - np.float64(power).view(np.int64) + (bits << 52)
    return np.int64(inverse).view(np.float64)


@kernel
def rounded(value: float, unit: Unit) -> float:
    """To the accumulator's format: a zero keeps its sign, an overflow is infinite."""
    power = power_of(value, unit.least_normal)
    steps = value * over(power, unit.fraction_bits)
    steps = np.rint(steps) if unit.nearest else np.trunc(steps)
    result = steps * (power * unit.fraction_step)
    result = result * 0.0 if abs(result) < unit.least_output else result
    return result if abs(result) < unit.limit else result * np.inf


@kernel
def term_of(value: float, unit: Unit) -> tuple[float, float]:
    """A number of the accumulator's format and the power of its exponent; both 0 if it is 0."""
    zero = abs(value) < unit.least_input
    return (0.0 if zero else value, 0.0 if zero else power_of(value, unit.least_normal))


@kernel
def pattern_of(value: Any, unit: Unit) -> int:
    """Of a number of the accumulator's format."""
    power = power_of(value, unit.least_normal)
    field = int(np.float64(power).view(np.int64) >> 52) - 1023 + unit.bias
    special = 2 * unit.bias + 1
    if value != value:
        return ((special + 1) << unit.fraction_bits) - 1
    if abs(value) == np.inf:
        pattern = special << unit.fraction_bits
    else:
        significand = int(abs(value) * over(power, unit.fraction_bits))
        pattern = ((field - 1) << unit.fraction_bits) + significand
    negative = np.float64(value).view(np.int64) < 0
    return pattern + ((special + 1) << unit.fraction_bits) if negative else pattern
