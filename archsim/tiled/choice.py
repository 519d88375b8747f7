"""Which tiling a layer gets: the best that is found, where no image then costs more than alone.

A batch may be walked image after image in the best tiling of one image, which costs an image as
much as alone at most.  So what the search finds for the batch is held against one image alone, by
the exact schedule and the exact traffic of both (docs/adr/0014-images-in-a-tile.md).

Groups lie side by side where that takes the least cycles · bytes, and no more cycles than groups
alone (docs/adr/0015-groups-side-by-side.md).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archsim.kernels import Kernel, kernel
from archsim.layer import problem as pb
from archsim.layer.problem import Problem, Tiling
from archsim.numbers import IntArray
from archsim.tiled.side_by_side import (
    BLOCK_BYTES,
    BLOCK_CYCLES,
    COST_COLUMNS,
    MOST_BYTES,
    MOST_CYCLES,
    UNKNOWN,
    block_bounds,
    block_problem,
    may_share,
    try_blocks,
)
from archsim.tiled.summary import count_cycles, time_tiles
from archsim.tiled.tiling import BYTES, CYCLES, best_of, candidates
from archsim.tiled.traffic import port_bytes
from archsim.tiled.walk import tile_counts, walk

ATTEMPTS = 8
"""How many tilings for several images are timed at most, that of one image among them."""

MOST_TILES = 1 << 20
"""Of a layer that is timed in several tilings: a tile takes some hundred bytes."""

UNTIMED = 1 << 62
"""Stands for the cycles and bytes of a tiling that is not timed, or not again."""


@kernel
def tiles_of(problem: IntArray, tiling: IntArray, most: int) -> int:
    """Tiles of a layer; `most` + 1 where there are more."""
    count = problem[pb.GROUPS]
    for along in tile_counts(problem, tiling):
        count *= along
        if count > most:
            return most + 1
    return count


@kernel
def _cost(problem: IntArray, tiling: IntArray, machine: IntArray) -> tuple[int, int]:
    """Cycles and off-chip bytes of a layer in a tiling; beyond all of more than MOST_TILES."""
    if tiles_of(problem, tiling, MOST_TILES) > MOST_TILES:
        return UNTIMED, UNTIMED
    tiles = walk(problem, tiling, machine)
    moved = 0
    for port in port_bytes(tiles, machine):
        moved += port
    return count_cycles(tiles, machine), moved


@kernel
def _copy(found: IntArray, tiling: IntArray) -> None:
    """The sizes of a candidate."""
    for size in range(pb.TILING_COLUMNS):
        tiling[size] = found[size]


@kernel
def _choose_for_images(
    problem: IntArray, machine: IntArray, found: IntArray, tiling: IntArray
) -> None:
    """Write the first of the candidates, the best first, in which no image costs more than alone.

    The last one is the tiling of an image alone.  Where all cost more, it is the fastest.
    """
    one, images = problem.copy(), problem[pb.IMAGES]
    one[pb.IMAGES] = 1
    single = candidates(one, machine)
    alone = single[best_of(single), :BYTES]
    most_cycles, most_moved = _cost(one, alone, machine)
    if most_cycles == UNTIMED:
        _copy(found[best_of(found)], tiling)
        return
    fewest = np.int64(-1)
    for attempt in range(ATTEMPTS):
        at = best_of(found)
        tried = alone if attempt == ATTEMPTS - 1 else found[at, :BYTES]
        cycles, moved = _cost(problem, tried, machine)
        close = cycles <= most_cycles * images and moved <= most_moved * images
        if close or fewest < 0 or cycles < fewest:
            _copy(tried, tiling)
            fewest = cycles
        if close:
            break
        found[at, CYCLES] = UNTIMED


@kernel("i8.1, i8.1, i8.1")
def choose_alone(problem: IntArray, machine: IntArray, tiling: IntArray) -> bool:
    """`choose_tiling` for one image, which needs no schedule, and so is compiled sooner."""
    found = candidates(problem, machine)
    if len(found) == 0:
        return False
    _copy(found[best_of(found)], tiling)
    return True


@kernel("i8.1, i8.1, i8.1")
def choose_tiling(problem: IntArray, machine: IntArray, tiling: IntArray) -> bool:
    """Write the tiling of groups alone into `tiling` [TILING_COLUMNS]; False if none fits."""
    found = candidates(problem, machine)
    if len(found) == 0:
        return False
    if problem[pb.IMAGES] == 1:
        _copy(found[best_of(found)], tiling)
    else:
        _choose_for_images(problem, machine, found, tiling)
    return True


@kernel
def _choose_blocks(
    problem: IntArray, machine: IntArray, alone: bool, tiling: IntArray, cost: IntArray
) -> bool:
    """Write the best tiling of blocks into `tiling`, where it is better than what is there.

    alone: whether the tiling of groups alone is there.  cost: UNKNOWN, and the most that a tiling
    may cost.  Returns whether what `tiling` holds then costs no more.
    """
    best = np.zeros(pb.TILING_COLUMNS, np.int64)
    try_blocks(problem, machine, best, cost)
    if alone:
        # groups alone are scheduled, which takes the longest, only where they might be better
        least, moved = block_bounds(problem, tiling, machine)
        product = float(cost[BLOCK_CYCLES]) * cost[BLOCK_BYTES]
        if least < cost[BLOCK_CYCLES] or float(least) * moved <= product:
            cycles, moved = _cost(problem, tiling, machine)
            close = cycles <= cost[MOST_CYCLES] and moved <= cost[MOST_BYTES]
            if close and float(cycles) * moved <= product:
                return True
            if cycles < cost[BLOCK_CYCLES]:
                best[pb.T_GROUPS] = 0
                cost[BLOCK_CYCLES], cost[BLOCK_BYTES] = UNKNOWN, UNKNOWN
                if close:
                    cost[BLOCK_CYCLES], cost[BLOCK_BYTES] = cycles, moved
                cost[MOST_CYCLES] = min(cost[MOST_CYCLES], cycles)
                try_blocks(problem, machine, best, cost)
                if best[pb.T_GROUPS] == 0:
                    return close
    if best[pb.T_GROUPS] == 0:
        return False
    _copy(best, tiling)
    return True


@kernel("i8.1, i8.1, i8.1")
def choose_mapping(problem: IntArray, machine: IntArray, tiling: IntArray) -> bool:
    """Write the tiling of a layer, groups included, into `tiling`; False if none fits."""
    alone = choose_tiling(problem, machine, tiling)
    if not may_share(problem, machine):
        return alone
    cost, images = np.full(COST_COLUMNS, UNKNOWN, np.int64), problem[pb.IMAGES]
    if images == 1:
        return _choose_blocks(problem, machine, alone, tiling, cost)
    one, single = problem.copy(), np.zeros(pb.TILING_COLUMNS, np.int64)
    one[pb.IMAGES] = 1
    if not _choose_blocks(one, machine, choose_tiling(one, machine, single), single, cost):
        return alone
    cycles, moved = _cost(block_problem(one, single[pb.T_GROUPS]), single, machine)
    cost[BLOCK_CYCLES] = cost[BLOCK_BYTES] = cost[MOST_CYCLES] = cost[MOST_BYTES] = UNKNOWN
    if cycles < UNTIMED:
        cost[MOST_CYCLES], cost[MOST_BYTES] = images * cycles, images * moved
    if not _choose_blocks(problem, machine, alone, tiling, cost):
        cycles = _cost(block_problem(problem, single[pb.T_GROUPS]), single, machine)[0]
        if not alone or cycles < _cost(problem, tiling, machine)[0]:
            _copy(single, tiling)
    return True


def find_tiling(problem: Problem, machine: IntArray, *, share: bool = True) -> Tiling | None:
    """The tiling of a layer; None if none fits.  share: groups may lie side by side.

    Layers without groups need no kernel that knows of them.
    """
    found = np.zeros(pb.TILING_COLUMNS, np.int64)
    choose = choose_alone if problem.images == 1 else choose_tiling
    if share and problem.groups > 1:
        choose = choose_mapping
    return Tiling.from_vector(found) if choose(problem.vector(), machine, found) else None


TIMING: tuple[Kernel[..., Any], ...] = (walk, time_tiles)
"""The kernels of which every layer's timing is made, once it has a tiling."""
