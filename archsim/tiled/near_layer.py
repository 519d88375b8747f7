"""A layer as the fast mapper goes through it: sizes along each axis, and parts of them.

A part is a number of filters and of channels in a tile, and, where a tile has all channels, which
of the loops is outside.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from archsim.kernels import inlined, kernel
from archsim.layer import problem as pb
from archsim.numbers import IntArray
from archsim.tiled import machine_vector as mc
from archsim.tiled.near_bound import (
    Channels,
    Filters,
    Ground,
    channels_of,
    filters_of,
    ground_of,
    least_cycles,
    weights_of,
)
from archsim.tiled.near_sizes import (
    MOST_SIZES,
    channel_sizes,
    column_sizes,
    even_sizes,
    filter_sizes,
    pixel_block,
    row_sizes,
)
from archsim.tiled.side_by_side import block_problem
from archsim.tiled.tile_fit import ceil
from archsim.tiled.tiling_estimate import swept
from archsim.tiled.traffic import services_of
from archsim.tiled.walk import region

FILTERS, CHANNELS, IMAGES, COLUMNS, ROWS, LISTS = range(6)
"""Lists of sizes."""

LEAST_LOADS, FLOOR, KNOWN = range(LISTS, LISTS + 3)
"""Behind how many are in each: `Layer.least`, where the lowest tier of cycles begins, 0 where that
is not known, and whether lists are filled in."""

LEAST, PART_CODE, PART_FILTERS, PART_CHANNELS, PART_OUTER, PART_COLUMNS = range(6)
"""Of a part: its bound, its number, filters and channels of a tile, whether filters are outside."""


SIZE, LOADS, FIRST, TILES, LAST, OF_AXIS = range(6)
"""Of pixel tiles along rows or columns: their size, ifmap rows or columns that all of them load and
that the first does, how many they are, and the size of the last."""

NOT_MIRRORED, ONE_WHOLE, ALL_ALIKE = range(3)
"""Which tilings are the same with rows and columns exchanged: none; those with all rows, or all
columns, in a tile; and those whose tiles are all of one size."""

ABOVE_ALL = 1 << 62
"""Above every count."""


class Layer(NamedTuple):
    """A problem of blocks of groups on a machine, and what the search knows of it.

    sizes: [LISTS, MOST_SIZES]; many: [LISTS] of each; swept: [4, MOST_SIZES] ifmap rows, and
    columns, that pixel tiles of each size load, and those that the first of them loads; least:
    elements of a channel of the ifmap that they load in all, at least.
    """

    problem: IntArray
    machine: IntArray
    services: IntArray
    ground: Ground
    sizes: IntArray
    many: IntArray
    rows: IntArray
    columns: IntArray
    least: int
    side: int
    mirrored: int
    own: IntArray
    tried: IntArray


@kernel
def fill_axis(found: IntArray, problem: IntArray, sizes: IntArray, many: int, axis: int) -> int:
    """Write what there is of tiles of each size along rows (axis 0) or columns (1) into `found`
    [OF_AXIS, MOST_SIZES]; the least that they load."""
    least = ABOVE_ALL
    for at in range(many):
        size, total = sizes[at], problem[pb.OUT_HEIGHT + axis]
        found[SIZE, at] = size
        found[TILES, at], found[LOADS, at] = swept(problem, size, axis)
        found[LAST, at] = total - (found[TILES, at] - 1) * size
        found[FIRST, at] = region(0, size, problem, axis)[1]
        least = min(least, found[LOADS, at])
    return least


@inlined
def _mirrored(problem: IntArray, machine: IntArray) -> int:
    """ONE_WHOLE where rows and columns of a layer are alike, and sizes of tiles along them, and
    ALL_ALIKE where tiles of one size are alike too, whatever is beside them; else NOT_MIRRORED."""
    if pixel_block(machine) > 1 or problem[pb.ROW_UNITS] * machine[mc.GATHER_BITS] > 0:
        return NOT_MIRRORED
    differs = problem[pb.HEIGHT] != problem[pb.WIDTH]
    differs |= problem[pb.OUT_HEIGHT] != problem[pb.OUT_WIDTH]
    differs |= problem[pb.PAD_TOP] != problem[pb.PAD_LEFT]
    differs |= problem[pb.KERNEL_HEIGHT] != problem[pb.KERNEL_WIDTH]
    differs |= problem[pb.STRIDE_HEIGHT] != problem[pb.STRIDE_WIDTH]
    differs |= problem[pb.DILATION_HEIGHT] != problem[pb.DILATION_WIDTH]
    if differs:
        return NOT_MIRRORED
    apart = problem[pb.KERNEL_HEIGHT] == 1 and problem[pb.PAD_TOP] == 0
    return ALL_ALIKE if apart else ONE_WHOLE


@kernel
def new_lists() -> IntArray:
    """Room for what a layer has whatever the depths of memories are: not yet known."""
    lists = np.empty((4, LISTS + 1, MOST_SIZES), np.int64)
    lists[0, LISTS] = 0
    return lists


@kernel
def _fill_lists(lists: IntArray, problem: IntArray, machine: IntArray) -> None:
    """Fill in sizes, how many there are, and what there is of rows and columns."""
    sizes, many = lists[0], lists[0, LISTS]
    many[FILTERS] = filter_sizes(sizes[FILTERS], problem, machine)
    many[CHANNELS] = channel_sizes(sizes[CHANNELS], problem, machine)
    many[IMAGES] = even_sizes(sizes[IMAGES], problem[pb.IMAGES], 1, (1, 1))
    many[COLUMNS] = column_sizes(sizes[COLUMNS], problem, machine)
    # blocks of the array's pixels may add rows, whose loads lie between those of their neighbours
    many[ROWS] = row_sizes(sizes[ROWS], problem, machine, problem[pb.OUT_WIDTH])
    least = problem[pb.IMAGES] * fill_axis(lists[1], problem, sizes[ROWS], many[ROWS], 0)
    least *= fill_axis(lists[2], problem, sizes[COLUMNS], many[COLUMNS], 1)
    many[LEAST_LOADS], many[FLOOR], many[KNOWN] = least, 0, 1


@kernel
def layer_in(lists: IntArray, problem: IntArray, machine: IntArray) -> Layer:
    """Of a layer; lists: of it, on a machine that differs in depths of memories alone, or new."""
    if lists[0, LISTS, KNOWN] == 0:
        _fill_lists(lists, problem, machine)
    services = services_of(machine)
    ground = ground_of(problem, machine, services)
    return Layer(
        problem, machine, services, ground, lists[0], lists[0, LISTS], lists[1], lists[2],
        lists[0, LISTS, LEAST_LOADS], 1, _mirrored(problem, machine), lists[3],
        np.ones(pb.TILING_COLUMNS, np.int64),
    )  # fmt: skip


@kernel
def layer_of(problem: IntArray, machine: IntArray) -> Layer:
    """Of a layer of which nothing is known."""
    return layer_in(new_lists(), problem, machine)


@kernel
def block_layer(layer: Layer, block: IntArray) -> Layer:
    """Of groups side by side, from that of groups alone: a tile has all filters and channels."""
    sizes, many = layer.sizes.copy(), layer.many.copy()
    sizes[FILTERS, 0], sizes[CHANNELS, 0] = block[pb.FILTERS], block[pb.CHANNELS]
    many[FILTERS] = many[CHANNELS] = 1
    ground = ground_of(block, layer.machine, layer.services)
    return Layer(
        block, layer.machine, layer.services, ground, sizes, many, layer.rows, layer.columns,
        layer.least, block[pb.CHANNELS] // layer.problem[pb.CHANNELS],
        layer.mirrored, layer.own, layer.tried,
    )  # fmt: skip


@kernel
def side_by_side(layer: Layer, groups: int) -> Layer:
    """Of so many groups side by side, from that of groups alone."""
    return layer if groups == 1 else block_layer(layer, block_problem(layer.problem, groups))


@inlined
def part_of(layer: Layer, tiling: IntArray) -> tuple[Filters, Channels]:
    """Filters and channels of a tiling's part."""
    problem, machine = layer.problem, layer.machine
    filters = filters_of(problem, machine, tiling[pb.T_FILTERS])
    return filters, channels_of(problem, machine, tiling[pb.T_CHANNELS])


@kernel
def floor_of(layer: Layer) -> int:
    """Cycles that any tiling of the layer takes at least, whatever the depths of memories are."""
    problem, machine, ground = layer.problem, layer.machine, layer.ground
    steps, chunks = ABOVE_ALL, ABOVE_ALL
    for at in range(layer.many[FILTERS]):
        steps = min(steps, filters_of(problem, machine, layer.sizes[FILTERS, at]).steps)
    for at in range(layer.many[CHANNELS]):
        chunks = min(chunks, channels_of(problem, machine, layer.sizes[CHANNELS, at]).chunks)
    words = ceil(layer.least * problem[pb.CHANNELS], machine[mc.IFMAP_LANES])
    part = Filters(1, steps, 0), Channels(1, chunks, 0, 0)
    return least_cycles(ground, part, 0, (1, words, 1, 1))


@inlined
def fewest_tiles(layer: Layer, filters: Filters, channels: int) -> int:
    """Pixel tiles that there are at least, by sums and ifmap; 0 where none fits."""
    machine, ground = layer.machine, layer.ground
    pixels = machine[mc.ACCUMULATOR_DEPTH] // filters.each
    if ground.dataflow == mc.INPUT_STATIONARY:
        pixels *= ground.columns
    if pixels == 0:
        return 0
    room = machine[mc.IFMAP_DEPTH] * machine[mc.IFMAP_LANES]
    return max(ceil(ground.pixels, pixels), ceil(layer.least * channels, room))


@kernel
def all_parts(layer: Layer) -> IntArray:
    """Parts whose weights fit, and their bounds: [parts, PART_COLUMNS]."""
    problem, machine, ground = layer.problem, layer.machine, layer.ground
    n_filters, n_channels = layer.many[FILTERS], layer.many[CHANNELS]
    parts, count = np.empty((2 * n_filters * n_channels, PART_COLUMNS), np.int64), 0
    words = ceil(layer.least * problem[pb.CHANNELS], machine[mc.IFMAP_LANES])
    for at in range(n_filters):
        filters = filters_of(problem, machine, layer.sizes[FILTERS, at])
        if filters.each * problem[pb.HAS_BIAS] > machine[mc.BIAS_DEPTH]:
            continue
        for beside in range(n_channels):
            size = layer.sizes[CHANNELS, beside]
            channels = channels_of(problem, machine, size)
            tiles = fewest_tiles(layer, filters, size)
            fits = weights_of(ground, filters, channels)[1] <= machine[mc.WEIGHT_DEPTH]
            if not fits or tiles == 0:
                continue
            # of more channel tiles every tile loads both operands, whichever loop is outside
            for outer in range(1 if filters.tiles == 1 or channels.tiles > 1 else 2):
                pixels = tiles, words, 1, 1
                least = least_cycles(ground, (filters, channels), outer, pixels)
                parts[count, LEAST], parts[count, PART_OUTER] = least, outer
                parts[count, PART_CODE] = 2 * (at * MOST_SIZES + beside) + outer
                parts[count, PART_FILTERS] = layer.sizes[FILTERS, at]
                parts[count, PART_CHANNELS] = size
                count += 1
    return parts[:count]
