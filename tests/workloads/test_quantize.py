"""Quantisation and requantisation against exact rational arithmetic."""

from fractions import Fraction
from math import floor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from workloads.errors import WorkloadError
from workloads.quantize import (
    quantize_at,
    quantize_symmetric,
    requantize,
    requantize_parameters,
    round_shift,
    storage,
)

bits = st.sampled_from([2, 4, 8, 16])
tensors = arrays(np.float32, st.integers(1, 20), elements=st.floats(-100, 100, width=32))


@given(x=tensors, bits=bits)
def test_error_is_at_most_half_a_step_and_the_largest_value_is_the_limit(x, bits):
    levels, scale = quantize_symmetric(x, bits)
    assert levels.dtype == storage(bits)
    assert levels.shape == x.shape
    assert np.all(np.abs(levels * scale - x.astype(np.float64)) <= scale * 0.5000001)
    if np.any(x):
        assert np.abs(levels).max() == 2 ** (bits - 1) - 1


def test_rounds_half_to_even_and_clips_symmetrically():
    assert quantize_at(np.array([0.5, 1.5, 2.5, -0.5, 99.0, -99.0]), 1.0, 4).tolist() == [
        0,
        2,
        2,
        0,
        7,
        -7,
    ]
    assert quantize_symmetric(np.zeros(3), 8)[1] == 1.0
    assert storage(9) is np.int16


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_values_which_are_not_finite_are_refused(bad):
    with pytest.raises(WorkloadError, match=r"^quantisation: every value must be finite, not NaN"):
        quantize_symmetric(np.array([1.0, bad]), 8)


@pytest.mark.parametrize("width", [1, 17])
def test_widths_outside_the_range_are_refused(width):
    with pytest.raises(WorkloadError, match=f"^quantisation: bits must be 2 to 16, not {width}$"):
        quantize_symmetric(np.ones(1), width)


@given(real=st.floats(1e-12, 60000), width=st.sampled_from([8, 16]))
def test_multiplier_and_shift_approximate_the_real_multiplier(real, width):
    if real >= 2**width - 1:
        return
    multiplier, shift = requantize_parameters(real, width)
    assert 0 < multiplier < 2**width
    assert 0 <= shift <= 47
    error = abs(Fraction(multiplier, 2**shift) - Fraction(real))
    assert error <= Fraction(1, 2 ** (shift + 1))
    if 0 < shift < 47:
        assert multiplier >= 2 ** (width - 1) - 1, "a larger shift would have been more exact"


def test_multipliers_which_cannot_be_written_are_refused():
    assert requantize_parameters(1.0) == (1 << 15, 15)
    assert requantize_parameters(65535.0) == (65535, 0)
    assert requantize_parameters(2.0**-47) == (1, 47)
    with pytest.raises(WorkloadError, match=r"must be positive, not 0$"):
        requantize_parameters(0)
    with pytest.raises(WorkloadError, match=r"must be positive, not nan$"):
        requantize_parameters(float("nan"))
    with pytest.raises(WorkloadError, match=r"must be below 2\^16, not 65536$"):
        requantize_parameters(65536)
    with pytest.raises(WorkloadError, match=r"must be at least 2\^-48, not"):
        requantize_parameters(2.0**-60)


@given(
    acc=st.integers(-(2**31), 2**31 - 1),
    multiplier=st.integers(0, 2**16 - 1),
    shift=st.integers(0, 47),
    relu=st.booleans(),
    bits=bits,
)
def test_requantize_is_the_stated_arithmetic(acc, multiplier, shift, relu, bits):
    half = Fraction(1, 2) if shift else 0
    expected = floor(Fraction(acc * multiplier, 2**shift) + half)
    expected = max(expected, 0) if relu else expected
    expected = min(max(expected, -(2 ** (bits - 1))), 2 ** (bits - 1) - 1)
    got = requantize(np.array([acc], np.int32), multiplier, shift, relu, bits)
    assert got.tolist() == [expected]
    assert got.dtype == storage(bits)


def test_round_half_goes_up_on_both_sides_of_zero():
    assert round_shift(np.array([-6, -2, 2, 6, 7]), 2).tolist() == [-1, 0, 1, 2, 2]
    assert round_shift(np.array([-3, 5]), 0).tolist() == [-3, 5]
