"""Zero-run lists: nothing is lost, and nothing is stored that need not be."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archsim.codecs.zero_run import NOWHERE, Lists, decode, encode, join
from archsim.errors import InputError


@st.composite
def rows(draw: st.DrawFn) -> Any:
    """[lists, positions] of any density, with long runs."""
    shape = draw(st.integers(1, 5)), draw(st.integers(1, 70))
    density = draw(st.sampled_from([0.0, 0.02, 0.1, 0.5, 1.0]))
    random = np.random.default_rng(draw(st.integers(0, 10**6)))
    values = random.integers(-(2**15), 2**15, shape)
    return values * (random.random(shape) < density)


def plain(row: list[int], lanes: int, bits: int, kept: list[bool]) -> list[list[tuple[int, int]]]:
    """The vectors of one row, value by value."""
    elements: list[tuple[int, int]] = []
    zeros = 0
    for value, must in zip(row, kept, strict=True):
        if value == 0 and not must:
            zeros += 1
            continue
        while zeros > 2**bits - 1:
            elements.append((0, 2**bits - 1))
            zeros -= 2**bits
        elements.append((value, zeros))
        zeros = 0
    while not elements or len(elements) % lanes:
        elements.append((0, 0))
    return [elements[at : at + lanes] for at in range(0, len(elements), lanes)]


def vectors(lists: Lists) -> list[list[tuple[int, int]]]:
    pairs = np.stack([lists.values, lists.indices], axis=-1).tolist()
    return [[(value, index) for value, index in vector] for vector in pairs]


@settings(deadline=None, max_examples=300)
@given(rows(), st.integers(1, 5), st.integers(1, 5), st.booleans())
def test_lists_are_those_of_a_plain_loop(x: Any, lanes: int, bits: int, dense: bool) -> None:
    kept = np.random.default_rng(len(x[0])).random(x.shape) < 0.3 if dense else None
    lists = encode(x, lanes=lanes, index_bits=bits, kept=kept)
    none = [False] * x.shape[1]
    expected = [
        plain(row, lanes, bits, none if kept is None else kept[number].tolist())
        for number, row in enumerate(x.tolist())
    ]
    assert vectors(lists) == [vector for one in expected for vector in one]
    assert lists.lengths.tolist() == [len(one) for one in expected]
    assert (decode(lists, x.shape[1]) == x).all()
    assert lists.bits(16) == sum(lanes * (16 + bits) + 1 for one in expected for _ in one)
    assert np.flatnonzero(lists.last).tolist() == (lists.starts[1:] - 1).tolist()


@settings(deadline=None, max_examples=100)
@given(rows(), st.integers(1, 5), st.integers(1, 5))
def test_positions_are_where_the_values_were(x: Any, lanes: int, bits: int) -> None:
    lists = encode(x, lanes=lanes, index_bits=bits)
    for number in range(len(lists)):
        part = slice(lists.starts[number], lists.starts[number + 1])
        positions, values = lists.positions[part].reshape(-1), lists.values[part].reshape(-1)
        there = positions[positions != NOWHERE]
        assert (np.diff(there) > 0).all()
        assert (x[number, there] == values[positions != NOWHERE]).all()
        assert (values[positions == NOWHERE] == 0).all()
        assert lists.empty[number] == (not x[number].any())


def test_a_long_run_has_placeholders() -> None:
    """15 zeros need none; 16 need one, which stands for 16 positions; 37 need two."""
    x = np.zeros((3, 40), np.int64)
    x[0, 15], x[1, 16], x[2, 37] = 7, 8, 9
    lists = encode(x, lanes=3, index_bits=4)
    assert vectors(lists) == [
        [(7, 15), (0, 0), (0, 0)],
        [(0, 15), (8, 0), (0, 0)],
        [(0, 15), (0, 15), (9, 5)],
    ]
    assert lists.positions.tolist() == [[15, -1, -1], [15, 16, -1], [15, 31, 37]]


def test_a_list_without_values_is_one_vector() -> None:
    lists = encode(np.zeros((2, 100), np.int8), lanes=4, index_bits=4)
    assert lists.vectors == 2
    assert lists.empty.all()
    assert lists.last.all()
    assert lists.bits(16) == 2 * (4 * 20 + 1)
    assert not decode(lists, 100).any()


def test_lists_are_joined() -> None:
    x = np.array([[0, 1, 2, 3], [0, 0, 0, 0], [5, 0, 0, 6]])
    parts = [encode(x[:1], lanes=2, index_bits=2), encode(x[1:], lanes=2, index_bits=2)]
    whole, joined = encode(x, lanes=2, index_bits=2), join(parts)
    for name in ("values", "indices", "positions", "starts"):
        assert (getattr(whole, name) == getattr(joined, name)).all()


def test_what_is_refused() -> None:
    x = np.array([[0, 0, 3]])
    with pytest.raises(InputError, match=r"^lanes must be positive, not 0$"):
        encode(x, lanes=0, index_bits=4)
    with pytest.raises(InputError, match=r"^index_bits must be positive, not 0$"):
        encode(x, lanes=1, index_bits=0)
    with pytest.raises(InputError, match=r"^rows must be of two axes, not of shape \(3,\)$"):
        encode(x[0], lanes=1, index_bits=4)
    with pytest.raises(InputError, match=r"^values must lie within 2 positions$"):
        decode(encode(x, lanes=1, index_bits=4), 2)


@pytest.mark.parametrize("fault", ["index", "value", "start"])
def test_a_changed_word_is_another_row(fault: str) -> None:
    x = np.array([[0, 1, 0, 0, 2, 3], [4, 0, 0, 5, 0, 0]])
    lists = encode(x, lanes=2, index_bits=2)
    changed = {
        "index": replace(lists, indices=lists.indices - (lists.indices > 0)),
        "value": replace(lists, values=-lists.values),
        "start": replace(lists, starts=lists.starts - np.array([0, 1, 0])),
    }[fault]
    assert not (decode(changed, 6) == x).all()


def written(row: list[int], lanes: int, bits: int) -> int:
    """Vectors of a list that is made value by value: one when its lanes are full, and the last."""
    count = lane = run = 0
    for value in row:
        if value == 0 and run < 2**bits - 1:
            run += 1
            continue
        run, lane = 0, lane + 1
        if lane == lanes:
            count, lane = count + 1, 0
    return count + 1


@settings(deadline=None, max_examples=200)
@given(rows(), st.integers(1, 5), st.integers(1, 5), st.integers(0, 40))
def test_vectors_that_are_written_as_lists_grow(x: Any, lanes: int, bits: int, more: int) -> None:
    """Of the places there are, and of as many more, all zero, behind every other list."""
    places = x.shape[1] + more * (np.arange(len(x)) % 2)
    wide = np.pad(x, ((0, 0), (0, more)))
    expected = sum(
        written(row[:length], lanes, bits)
        for row, length in zip(wide.tolist(), places.tolist(), strict=True)
    )
    assert encode(x, lanes=lanes, index_bits=bits).writes(places) == expected
