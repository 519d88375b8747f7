"""A tiling within 0.5 % of the best of very many: the lowest bound first.

The sizes that are tried hang on layer and array alone (`archsim.tiled.near_sizes`).  Of all their
tilings that fit, nothing is left out but what is no more than TOLERANCE better than the one found.
So more memory, which only lets more of them fit, and more bandwidth, which slows none, never make a
layer slower by more than that (docs/adr/0028-near-mapper.md).  Which one is found hangs on those
that fit alone, not on how they were met (docs/adr/0038-designs-that-share-tilings.md).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from archsim.kernels import inlined, kernel
from archsim.layer import problem as pb
from archsim.numbers import IntArray
from archsim.tiled import machine_vector as mc
from archsim.tiled import near_queue as nq
from archsim.tiled.bound import BOUND_COLUMNS, BYTES, CYCLES, filter_steps, last_size, sum_rows
from archsim.tiled.bound_paths import bound, count_tiles
from archsim.tiled.cycles import cycles_of
from archsim.tiled.near_bound import least_cycles
from archsim.tiled.near_layer import (
    COLUMNS,
    IMAGES,
    LEAST,
    PART_CHANNELS,
    PART_CODE,
    PART_FILTERS,
    PART_OUTER,
    ROWS,
    Layer,
    all_parts,
    block_layer,
    layer_of,
    part_of,
)
from archsim.tiled.near_queue import Queue
from archsim.tiled.near_sizes import MOST_SIZES, group_sizes, pixel_block, row_sizes
from archsim.tiled.side_by_side import block_problem
from archsim.tiled.tile_fit import ceil, pixel_words, pixels_fit
from archsim.tiled.tiling_estimate import swept

FloatArray = npt.NDArray[np.float64]

TOLERANCE = 0.005
"""By so much of its cycles may the best of the tilings be better than the one found."""

MOST_TILES = 1 << 20
"""Of a layer that is scheduled; a tiling of more is not tried."""

MOST_SCHEDULED = 1 << 22
"""Tiles that are scheduled for a layer, before the best so far is taken."""

SCHEDULED, TILES, BOUNDED, MET, EFFORT_COLUMNS = range(5)
"""What a search did: tilings that were scheduled, their tiles, tilings that were held against the
second bound, and parts and tilings that were met."""

PARTS = 2 * MOST_SIZES**2
"""Numbers of parts."""


class Found(NamedTuple):
    """best: [2] cycles and bytes of the best tiling so far; tiling: its sizes [TILING_COLUMNS];
    limit: [1] cycles that some tiling that fits is known to take; effort: [EFFORT_COLUMNS]."""

    best: FloatArray
    tiling: IntArray
    limit: FloatArray
    effort: IntArray


@inlined
def _promises(least: int, found: Found) -> bool:
    """Whether what takes so many cycles at least may be better by more than the tolerance."""
    return least * (1 + TOLERANCE) < found.best[0]


@inlined
def _counts(least: int, found: Found) -> bool:
    """Whether what takes so many cycles at least may have a say in what is found.

    What takes no more than the limit may, though it is not that much better: it may come first.
    """
    return least <= found.limit[0] and _promises(least, found)


@kernel
def _schedule(
    problem: IntArray, machine: IntArray, found: Found, tiling: IntArray, moved: int
) -> None:
    """Schedule a tiling, and keep it if it is the best."""
    best = found.best
    pixels, filters, channels = count_tiles(problem, tiling)
    found.effort[SCHEDULED] += 1
    found.effort[TILES] += problem[pb.GROUPS] * pixels * filters * channels
    cycles = cycles_of(problem, tiling, machine)
    if cycles < best[0] or (cycles == best[0] and moved < best[1]):
        best[0], best[1] = cycles, moved
        for size in range(pb.TILING_COLUMNS):
            found.tiling[size] = tiling[size]


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
    for at in range(sizes[1]):
        rows = tried[pb.T_ROWS] = sizes[0][at]
        words, sums = pixel_words(problem, machine, tried)
        if words > machine[mc.IFMAP_DEPTH] or sums > machine[mc.ACCUMULATOR_DEPTH]:
            continue
        tiles = bands * ceil(problem[pb.OUT_HEIGHT], rows)
        low = least_cycles(ground, of_part, outer, (tiles, fewest, 1, 1))
        if not _counts(low, found) or many * tiles > MOST_TILES:
            break  # fewer rows make no fewer tiles
        loads = ceil(each * swept(problem, rows, 0)[1], machine[mc.IFMAP_LANES])
        end = sum_rows(machine, last * last_size(problem[pb.OUT_HEIGHT], rows), steps)
        low = least_cycles(ground, of_part, outer, (tiles, loads, 1, end))
        if _counts(low, found):
            nq.push(queue, low, nq.TILING, sizes[2] + at, tried)


@kernel
def _meet_part(layer: Layer, found: Found, queue: Queue, entry: IntArray) -> Queue:
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


@kernel
def _begin(layer: Layer, queue: Queue, found: Found, groups: int, place: int) -> Queue:
    """Put all parts of blocks of so many groups into the queue."""
    parts, tried = all_parts(layer), np.ones(pb.TILING_COLUMNS, np.int64)
    queue, tried[pb.T_GROUPS] = nq.with_room(queue, len(parts)), groups
    for at in range(len(parts)):
        if _counts(parts[at, LEAST], found):
            tried[pb.T_FILTERS] = parts[at, PART_FILTERS]
            tried[pb.T_CHANNELS] = parts[at, PART_CHANNELS]
            tried[pb.T_FILTERS_OUTER] = parts[at, PART_OUTER]
            code = place * PARTS + parts[at, PART_CODE]
            nq.push(queue, parts[at, LEAST], nq.PART, code, tried)
    return queue


@kernel
def _limit(problem: IntArray, machine: IntArray, found: Found, queue: Queue, first: int) -> None:
    """Where nothing is known of any tiling, what the one of the lowest bound takes, of the entries
    from `first` on."""
    if np.isfinite(found.limit[0]) or queue.counts[0] == first:
        return
    lowest, entries = first, queue.entries
    for at in range(first + 1, queue.counts[0]):
        if entries[at, nq.LOW] < entries[lowest, nq.LOW]:
            lowest = at
    found.limit[0] = cycles_of(problem, entries[lowest, nq.SIZES :], machine)


@kernel
def _search(layer: Layer, found: Found, queue: Queue) -> None:
    """Go through the queue, while its first entry promises something."""
    machine, services = layer.machine, layer.services
    bounds, alone = np.zeros(BOUND_COLUMNS, np.int64), layer.problem
    while queue.counts[1] > 0 and found.effort[TILES] <= MOST_SCHEDULED:
        entry = queue.entries[queue.heap[0]]
        if not _promises(entry[nq.LOW], found):
            break
        groups = entry[nq.SIZES + pb.T_GROUPS]
        block = alone if groups == 1 else block_problem(alone, groups)
        if entry[nq.STAGE] == nq.PART:
            nq.drop(queue)
            own = layer if groups == 1 else block_layer(layer, block)
            first = queue.counts[0]
            queue = _meet_part(own, found, queue, entry)
            _limit(block, machine, found, queue, first)
        else:
            nq.drop(queue)
            found.effort[BOUNDED] += 1
            bound(bounds, block, machine, services, entry[nq.SIZES :])
            if bounds[CYCLES] <= found.best[0]:
                _schedule(block, machine, found, entry[nq.SIZES :], bounds[BYTES])
    found.effort[MET] = queue.counts[0]


@kernel("i8.1, i8.1, bool, f8.1, i8.1")
def near_tiling(
    problem: IntArray, machine: IntArray, share: bool, best: FloatArray, tiling: IntArray
) -> IntArray:
    """Write the tiling of a layer, groups included, into `tiling`, and what it takes into `best`.

    best: its cycles and bytes, as if words of the ifmap were packed across tiles.  They stay as
    they are where none fits, or none is better.  share: groups may lie side by side.  Returns what
    it did [EFFORT_COLUMNS].
    """
    effort, counts = np.zeros(EFFORT_COLUMNS, np.int64), np.zeros(MOST_SIZES, np.int64)
    found = Found(best, tiling, np.full(1, np.inf), effort)
    layer, queue = layer_of(problem, machine), nq.new_queue()
    for at in range(group_sizes(counts, problem, machine, share)):
        block = layer
        if counts[at] > 1:
            block = block_layer(layer, block_problem(problem, counts[at]))
        queue = _begin(block, queue, found, counts[at], at)
    _search(layer, found, queue)
    return effort
