"""The closed form of a tile's folds against a loop over folds, and the parts of a plan."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archsim.causes import CAUSES
from archsim.layer.problem import Tiling, problem_of
from archsim.machines.systolic.design import DATAFLOWS, EDGE_16, Dataflow, Systolic
from archsim.memory import OffChip, Plain
from archsim.numbers import IntArray
from archsim.tiled import plan as pn
from archsim.tiled.commands import commands_of
from archsim.tiled.gaps import NO_GAPS
from archsim.tiled.machine_vector import machine_record
from archsim.tiled.schedule import schedule
from archsim.tiled.timing import time_layer
from archsim.tiled.walk import walk
from rtl.cases import random_case
from rtl.stepped.array import folds_of
from rtl.tile_conformance import TileCase
from workloads.layers import Conv2d, MatMul

LARGE = Plain(capacity_bytes=1 << 22)


def _design(rows: int, columns: int, dataflow: Dataflow) -> Systolic:
    return Systolic(
        rows=rows,
        columns=columns,
        dataflow=dataflow,
        ifmap_memory=LARGE,
        weight_memory=LARGE,
        accumulator_memory=LARGE,
    )


def _free_plan(design: Systolic, tiles: IntArray) -> IntArray:
    return schedule(tiles, design.machine, np.zeros((5, pn.SERVICE_COLUMNS), np.int64), NO_GAPS)


def _walk_folds(design: Systolic, tiles: IntArray, plan: IntArray) -> None:
    """Check every tile's start and end by stepping through its folds."""
    load_end, ends = 0, [0, 0]
    for row, times in zip(commands_of(tiles), plan, strict=True):
        start = None
        load = times[pn.STATIONARY_START]
        for stationary, moving in folds_of(machine_record(design.machine), row):
            if start is None:
                start = int(times[pn.STREAM_START])
                assert load < 0 or load >= max(ends[0], load_end)
            else:
                load = max(load_end, ends[0])
                start = max(ends[1], load + stationary)
            assert start >= load + stationary
            load_end = load + stationary
            ends = [ends[1], start + moving]
        assert ends[1] == times[pn.STREAM_END]


@settings(deadline=None, max_examples=200)
@given(st.data())
def test_closed_form_of_the_folds(data: st.DataObject) -> None:
    whole = lambda low, high: data.draw(st.integers(low, high))  # noqa: E731
    design = _design(whole(1, 9), whole(1, 9), data.draw(st.sampled_from(DATAFLOWS)))
    kernel = whole(1, 3)
    layer = Conv2d(
        name="c", channels=whole(1, 30), filters=whole(1, 30), ifmap_height=kernel + whole(0, 4),
        ifmap_width=kernel + whole(0, 4), kernel_height=kernel, kernel_width=kernel,
    )  # fmt: skip
    problem = problem_of(layer)
    tiling = Tiling(
        pixel_rows=whole(1, problem.out_height), pixel_columns=whole(1, problem.out_width),
        filters=whole(1, problem.filters), channels=whole(1, problem.channels),
    )  # fmt: skip
    tiles = walk(problem.vector(), tiling.vector(), design.machine)
    _walk_folds(design, tiles, _free_plan(design, tiles))


@pytest.mark.parametrize("dataflow", DATAFLOWS)
def test_full_folds_follow_without_a_bubble(dataflow: Dataflow) -> None:
    """With as many moving words as the array is long, the array is busy from fold to fold."""
    design = _design(8, 8, dataflow)
    layer = MatMul(name="m", m=32, n=32, k=32)
    result = time_layer(
        design, layer, Tiling(pixel_rows=1, pixel_columns=32, filters=32, channels=32)
    )
    assert result.where["computing"] == 32 * 32 * 32 // 64
    assert result.where["filling"] <= design.rows


def test_too_few_pixels_leave_bubbles() -> None:
    """One pixel less than the rows costs one cycle a fold."""
    design = _design(8, 8, "weight_stationary")
    whole = Tiling(pixel_rows=1, pixel_columns=8, filters=64, channels=64)
    full = time_layer(design, MatMul(name="m", m=8, n=64, k=64), whole)
    short = time_layer(design, MatMul(name="m", m=7, n=64, k=64), whole)
    assert short.where["filling"] - full.where["filling"] == 64 - 1


@settings(deadline=None, max_examples=80)
@given(st.integers(0, 2), st.sampled_from([0.0, 1.0, 7.3, 64.0]), st.integers(0, 200))
def test_every_cycle_is_accounted_for(flow: int, bandwidth: float, latency: int) -> None:
    design = Systolic(
        rows=8, columns=4, dataflow=DATAFLOWS[flow], ifmap_memory=Plain(capacity_bytes=4096),
        weight_memory=Plain(capacity_bytes=4096), accumulator_memory=Plain(capacity_bytes=4096),
        off_chip=OffChip(bytes_per_cycle=bandwidth, latency_cycles=latency),
    )  # fmt: skip
    layer = Conv2d(
        name="c", channels=24, filters=20, ifmap_height=9, ifmap_width=11, kernel_height=3,
        kernel_width=3, pad_top=1, pad_left=1, pad_bottom=1, pad_right=1, bias=True,
    )  # fmt: skip
    result = time_layer(design, layer)
    assert sum(result.where.values()) == result.cycles
    assert all(count >= 0 for count in result.where.values())
    assert set(result.where) == set(CAUSES)
    assert result.utilization <= 1
    if bandwidth:
        assert result.cycles >= result.total_bytes / bandwidth - design.off_chip.burst_bytes


@pytest.mark.parametrize("late", [0, 1, 5000])
def test_the_first_output_word_waits_for_its_own_idle_cycles(late: int) -> None:
    """It crosses behind so many cycles from the layer's first on, if it is ready by then."""
    design = replace(EDGE_16, rows=2, columns=2)
    case = next(one for one in (random_case(1, n, design) for n in range(9))
                if isinstance(one, TileCase))  # fmt: skip
    idle = np.zeros(len(case.waiting({}).answer().transfers["ofmap"].cycle), np.int64)
    ready = int(case.waiting({"ofmap": idle}).answer().transfers["ofmap"].cycle[0])
    idle[0] = late
    found = case.waiting({"ofmap": idle}).answer().transfers["ofmap"].cycle[0]
    assert found == max(late, ready)
