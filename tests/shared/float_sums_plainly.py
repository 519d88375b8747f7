"""Sums of BF16 products in FP32 as docs/contracts/sparsetrain.md says, by exact fractions."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from fractions import Fraction

KEPT_BITS = 23
"""Below the unit of the largest exponent."""

LEAST = -126
"""The exponent of the smallest normal number, and of what is below it."""


def number(pattern: int) -> float:
    """Of a BF16 pattern, the upper half of FP32's."""
    return struct.unpack("<f", struct.pack("<I", pattern << 16))[0]


def pattern_of(value: float) -> int:
    """Of a number of FP32; a NaN is all ones but for the sign."""
    return 0x7FFFFFFF if math.isnan(value) else struct.unpack("<I", struct.pack("<f", value))[0]


def exponent(value: float) -> int:
    return max(math.frexp(value)[1] - 1, LEAST)


def cut(value: Fraction, unit: int) -> Fraction:
    """Towards zero, to multiples of 2^unit."""
    step = Fraction(2) ** unit
    return math.trunc(value / step) * step


def narrow(total: Fraction) -> float:
    """To FP32, towards zero; what is not zero keeps its sign; beyond the largest it is infinite."""
    if not total:
        return 0.0
    sign = -1.0 if total < 0 else 1.0
    top = LEAST
    while abs(total) >= Fraction(2) ** (top + 1):
        top += 1
    if top > 127:
        return sign * math.inf
    return math.copysign(float(cut(total, top - KEPT_BITS)), sign)


def added(held: float, pairs: Sequence[tuple[int, int]]) -> float:
    """What was held and the products of pairs of patterns, which are taken in at once."""
    numbers = [(number(a), number(b)) for a, b in pairs]
    special = [a * b for a, b in numbers if not math.isfinite(a) or not math.isfinite(b)]
    if special or not math.isfinite(held):
        return math.fsum([*special, held]) if _one_sign([*special, held]) else math.nan
    terms = [(Fraction(a) * Fraction(b), exponent(a) + exponent(b)) for a, b in numbers]
    largest = max((one for _, one in terms), default=-1000)
    partial = sum((cut(value, largest - KEPT_BITS) for value, _ in terms), Fraction(0))
    unit = max(largest, exponent(held) if held else -1000) - KEPT_BITS
    return narrow(cut(partial, unit) + cut(Fraction(held), unit))


def _one_sign(terms: list[float]) -> bool:
    """Whether there is no NaN, and no infinity of either sign."""
    return not any(map(math.isnan, terms)) and not {math.inf, -math.inf} <= set(terms)
