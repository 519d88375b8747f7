"""Predicates over fields: what Python says of the same text, on columns, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archsim import InputError
from archsim.sweeps.expressions import DEEPEST, LONGEST, Predicate

NUMBERS = ("rows", "off_chip.bytes_per_cycle", "a")
LENGTH = 7


def numeric(depth: int) -> st.SearchStrategy[str]:
    leaf = st.sampled_from([*NUMBERS, "0", "1", "2.5", "-3", "1024"])
    if depth == 0:
        return leaf
    inner = numeric(depth - 1)
    pair = st.tuples(inner, st.sampled_from(["+", "-", "*"]), inner).map(
        lambda one: f"({one[0]} {one[1]} {one[2]})"
    )
    most = st.tuples(st.sampled_from(["min", "max"]), inner, inner).map(
        lambda one: f"{one[0]}({one[1]}, {one[2]})"
    )
    return leaf | pair | most | inner.map(lambda one: f"abs({one})")


def truths(depth: int) -> st.SearchStrategy[str]:
    sign = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
    compared = st.tuples(numeric(2), sign, numeric(1)).map(" ".join)
    chained = st.tuples(numeric(1), sign, numeric(1), sign, numeric(1)).map(" ".join)
    listed = st.tuples(numeric(1), numeric(1)).map(lambda one: f"rows in ({one[0]}, {one[1]})")
    text = st.sampled_from(["flow == 'ws'", "flow != 'os'", "flow not in ('ws', 'is')", "on"])
    leaf = compared | chained | listed | text
    if depth == 0:
        return leaf
    inner = truths(depth - 1)
    joined = st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(
        lambda one: f"({one[0]}) {one[1]} ({one[2]})"
    )
    return leaf | joined | inner.map(lambda one: f"not ({one})")


@settings(max_examples=60)
@given(text=truths(2), seed=st.integers(0, 1000))
def test_a_predicate_is_what_python_says_of_each_row(text: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    columns = {name: rng.integers(-4, 9, LENGTH).astype(float) for name in NUMBERS}
    columns |= {"flow": rng.choice(["ws", "os", "is"], LENGTH), "on": rng.random(LENGTH) < 0.5}
    found = Predicate(text).holds(columns, LENGTH)
    plain = text.replace("off_chip.bytes_per_cycle", "bandwidth")
    for row in range(LENGTH):
        names = {name: column[row].item() for name, column in columns.items()}
        names["bandwidth"] = names.pop("off_chip.bytes_per_cycle")
        assert bool(found[row]) == eval(plain, {"min": min, "max": max, "abs": abs}, names), text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("rows < ", "cannot be read"),
        ("__import__('os').system('true')", "takes no"),
        ("(lambda: rows)() > 1", "takes no"),
        ("[rows for rows in (1, 2)] == 1", "stands behind `in`|takes no"),
        ("rows if rows > 1 else 2", "takes no"),
        ("rows ** 9 ** 9 > 1", "of arithmetic"),
        ("rows << 99 > 1", "of arithmetic"),
        ("rows is 1", "of comparisons"),
        ("rows.__class__.__mro__[0] == 1", "takes no"),
        ("min(rows) > 1", "min takes 2"),
        ("min(rows, key=1) > 1", "takes no"),
        ("open('x') == 1", "takes no"),
        ("rows := 1", "cannot be read"),
        ("f'{rows}' == 'x'", "takes no"),
        ("rows == 1j", "takes no"),
        ("-" * 900 + "1 > 0", "deep"),
        ("(" * 300 + "1" + ")" * 300 + " > 0", "cannot be read"),
        ("x" * (LONGEST + 1), "at most"),
        ("not " * (DEEPEST + 2) + "rows > 1", "deep"),
    ],
)
def test_what_is_no_predicate_is_refused(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        Predicate(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("row > 1", "no field 'row'; did you mean rows"),
        ("rows == 'ws'", "a text for a number"),
        ("flow > 3", "a text for a number"),
        ("flow + 'a' == 'b'", "text|number"),
        ("rows + 1", "true or false"),
        ("rows and flow == 'ws'", "text for a number"),
    ],
)
def test_predicates_that_fit_no_columns(text: str, said: str) -> None:
    columns = {"rows": np.array([1.0, 2.0]), "flow": np.array(["ws", "os"])}
    with pytest.raises(InputError, match=said):
        Predicate(text).holds(columns, 2)


def test_dividing_by_zero_is_as_ieee_says() -> None:
    columns = {"a": np.array([1.0, 0.0]), "b": np.array([0.0, 0.0])}
    assert Predicate("a / b > 5").holds(columns, 2).tolist() == [True, False]
    assert Predicate("b == 0 or a / b > 5").holds(columns, 2).all()
