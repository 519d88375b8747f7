"""Robust quantisation of one weight, in plain Python, step by step."""

from __future__ import annotations

import math
from collections.abc import Sequence

from archsim.codecs.robust_quantization import RobustScheme

EPSILON = 0.001


def plain_range(scheme: RobustScheme, weights: Sequence[float]) -> tuple[float, float]:
    if scheme.clip is not None:
        weights = [max(-scheme.clip, min(scheme.clip, w)) for w in weights]
    if not scheme.symmetric:
        return min(weights), max(weights)
    most = max(abs(w) for w in weights) + EPSILON
    if scheme.clip is not None and most > scheme.clip:
        most = scheme.clip
    return -most, most


def plain_code(scheme: RobustScheme, weight: float, low: float, high: float) -> int:
    """The stored code, an unsigned number of `scheme.bits` bits."""
    m = scheme.bits
    weight = max(low, min(high, weight))
    if scheme.symmetric:
        u, step = weight, high / (2 ** (m - 1) - 1)
    else:
        u = 0.0 if high == low else 2 * (weight - low) / (high - low) - 1
        step = (1 + EPSILON) / (2 ** (m - 1) - 1)
    x = u / step
    if not scheme.signed:
        x = min(x + 2 ** (m - 1), 2**m - 1)
    whole = round(x) if scheme.rounding else math.trunc(x)
    return whole + 2**m if whole < 0 else whole


def plain_value(scheme: RobustScheme, code: int, low: float, high: float) -> float:
    m = scheme.bits
    if scheme.signed:
        number = code - 2**m if code >= 2 ** (m - 1) else code
    else:
        number = code - 2 ** (m - 1)
    if scheme.symmetric:
        return max(-high, min(high, number * high / (2 ** (m - 1) - 1)))
    u = max(-1.0, min(1.0, number * (1 + EPSILON) / (2 ** (m - 1) - 1)))
    return max(low, min(high, (u + 1) / 2 * (high - low) + low))
