"""How a product that is wider than an FPGA's multiplier is cut into products that are not."""

from __future__ import annotations

__all__ = ["FACTOR_BITS", "factor_bits", "parts_of"]

FACTOR_BITS = 18
"""Of a signed factor of such a multiplier."""


def parts_of(bits: int, widest: int = FACTOR_BITS) -> tuple[int, ...]:
    """Bits of the parts of a signed number, the lowest first: all but the highest are unsigned.

    As few as there can be, about as wide as each other; each is a signed factor of at most `widest`
    bits, so that an unsigned one has a bit less.
    """
    count = max(1, -(-(bits - 1) // (widest - 1)))
    each = -(-(bits - 1) // count)
    return (*(each for _ in range(count - 1)), bits - each * (count - 1))


def factor_bits(parts: tuple[int, ...]) -> int:
    """Of a signed factor that takes any of the parts."""
    return max(*(part + 1 for part in parts[:-1]), parts[-1], 1)
