"""Hardware arithmetic against Python's integers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archsim.numbers import bit_ceil, ceil_div, pack_lanes, rescale, saturate, unpack_lanes, wrap


@given(st.integers(0, 10_000), st.integers(1, 300))
def test_ceil_div(numerator: int, denominator: int) -> None:
    assert ceil_div(numerator, denominator) == (numerator + denominator - 1) // denominator


@pytest.mark.parametrize(("value", "power"), [(1, 1), (2, 2), (3, 4), (16, 16), (17, 32)])
def test_bit_ceil(value: int, power: int) -> None:
    assert bit_ceil(value) == power


@pytest.mark.parametrize("bits", [4, 8, 10])
def test_wrap_and_saturate_exhaustively(bits: int) -> None:
    values = np.arange(-4 << bits, 4 << bits, dtype=np.int64)
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    span = 1 << bits
    assert (wrap(values, bits) == [(int(v) - low) % span + low for v in values]).all()
    assert (saturate(values, bits) == [min(max(int(v), low), high) for v in values]).all()


@given(st.integers(-(2**40), 2**40), st.integers(0, 2**16 - 1), st.integers(0, 47))
def test_rescale_rounds_half_up(value: int, multiplier: int, shift: int) -> None:
    exact = value * multiplier
    half = (1 << shift) >> 1
    expected = (exact + half) >> shift
    assert int(rescale(np.array([value]), multiplier, shift)[0]) == expected


@given(st.data())
def test_lanes_survive_packing(data: st.DataObject) -> None:
    bits = tuple(data.draw(st.lists(st.integers(1, 40), min_size=1, max_size=12)))
    signed = tuple(data.draw(st.booleans()) for _ in bits)
    rows = data.draw(st.integers(0, 5))
    payload = np.zeros((rows, len(bits)), np.int64)
    for lane, (width, negative) in enumerate(zip(bits, signed, strict=True)):
        low = -(1 << (width - 1)) if negative else 0
        high = (1 << (width - 1 if negative else width)) - 1
        payload[:, lane] = [data.draw(st.integers(low, high)) for _ in range(rows)]
    words = pack_lanes(payload, bits)
    assert words.shape == (rows, (sum(bits) + 7) // 8)
    assert (unpack_lanes(words, bits, signed) == payload).all()


def test_lane_zero_is_lowest() -> None:
    words = pack_lanes(np.array([[0x1, 0x2, 0x3]]), (4, 4, 8))
    assert words.tolist() == [[0x21, 0x03]]
