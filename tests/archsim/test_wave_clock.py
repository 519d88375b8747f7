"""Time in waves is the design's clock's, at any clock."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archsim.errors import InputError
from archsim.wave_clock import FASTEST_HZ, UNITS, WaveClock

clocks = st.one_of(
    st.floats(1e-2, 1e13), st.sampled_from([1.0, 1e6, 100e6, 500e6, 700e6, 1e9, 1.53e9, 1.76e9])
)


@given(clocks, st.integers(0, 10**9))
def test_every_cycle_begins_within_half_a_unit(clock_hz: float, cycle: int) -> None:
    clock = WaveClock(clock_hz=clock_hz)
    exact = Fraction(2 * cycle + 5, 2) * UNITS[clock.unit] / Fraction(clock_hz)
    assert abs(clock.cycle(cycle) - exact) <= Fraction(1, 2)


@given(clocks)
def test_periods_are_many_units_and_years_are_few(clock_hz: float) -> None:
    clock = WaveClock(clock_hz=clock_hz)
    assert clock.edge(2) >= 100
    assert clock.cycle(2**33) < 2**63
    assert clock.timescale.split() == ["1", clock.unit]


@pytest.mark.parametrize(
    ("clock_hz", "period", "whole"),
    [(500e6, 2_000_000, True), (700e6, 1_428_571, False), (1e9, 1_000_000, True)],
)
def test_known_clocks(clock_hz: float, period: int, whole: bool) -> None:
    clock = WaveClock(clock_hz=clock_hz)
    assert (clock.unit, clock.edge(2), clock.is_whole) == ("fs", period, whole)
    assert clock.cycle(7 * 10**8) == pytest.approx(7e8 / clock_hz * 1e15 + 2.5 * period, abs=3)


def test_too_fast_a_clock_is_refused() -> None:
    with pytest.raises(InputError, match=r"clock_hz must be at most 1e\+14, not 1e\+15"):
        WaveClock(clock_hz=10 * FASTEST_HZ)
