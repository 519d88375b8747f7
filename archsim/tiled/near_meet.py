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
from archsim.tiled.near_bound import Channels, Filters, array_words, least_bytes, least_cycles
from archsim.tiled.near_layer import COLUMNS, FIRST, IMAGES, ROWS, Layer, part_of
from archsim.tiled.near_queue import Queue
from archsim.tiled.near_sizes import MOST_SIZES, pixel_block, row_sizes
from archsim.tiled.near_tiers import about_tier
from archsim.tiled.tile_fit import ceil, reach
from archsim.tiled.tiling_estimate import swept
from archsim.tiled.walk import region

FloatArray = npt.NDArray[np.float64]

MOST_TILES = 1 << 20
"""Of a layer that is scheduled; a tiling of more is not tried."""


class Found(NamedTuple):
    """best: [2] cycles and bytes of the best tiling so far; tiling: its sizes [TILING_COLUMNS];
    limit: [2] the most cycles that are of use, now and later; floor: where the lowest tier begins
    (`archsim.tiled.near_tiers`); effort: [EFFORT_COLUMNS]; most: the bytes that a tiling may have;
    0 where bytes do not count; memo: what is known of tilings (`archsim.tiled.near_memo`)."""

    best: FloatArray
    tiling: IntArray
    limit: IntArray
    floor: int
    effort: IntArray
    most: int
    memo: IntArray


@inlined
def by_tier(found: Found, least: int, stage: int) -> tuple[int, int]:
    """What decides when a part or a tiling comes: in a tier tilings before parts."""
    return 2 * about_tier(found.floor, least) + int(stage == nq.PART), least


@inlined
def _most_rows(problem: IntArray, machine: IntArray, tried: IntArray) -> int:
    """The most rows that fit a tile of all other sizes in `tried`; 0 where none do."""
    images, columns = tried[pb.T_IMAGES], tried[pb.T_COLUMNS]
    filters, pixels = tried[pb.T_FILTERS], machine[mc.ACCUMULATOR_DEPTH]
    if machine[mc.DATAFLOW] == mc.INPUT_STATIONARY:
        pixels = pixels // filters * machine[mc.COLUMNS]
    else:
        pixels //= ceil(filters, machine[mc.COLUMNS])
    across = reach(columns, problem, 1) * images * tried[pb.T_CHANNELS]
    high = machine[mc.IFMAP_DEPTH] * machine[mc.IFMAP_LANES] // across
    rows = pixels // (images * columns)
    if high < problem[pb.HEIGHT]:
        rows = min(rows, (high - reach(1, problem, 0)) // problem[pb.STRIDE_HEIGHT] + 1)
    return max(rows, 0)


@inlined
def _first_of(sizes: IntArray, count: int, most: int) -> int:
    """The place of the first size that is no more than `most`, of `count` falling ones."""
    begin, end = 0, count
    while begin < end:
        at = (begin + end) // 2
        if sizes[at] > most:
            begin = at + 1
        else:
            end = at
    return begin


@kernel
def _meet_rows(
    layer: Layer, found: Found, queue: Queue, tried: IntArray, part: tuple[Filters, Channels],
    sizes: tuple[IntArray, IntArray, IntArray, int, int, int],
) -> None:  # fmt: skip
    """Tilings of all sizes in `tried` but its rows, which are any of `sizes`: these, the ifmap rows
    that each loads, and the first tile of each, how many there are, the number of the first tiling,
    and the place of the columns among all.
    """
    problem, machine, ground = layer.problem, layer.machine, layer.ground
    outer, images, columns = tried[pb.T_FILTERS_OUTER], tried[pb.T_IMAGES], tried[pb.T_COLUMNS]
    bands = ceil(problem[pb.IMAGES], images) * ceil(problem[pb.OUT_WIDTH], columns)
    last = last_size(problem[pb.IMAGES], images) * last_size(problem[pb.OUT_WIDTH], columns)
    steps = filter_steps(machine, last_size(problem[pb.FILTERS], tried[pb.T_FILTERS]))
    each = problem[pb.IMAGES] * problem[pb.CHANNELS] * layer.swept[1, sizes[5]]
    of_first = images * tried[pb.T_CHANNELS] * layer.swept[FIRST + 1, sizes[5]]
    fewest = ceil(layer.least * problem[pb.CHANNELS], machine[mc.IFMAP_LANES])
    many = float(part[0].tiles) * part[1].tiles * ground.groups
    for at in range(_first_of(sizes[0], sizes[3], _most_rows(problem, machine, tried)), sizes[3]):
        rows = tried[pb.T_ROWS] = sizes[0][at]
        tiles = bands * ceil(problem[pb.OUT_HEIGHT], rows)
        if many * tiles > MOST_TILES:
            break
        loads = ceil(each * sizes[1][at], machine[mc.IFMAP_LANES])
        end = sum_rows(machine, last * last_size(problem[pb.OUT_HEIGHT], rows), steps)
        if tiles == 1 and outer == 1:
            continue  # the loops are those with filters inside
        first = ceil(of_first * sizes[2][at], machine[mc.IFMAP_LANES])
        low = least_cycles(ground, part, outer, (tiles, loads, first, end))
        if low > found.limit[0]:
            if least_cycles(ground, part, outer, (tiles, fewest, 1, 1)) <= found.limit[0]:
                continue
            break  # fewer rows make no fewer tiles
        order = by_tier(found, low, nq.TILING)
        if found.most > 0:
            moved = least_bytes(machine, ground, part, outer, (tiles, loads))
            if moved > found.most:
                continue
            order = moved, array_words(ground, part, tiles)
        nq.push(queue, order, low, nq.TILING, sizes[4] + at, tried)


@kernel
def _own_rows(
    layer: Layer, columns: int, sizes: IntArray, loads: IntArray, firsts: IntArray
) -> int:
    """Write rows of tiles of so many columns, the ifmap rows that each loads, and that the first
    loads; how many."""
    count = row_sizes(sizes, layer.problem, layer.machine, columns)
    for at in range(count):
        loads[at] = swept(layer.problem, sizes[at], 0)[1]
        firsts[at] = region(0, sizes[at], layer.problem, 0)[1]
    return count


@inlined
def most_of_part(layer: Layer) -> int:
    """Tilings of a part at most."""
    rows = min(layer.problem[pb.OUT_HEIGHT], MOST_SIZES)
    return layer.many[IMAGES] * layer.many[COLUMNS] * rows


@kernel
def meet_part(layer: Layer, found: Found, queue: Queue, entry: IntArray) -> None:
    """Put all pixel tiles of a part into the queue, which has room for them."""
    problem, machine, sizes, many = layer.problem, layer.machine, layer.sizes, layer.many
    tried, part = entry[nq.SIZES :].copy(), part_of(layer, entry[nq.SIZES :])
    alike = pixel_block(machine) == 1 or problem[pb.OUT_HEIGHT] == 1
    many_rows = np.zeros((3, len(sizes[ROWS])), np.int64)
    own, loads, firsts = many_rows[0], many_rows[1], many_rows[2]
    code = entry[nq.CODE] * MOST_SIZES
    for at in range(many[IMAGES]):
        for beside in range(many[COLUMNS]):
            tried[pb.T_IMAGES], tried[pb.T_COLUMNS] = sizes[IMAGES, at], sizes[COLUMNS, beside]
            if _most_rows(problem, machine, tried) == 0:
                continue
            rows, swept_rows, of_first = sizes[ROWS], layer.swept[0], layer.swept[FIRST]
            count = many[ROWS]
            if not alike:
                rows, swept_rows, of_first = own, loads, firsts
                count = _own_rows(layer, tried[pb.T_COLUMNS], own, loads, firsts)
            number = ((code + at) * MOST_SIZES + beside) * MOST_SIZES
            of_rows = rows, swept_rows, of_first, count, number, beside
            _meet_rows(layer, found, queue, tried, part, of_rows)
