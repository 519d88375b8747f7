"""Fronts equal their definition, whatever the points and however they come."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archsim.sweeps import front, front_of
from archsim.sweeps.front import FloatArray, Front


def plainly(values: FloatArray) -> list[int]:
    """By the definition, pair by pair."""
    return [
        at
        for at, one in enumerate(values)
        if not np.isnan(one).any()
        and not any((other <= one).all() and (other < one).any() for other in values)
    ]


@st.composite
def points(draw: st.DrawFn) -> FloatArray:
    """Many ties; here and there infinities and NaN."""
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    objectives = draw(st.integers(1, 4))
    values = rng.integers(0, draw(st.integers(1, 9)), (draw(st.integers(0, 40)), objectives))
    found = values.astype(np.float64)
    if found.size and draw(st.booleans()):
        found.flat[rng.integers(found.size)] = draw(st.sampled_from([np.nan, np.inf, -np.inf]))
    return found


@settings(max_examples=150)
@given(values=points(), chunk=st.integers(1, 20))
def test_a_front_is_the_points_that_none_dominates(values: FloatArray, chunk: int) -> None:
    wanted = plainly(values)
    assert front_of(values).tolist() == wanted
    numbers = np.arange(len(values), dtype=np.int64)
    edges = [*range(0, len(values), chunk), len(values)]
    streamed = Front(range(values.shape[1]))
    backwards = Front([*reversed(range(values.shape[1]))])
    for begin, end in pairwise(edges):
        streamed.take(numbers[begin:end], values[begin:end])
        backwards.take(numbers[begin:end], values[begin:end])
    assert sorted(streamed.numbers.tolist()) == sorted(backwards.numbers.tolist()) == wanted
    assert np.array_equal(streamed.values, values[streamed.numbers])


def test_chunks_within_a_front_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(1).random((500, 3)).round(2)
    wanted = front_of(values)
    monkeypatch.setattr(front, "CHUNK", 17)
    assert front_of(values).tolist() == wanted.tolist() == plainly(values)
