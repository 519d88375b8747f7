"""Service intervals and the queue identity against a loop over words."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archsim.errors import InputError
from archsim.tiled.gaps import finish_time, join_gaps
from archsim.timing import Service, crossings


def _by_hand(ready: list[int], intervals: list[int]) -> list[int]:
    """Word k crosses no earlier than its interval after word k − 1; word −1 at cycle −1."""
    before, cycles = -1, []
    for earliest, interval in zip(ready, intervals, strict=True):
        before = max(earliest, before + interval)
        cycles.append(before)
    return cycles


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 9)), max_size=40))
def test_crossings_of_explicit_gaps(words: list[tuple[int, int]]) -> None:
    ready = [max(r for r, _ in words[: at + 1]) for at in range(len(words))]
    gaps = np.array([gap for _, gap in words], np.int64)
    service = Service(gaps=gaps)
    cycles = crossings(np.array(ready, np.int64), service.finish_times(len(words)))
    assert cycles.tolist() == _by_hand(ready, (gaps + 1).tolist())


@given(st.integers(1, 5), st.integers(1, 4000), st.integers(1, 300), st.integers(1, 60))
def test_regular_service_keeps_its_rate(burst: int, numerator: int, below: int, words: int) -> None:
    """Bursts begin no earlier than their share of the channel allows, words are a cycle apart."""
    service = Service(burst_words=burst, numerator=numerator + burst * below, denominator=below)
    finish = service.finish_times(words)
    assert finish[0] == 1
    assert (np.diff(finish) >= 1).all()
    starts = finish[::burst] - 1
    due = [-(-at * service.numerator // below) for at in range(len(starts))]
    assert starts.tolist() == due


@given(st.integers(1, 60), st.booleans())
def test_kernel_and_array_agree(words: int, explicit: bool) -> None:
    """The kernels' G is that of `Service.finish_times`."""
    gaps = np.arange(words, dtype=np.int64) % 3 if explicit else np.zeros(0, np.int64)
    service = Service(gaps=gaps)
    joined = join_gaps([service.cumulative] * 5)
    expected = service.finish_times(words).tolist()
    for port in range(5):
        assert [finish_time(at, port, joined) for at in range(words)] == expected


def test_too_few_gaps() -> None:
    with pytest.raises(InputError, match=r"^2 gaps are too few for 3 words$"):
        Service(gaps=np.zeros(2, np.int64)).finish_times(3)
