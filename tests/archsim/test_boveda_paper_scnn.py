"""SCNN's words in `archsim paper boveda`: fours of values that are not zero."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from archsim.papers import boveda_rows
from archsim.papers.boveda_schemes import LIMIT, schemes
from archsim.papers.boveda_scnn import (
    Words,
    activation_lists,
    drawn_words,
    photograph_words,
    total,
    weight_lists,
    words_of,
)


def _reference(lists: np.ndarray, signed: bool) -> Words:
    words = widths = 0
    for line in lists.tolist():
        kept = [abs(value) for value in line if value]
        for at in range(0, len(kept), 4):
            words += 1
            widths += max(value.bit_length() for value in kept[at : at + 4]) + signed
    return Words(words=words, widths=widths)


@given(
    lists=arrays.arrays(
        np.int16,
        st.tuples(st.integers(1, 4), st.integers(1, 20)),
        elements=st.one_of(st.just(0), st.integers(0, 32767)),
    ),
    signed=st.booleans(),
)
def test_words_are_fours_of_values_that_are_not_zero(lists: np.ndarray, signed: bool) -> None:
    given_lists = -lists if signed else lists
    assert words_of(given_lists, signed=signed) == _reference(given_lists, signed)


@given(st.integers(1, 50), st.integers(1, 15))
def test_reductions_are_those_of_the_two_accounts(words: int, width: int) -> None:
    one = Words(words=words, widths=words * width)
    value = 1 - (16 + 4 + 4 * width) / (4 * (16 + 4))
    word = 1 - (4 + 4 + 4 * width) / (4 * 16 + 4)
    assert one.reduction("value") == pytest.approx(100 * value)
    assert one.reduction("word") == pytest.approx(100 * word)
    assert one.mean_width == width
    assert total([one, one]) == Words(words=2 * words, widths=2 * words * width)


@given(st.integers(1, 20), st.integers(1, 20), st.integers(1, 3))
def test_lists_of_activations_are_channels_of_tiles(height: int, width: int, channels: int) -> None:
    plane = np.arange(1, height * width * channels + 1, dtype=np.int16)
    plane = plane.reshape(height, width, channels)
    rows, columns = -(-height // 8), -(-width // 8)
    found = [line[line != 0].tolist() for line in activation_lists(plane)]
    assert len(found) == channels * 64
    for channel in range(channels):
        for pe in range(64):
            y, x = pe // 8 * rows, pe % 8 * columns
            tile = plane[y : y + rows, x : x + columns, channel]
            assert found[channel * 64 + pe] == tile.ravel().tolist()


@given(st.integers(1, 20), st.integers(1, 3), st.integers(1, 3))
def test_lists_of_weights_are_channels_of_8_filters(filters: int, kernel: int, depth: int) -> None:
    weight = np.arange(1, filters * kernel**2 * depth + 1, dtype=np.int16)
    weight = weight.reshape(filters, kernel, kernel, depth)
    found = [line[line != 0].tolist() for line in weight_lists(weight)]
    groups = -(-filters // 8)
    assert len(found) == groups * depth
    for group in range(groups):
        for channel in range(depth):
            part = weight[8 * group : 8 * group + 8, :, :, channel]
            assert found[group * depth + channel] == part.ravel().tolist()


@pytest.mark.usefixtures("known_profiles")
def test_what_holds_on_top_of_zero_compression() -> None:
    known = schemes("photographs")
    saved = [
        total(photograph_words(known[form]).values()).reduction("value")
        for form in ("tensor-16", "fixed", "dnnsim", "strict", "profiled")
    ]
    assert saved == sorted(saved) and saved[0] > 5
    assert boveda_rows.limits("profiled") == (127, 127)
    assert boveda_rows.limits("tensor-16") == (LIMIT, LIMIT)
    wide, narrow = (
        total(drawn_words("AlexNet", largest).values()) for largest in ((LIMIT, LIMIT), (255, 1023))
    )
    assert wide.reduction("value") < 0 < 25 < narrow.reduction("value") < 40
    assert narrow.reduction("word") > narrow.reduction("value")
    again = total(drawn_words("AlexNet", (255, 1023)).values())
    assert again == narrow
