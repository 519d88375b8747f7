"""Words as bits and back, against one bit at a time."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from archsim.memory.bits import bits_of, words_of

LANES = st.lists(
    st.tuples(st.integers(1, 64), st.booleans(), st.integers(1, 3)), min_size=1, max_size=4
)


@given(lanes=LANES, words=st.integers(0, 4), seed=st.integers(0, 99))
@settings(max_examples=60)
def test_every_bit_lies_in_its_place(
    lanes: list[tuple[int, bool, int]], words: int, seed: int
) -> None:
    widths = [bits for bits, _, count in lanes for _ in range(count)]
    signed = [sign for _, sign, count in lanes for _ in range(count)]
    given_words = np.random.default_rng(seed).integers(-(1 << 62), 1 << 62, (words, len(widths)))
    bits = bits_of(given_words, widths)
    plainly = [
        [int(word[lane]) >> bit & 1 for lane, width in enumerate(widths) for bit in range(width)]
        for word in given_words
    ]
    assert bits.dtype == np.uint8 and bits.tolist() == plainly
    found = words_of(bits, widths, signed)
    for lane, (width, sign) in enumerate(zip(widths, signed, strict=True)):
        for value, whole in zip(
            found[:, lane].tolist(), given_words[:, lane].tolist(), strict=True
        ):
            low = whole % (1 << width)
            negative = (sign or width == 64) and low >> (width - 1)
            assert value == (low - (1 << width) if negative else low)
