"""Case 3 of dropout beside dense steps: `archsim paper sarma-rnn`."""

import pytest

from archsim.papers import sarma_rnn as paper
from archsim.papers import sarma_rnn_steps as steps
from archsim.simulate import simulate


def test_the_range_and_the_arithmetic_are_judged():
    rows = {row.published.key: row for row in paper.judged_rows()}
    assert {key: row.state for key, row in rows.items() if key.startswith("macs")} == dict.fromkeys(
        (f"macs.lstm-zaremba-{size}.{variant}" for size in ("medium", "large")
         for variant in ("NR", "RH")), "reproduced",
    )  # fmt: skip
    assert rows["lowest"].state == "reproduced" and "of tagging" in rows["lowest"].text
    assert rows["highest"].state == "explained" and len(rows["highest"].measured) == 3


def test_nothing_dropped_gains_nothing_step_by_step():
    dense = steps.cycles("lstm-tagging", "NR", 16, dropped=False)
    batched = steps.cycles("lstm-tagging", steps.DENSE, 16)
    assert all(dense[name] >= batched[name] for name in steps.PASSES)
    better = steps.speedup_of_the_better("lstm-tagging", "RH", 64)
    assert better >= max(1, steps.speedup_over_batched("lstm-tagging", "RH", 64))


def test_cycles_are_those_of_a_simulation():
    found = simulate(steps.machine(16), steps.network_of("lstm-tagging", "RH"))
    assert found.training is not None
    timed = {name: one.cycles for name, one in found.training.passes.items() if name != "update"}
    assert timed == steps.cycles("lstm-tagging", "RH", 16)


def test_an_array_of_one_row_folds_as_macs_do():
    assert steps.folds_ratio("lstm-tagging", "RH", 1) == pytest.approx(
        steps.macs_ratio("lstm-tagging", "RH"), rel=1e-12
    )


def test_waiting_for_more_never_gains():
    for variant in steps.VARIANTS:
        alone = steps.speedup("lstm-tagging", variant, 64)
        assert steps.with_gathering("lstm-tagging", variant, 64) < alone
        assert steps.gathered_bytes("lstm-tagging", variant, 64) > 1


def test_the_perplexities_that_ship_are_of_the_cases():
    rows = paper.perplexity_rows()
    assert [row.published.figure for row in rows] == ["nothing dropped", "case 1", "case 3"]
    assert all(1 < row.ours < 1000 and "archsim --threads 1 train" in row.published.group
               for row in rows)  # fmt: skip
