"""What skipping could gain in training, and what our machine gains: `archsim paper sarma-cnn`."""

import pytest

from archsim.machine.registry import load_design
from archsim.papers import compare
from archsim.papers.sarma_cnn import RANGES, ideal_rows
from archsim.papers.sarma_machine import EPOCHS, SHOWN, dense_self, speedup
from archsim.papers.sarma_steps import ideal


def test_ideal_columns_are_reproduced_and_ranges_are_not_claimed():
    rows = ideal_rows()
    judged = [row for row in rows if row.published.key not in RANGES]
    assert len(judged) == 38 and all(row.state == "reproduced" for row in judged)
    ranges = [row for row in rows if row.published.key in RANGES]
    assert [row.state for row in ranges] == ["not modelled"] * 4
    assert all("a bound for every machine" in row.text for row in ranges)


def test_the_dense_machine_has_as_many_multipliers():
    sparse = load_design("sparsetrain")
    assert dense_self(sparse).macs_per_cycle == sparse.macs_per_cycle
    with pytest.raises(ValueError, match="the design has no 'look_ahead'"):
        dense_self(load_design("edge-16"))


@pytest.mark.slow
def test_the_machine_reaches_half_of_the_ideal_of_a_resnet():
    for when in EPOCHS:
        for column in ("FP", "BP", "FP_BP"):
            assert 0.5 <= speedup(when, column) / ideal("resnet34", when, column) <= 1, column
    rows = [row for row in compare("sarma-cnn").rows if row.published.key.startswith("sparsetrain")]
    assert len(rows) == len(EPOCHS) * len(SHOWN) and all("of the ideal" in row.text for row in rows)
