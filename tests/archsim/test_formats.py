"""Number formats: patterns and values, against NumPy's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archsim.arithmetic.formats import BF16, FP16, FP32, INT4, FloatFormat, IntegerFormat
from archsim.errors import InputError


def test_every_half_is_that_of_numpy() -> None:
    patterns = np.arange(1 << 16)
    halves = patterns.astype(np.uint16).view(np.float16).astype(np.float64)
    np.testing.assert_array_equal(FP16.decode(patterns), halves)
    number = ~np.isnan(halves)
    np.testing.assert_array_equal(FP16.encode(halves)[number], patterns[number])
    assert set(FP16.encode(halves[~number]).tolist()) == {0x7FFF}


@given(st.lists(st.floats(width=64), min_size=1), st.integers(0, 1000))
def test_rounding_to_a_format_is_that_of_numpy(values: list[float], seed: int) -> None:
    near = np.random.default_rng(seed).normal(size=100) * 2.0 ** np.arange(-50, 50)
    array = np.concatenate([np.array(values), near])
    with np.errstate(all="ignore"):
        half, single = array.astype(np.float16), array.astype(np.float32)
    np.testing.assert_array_equal(FP16.decode(FP16.encode(array)), half.astype(np.float64))
    np.testing.assert_array_equal(FP32.decode(FP32.encode(array)), single.astype(np.float64))


def test_bf16_is_the_upper_half_of_fp32() -> None:
    patterns = np.arange(1 << 16)
    np.testing.assert_array_equal(BF16.decode(patterns), FP32.decode(patterns << 16))


def test_a_small_format_value_by_value() -> None:
    """Sign, two bits of exponent with bias 1, one of fraction."""
    form = FloatFormat(exponent_bits=2, fraction_bits=1)
    values = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, np.inf, np.nan]
    np.testing.assert_array_equal(form.decode(np.arange(8)), values)
    np.testing.assert_array_equal(form.decode(np.arange(8, 16)), np.negative(values))
    assert (form.infinity, form.nan, form.sign_mask) == (6, 7, 8)
    ties = np.array([0.25, 0.75, 1.25, 2.5, 3.5, -0.25, -4.0])
    assert form.encode(ties).tolist() == [0, 2, 2, 4, 6, 8, 14]


def test_integers() -> None:
    patterns = np.arange(16)
    assert INT4.decode(patterns).tolist() == [*range(8), *range(-8, 0)]
    np.testing.assert_array_equal(INT4.encode(INT4.decode(patterns)), patterns)
    assert INT4.encode(np.array([-9, 16])).tolist() == [7, 0]


def test_formats_that_cannot_be() -> None:
    for kind, sizes, message in (
        (FloatFormat, {"exponent_bits": 9, "fraction_bits": 2}, "exponent_bits must be 2 to 8"),
        (FloatFormat, {"exponent_bits": 5, "fraction_bits": 0}, "fraction_bits must be 1 to 23"),
        (IntegerFormat, {"bits": 33}, "bits must be 2 to 32"),
    ):
        with pytest.raises(InputError) as error:
            kind(**sizes)
        assert str(error.value).startswith(f"{message}, not ")
