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
from archsim.tiled.near_layer import (
    COLUMNS,
    FIRST,
    IMAGES,
    LAST,
    LOADS,
    NOT_MIRRORED,
    ONE_WHOLE,
    ROWS,
    SIZE,
    TILES,
    Layer,
    fill_axis,
    part_of,
)
from archsim.tiled.near_queue import Queue
from archsim.tiled.near_sizes import MOST_SIZES, pixel_block, row_sizes
from archsim.tiled.near_tiers import about_tier
from archsim.tiled.tile_fit import ceil, reach

FloatArray = npt.NDArray[np.float64]

ANY = 1 << 62
"""Above all cycles."""

MOST_TILES = 1 << 20
"""Of a layer that is scheduled; a tiling of more is not tried."""


class Found(NamedTuple):
    """best: [2] cycles and bytes of the best tiling so far; tiling: its sizes [TILING_COLUMNS];
    limit: [2] the most cycles that are of use, now and later, ANY before a tiling is known; floor:
    where the lowest tier begins (`archsim.tiled.near_tiers`); effort: [EFFORT_COLUMNS]; most: the
    bytes that a tiling may have; 0 where bytes do not count; memo: what is known of tilings
    (`archsim.tiled.near_memo`)."""

    best: FloatArray
    tiling: IntArray
    limit: IntArray
    floor: int
    effort: IntArray
    most: int
    memo: IntArray


@inlined
def in_order(found: Found, least: int, stage: int) -> tuple[int, int]:
    """What decides when a part or a tiling comes: in a tier tilings whose bound is known before
    others, and these before parts."""
    return nq.STAGES * about_tier(found.floor, least) + stage, least


class _Part(NamedTuple):
    """What all tilings of a part have alike.

    both: whether it has those of either loop outside; steps: filter steps of its last filter tile;
    pixels: that the accumulators hold; elements: of a channel of the ifmap that its scratchpad
    holds; fewest: words of the ifmap in a sweep, at least.
    """

    filters: Filters
    channels: Channels
    outer: int
    both: bool
    steps: int
    pixels: int
    elements: int
    fewest: int


@inlined
def _part_of(layer: Layer, tiling: IntArray) -> _Part:
    """The part of a tiling."""
    problem, machine, (filters, channels) = layer.problem, layer.machine, part_of(layer, tiling)
    pixels = machine[mc.ACCUMULATOR_DEPTH] // filters.each
    if machine[mc.DATAFLOW] == mc.INPUT_STATIONARY:
        pixels *= machine[mc.COLUMNS]
    return _Part(
        filters, channels, tiling[pb.T_FILTERS_OUTER], filters.tiles > 1 and channels.tiles > 1,
        filter_steps(machine, last_size(problem[pb.FILTERS], tiling[pb.T_FILTERS])), pixels,
        machine[mc.IFMAP_DEPTH] * machine[mc.IFMAP_LANES] // tiling[pb.T_CHANNELS],
        ceil(layer.least * problem[pb.CHANNELS], machine[mc.IFMAP_LANES]),
    )  # fmt: skip


@inlined
def _most_rows(problem: IntArray, part: _Part, images: int, columns: int) -> int:
    """The most rows that fit a tile of so many images and columns; 0 where none do."""
    high = part.elements // (reach(columns, problem, 1) * images)
    rows = part.pixels // (images * columns)
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


class _Rows(NamedTuple):
    """Rows of tiles of some images and columns.

    table: [OF_AXIS, many] (`archsim.tiled.near_layer`); number: of the first tiling; place: of the
    columns among all; bands: tiles along images and columns.
    """

    table: IntArray
    many: int
    number: int
    place: int
    bands: int


@inlined
def _is_mirrored(layer: Layer, every: _Rows, place: int) -> bool:
    """Whether rows of a place, in a layer with mirror images, give the tiles of a tiling of fewer
    rows and more columns, one behind the other alike: it takes the same, and comes before."""
    rows, columns, at = every.table, layer.columns, every.place
    if layer.mirrored == ONE_WHOLE or rows[TILES, place] == 1:
        return rows[TILES, place] == 1
    alike = rows[LAST, place] == rows[SIZE, place] and columns[LAST, at] == columns[SIZE, at]
    return alike and rows[SIZE, place] > columns[SIZE, at]


@inlined
def _meet_rows(
    layer: Layer, found: Found, queue: Queue, part: _Part, every: _Rows, too_many: int
) -> int:
    """Put tilings of the sizes in `layer.tried`, but of all rows, into the queue.

    too_many: pixel tiles; of so many no tiling is of use.  Returns the same, with what was learned.
    """
    problem, machine, ground, tried = layer.problem, layer.machine, layer.ground, layer.tried
    images, columns, bands = tried[pb.T_IMAGES], tried[pb.T_COLUMNS], every.bands
    rows, both, outer = every.table, (part.filters, part.channels), part.outer
    most = _most_rows(problem, part, images, columns)
    at = _first_of(rows[SIZE], every.many, most)
    if most == 0 or at == every.many or bands * rows[TILES, at] >= too_many:
        return too_many
    tall = layer.mirrored != NOT_MIRRORED and layer.columns[TILES, every.place] > 1
    last = last_size(problem[pb.IMAGES], images) * layer.columns[LAST, every.place]
    each = problem[pb.IMAGES] * problem[pb.CHANNELS] * layer.columns[LOADS, every.place]
    of_first = images * tried[pb.T_CHANNELS] * layer.columns[FIRST, every.place]
    for place in range(at, every.many):
        tiles = bands * rows[TILES, place]
        if tiles >= too_many:
            break  # fewer rows make no fewer tiles
        if tiles == 1 and outer == 1:
            continue  # the loops are those with filters inside
        if tall and _is_mirrored(layer, every, place):
            continue
        loads, moved = ceil(each * rows[LOADS, place], machine[mc.IFMAP_LANES]), 0
        if found.most > 0:
            moved = least_bytes(machine, ground, both, outer, (tiles, loads))
            if moved > found.most:
                continue
        end = sum_rows(machine, last * rows[LAST, place], part.steps)
        first = ceil(of_first * rows[FIRST, place], machine[mc.IFMAP_LANES])
        low = least_cycles(ground, both, outer, (tiles, loads, first, end))
        if low > found.limit[0]:
            few = tiles, part.fewest, 1, 1
            if least_cycles(ground, both, outer, few) > found.limit[0]:
                return tiles
            continue
        order = in_order(found, low, nq.TILING)
        if found.most > 0:
            order = moved, array_words(ground, both, tiles)
        elif found.limit[1] == ANY:
            found.limit[0] = low - 1  # of use is the lowest alone
        tried[pb.T_ROWS] = rows[SIZE, place]
        nq.push(queue, order, low, nq.TILING, every.number + place, tried)
        if part.both and tiles > 1 and found.limit[1] < ANY:
            tried[pb.T_FILTERS_OUTER] = 1
            nq.push(queue, order, low, nq.TILING, every.number + place + MOST_SIZES**3, tried)
            tried[pb.T_FILTERS_OUTER] = 0
    return too_many


@inlined
def most_of_part(layer: Layer) -> int:
    """Tilings of a part at most."""
    rows = min(layer.problem[pb.OUT_HEIGHT], MOST_SIZES)
    return 2 * layer.many[IMAGES] * layer.many[COLUMNS] * rows


@kernel
def meet_part(layer: Layer, found: Found, queue: Queue, entry: IntArray) -> None:
    """Put all pixel tiles of a part into the queue, which has room for them."""
    problem, sizes, many, tried = layer.problem, layer.sizes, layer.many, layer.tried
    for size in range(pb.TILING_COLUMNS):
        tried[size] = entry[nq.SIZES + size]
    part, rows, count = _part_of(layer, tried), layer.rows, many[ROWS]
    alike = pixel_block(layer.machine) == 1 or problem[pb.OUT_HEIGHT] == 1
    if not alike:
        rows = layer.own
    code, of_pixels = entry[nq.CODE] * MOST_SIZES, float(part.filters.tiles) * part.channels.tiles
    too_many = int(MOST_TILES / (of_pixels * layer.ground.groups)) + 1
    for at in range(many[IMAGES]):
        images = ceil(problem[pb.IMAGES], sizes[IMAGES, at])
        for beside in range(many[COLUMNS]):
            bands = images * layer.columns[TILES, beside]
            if bands >= too_many:
                break  # fewer columns make no fewer tiles
            tried[pb.T_IMAGES], tried[pb.T_COLUMNS] = sizes[IMAGES, at], sizes[COLUMNS, beside]
            if not alike:
                count = row_sizes(rows[SIZE], problem, layer.machine, tried[pb.T_COLUMNS])
                fill_axis(rows, problem, rows[SIZE], count, 0)
            number = ((code + at) * MOST_SIZES + beside) * MOST_SIZES
            every = _Rows(rows, count, number, beside, bands)
            too_many = _meet_rows(layer, found, queue, part, every, too_many)
