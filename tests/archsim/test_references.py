"""Counts of references are left out where no array is made or given back, and kept elsewhere."""

import re

import numpy as np

from archsim.kernels import build, kernel
from archsim.kernels.references import without_counts
from archsim.numbers import IntArray

ATOMIC = re.compile(r"\batomicrmw\b|\bx86\.atomic\b|@nrt_atomic_")
COUNT = re.compile(r"call void @NRT_(?:incref|decref)\(")


@kernel
def _view(values: IntArray, start: int) -> IntArray:
    return values[start:]


@kernel
def _of_view(values: IntArray, start: int) -> int:
    return _view(values, start).sum()


@kernel
def _made(size: int) -> int:
    return np.ones(size, np.int64).sum()


@kernel
def _lent_only(values: IntArray) -> int:
    total = 0
    for at in range(len(values)):
        row = values
        total += row[at]
    return total


def body_of(text: str, name: str) -> str:
    """The definition of a function by its whole name."""
    found = re.search(rf"^define [^\n]*?@{name}\(.*?^}}\n", text, re.M | re.S)
    assert found
    return found[0]


def counts_of(text: str, name: str) -> int:
    """Counts in the body of a function."""
    bodies = re.findall(r"^define [^\n]*?@[^\n(]*" + name + r".*?^}\n", text, re.M | re.S)
    assert bodies
    return sum(len(COUNT.findall(body)) for body in bodies)


def test_only_borrowed_arrays_are_not_counted() -> None:
    seen: list[tuple[str, str]] = []

    def noted(text: str, borrowing: list[str]) -> str:
        seen.append((text, without_counts(text, borrowing)))
        return seen[-1][1]

    @kernel("i8.1")
    def entry(values: IntArray) -> int:
        return _lent_only(values) + _made(3) + _of_view(values, 1)

    original, build.without_counts = build.without_counts, noted
    try:
        build.compile_entry(entry.part, (np.arange(4),))
    finally:
        build.without_counts = original
    ((before, after),) = seen
    for count in ("NRT_incref", "NRT_decref"):
        assert ATOMIC.search(body_of(before, count))
        assert not ATOMIC.search(body_of(after, count))
    assert counts_of(before, "_lent_only") > 0
    assert counts_of(after, "_lent_only") == 0
    for kept in ("_view", "_of_view", "_made"):
        assert counts_of(after, kept) == counts_of(before, kept)
    assert counts_of(after, "_made") > 0


def test_arrays_that_are_made_and_passed_on_live_and_go() -> None:
    @kernel("i8.1, int")
    def passed(values: IntArray, times: int) -> int:
        total = 0
        for _ in range(times):
            total += _lent_only(values[1:]) + _made(1000)
        return total

    values = np.arange(5)
    assert passed(values, 3) == 3 * (10 + 1000)
