"""Where words of compressed tiles are looked for: a directory that fails, unit by unit."""

from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from archsim.memories.boveda.places import NOT_THERE, fill_directory, look_for_words

ROW_BITS = 4


@settings(max_examples=60, deadline=None)
@given(
    shift=st.sampled_from([0, 1, 2]), bits=st.sampled_from([2, 3]),
    words=st.lists(st.integers(1, 9), min_size=1, max_size=3),
    rate=st.sampled_from([0.0, 0.1, 0.5]),
    seed=st.integers(0, 100),
)  # fmt: skip
def test_words_are_looked_for_where_entries_say(
    shift: int, bits: int, words: list[int], rate: float, seed: int
) -> None:
    """Also in rows that a tile has not written, of which a word may end in the first."""
    random, size, columns = np.random.default_rng(seed), 1 << shift, 2
    starts = np.cumsum([0, *words])
    widths = random.integers(1, (1 << bits) + 1, (starts[-1], columns)).astype(np.uint8)
    units = np.array([-(-one // size) for one in words])
    first_rows = np.empty((units.sum(), columns), np.int64)
    rows = np.empty((len(words), columns), np.int64)
    fill_directory((starts, widths), (shift, bits), first_rows, rows)
    of, half = (np.array(one) for one in zip(*product(range(len(words)), (0, 1)), strict=True))
    wrong = random.random((2, 2, columns, units.max(), 1 + size, ROW_BITS)) < rate
    fields = 1 << np.arange(ROW_BITS)
    zero = (wrong[0] * fields).sum(axis=-1)
    one = (~wrong[1] * fields).sum(axis=-1)
    zero[..., 1:] &= (1 << bits) - 1
    one[..., 1:] &= (1 << bits) - 1
    places = np.full((columns, 2 * int(starts[-1])), -9, np.int32)
    directory = np.cumsum(units) - units, first_rows, rows
    form = shift, bits, ROW_BITS
    look_for_words((starts, widths), form, directory, (of, half), (zero, one), places)
    at = 0
    for tile, own in zip(of, half, strict=True):
        for word in range(words[tile]):
            unit, number = divmod(word, size)
            for column in range(columns):
                yes, no = one[own, column, unit], zero[own, column, unit]
                entry = [first_rows[directory[0][tile] + unit, column]]
                inside = range(starts[tile] + unit * size, starts[tile] + word + 1)
                entry += [int(widths[each, column]) - 1 for each in inside]
                read = [
                    sum(
                        ((int(yes[n]) if meant >> b & 1 else int(no[n])) >> b & 1) << b
                        for b in range(ROW_BITS)
                    )
                    for n, meant in enumerate(entry)
                ]
                taken, width = sum(1 + n for n in read[1 : 1 + number]), 1 + read[1 + number]
                row = (read[0] + (taken >> bits)) % (1 << ROW_BITS)
                spills = taken % (1 << bits) + width > 1 << bits and row + 1 < rows[tile, column]
                right = 2 * row + spills if row < rows[tile, column] else NOT_THERE
                assert places[column, at + word] == right
        at += words[tile]
