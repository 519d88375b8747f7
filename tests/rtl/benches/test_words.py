"""Packing and unpacking are each other's inverse, and agree with plain integers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtl.benches.words import pack_lanes, pack_words, unpack_lanes, unpack_words


@given(bits=st.integers(1, 300), data=st.data())
def test_words_round_trip(bits, data):
    values = data.draw(st.lists(st.integers(0, 2**bits - 1), max_size=5))
    words = pack_words(values, bits)
    assert words.shape == (len(values), (bits + 7) // 8)
    assert unpack_words(words) == values


def test_words_are_little_endian():
    assert pack_words([0x12345], 20).tolist() == [[0x45, 0x23, 0x01]]


@pytest.mark.parametrize("value", [256, -1])
def test_a_word_that_does_not_fit_is_refused(value):
    with pytest.raises(OverflowError, match=f"{value} does not fit into 8 bits"):
        pack_words([value], 8)


@given(bits=st.integers(1, 64), lanes=st.integers(1, 5), signed=st.booleans(), data=st.data())
def test_lanes_round_trip(bits, lanes, signed, data):
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    row = st.lists(st.integers(low, high), min_size=lanes, max_size=lanes)
    rows = data.draw(st.lists(row, max_size=4))
    values = np.array(rows, np.int64 if signed else np.uint64).reshape(-1, lanes)
    words = pack_lanes(values, bits)
    packed = [sum((v & (2**bits - 1)) << bits * k for k, v in enumerate(row)) for row in rows]
    assert unpack_words(words) == packed
    assert words.shape == (len(rows), (lanes * bits + 7) // 8)
    assert unpack_lanes(words, lanes, bits, signed=signed).tolist() == rows


@pytest.mark.parametrize("bits", [0, 65])
def test_lanes_have_1_to_64_bits(bits):
    with pytest.raises(ValueError, match=f"lane_bits must be 1 to 64, not {bits}"):
        pack_lanes(np.zeros((1, 1), np.int64), bits)
    with pytest.raises(ValueError, match=f"lane_bits must be 1 to 64, not {bits}"):
        unpack_lanes(np.zeros((1, 9), np.uint8), 1, bits)
