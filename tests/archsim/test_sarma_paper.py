"""What skipping could gain in training, and what our machine gains: `archsim paper sarma-cnn` and
`archsim paper tensordash`."""

from typing import Any

import pytest

from archsim.machine.registry import load_design, with_settings
from archsim.papers import compare
from archsim.papers.sarma_cnn import RANGES, ideal_rows
from archsim.papers.sarma_machine import EPOCHS, KEPT, NETWORKS, SHOWN, shares, speedup
from archsim.papers.sarma_passes import DENSE, LOSSES, MACHINE, Step, sparse_step, step_on
from archsim.papers.sarma_steps import ideal
from archsim.papers.tensordash import WINDOW, gains
from workloads.builtin import builtin
from workloads.training.activity import Activity
from workloads.training.step import training_network

ALL = ("FP", "BP", "WG")


@pytest.fixture(name="small")
def _small(monkeypatch: pytest.MonkeyPatch) -> Any:
    """`sparse_step`, of LeNet-5 with the same density everywhere."""

    def step(_network: str, density: str) -> Any:
        network = builtin("lenet5")
        return training_network(network, activity=Activity.even(network, float(density)))

    monkeypatch.setattr("archsim.papers.sarma_passes.step_at", step)
    return sparse_step.__wrapped__


def test_ideal_columns_are_reproduced_and_ranges_are_not_claimed():
    rows = ideal_rows()
    judged = [row for row in rows if row.published.key not in RANGES]
    assert len(judged) == 38 and all(row.state == "reproduced" for row in judged)
    ranges = [row for row in rows if row.published.key in RANGES]
    assert [row.state for row in ranges] == ["not modelled"] * 4
    assert all("a bound for every machine" in row.text for row in ranges)


def test_the_dense_machine_has_as_many_multipliers():
    sparse = load_design(MACHINE)
    assert with_settings(sparse, list(DENSE)).macs_per_cycle == sparse.macs_per_cycle


def test_cycles_are_told_apart_and_sum_up(small: Any) -> None:
    ours: Step = small("lenet5", "0.4")
    dense: Step = small("lenet5", "0.4", DENSE)
    for step in (ours, dense):
        for one in step.layers.values():
            assert sum(one.where.values()) == pytest.approx(one.cycles, abs=1)
            assert min(one.where.values()) > -1
    assert ours.of(ALL).macs == dense.of(ALL).macs == sum(one.macs for one in ours.layers.values())
    assert dense.of(ALL).where["window"] > ours.of(ALL).where["window"] > 0
    assert ours.of(("BP",)).cycles < dense.of(("BP",)).cycles
    assert ours.of(ALL).energy_pj > ours.of(ALL).on_chip_pj > ours.of(ALL).logic_pj > 0
    assert ours.area_um2 > dense.area_um2 > 1e5
    said = shares(ours.of(ALL))
    assert [part.split()[0] for part in said.split(", ")] == list(LOSSES)
    window: Step = small("lenet5", "0.4", WINDOW)
    found = gains(window, dense)
    assert 1 < found["speedup"] < dense.of(ALL).cycles / ours.of(ALL).cycles
    assert found["whole"] > 1


def test_scratchpads_save_energy_of_the_off_chip_memory(small: Any) -> None:
    ours: Step = small("lenet5", "0.4")
    kept: Step = small("lenet5", "0.4", KEPT)
    assert kept.area_um2 > 1.5 * ours.area_um2
    off_chip, before = (one.energy_pj - one.on_chip_pj for one in (kept.of(ALL), ours.of(ALL)))
    assert off_chip < 0.97 * before
    assert kept.of(ALL).cycles == pytest.approx(ours.of(ALL).cycles, rel=0.02)


@pytest.mark.usefixtures("small")
def test_layers_that_a_machine_refuses_are_told() -> None:
    sizes = ("grid_rows=1", "grid_columns=1", "iaram_bytes=512")
    found: Step = step_on.__wrapped__("lenet5", "0.4", "scnn", sizes)
    assert "must be at least" in found.refused["conv2"] and "conv1" in found.layers
    assert not found.refused.keys() & found.layers.keys()
    assert not any(one.where["products"] for one in found.layers.values())


@pytest.mark.slow
def test_the_machine_reaches_half_of_the_ideal_of_a_resnet():
    for when in EPOCHS:
        for column in ("FP", "BP", "FP_BP"):
            share = speedup("resnet34", when, column) / ideal("resnet34", when, column)
            assert 0.5 <= share <= 1.05, column  # the ideal counts padding as work
    rows = [row for row in compare("sarma-cnn").rows if row.published.key.startswith("sparsetrain")]
    assert len(rows) == len(NETWORKS) * len(EPOCHS) * len(SHOWN)
    assert all("of the ideal" in row.text for row in rows)


@pytest.mark.slow
def test_tensordash_stands_beside_ours():
    rows = {row.published.key: row for row in compare("tensordash").rows}
    assert 1.3 < rows["speedup"].ours < 2.5
    assert 1 < rows["resnet34.BP"].ours < 1.15  # padding alone
