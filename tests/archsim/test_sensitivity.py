"""How much each field matters, and what a front shares, on points whose answer is known."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archsim.sweeps.sensitivity import MOST_GROUPS, groups_of, sensitivities, shared_by


def grid(**values: list[object]) -> pd.DataFrame:
    """All combinations."""
    return pd.DataFrame(list(itertools.product(*values.values())), columns=list(values))


def test_a_product_of_powers_shares_its_variance_as_the_powers_say() -> None:
    sizes: list[object] = [float(2**k) for k in range(12)]
    points = grid(a=sizes, b=sizes, c=["x", "y"])
    points["cycles"] = points["a"] ** 2 * points["b"]
    found = {one.field: one for one in sensitivities(points, ["a", "b", "c"], ["cycles"])}
    assert found["a"].share == pytest.approx(0.8)  # 4 : 1, in logarithms
    assert found["b"].share == pytest.approx(0.2)
    assert found["c"].share == pytest.approx(0, abs=1e-9)
    assert found["a"].ratio == pytest.approx(2.0**22)
    assert (found["a"].best, found["a"].worst) == (1.0, 2.0**11)


def test_of_points_drawn_evenly_the_same_shares_are_estimated() -> None:
    rng = np.random.default_rng(3)
    points = pd.DataFrame({"a": rng.integers(0, 12, 3000), "b": rng.integers(0, 12, 3000)})
    points["cycles"] = 2.0 ** (2 * points["a"] + points["b"])
    found = {one.field: one for one in sensitivities(points, ["a", "b"], ["cycles"])}
    assert found["a"].share == pytest.approx(0.8, abs=0.03)
    assert found["b"].share == pytest.approx(0.2, abs=0.03)


def test_what_fields_do_only_together_is_in_no_share() -> None:
    points = grid(a=[0, 1], b=[0, 1], again=list(range(20)))
    points["cycles"] = np.where(points["a"] == points["b"], 10.0, 1000.0)
    assert all(one.share < 1e-9 for one in sensitivities(points, ["a", "b"], ["cycles"]))


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1), st.integers(2, MOST_GROUPS))
def test_a_field_that_does_nothing_has_no_share(seed: int, groups: int) -> None:
    rng = np.random.default_rng(seed)
    points = pd.DataFrame({"a": rng.integers(0, groups, 4000), "cycles": rng.lognormal(size=4000)})
    (found,) = sensitivities(points, ["a"], ["cycles"])
    assert found.share < 0.01


def test_many_values_fall_into_ranges_of_equally_many_points() -> None:
    column = pd.Series(np.arange(3200.0))
    codes, middles = groups_of(column)
    assert len(middles) == MOST_GROUPS
    assert set(np.bincount(codes)) == {100}
    assert middles == sorted(middles)


def test_points_without_a_field_or_a_value_are_left_out() -> None:
    points = pd.DataFrame(
        {
            "a": [1.0, 1.0, 2.0, 2.0, np.nan, 1.0] * 10,
            "cycles": [1.0, 1.0, 8.0, 8.0, 1e9, np.nan] * 10,
        }
    )
    (found,) = sensitivities(points, ["a"], ["cycles"])
    assert found.share == pytest.approx(1)
    assert found.ratio == pytest.approx(8)


def test_a_field_of_one_value_and_an_objective_of_one_have_none() -> None:
    points = pd.DataFrame({"a": [1, 2, 3], "b": [5, 5, 5], "cycles": [1.0, 2.0, 4.0], "area": 7.0})
    found = sensitivities(points, ["a", "b"], ["cycles", "area"])
    assert [(one.field, one.objective) for one in found] == [("a", "cycles")]


def test_a_front_says_what_its_designs_have_in_common() -> None:
    front = pd.DataFrame({"rows": [8, 8, 8], "columns": [4, 8, 8], "fixed": [1, 1, 1]})
    found = shared_by(front, {"rows": 4, "columns": 2, "fixed": 1})
    assert [(one.field, one.same) for one in found] == [("rows", True), ("columns", False)]
    assert found[0].values == ((8, 3),)
    assert found[1].values == ((8, 2), (4, 1))
