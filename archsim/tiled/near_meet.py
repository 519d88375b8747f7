"""Tilings of a part, put into the fast mapper's queue by what they take at least."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from archsim.kernels import inlined, kernel
from archsim.layer import problem as pb
from archsim.numbers import IntArray
from archsim.tiled import machine_vector as mc
from archsim.tiled import near_queue as nq
from archsim.tiled.bound import filter_steps, last_size, sum_rows
from archsim.tiled.near_bound import array_words, least_bytes, least_cycles
from archsim.tiled.near_layer import COLUMNS, IMAGES, ROWS, Layer, part_of
from archsim.tiled.near_queue import Queue
from archsim.tiled.near_sizes import MOST_SIZES, pixel_block, row_sizes
from archsim.tiled.tile_fit import ceil, pixel_words, pixels_fit
from archsim.tiled.tiling_estimate import swept

FloatArray = npt.NDArray[np.float64]

TOLERANCE = 0.005
"""By so much of its cycles may the best of the tilings be better than the one taken."""

SLACK = 0.004
"""So much of the cycles of the fastest tiling that is found may be spent on fewer bytes."""

CLOSE = (1 + TOLERANCE) / (1 + SLACK) - 1
"""By so much may the best of the tilings be better than the fastest that is found."""

MOST_TILES = 1 << 20
"""Of a layer that is scheduled; a tiling of more is not tried."""


class Found(NamedTuple):
    """best: [2] cycles and bytes of the best tiling so far; tiling: its sizes [TILING_COLUMNS];
    limit: [1] cycles that some tiling that fits is known to take, and SLACK of them; effort:
    [EFFORT_COLUMNS]; most: the bytes that a tiling may have; 0 where bytes do not count."""

    best: FloatArray
    tiling: IntArray
    limit: FloatArray
    effort: IntArray
    most: int


@inlined
def promises(least: int, found: Found) -> bool:
    """Whether what takes so many cycles at least may be better by more than CLOSE."""
    return least * (1 + CLOSE) < found.best[0]


@inlined
def counts(least: int, found: Found) -> bool:
    """Whether what takes so many cycles at least may have a say in what is found.

    What takes no more than the limit may, though it is not that much better: it may come first.
    """
    return least <= found.limit[0] and promises(least, found)


@kernel
def _first_fitting(
    problem: IntArray, machine: IntArray, tried: IntArray, sizes: IntArray, count: int
) -> int:
    """The place of the most rows that fit, of `count` falling ones; `count` if none do."""
    begin, end = 0, count
    while begin < end:
        at = (begin + end) // 2
        tried[pb.T_ROWS] = sizes[at]
        words, sums = pixel_words(problem, machine, tried)
        if words > machine[mc.IFMAP_DEPTH] or sums > machine[mc.ACCUMULATOR_DEPTH]:
            begin = at + 1
        else:
            end = at
    return begin


@kernel
def _meet_rows(
    layer: Layer, found: Found, queue: Queue, tried: IntArray, sizes: tuple[IntArray, int, int]
) -> None:
    """Tilings of all sizes in `tried` but its rows, which are any of `sizes`: these, how many they
    are, and the number of the first tiling."""
    problem, machine, ground = layer.problem, layer.machine, layer.ground
    of_part, outer = part_of(layer, tried), tried[pb.T_FILTERS_OUTER]
    images, columns = tried[pb.T_IMAGES], tried[pb.T_COLUMNS]
    bands = ceil(problem[pb.IMAGES], images) * ceil(problem[pb.OUT_WIDTH], columns)
    last = last_size(problem[pb.IMAGES], images) * last_size(problem[pb.OUT_WIDTH], columns)
    steps = filter_steps(machine, last_size(problem[pb.FILTERS], tried[pb.T_FILTERS]))
    each = problem[pb.IMAGES] * problem[pb.CHANNELS] * swept(problem, columns, 1)[1]
    fewest = ceil(layer.least * problem[pb.CHANNELS], machine[mc.IFMAP_LANES])
    many = float(of_part[0].tiles) * of_part[1].tiles * ground.groups
    for at in range(_first_fitting(problem, machine, tried, sizes[0], sizes[1]), sizes[1]):
        rows = tried[pb.T_ROWS] = sizes[0][at]
        tiles = bands * ceil(problem[pb.OUT_HEIGHT], rows)
        if many * tiles > MOST_TILES:
            break
        loads = ceil(each * swept(problem, rows, 0)[1], machine[mc.IFMAP_LANES])
        end = sum_rows(machine, last * last_size(problem[pb.OUT_HEIGHT], rows), steps)
        low = least_cycles(ground, of_part, outer, (tiles, loads, 1, end))
        if not counts(low, found):
            if counts(least_cycles(ground, of_part, outer, (tiles, fewest, 1, 1)), found):
                continue
            break  # fewer rows make no fewer tiles
        second = 0
        if found.most > 0:
            low = least_bytes(machine, ground, of_part, outer, (tiles, loads))
            second = array_words(ground, of_part, tiles)
            if low > found.most:
                continue
        nq.push(queue, (low, second), nq.TILING, sizes[2] + at, tried)


@kernel
def meet_part(layer: Layer, found: Found, queue: Queue, entry: IntArray) -> Queue:
    """Put all pixel tiles of a part into the queue."""
    problem, machine, sizes, many = layer.problem, layer.machine, layer.sizes, layer.many
    tried = entry[nq.SIZES :].copy()
    alike = pixel_block(machine) == 1 or problem[pb.OUT_HEIGHT] == 1
    own = np.zeros(len(sizes[ROWS]), np.int64)
    code = entry[nq.CODE] * MOST_SIZES
    for at in range(many[IMAGES]):
        for beside in range(many[COLUMNS]):
            tried[pb.T_IMAGES], tried[pb.T_COLUMNS] = sizes[IMAGES, at], sizes[COLUMNS, beside]
            tried[pb.T_ROWS] = 1
            if not pixels_fit(problem, machine, tried):
                continue
            rows, count = sizes[ROWS], many[ROWS]
            if not alike:
                rows, count = own, row_sizes(own, problem, machine, tried[pb.T_COLUMNS])
            queue = nq.with_room(queue, count)
            first = ((code + at) * MOST_SIZES + beside) * MOST_SIZES
            _meet_rows(layer, found, queue, tried, (rows, count, first))
    return queue
