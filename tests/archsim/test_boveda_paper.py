"""`archsim paper boveda`: the published figures, and the whole table."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from archsim.papers import boveda
from archsim.papers.boveda_machines import MACHINES
from archsim.papers.boveda_tensors import densities
from archsim.papers.figures import Row, load_figures, read_paper

# Data file


def test_every_figure_has_a_source_and_a_reason_for_its_tolerance() -> None:
    figures = load_figures("boveda")
    assert len(figures) == 14
    for figure in figures.values():
        assert figure.value is not None and figure.tolerance in (8, 9, 10)
        assert figure.source.startswith(("abstract", "Lascorz")) and figure.why
    published = {key.partition(".")[2]: figure.value for key, figure in figures.items()}
    assert published == {
        "dense": 53,
        "value": 66,
        "word": 66,
        "shapeshifter8": 33,
        "shapeshifter16": 36,
    }
    assert 0 < densities()["others"] < densities()["first"] < 1
    assert "abstract only" in read_paper("boveda")["title"]


def test_the_notes_say_what_is_not_known() -> None:
    notes = " ".join(boveda.notes())
    assert "could not be had" in notes
    assert "0.37 of all other weights" in notes and "drawn" in notes


# The whole


@pytest.fixture(scope="module")
def table() -> boveda.LayerComparison:
    told: list[str] = []
    comparison = boveda.compare(told.append)
    assert "g2p-en: pruned" in told
    return comparison


@pytest.mark.slow
def test_every_figure_is_compared_and_every_row_is_there(table: boveda.LayerComparison) -> None:
    keys = [row.published.key for row in table.rows]
    assert len(set(keys)) == len(keys)
    assert set(load_figures("boveda")) <= set(keys)
    judged: Callable[[Row], bool] = lambda row: row.within is not None  # noqa: E731
    assert len([row for row in table.rows if judged(row)]) == 14
    assert len(keys) == 14 + 2 * 6 * (6 + 3) + 5 + 3 * 3 + 7 * len(MACHINES) + 6 * 3
    record = table.record()
    assert len(record["layers"]) == 2 * 6 * (52 + 10)
    assert all(one["percent"]["boveda"] > 0 for one in record["layers"])


@pytest.mark.slow
def test_the_figures_that_are_near(table: boveda.LayerComparison) -> None:
    near = {row.published.key for row in table.rows if row.within}
    assert near == {
        "g2p-en.dense",
        "AlexNet.value",
        "VGG-16.value",
        "GoogLeNet.value",
        "g2p-en.shapeshifter16",
    }
    states = {row.published.key: row.state for row in table.rows if row.state}
    assert len(states) == 14 and set(states.values()) == {"reproduced", "explained"}
