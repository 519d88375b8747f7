"""Off-chip memories that keep ports waiting, drawn for cases."""

from archsim.memory import OffChip
from rtl.draw import Draw

RATES = (0.3, 1.7, 8.0, 33.3)
"""Bytes a cycle: of less than a word's, of about one, of more than the ports take."""


def slow_off_chip(draw: Draw) -> OffChip:
    """One channel, or several; bursts of a byte and of several words."""
    return OffChip(
        bytes_per_cycle=_rate(draw),
        weight_bytes_per_cycle=_rate(draw) if draw.chance(0.3) else None,
        latency_cycles=draw.one_of(0, 0, 7, 90),
        burst_bytes=draw.one_of(1, 16, 64),
        shared=draw.chance(0.8),
    )


def _rate(draw: Draw) -> float:
    return RATES[draw.whole(0, len(RATES) - 1)]


__all__ = ["slow_off_chip"]
