"""When a cycle of a design begins in a wave: time from its clock, in whole units of a timescale.

A period need not be a whole number of units (700 MHz: 1,428,571.43 fs): every edge is rounded by
itself, so that none is off by more than half a unit, however late it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal

from archsim.errors import require

Unit = Literal["fs", "ps", "ns", "us"]

UNITS: dict[Unit, int] = {"fs": 10**15, "ps": 10**12, "ns": 10**9, "us": 10**6}
"""A second in each unit."""

LONGEST_FS_HZ, LONGEST_PS_HZ, LONGEST_NS_HZ = 1e6, 1e3, 1.0
"""Clocks down to which a unit serves: viewers have 63 bits of it, or 9 thousand million cycles."""

FASTEST_HZ = 1e14

FIRST_EDGE = 5
"""Half periods before cycle 0: a period in reset, the clock's first low half, and a whole one; the
bench of the RTL (`rtl/benches/cocotb_entry.py`) counts the same."""


@dataclass(frozen=True, kw_only=True)
class WaveClock:
    """A clock's edges as times of a wave.  Raises `InputError` above `FASTEST_HZ`."""

    clock_hz: float

    def __post_init__(self) -> None:
        require(
            self.clock_hz <= FASTEST_HZ,
            f"a wave's clock_hz must be at most {FASTEST_HZ:g}, not {self.clock_hz:g}",
        )

    @property
    def unit(self) -> Unit:
        """ "fs" from 1 MHz up, "ps", "ns" and "us" for slower clocks."""
        if self.clock_hz >= LONGEST_FS_HZ:
            return "fs"
        if self.clock_hz >= LONGEST_PS_HZ:
            return "ps"
        return "ns" if self.clock_hz >= LONGEST_NS_HZ else "us"

    @property
    def timescale(self) -> str:
        """As a VCD writes it: "1 fs"."""
        return f"1 {self.unit}"

    @cached_property
    def _half(self) -> tuple[int, int]:
        half = Fraction(UNITS[self.unit], 2) / Fraction(self.clock_hz)
        return half.numerator, half.denominator

    @property
    def is_whole(self) -> bool:
        """Whether half a period is a whole number of units."""
        return self._half[1] == 1

    def edge(self, halves: int) -> int:
        """The time after so many half periods, to the nearest unit."""
        above, below = self._half
        return (2 * halves * above + below) // (2 * below)

    def cycle(self, number: int) -> int:
        """When a cycle begins: at its rising edge."""
        return self.edge(FIRST_EDGE + 2 * number)


__all__ = ["FIRST_EDGE", "WaveClock"]
