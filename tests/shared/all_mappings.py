"""Every legal mapping of a small layer, one by one, each timed by the schedule.

Slow and plain, for `tests/archsim/test_exact_mapper.py`: no bound, no order that matters.
"""

from collections.abc import Iterator
from itertools import product

import numpy as np

from archsim.layer.problem import Problem, Tiling
from archsim.numbers import IntArray
from archsim.tiled import plan as pn
from archsim.tiled.gaps import NO_GAPS
from archsim.tiled.machine_vector import machine_record
from archsim.tiled.schedule import schedule
from archsim.tiled.tile_fit import pixel_words, weight_words
from archsim.tiled.traffic import port_bytes, services_of
from archsim.tiled.walk import walk


def fits(block: IntArray, machine: IntArray, tiling: Tiling) -> bool:
    """Whether a tile takes no more than half of every scratchpad."""
    record = machine_record(machine)
    weights, biases = weight_words(block, machine, tiling.filters, tiling.channels)
    region, sums = pixel_words(block, machine, tiling.vector())
    return (
        weights <= record.weight_depth
        and biases <= record.bias_depth
        and region <= record.ifmap_depth
        and sums <= record.accumulator_depth
    )


def all_mappings(problem: Problem, machine: IntArray) -> Iterator[Tiling]:
    """The legal ones (`archsim.tiled.tiling_check`)."""
    together = machine_record(machine).output_vector
    for groups in range(1, problem.groups + 1):
        block = problem.side_by_side(groups)
        if groups > 1 and problem.filters % together:
            break
        filters = [n for n in range(1, block.filters) if n % together == 0]
        for images, rows, columns, few, channels in product(
            range(1, problem.images + 1),
            range(1, problem.out_height + 1),
            range(1, problem.out_width + 1),
            [block.filters] if groups > 1 else [*filters, block.filters],
            [block.channels] if groups > 1 else range(1, block.channels + 1),
        ):
            for order in ("pixels_outer", "filters_outer"):
                tiling = Tiling(
                    pixel_rows=rows, pixel_columns=columns, filters=few, channels=channels,
                    order=order, images=images, groups=groups,
                )  # fmt: skip
                if fits(block.vector(), machine, tiling):
                    yield tiling


def cost(problem: Problem, machine: IntArray, tiling: Tiling) -> tuple[int, int]:
    """Cycles, and bytes that cross the ports."""
    tiles = walk(problem.side_by_side(tiling.groups).vector(), tiling.vector(), machine)
    plan = schedule(tiles, machine, services_of(machine), NO_GAPS)
    return int(plan[-1, pn.WRITTEN]), int(np.sum(port_bytes(tiles, machine)))
