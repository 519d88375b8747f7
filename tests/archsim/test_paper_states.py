"""Rows of every paper: 0, half and double fail; three states; reasons that are measured."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from archsim.cli.application import application
from archsim.errors import InputError
from archsim.papers import Comparison, Figure, compare
from archsim.papers.evidence import count, switch
from archsim.papers.figures import STATES, load_figures, read_paper
from archsim.papers.registry import MODULES
from archsim.papers.scnn_figures import layer_figures, sweep_figures
from archsim.papers.vsquant_hardware import hardware_rows

QUICK = ("eyeriss", "mac-area", "scnn-area")
"""Tables of a few seconds."""


def published() -> list[Figure]:
    """Every figure with a number, of data files and of code."""
    found = [figure for name in MODULES for figure in load_figures(name).values()]
    found += [*layer_figures().values(), *sweep_figures().values()]
    found += [row.published for row in hardware_rows()]
    return [figure for figure in found if figure.value is not None]


def test_the_figures_are_all_there() -> None:
    assert len(published()) > 350
    for name in MODULES:
        assert read_paper(name)["title"]


@pytest.mark.parametrize("factor", [0.0, 0.5, 2.0])
def test_nothing_half_and_double_fail_every_row(factor: float) -> None:
    for figure in published():
        assert figure.value is not None and figure.tolerance is not None
        assert abs(factor * figure.value - figure.value) > figure.tolerance, figure.key


@pytest.mark.parametrize("factor", [0.0, 0.5, 2.0])
def test_no_gain_half_of_it_and_double_fail_every_row_of_a_gain(factor: float) -> None:
    gains = [figure for figure in published() if figure.neutral is not None]
    assert len(gains) > 20
    for figure in gains:
        assert figure.value is not None and figure.tolerance is not None
        assert figure.neutral is not None
        ours = figure.neutral + factor * (figure.value - figure.neutral)
        assert abs(ours - figure.value) > figure.tolerance, figure.key


def test_tolerances_are_a_quarter_or_argued() -> None:
    for figure in published():
        assert figure.value is not None and figure.tolerance is not None
        assert figure.why, figure.key
        assert figure.tolerance <= 0.25 * figure.value * (1 + 1e-9) or figure.wide, figure.key


def figure(value: float | None = 2.0, tolerance: float | None = 0.5, **more: object) -> Figure:
    fields = {"key": "k", "group": "g", "figure": "f", "unit": "%", "why": "w", "source": "s"}
    return Figure(value=value, tolerance=tolerance, **{**fields, **more})  # pyright: ignore


@pytest.mark.parametrize(
    "given",
    [
        {"tolerance": 0.51},
        {"tolerance": 1.0, "wide": "argued"},
        {"value": 0.0, "tolerance": 0.0},
        {"value": -24.0, "tolerance": 1.0},
        {"neutral": 1.0, "tolerance": 0.5},
        {"value": None},
    ],
)
def test_wide_tolerances_and_crossing_signs_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        figure(**given)


def test_nothing_of_all_is_compared_as_the_rest() -> None:
    """A share printed as 0 %: ours of 0.01 % is reproduced, of 8 % not."""
    whole = load_figures("tpu")["CNN0.weight_stall"]
    assert (whole.value, whole.tolerance, whole.complement) == (100, 0.05, True)
    assert whole.row(0.01).state == "reproduced"
    row = whole.row(8.0, measured=[switch("without", 4.0, "test")])
    assert (row.ours, row.state, row.measured[0].value) == (92.0, "explained", 96.0)


def test_a_miss_needs_something_measured_or_missing() -> None:
    with pytest.raises(InputError, match="without a measured reason"):
        figure().row(3.0, "a cause that nobody measured")
    assert figure().row(3.0, missing="no such unit here").state == "not modelled"
    assert figure().row(3.0, measured=[count("folds", 3, "", "test")]).state == "explained"
    near = figure().row(3.0, measured=[switch("without it", 2.2, "test")], missing="x")
    assert (near.state, near.missing) == ("explained", "")
    far = figure().row(3.0, measured=[switch("without it", 2.99, "test")], missing="x")
    assert (far.state, far.measured) == ("not modelled", ())
    assert figure().row(2.1, measured=[switch("w", 2.0, "test")], missing="x").text == ""
    assert figure(None, None).row(3.0).state is None


@given(st.floats(0.1, 10), st.floats(0.1, 10), st.floats(0.1, 10))
def test_a_switch_explains_only_what_it_brings_nearer(
    paper: float, ours: float, without: float
) -> None:
    """Nearer in ratios by a tenth of the gap, or past it by no more than twice the gap."""
    gap, left = abs(math.log(ours / paper)), abs(math.log(without / paper))
    past = (ours - paper) * (without - paper) < 0
    explains = switch("x", without, "test").explains(paper, ours)
    if gap > 1e-6 and abs(left - 0.9 * gap) > 1e-6 and abs(left - 2 * gap) > 1e-6:
        assert explains == (left < 0.9 * gap or (past and left < 2 * gap))


def check_rows(table: Comparison) -> None:
    for row in table.rows:
        record = row.record()
        assert row.state in (*STATES, None)
        assert (row.state is None) == (row.published.value is None)
        if row.state == "explained":
            assert record["measured"], row.published.key
            for one in record["measured"]:
                assert one["how"] and math.isfinite(one["value"])
                assert one["kind"] == "count" or one["closed"] >= -1
        if row.state == "not modelled":
            assert record["missing"] and not record["measured"], row.published.key
        if row.state == "reproduced":
            assert row.within and not record["measured"] and not record["missing"]


@pytest.mark.parametrize("name", QUICK)
def test_every_explained_row_has_a_measured_reason(name: str) -> None:
    check_rows(compare(name))


def test_the_table_says_the_states() -> None:
    answer = CliRunner().invoke(application(), ["paper", "eyeriss"])
    assert answer.exit_code == 0
    assert "published figures" in answer.stdout.splitlines()[-1]
    assert all(state in answer.stdout.splitlines()[-1] for state in STATES)
    table = json.loads(CliRunner().invoke(application(), ["paper", "eyeriss", "--json"]).stdout)
    states = [row["state"] for row in table["rows"]]
    assert table["states"] == {state: states.count(state) for state in STATES}


def test_a_row_is_its_own() -> None:
    row = figure().row(2.1)
    assert replace(row) == row
