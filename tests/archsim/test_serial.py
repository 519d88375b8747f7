"""`serial_cycles` against formulas made from the layer alone (docs/contracts/systolic.md)."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archsim.layer.problem import Problem, Tiling
from archsim.machines.systolic.design import DATAFLOWS, Dataflow, Systolic
from archsim.machines.tensorcore.design import VOLTA, TensorCore
from archsim.machines.vsq.design import Vsq
from archsim.memory import Plain
from archsim.numbers import ceil_div
from archsim.tiled.timing import time_layer
from workloads.layers import Conv2d, MatMul

LARGE = Plain(capacity_bytes=1 << 22)


def parts(size: int, tile: int) -> Iterator[int]:
    """A size cut into tiles."""
    for start in range(0, size, tile):
        yield min(tile, size - start)


def tiles_of(problem: Problem, tiling: Tiling) -> Iterator[tuple[int, int, tuple[int, ...]]]:
    """Pixels, filters and the runs of elements along K of every tile."""
    for _ in range(problem.groups * problem.images):
        for rows in parts(problem.out_height, tiling.pixel_rows):
            for columns in parts(problem.out_width, tiling.pixel_columns):
                for filters in parts(problem.filters, tiling.filters):
                    for channels in parts(problem.channels, tiling.channels):
                        run = problem.kernel_width * channels
                        yield rows * columns, filters, (run,) * problem.kernel_height


def by_hand(design: Systolic, pixels: int, filters: int, runs: tuple[int, ...]) -> int:
    """SCALE-Sim's cycles of all folds of a tile, on R × C."""
    r, c, k = design.rows, design.columns, sum(runs)
    chunks = sum(ceil_div(run, r) for run in runs)
    if design.dataflow == "output_stationary":
        return ceil_div(pixels, r) * ceil_div(filters, c) * (r + c + k - 2)
    along, moving = (
        (filters, pixels) if design.dataflow == "weight_stationary" else (pixels, filters)
    )
    return chunks * ceil_div(along, c) * (2 * r + c + moving - 2)


layers = st.builds(
    MatMul, name=st.just("m"), m=st.integers(1, 30), n=st.integers(1, 30), k=st.integers(1, 40)
) | st.builds(
    Conv2d, name=st.just("c"), channels=st.sampled_from([2, 6]), filters=st.sampled_from([2, 8]),
    ifmap_height=st.integers(3, 8), ifmap_width=st.integers(3, 8), kernel_height=st.integers(1, 3),
    kernel_width=st.integers(1, 3), groups=st.sampled_from([1, 2]),
)  # fmt: skip


def drawn_tiling(data: st.DataObject, problem: Problem) -> Tiling:
    return Tiling(
        pixel_rows=data.draw(st.integers(1, problem.out_height)),
        pixel_columns=data.draw(st.integers(1, problem.out_width)),
        filters=data.draw(st.integers(1, problem.filters)),
        channels=data.draw(st.integers(1, problem.channels)),
    )


@settings(max_examples=150, deadline=None)
@given(st.data(), layers, st.integers(1, 9), st.integers(1, 9), st.sampled_from(DATAFLOWS))
def test_serial_cycles_are_scale_sims_of_every_tile(
    data: st.DataObject, layer: Conv2d | MatMul, rows: int, columns: int, dataflow: Dataflow
) -> None:
    design = Systolic(
        rows=rows, columns=columns, dataflow=dataflow, ifmap_memory=LARGE, weight_memory=LARGE,
        accumulator_memory=LARGE,
    )  # fmt: skip
    problem = design.numerics.problem(layer)
    tiling = drawn_tiling(data, problem)
    expected = sum(by_hand(design, *tile) for tile in tiles_of(problem, tiling))
    assert time_layer(design, layer, tiling).serial_cycles == expected


@pytest.mark.parametrize(
    ("dataflow", "folds", "serial"),
    [
        ("weight_stationary", 9, 9 * (8 + 11 + 8 + 3 - 2)),
        ("input_stationary", 12, 12 * (8 + 7 + 8 + 3 - 2)),
        ("output_stationary", 6, 6 * (20 + 8 + 3 - 2)),
    ],
)
def test_the_contracts_examples(dataflow: Dataflow, folds: int, serial: int) -> None:
    """11 × 7 × 20 on 8 × 3, in one tile."""
    design = Systolic(
        rows=8, columns=3, dataflow=dataflow, ifmap_memory=LARGE, weight_memory=LARGE,
        accumulator_memory=LARGE,
    )  # fmt: skip
    tiling = Tiling(pixel_rows=1, pixel_columns=11, filters=7, channels=20)
    result = time_layer(design, MatMul(name="m", m=11, n=7, k=20), tiling)
    assert (result.folds, result.serial_cycles) == (folds, serial)
    # what this array does: 20 steps are moved as 24; a fold's ifmap is loaded in 3 words
    assert result.where["computing"] == {
        "weight_stationary": 9 * 11, "input_stationary": 12 * 7, "output_stationary": 6 * 24,
    }[dataflow]  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(st.data(), layers)
def test_serial_cycles_of_a_tensor_core(data: st.DataObject, layer: Conv2d | MatMul) -> None:
    """Every fold moves its block of pixels through whole chunks, and waits for its sums."""
    design = replace(
        VOLTA, operand="int8", accumulator="int32", ifmap_memory=LARGE, weight_memory=LARGE,
        accumulator_memory=LARGE,
    )  # fmt: skip
    assert isinstance(design, TensorCore)
    problem = design.numerics.problem(layer)
    tiling = drawn_tiling(data, problem)
    expected = 0
    for pixels, filters, runs in tiles_of(problem, tiling):
        chunks = sum(ceil_div(run, design.length) for run in runs)
        folds = ceil_div(pixels, design.rows) * ceil_div(filters, design.columns)
        expected += folds * (chunks * design.array.set_cycles + design.result_latency_cycles)
    assert time_layer(design, layer, tiling).serial_cycles == expected


@settings(max_examples=60, deadline=None)
@given(st.data(), st.integers(1, 30), st.integers(1, 30), st.integers(1, 12))
def test_serial_cycles_of_vector_lanes(data: st.DataObject, m: int, n: int, k: int) -> None:
    """Every pixel takes a cycle a vector; every block of pixels waits for its sums."""
    design = Vsq(
        lanes=4, vector=4, hold_cycles=5, ifmap_memory=LARGE, weight_memory=LARGE,
        accumulator_memory=LARGE,
    )  # fmt: skip
    layer = MatMul(name="m", m=m, n=n, k=4 * k)
    problem = design.numerics.problem(layer)
    together = design.vector if design.output.scaled else 1
    tiling = drawn_tiling(data, problem)
    filters = min(ceil_div(tiling.filters, together) * together, problem.filters)
    tiling = replace(tiling, filters=filters)
    expected = 0
    for pixels, width, runs in tiles_of(problem, tiling):
        steps = ceil_div(width, design.lanes)
        blocks = ceil_div(pixels, design.hold_cycles)
        expected += steps * (pixels * sum(runs) + blocks * design.result_latency_cycles)
    assert time_layer(design, layer, tiling).serial_cycles == expected
