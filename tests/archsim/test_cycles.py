"""The scan over loops counts the cycles of the plan with a row for every tile."""

import numpy as np
import pytest
from random_cores import SMALL, TINY, random_design
from random_layers import LATENCIES, random_layer

from archsim.layer import problem as pb
from archsim.numbers import IntArray
from archsim.tiled import machine_vector as mc
from archsim.tiled import plan as pn
from archsim.tiled.bound_paths import bound_of
from archsim.tiled.cycles import cycles_of, cycles_within
from archsim.tiled.gaps import NO_GAPS
from archsim.tiled.schedule import schedule
from archsim.tiled.traffic import services_of
from archsim.tiled.walk import walk
from rtl.cases import Draw


def any_tiling(draw: Draw, problem: IntArray, machine: IntArray) -> IntArray:
    """Sizes up to the layer's, those that fit in no scratchpad too: timing does not ask."""
    tiling = np.ones(pb.TILING_COLUMNS, np.int64)
    axes = ((pb.T_ROWS, pb.OUT_HEIGHT), (pb.T_COLUMNS, pb.OUT_WIDTH), (pb.T_IMAGES, pb.IMAGES))
    for size, whole in (*axes, (pb.T_CHANNELS, pb.CHANNELS), (pb.T_FILTERS, pb.FILTERS)):
        tiling[size] = draw.whole(1, int(problem[whole]))
    unit = max(machine[mc.COLUMNS], machine[mc.OUTPUT_VECTOR])
    if machine[mc.OUTPUT_VECTOR] > 1 or draw.chance(0.7):  # vectors are not cut
        steps = draw.whole(1, 1 + int(problem[pb.FILTERS] // unit))
        tiling[pb.T_FILTERS] = min(problem[pb.FILTERS], steps * unit)
    tiling[pb.T_FILTERS_OUTER] = draw.whole(0, 1)
    return tiling


def planned(problem: IntArray, tiling: IntArray, machine: IntArray) -> int:
    """Cycles by the plan."""
    tiles = walk(problem, tiling, machine)
    return int(schedule(tiles, machine, services_of(machine), NO_GAPS)[-1, pn.WRITTEN])


def case(seed: int, number: int) -> tuple[IntArray, IntArray, IntArray]:
    """A problem in some tiling on some machine, with queues of some depth."""
    draw = Draw(seed, number)
    design = random_design(draw, LATENCIES)
    problem = design.numerics.problem(random_layer(draw, *(TINY if number % 2 else SMALL))).vector()
    problem[pb.IMAGES] = draw.one_of(1, 1, 2, 3, 7)
    machine = design.machine.copy()
    machine[mc.COMMAND_QUEUE] = draw.whole(2, 6)
    return problem, any_tiling(draw, problem, machine), machine


@pytest.mark.parametrize("count", [250, pytest.param(20_000, marks=pytest.mark.slow)])
def test_loops_take_as_long_as_rows(count: int) -> None:
    for number in range(count):
        problem, tiling, machine = case(19, number)
        assert cycles_of(problem, tiling, machine) == planned(problem, tiling, machine), number


@pytest.mark.parametrize("count", [100, pytest.param(5_000, marks=pytest.mark.slow)])
def test_a_scan_stops_where_more_than_enough_is_sure(count: int) -> None:
    """Never below the cycles that are enough, and never for a layer that takes no more."""
    stopped = 0
    for number in range(count):
        problem, tiling, machine = case(19, number)
        cycles, bounds = planned(problem, tiling, machine), bound_of(problem, machine, tiling)
        for most in {cycles - 1, cycles, cycles + 1, int(bounds[0] + cycles) // 2}:
            found = cycles_within(problem, tiling, machine, bounds, most)
            assert found == cycles if cycles <= most else most < found <= cycles, (number, most)
            stopped += found != cycles
    assert stopped > count // 4
