"""Cycle counts against SCALE-Sim 3.0.0, an independent simulator (`tests/data/scalesim.toml`).

SCALE-Sim's folds never overlap, as our `serial_cycles` assume with a layer as one tile.  Both then
count folds × (cycles of a fold), and the folds are the same unless a convolution's kernel has
several rows: SCALE-Sim cuts the window of R·S·C elements into ⌈R·S·C / rows⌉ folds, we cut each
row of S·C adjacent elements, R·⌈S·C / rows⌉, because im2col is done in hardware.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from archsim.layer.problem import Tiling, problem_of
from archsim.machines.systolic.design import Systolic
from archsim.memory import OffChip, Plain
from archsim.result import LayerResult
from archsim.tiled.timing import time_layer
from workloads.builtin import builtin
from workloads.layers import Conv2d, MatMul

DATA = Path(__file__).parents[1] / "data" / "scalesim.toml"
RUNS: list[dict[str, Any]] = tomllib.loads(DATA.read_text(encoding="utf-8"))["run"]


def _name(run: dict[str, Any]) -> str:
    return f"{run['network']}-{run['rows']}x{run['columns']}-{run['dataflow']}"


every_run = pytest.mark.parametrize("run", RUNS, ids=_name)


@dataclass(frozen=True)
class Entry:
    """A row of the file: M × N × K of one image and group, with K = runs · run."""

    name: str
    layer: Conv2d | MatMul
    m: int
    n: int
    runs: int
    run: int
    times: int
    cycles: int

    @property
    def k(self) -> int:
        return self.runs * self.run


def _entry(row: dict[str, Any]) -> Entry:
    height, width, r, s, channels, filters, stride = row["shape"]
    p, q = (height - r) // stride + 1, (width - s) // stride + 1
    layer: Conv2d | MatMul
    if (r, channels, s) == (1, 1, width):  # how SCALE-Sim writes a product
        layer = MatMul(name=row["name"], m=height, n=filters, k=width)
    else:
        layer = Conv2d(
            name=row["name"], channels=channels, filters=filters,
            ifmap_height=height, ifmap_width=width, kernel_height=r, kernel_width=s,
            stride_height=stride, stride_width=stride,
        )  # fmt: skip
    return Entry(row["name"], layer, p * q, filters, r, s * channels, row["times"], row["cycles"])


def _entries(run: dict[str, Any]) -> Iterator[Entry]:
    return map(_entry, run["layers"])


def _design(run: dict[str, Any]) -> Systolic:
    """The run's array; any layer fits as one tile, and every port moves a word a cycle."""
    whole = Plain(capacity_bytes=2**30)
    return Systolic(
        rows=run["rows"], columns=run["columns"], dataflow=run["dataflow"],
        ifmap_memory=whole, weight_memory=whole, accumulator_memory=whole,
        bias_words=2**20, off_chip=OffChip(),
    )  # fmt: skip


def _time(design: Systolic, layer: Conv2d | MatMul) -> LayerResult:
    problem = problem_of(layer)
    tiling = Tiling(
        pixel_rows=problem.out_height, pixel_columns=problem.out_width,
        filters=problem.filters, channels=problem.channels,
    )  # fmt: skip
    return time_layer(design, layer, tiling)


def _ceil(numerator: int, denominator: int) -> int:
    return -(-numerator // denominator)


def _folds(design: Systolic, entry: Entry) -> tuple[int, int]:
    """Folds by SCALE-Sim's rule, and by ours."""
    across = entry.m if design.dataflow == "input_stationary" else entry.n
    columns = _ceil(across, design.columns)
    if design.dataflow == "output_stationary":
        pixels = _ceil(entry.m, design.rows)
        return pixels * columns, pixels * columns
    ours = entry.runs * _ceil(entry.run, design.rows)
    return _ceil(entry.k, design.rows) * columns, ours * columns


def _fold_cycles(design: Systolic, entry: Entry) -> int:
    """Stationary words, skew of the array and moving words of a fold, one after the other."""
    skew = design.rows + design.columns - 2
    if design.dataflow == "output_stationary":
        return skew + entry.k
    moving = entry.m if design.dataflow == "weight_stationary" else entry.n
    return design.rows + skew + moving


@every_run
def test_serial_cycles_equal_scale_sim_where_the_folds_are_the_same(run: dict[str, Any]) -> None:
    design = _design(run)
    same = [entry for entry in _entries(run) if len(set(_folds(design, entry))) == 1]
    assert len(same) >= 3
    ours = {entry.name: _time(design, entry.layer).serial_cycles for entry in same}
    assert ours == {entry.name: entry.cycles for entry in same}


@every_run
def test_the_folds_explain_every_other_difference(run: dict[str, Any]) -> None:
    design = _design(run)
    for entry in _entries(run):
        theirs, ours = _folds(design, entry)
        fold = _fold_cycles(design, entry)
        result = _time(design, entry.layer)
        assert entry.cycles == theirs * fold, entry.name
        assert result.folds == ours, entry.name
        assert result.serial_cycles - entry.cycles == (ours - theirs) * fold, entry.name


def test_the_data_hold_agreeing_and_differing_layers() -> None:
    folds = [_folds(_design(run), entry) for run in RUNS for entry in _entries(run)]
    assert sum(theirs == ours for theirs, ours in folds) > 250
    assert sum(theirs < ours for theirs, ours in folds) > 5
    assert all(theirs <= ours for theirs, ours in folds)
    assert {run["dataflow"] for run in RUNS} == {
        "weight_stationary", "output_stationary", "input_stationary",
    }  # fmt: skip


@pytest.mark.parametrize("run", [run for run in RUNS if run["network"] != "gemms"], ids=_name)
def test_the_networks_layers_are_those_of_the_file(run: dict[str, Any]) -> None:
    """Padding costs no cycles of the array, and images and groups follow one another."""
    design = _design(run)
    layers = {layer.name: layer for layer in builtin(run["network"]).matrix_layers}
    for entry in _entries(run):
        whole, one = layers[entry.name], entry.layer
        assert whole.macs == entry.times * one.macs, entry.name
        serial = _time(design, whole).serial_cycles
        assert serial == entry.times * _time(design, one).serial_cycles, entry.name
    assert run["total_cycles"] == sum(entry.cycles * entry.times for entry in _entries(run))


def _bound(design: Systolic, entry: Entry, result: LayerResult) -> int:
    """The most that a layer in one tile may take: nothing overlaps.

    The slower operand port loads its tile (they load side by side), the folds run as SCALE-Sim
    has them, and the output stage reads a row a cycle, and one more where the last word is begun.
    Output-stationary folds take whole vectors of `rows` elements of K, so what the last vector of
    each run lacks is added, and the sums of the last row leave rows − 1 cycles after those of the
    first, which SCALE-Sim leaves out.
    The rest is constant: the way before and behind the array (its skew is in the serial cycles)
    and the control: the layer's command crosses, becomes the tile's command and leaves its queue.
    8 × 8 × 8 on 8 × 8 takes exactly this bound.
    """
    words = {
        name: result.bytes_moved[name] * 8 // design.word_bits(name) for name in ("ifmap", "weight")
    }
    control, drain = 2 + design.tile_interval_cycles, 0
    if design.dataflow == "output_stationary":
        steps = entry.runs * _ceil(entry.run, design.rows) * design.rows
        drain = result.folds * (steps - entry.k) + design.rows - 1
    way = design.result_latency_cycles - (design.rows + design.columns - 2)
    load = max(words["ifmap"], words["weight"])
    ending = entry.m * entry.n % design.columns > 0
    reads = result.actions["output_read"] + ending
    outside = control + load + way + drain + design.output_latency_cycles + reads
    return result.serial_cycles + outside


@every_run
def test_real_cycles_lie_between_the_work_and_the_serial_bound(run: dict[str, Any]) -> None:
    """At least a full array's MACs and every moving word; at most nothing overlapped."""
    design = _design(run)
    for entry in _entries(run):
        result = _time(design, entry.layer)
        assert result.cycles * design.macs_per_cycle >= entry.m * entry.n * entry.k, entry.name
        moving = _fold_cycles(design, entry) - (design.rows + design.columns - 2)
        if design.dataflow != "output_stationary":
            moving -= design.rows
        assert result.cycles >= result.folds * moving, entry.name
        assert result.cycles <= _bound(design, entry, result), entry.name


@pytest.mark.parametrize("dataflow", ["weight_stationary", "output_stationary", "input_stationary"])
def test_the_serial_bound_is_reached_by_a_single_full_fold(dataflow: str) -> None:
    design = _design({"rows": 8, "columns": 8, "dataflow": dataflow})
    entry = Entry("l", MatMul(name="l", m=8, n=8, k=8), 8, 8, 1, 8, 1, 0)
    result = _time(design, entry.layer)
    assert result.cycles == _bound(design, entry, result)


def test_folds_overlap() -> None:
    """Many folds of few pixels: the array's own cycles are less than half of the serial ones."""
    design = _design({"rows": 16, "columns": 16, "dataflow": "weight_stationary"})
    result = _time(design, MatMul(name="l", m=16, n=256, k=256))
    array = result.where["computing"] + result.where["filling"]
    assert array == 256 * 16 + 16  # 256 folds of 16 words, and the first fold's weights
    assert result.serial_cycles == 256 * (2 * 16 + 16 + 16 - 2)
