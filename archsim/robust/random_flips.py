"""Independent bit errors drawn anew, as training sees them (a chip's own are a fault map's)."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from archsim.errors import require

MARGIN = 6
"""Standard deviations by which more gaps are drawn than errors are expected."""


def require_error_rate(rate: float, name: str = "rate") -> None:
    """Refuse what is no share of bits."""
    require(0 <= rate <= 1, f"{name} must be from 0 to 1, not {rate:g}")


def random_flips(
    count: int, bits: int, rate: float, draws: np.random.Generator
) -> npt.NDArray[np.uint8]:
    """For each of `count` codes of `bits` bits, those that flip: each with probability `rate`.

    Only the errors are drawn: the gaps between those of a Bernoulli process are geometric.
    """
    require_error_rate(rate)
    places = count * bits
    masks = np.zeros(count, np.uint8)
    position = -1
    while rate > 0 and position < places - 1:
        expected = (places - position) * rate
        gaps = draws.geometric(rate, math.ceil(expected + MARGIN * math.sqrt(expected) + MARGIN))
        at = position + np.cumsum(np.minimum(gaps, places + 1), dtype=np.int64)
        position = int(at[-1])
        at = at[at < places]
        np.bitwise_or.at(masks, at // bits, np.left_shift(1, at % bits).astype(np.uint8))
    return masks


__all__ = ["random_flips", "require_error_rate"]
