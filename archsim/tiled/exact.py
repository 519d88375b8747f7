"""The best of all tilings of a layer, by branch and bound.

Every legal size along every axis, both orders of the loops: the search goes through filters,
channels, images, rows and columns, and leaves out a part whose bound is no better than the best
mapping so far (`bound_part.py`), then a tiling (`bound_paths.py`).  What is left is scheduled, the
lowest bound first.  `docs/mapping.md` says why nothing better is left out.
"""

from __future__ import annotations

import numpy as np

from archsim.kernels import inlined, kernel
from archsim.layer import problem as pb
from archsim.numbers import IntArray
from archsim.tiled import machine_vector as mc
from archsim.tiled.bound import BOUND_COLUMNS
from archsim.tiled.bound_part import (
    CHANNEL_TILES,
    FILTER_TILES,
    FIRST_WEIGHTS,
    PART_COLUMNS,
    bound_part,
    describe_part,
)
from archsim.tiled.bound_paths import bound, count_tiles
from archsim.tiled.measured import (
    COUNT,
    EFFORT_COLUMNS,
    MOST_STEPS,
    MOST_TILES,
    PARTS,
    STEPS,
    TILINGS,
    WAITING,
    Goal,
    Vectors,
    Waiting,
    better,
    settle,
)
from archsim.tiled.objective import keys_of
from archsim.tiled.tile_fit import ceil, pixels_fit, weight_words, weights_fit
from archsim.tiled.tiling_estimate import swept
from archsim.tiled.traffic import services_of

Loads = tuple[IntArray, IntArray]
"""Ifmap rows, and columns, that tiles of each size load; at 0 the least."""


@inlined
def all_pixels(problem: IntArray) -> int:
    """Output pixels of a group, of all images."""
    return problem[pb.IMAGES] * problem[pb.OUT_HEIGHT] * problem[pb.OUT_WIDTH]


@inlined
def too_many(problem: IntArray, part: IntArray, pixel_tiles: int) -> bool:
    """Whether there are more tiles than are scheduled; floats do not run over."""
    each = float(part[FILTER_TILES]) * part[CHANNEL_TILES]
    return each * problem[pb.GROUPS] * pixel_tiles > MOST_TILES


@kernel
def _widest(problem: IntArray, machine: IntArray, tiling: IntArray) -> int:
    """The most pixel columns that fit, 0 if none."""
    low, high = 0, problem[pb.OUT_WIDTH]
    while low < high:
        tiling[pb.T_COLUMNS] = (low + high + 1) // 2
        if pixels_fit(problem, machine, tiling):
            low = tiling[pb.T_COLUMNS]
        else:
            high = tiling[pb.T_COLUMNS] - 1
    return low


@kernel
def loads_along(problem: IntArray, axis: int) -> IntArray:
    """Ifmap rows (axis 0) or columns (1) that tiles of each size load: [size]; at 0 the least."""
    size = problem[pb.OUT_HEIGHT + axis]
    loads = np.zeros(size + 1, np.int64)
    for tile in range(size, 0, -1):
        loads[tile] = swept(problem, tile, axis)[1]
        loads[0] = loads[tile] if tile == size else min(loads[0], loads[tile])
    return loads


@inlined
def _most_pixels(problem: IntArray, machine: IntArray, filters: int) -> int:
    """Pixels of a tile whose sums fit at most."""
    depth, columns = machine[mc.ACCUMULATOR_DEPTH], machine[mc.COLUMNS]
    if machine[mc.DATAFLOW] == mc.INPUT_STATIONARY:
        return depth // filters * columns
    return depth // ceil(filters, columns)


@inlined
def _promises(
    part: IntArray, vectors: Vectors, goal: Goal, tiles: int, elements: int
) -> tuple[bool, bool]:
    """Whether a part may be better than the best so far, with filters inside and outside.

    tiles, elements: pixel tiles, and elements of a group's ifmap that they load, at least.
    """
    problem, machine, services = vectors
    found = np.zeros(BOUND_COLUMNS, np.int64)
    bound_part(found, part, problem, machine, services, (0, tiles, elements))
    inside = better(keys_of(found, goal[0], goal[1]), goal[2])
    if part[FILTER_TILES] == 1:
        return inside, False  # the order makes no difference
    bound_part(found, part, problem, machine, services, (1, tiles, elements))
    return inside, better(keys_of(found, goal[0], goal[1]), goal[2])


@kernel
def _promising(vectors: Vectors, goal: Goal, elements: int, axis: int) -> IntArray:
    """Numbers of filters (axis 0) or channels (1) of a tile that may be better than the best so
    far, whatever the others are; the largest first."""
    problem, machine, _ = vectors
    most = problem[pb.FILTERS] if axis == 0 else problem[pb.CHANNELS]
    sizes, count = np.zeros(most, np.int64), 0
    part = np.zeros(PART_COLUMNS, np.int64)
    for size in range(most, 0, -1):
        filters, channels = (size, 1) if axis == 0 else (1, size)
        if axis == 0 and size < most and size % machine[mc.OUTPUT_VECTOR] > 0:
            continue
        pixels = _most_pixels(problem, machine, filters)
        if pixels == 0 or not weights_fit(problem, machine, filters, channels):
            continue
        # of the other axis, whole: fewest tiles; the first tile's weights are those of one
        others = (size, problem[pb.CHANNELS]) if axis == 0 else (problem[pb.FILTERS], size)
        describe_part(part, problem, machine, others[0], others[1])
        part[FIRST_WEIGHTS] = weight_words(problem, machine, filters, channels)[0]
        tiles = ceil(all_pixels(problem), pixels)
        inside, outside = _promises(part, vectors, goal, tiles, elements)
        if inside or outside:
            sizes[count] = size
            count += 1
    return sizes[:count]


@kernel
def _try_columns(
    vectors: Vectors, goal: Goal, waiting: Waiting, part: IntArray, tried: IntArray,
    loads: tuple[int, IntArray],
) -> None:  # fmt: skip
    """Put tilings of the sizes in `tried`, of any columns up to its own, with those that wait.

    loads: ifmap elements a column of it, and columns that are loaded by their number.
    """
    problem, machine, services = vectors
    sizes, keys, effort = waiting
    found, most = np.zeros(BOUND_COLUMNS, np.int64), tried[pb.T_COLUMNS]
    bands = ceil(problem[pb.IMAGES], tried[pb.T_IMAGES])
    bands *= ceil(problem[pb.OUT_HEIGHT], tried[pb.T_ROWS])
    for columns in range(most, 0, -1):
        effort[STEPS] += 1
        tiles = bands * ceil(problem[pb.OUT_WIDTH], columns)
        pixels = tried[pb.T_FILTERS_OUTER], tiles, loads[0] * loads[1][0]
        bound_part(found, part, problem, machine, services, pixels)
        # fewer columns make no fewer tiles, so that their bound is no lower
        if not better(keys_of(found, goal[0], goal[1]), goal[2]) or too_many(problem, part, tiles):
            break
        tried[pb.T_COLUMNS] = columns
        bound(found, problem, machine, services, tried)
        key = keys_of(found, goal[0], goal[1])
        if better(key, goal[2]):
            at = effort[COUNT]
            keys[at, 0], keys[at, 1] = key
            for size in range(pb.TILING_COLUMNS):
                sizes[at, size] = tried[size]
            effort[COUNT] += 1
            effort[TILINGS] += 1
    tried[pb.T_COLUMNS] = most


@kernel
def _try_pixels(
    vectors: Vectors, goal: Goal, waiting: Waiting, part: IntArray, tried: IntArray, loads: Loads
) -> None:
    """All pixel tiles of the filters and channels in `tried`, which `part` describes."""
    problem, machine, _ = vectors
    effort, each = waiting[2], problem[pb.IMAGES] * problem[pb.CHANNELS]
    for images in range(problem[pb.IMAGES], 0, -1):
        for rows in range(problem[pb.OUT_HEIGHT], 0, -1):
            effort[STEPS] += 1
            tried[pb.T_IMAGES], tried[pb.T_ROWS] = images, rows
            tried[pb.T_COLUMNS] = _widest(problem, machine, tried)
            if tried[pb.T_COLUMNS] == 0 or effort[STEPS] > effort[MOST_STEPS]:
                continue
            tiles, column = count_tiles(problem, tried)[0], each * loads[0][rows]
            promises = _promises(part, vectors, goal, tiles, column * loads[1][0])
            for outer in range(2):
                if promises[outer]:
                    if effort[COUNT] > WAITING:
                        settle(vectors, goal, waiting)
                    tried[pb.T_FILTERS_OUTER] = outer
                    _try_columns(vectors, goal, waiting, part, tried, (column, loads[1]))


@kernel
def _room(problem: IntArray) -> Waiting:
    """For tilings that wait, and those of a row behind them."""
    rows = WAITING + 1 + problem[pb.OUT_WIDTH]
    return (
        np.zeros((rows, pb.TILING_COLUMNS), np.int64),
        np.zeros((rows, 2), np.float64),
        np.zeros(EFFORT_COLUMNS, np.int64),
    )


@kernel("i8.1, i8.1, (f8.1, int, f8.1, i8.1), int, bool")
def best_of_all(
    problem: IntArray, machine: IntArray, goal: Goal, most: int, whole: bool
) -> IntArray:
    """Write the best tiling of a problem of blocks of groups, and its keys, into `goal`.

    They stay as they are where none is better.  most: steps after which the search is given up.
    whole: only tiles of all filters and channels.  Returns what it did [EFFORT_COLUMNS]; it was
    given up where STEPS is above `most`.
    """
    vectors, waiting = (problem, machine, services_of(machine)), _room(problem)
    effort, loads = waiting[2], (loads_along(problem, 0), loads_along(problem, 1))
    effort[MOST_STEPS] = most
    least = problem[pb.IMAGES] * problem[pb.CHANNELS] * loads[0][0] * loads[1][0]
    of_channels = _promising(vectors, goal, least, 1)
    part, tried = np.zeros(PART_COLUMNS, np.int64), np.ones(pb.TILING_COLUMNS, np.int64)
    for filters in _promising(vectors, goal, least, 0):
        for channels in of_channels:
            part_whole = filters == problem[pb.FILTERS] and channels == problem[pb.CHANNELS]
            if effort[STEPS] > most or (whole and not part_whole):
                break
            effort[STEPS] += 1
            if not weights_fit(problem, machine, filters, channels):
                continue
            describe_part(part, problem, machine, filters, channels)
            tiles = ceil(all_pixels(problem), _most_pixels(problem, machine, filters))
            inside, outside = _promises(part, vectors, goal, tiles, least)
            if inside or outside:
                effort[PARTS] += 1
                tried[pb.T_FILTERS], tried[pb.T_CHANNELS] = filters, channels
                _try_pixels(vectors, goal, waiting, part, tried, loads)
    settle(vectors, goal, waiting)
    return effort
