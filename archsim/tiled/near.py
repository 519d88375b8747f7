"""A tiling within 0.5 % of the best of very many: by bounds, part by part.

The sizes that are tried hang on layer and array alone (`archsim.tiled.near_sizes`).  Of all their
tilings that fit, nothing is left out but what is no more than TOLERANCE better than the one found.
So more memory, which only lets more of them fit, and more bandwidth, which slows none, never make a
layer slower by more than that (docs/adr/0028-near-mapper.md).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from archsim.kernels import inlined, kernel
from archsim.layer import problem as pb
from archsim.numbers import IntArray
from archsim.tiled import machine_vector as mc
from archsim.tiled.bound import BOUND_COLUMNS, BYTES, CYCLES, filter_steps, last_size, sum_rows
from archsim.tiled.bound_paths import bound, count_tiles
from archsim.tiled.cycles import cycles_of
from archsim.tiled.near_bound import least_cycles
from archsim.tiled.near_layer import (
    COLUMNS,
    IMAGES,
    LEAST,
    PART_CHANNELS,
    PART_FILTERS,
    PART_OUTER,
    ROWS,
    Layer,
    all_parts,
    layer_of,
    part_of,
)
from archsim.tiled.near_sizes import pixel_block, row_sizes
from archsim.tiled.side_by_side import MOST_COUNTS, block_problem, group_counts
from archsim.tiled.tile_fit import ceil, pixel_words, pixels_fit
from archsim.tiled.tiling_estimate import swept

FloatArray = npt.NDArray[np.float64]

TOLERANCE = 0.005
"""By so much of its cycles may the best of the tilings be better than the one found."""

WAITING = 256
"""Tilings that wait to be scheduled at most, those of the lowest bounds."""

MOST_TILES = 1 << 20
"""Of a layer that is scheduled; a tiling of more is not tried."""

MOST_SCHEDULED = 1 << 22
"""Tiles that are scheduled for a layer, before the best so far is taken."""

COUNT, SCHEDULED, TILES, BOUNDED, EFFORT_COLUMNS = range(5)
"""What a search did: tilings that wait, those that were scheduled, their tiles, and those that were
bounded."""

LOW, MOVED, SIZES = 0, 1, 2
"""Of a tiling that waits: its bound, its bytes, and from here on its sizes."""


class Found(NamedTuple):
    """best: [2] cycles and bytes of the best tiling so far; tiling: its sizes [TILING_COLUMNS];
    waiting: [WAITING, 2 + TILING_COLUMNS], the lowest bound first; effort: [EFFORT_COLUMNS]."""

    best: FloatArray
    tiling: IntArray
    waiting: IntArray
    effort: IntArray


@inlined
def _promises(least: int, found: Found) -> bool:
    """Whether what takes so many cycles at least may be better by more than the tolerance."""
    return least * (1 + TOLERANCE) < found.best[0]


@kernel
def _wait(found: Found, low: int, moved: int, tiling: IntArray) -> None:
    """Put a tiling among those that wait; without room, the highest of them is left out."""
    waiting, at = found.waiting, found.effort[COUNT]
    if at == WAITING:
        at -= 1
        if waiting[at, LOW] <= low:
            return
    else:
        found.effort[COUNT] += 1
    while at > 0 and waiting[at - 1, LOW] > low:
        waiting[at] = waiting[at - 1]
        at -= 1
    waiting[at, LOW], waiting[at, MOVED] = low, moved
    for size in range(pb.TILING_COLUMNS):
        waiting[at, SIZES + size] = tiling[size]


@kernel
def _schedule(layer: Layer, found: Found, at: int) -> None:
    """Schedule a tiling that waits, and keep it if it is the best."""
    waiting = found.waiting
    tiling, moved = waiting[at, SIZES:], waiting[at, MOVED]
    pixels, filters, channels = count_tiles(layer.problem, tiling)
    found.effort[SCHEDULED] += 1
    found.effort[TILES] += layer.problem[pb.GROUPS] * pixels * filters * channels
    cycles, best = cycles_of(layer.problem, tiling, layer.machine), found.best
    if cycles < best[0] or (cycles == best[0] and moved < best[1]):
        best[0], best[1] = cycles, moved
        for size in range(pb.TILING_COLUMNS):
            found.tiling[size] = tiling[size]


@kernel
def _settle(layer: Layer, found: Found) -> None:
    """Schedule the tilings that wait, the lowest bound first, while they promise something."""
    for at in range(found.effort[COUNT]):
        if not _promises(found.waiting[at, LOW], found) or found.effort[TILES] > MOST_SCHEDULED:
            break
        _schedule(layer, found, at)
    found.effort[COUNT] = 0


@kernel
def _try_rows(
    layer: Layer, found: Found, part: IntArray, tried: IntArray, sizes: tuple[IntArray, int]
) -> None:
    """Tilings of a part, of the images and columns in `tried`, and of any rows of `sizes`."""
    problem, machine, ground = layer.problem, layer.machine, layer.ground
    bounds, of_part = np.zeros(BOUND_COLUMNS, np.int64), part_of(layer, part)
    outer = part[PART_OUTER]
    images, columns = tried[pb.T_IMAGES], tried[pb.T_COLUMNS]
    bands = ceil(problem[pb.IMAGES], images) * ceil(problem[pb.OUT_WIDTH], columns)
    last = last_size(problem[pb.IMAGES], images) * last_size(problem[pb.OUT_WIDTH], columns)
    steps = filter_steps(machine, last_size(problem[pb.FILTERS], part[PART_FILTERS]))
    each = problem[pb.IMAGES] * problem[pb.CHANNELS] * swept(problem, columns, 1)[1]
    fewest = ceil(layer.least * problem[pb.CHANNELS], machine[mc.IFMAP_LANES])
    many = float(of_part[0].tiles) * of_part[1].tiles * ground.groups
    for at in range(sizes[1]):
        rows = tried[pb.T_ROWS] = sizes[0][at]
        words, sums = pixel_words(problem, machine, tried)
        if words > machine[mc.IFMAP_DEPTH] or sums > machine[mc.ACCUMULATOR_DEPTH]:
            continue
        tiles = bands * ceil(problem[pb.OUT_HEIGHT], rows)
        low = least_cycles(ground, of_part, outer, (tiles, fewest, 1, 1))
        if not _promises(low, found) or many * tiles > MOST_TILES:
            break  # fewer rows make no fewer tiles
        loads = ceil(each * swept(problem, rows, 0)[1], machine[mc.IFMAP_LANES])
        end = sum_rows(machine, last * last_size(problem[pb.OUT_HEIGHT], rows), steps)
        low = least_cycles(ground, of_part, outer, (tiles, loads, 1, end))
        if _promises(low, found):
            found.effort[BOUNDED] += 1
            bound(bounds, problem, machine, layer.services, tried)
            if _promises(bounds[CYCLES], found):
                _wait(found, bounds[CYCLES], bounds[BYTES], tried)


@kernel
def _try_part(layer: Layer, found: Found, part: IntArray, tried: IntArray) -> None:
    """All pixel tiles of a part."""
    problem, machine, sizes, many = layer.problem, layer.machine, layer.sizes, layer.many
    tried[pb.T_FILTERS], tried[pb.T_CHANNELS] = part[PART_FILTERS], part[PART_CHANNELS]
    tried[pb.T_FILTERS_OUTER] = part[PART_OUTER]
    alike = pixel_block(machine) == 1 or problem[pb.OUT_HEIGHT] == 1
    own = np.zeros(len(sizes[ROWS]), np.int64)
    for at in range(many[IMAGES]):
        for beside in range(many[COLUMNS]):
            tried[pb.T_IMAGES], tried[pb.T_COLUMNS] = sizes[IMAGES, at], sizes[COLUMNS, beside]
            tried[pb.T_ROWS] = 1
            if not pixels_fit(problem, machine, tried):
                continue
            rows, count = sizes[ROWS], many[ROWS]
            if not alike:
                rows, count = own, row_sizes(own, problem, machine, tried[pb.T_COLUMNS])
            _try_rows(layer, found, part, tried, (rows, count))


@kernel
def _next_part(parts: IntArray, count: int) -> int:
    """The part of the lowest bound."""
    lowest = 0
    for at in range(1, count):
        if parts[at, LEAST] < parts[lowest, LEAST]:
            lowest = at
    return lowest


@kernel
def _search(layer: Layer, found: Found, groups: int) -> None:
    """The best tiling of a problem of blocks of so many groups, if it is better than `found`."""
    parts, tried = all_parts(layer), np.ones(pb.TILING_COLUMNS, np.int64)
    tried[pb.T_GROUPS], count, lowest = groups, len(parts), np.int64(1) << 62
    while count > 0:
        at = _next_part(parts, count)
        if not _promises(parts[at, LEAST], found):
            break
        _try_part(layer, found, parts[at], tried)
        count -= 1
        parts[at] = parts[count]
        # what promises most is scheduled at once, so that less is looked at
        if found.effort[COUNT] > 0 and found.waiting[0, LOW] < lowest:
            lowest = found.waiting[0, LOW]
            _schedule(layer, found, 0)
    _settle(layer, found)


@kernel("i8.1, i8.1, bool, f8.1, i8.1")
def near_tiling(
    problem: IntArray, machine: IntArray, share: bool, best: FloatArray, tiling: IntArray
) -> IntArray:
    """Write the tiling of a layer, groups included, into `tiling`, and what it takes into `best`.

    best: its cycles and bytes, as if words of the ifmap were packed across tiles.  They stay as
    they are where none fits, or none is better.  share: groups may lie side by side.  Returns what
    it did [EFFORT_COLUMNS].
    """
    effort, counts = np.zeros(EFFORT_COLUMNS, np.int64), np.ones(MOST_COUNTS, np.int64)
    waiting = np.zeros((WAITING, SIZES + pb.TILING_COLUMNS), np.int64)
    found, many = Found(best, tiling, waiting, effort), 1
    if share and problem[pb.GROUPS] > 1:
        many = group_counts(problem, machine, counts)
    for at in range(many):
        block = problem if counts[at] == 1 else block_problem(problem, counts[at])
        _search(layer_of(block, machine, counts[at] > 1), found, counts[at])
    return effort
