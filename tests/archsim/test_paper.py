"""`archsim paper`: published figures, ours beside them, and a reason wherever they differ."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from archsim.cli.application import application
from archsim.errors import InputError
from archsim.machines.systolic.design import TPU_V1
from archsim.papers import Comparison, Figure, compare, papers
from archsim.papers import tpu_measure as measure
from archsim.papers.figures import load_figures, read_paper
from archsim.papers.stalls import attribute_layer
from archsim.papers.tpu_shapes import workload, workload_names
from archsim.tiled.timing import time_layer
from workloads.layers import MatMul

KEYS = {
    "figure", "paper", "ours", "unit", "tolerance", "within", "state", "reason", "measured",
    "missing", "source", "tolerance_reason", "wide_reason",
}  # fmt: skip


@pytest.fixture(scope="module")
def tpu() -> Comparison:
    return compare("tpu")


def _figure(value: float | None = 2.0, tolerance: float | None = 0.5) -> Figure:
    return Figure(
        key="k",
        group="g",
        figure="f",
        value=value,
        unit="%",
        tolerance=tolerance,
        why="",
        source="",
    )


def test_json_has_the_schema() -> None:
    answer = CliRunner().invoke(application(), ["paper", "tpu", "--json"])
    table = json.loads(answer.stdout)
    assert table["paper"] == "tpu"
    for row in table["rows"]:
        assert set(row) >= KEYS
        assert isinstance(row["ours"], int | float)
        assert row["source"]
        if row["paper"] is None:
            assert row["within"] is None and row["tolerance"] is None
        else:
            assert row["within"] == (abs(row["ours"] - row["paper"]) <= row["tolerance"])


def test_every_row_outside_its_tolerance_is_explained_or_says_what_is_missing(
    tpu: Comparison,
) -> None:
    outside = [row for row in tpu.rows if row.within is False]
    assert outside  # shapes are reconstructed: full agreement would be suspicious
    assert all(row.measured or row.missing for row in outside)


def test_unused_macs_are_the_tilers_not_the_papers(tpu: Comparison) -> None:
    """With whole tiles, by hand, LSTM0 has a few per mille, as the paper."""
    row = next(row for row in tpu.rows if row.published.key == "LSTM0.unused")
    by_hand = next(one for one in row.measured if one.what == "whole tiles by hand")
    assert 100 - by_hand.value < min(0.5, 0.4 * (100 - row.ours))
    folds = measure.shares("LSTM0", by_hand=True).attribution.folds
    assert folds == measure.shares("LSTM0").least_folds
    assert folds < measure.shares("LSTM0").attribution.folds


def test_speedups_with_idle_cycles_and_by_use() -> None:
    assert measure.with_idle({"a": 4.0}, {"a": 0.0}) == {"a": 4.0}
    assert measure.with_idle({"a": 4.0}, {"a": 0.5})["a"] == pytest.approx(1.6)
    values, use = {"MLP0": 1.0, "MLP1": 3.0, "CNN0": 10.0}, {"MLP": 2.0, "CNN": 1.0}
    assert measure.weighted_mean(values, use) == pytest.approx(18 / 5)


def test_every_figure_of_the_data_file_is_compared(tpu: Comparison) -> None:
    assert {row.published.key for row in tpu.rows} == set(load_figures("tpu"))
    names = [row.published.figure for row in tpu.rows]
    assert len(names) == len(set(names))


def test_every_figure_says_why_its_tolerance() -> None:
    for figure in load_figures("tpu").values():
        assert figure.source and figure.unit
        assert figure.why


def test_rows_from_reconstructed_shapes_say_so(tpu: Comparison) -> None:
    for row in tpu.rows:
        if row.published.group.startswith(("Table 3", "sensitivity")):
            assert "reconstructed shapes (note 1)" in row.reason


def test_a_figure_without_a_value_is_not_judged() -> None:
    row = _figure(None, None).row(3.0)
    assert row.within is None and row.difference is None
    with pytest.raises(InputError, match="tolerance"):
        _figure(None, 0.5)


def test_the_arithmetic_of_the_design() -> None:
    assert measure.with_array(256) == TPU_V1
    assert measure.faster() == TPU_V1
    assert measure.shift_cycles() == 256
    assert measure.cycles_per_row() == 1
    assert abs(measure.fetch_cycles() - 65536 / (34e9 / 700e6)) < 1
    assert abs(measure.ridge_point() - 1350) <= 5
    assert abs(measure.peak_tops() - 2 * 65536 * 700e6 / 1e12) < 0.1


def test_the_worked_example() -> None:
    small, large = measure.worked_example(256), measure.worked_example(512)
    assert (small.steps, large.steps) == (9, 4)
    assert small.whole_microseconds == pytest.approx(9 * 65536 / 34e3, rel=0.002)
    assert large.whole_microseconds == pytest.approx(4 * 4 * 65536 / 34e3, rel=0.002)
    assert small.useful_percent == pytest.approx(100 * 600**2 / (9 * 65536))


@pytest.mark.parametrize("name", workload_names())
def test_reconstructed_workloads_have_the_published_totals(name: str) -> None:
    published = read_paper("tpu")["table1"][name]
    network = workload(name)
    layers = published["fc_layers"] + published["conv_layers"]
    assert len(network.matrix_layers) == layers
    assert network.weight_elements == pytest.approx(published["weights"], rel=0.01)
    per_weight = network.macs / network.weight_elements
    assert per_weight == pytest.approx(published["macs_per_weight"], rel=0.01)
    lowered = workload(name, lowered=True)
    assert (lowered.macs, lowered.weight_elements) == (network.macs, network.weight_elements)


@pytest.mark.parametrize("name", workload_names())
def test_attributed_cycles_are_the_simulated_cycles(name: str) -> None:
    for layer in {type(layer): layer for layer in workload(name).matrix_layers}.values():
        assert attribute_layer(TPU_V1, layer).cycles == time_layer(TPU_V1, layer).cycles


def test_a_stack_of_tiles_waits_for_weights() -> None:
    layer = MatMul(name="stack", m=100, n=256, k=64 * 256)
    tiling = measure.whole_tiles(layer)
    slow = attribute_layer(TPU_V1, layer, tiling)
    fast = attribute_layer(replace(TPU_V1, off_chip=measure.UNLIMITED.off_chip), layer, tiling)
    assert slow.active == fast.active
    assert slow.weight_stall > 0.6 * slow.cycles > fast.cycles


def test_the_table_prints() -> None:
    answer = CliRunner().invoke(application(), ["paper", "tpu"])
    lines = answer.stdout.splitlines()
    assert answer.exit_code == 0
    assert max(len(line) for line in lines) <= 120
    assert any("ridge point" in line and "1,350" in line and "reproduced" in line for line in lines)
    assert lines[-1].endswith("published figures")


def test_without_a_name_the_papers_are_listed() -> None:
    answer = CliRunner().invoke(application(), ["paper"])
    assert all(name in answer.stdout for name in papers())
    listed = json.loads(CliRunner().invoke(application(), ["paper", "--json"]).stdout)
    assert [entry["name"] for entry in listed] == list(papers())


def test_an_unknown_paper_is_one_line_and_names_the_nearest() -> None:
    """And none is computed, nor anything loaded that would."""
    loaded = "print({'numpy', 'numba', 'archsim.simulate'} & set(sys.modules))"
    program = f"import atexit, sys; atexit.register(lambda: {loaded})"
    program += "; from archsim.cli.main import main; main()"
    command = [sys.executable, "-c", program, "paper", "tpv"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert answer.returncode == 2
    assert answer.stderr.splitlines() == ["archsim: no paper 'tpv'; did you mean tpu?"]
    assert answer.stdout == "set()\n"
