"""Tiers of cycles: among those of one the fast mapper tells none from another, but by bytes.

A tier begins where the one below it ends, and ends TOLERANCE above where it begins; the lowest one
begins with what any memories allow.  So the lowest tier that any of some tilings reaches hangs on
these alone, and what is in it takes no more than TOLERANCE above the fastest of them
(docs/adr/0063-tiers-of-cycles.md).
"""

from __future__ import annotations

import numpy as np

from archsim.kernels import inlined, kernel

TOLERANCE = 0.005
"""By so much of its cycles may the best of the tilings be better than the one taken."""

_TIERS = 1 / np.log(1 + TOLERANCE)


@inlined
def about_tier(floor: int, cycles: int) -> int:
    """The tier of so many cycles, or, where they are next to its end, one beside it; never a lower
    one for more cycles.  floor: where the lowest tier begins, at least 1."""
    return int(np.log(cycles / floor) * _TIERS)


@inlined
def most_of_tier(floor: int, tier: int) -> int:
    """The most cycles of a tier; below all where there is no such tier."""
    return int(floor * (1 + TOLERANCE) ** (tier + 1)) if tier >= 0 else -1


@kernel
def tier_of(floor: int, cycles: int) -> int:
    """The tier of so many cycles, no fewer than `floor`."""
    tier = about_tier(floor, cycles)
    while cycles > most_of_tier(floor, tier):
        tier += 1
    while cycles <= most_of_tier(floor, tier - 1):
        tier -= 1
    return tier
