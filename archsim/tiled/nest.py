"""The loops over the tiles of a layer, without a row for every tile: levels, runs, kinds.

A level is the loop over one axis; levels lie from the outermost to the innermost.  Tiles that
follow each other along an axis are a run where they are alike: inner ones, and those that padding
or the end of the axis clips.  A kind is a run of every axis: tiles of a kind ask the same of every
unit (`archsim.tiled.work`), what is begun of an ofmap word apart.
"""

from __future__ import annotations

import numpy as np

from archsim.kernels import inlined, kernel
from archsim.layer import problem as pb
from archsim.numbers import IntArray
from archsim.tiled import commands as cmd
from archsim.tiled import machine_vector as mc
from archsim.tiled import work as wk
from archsim.tiled.bound import least_loading, least_stream
from archsim.tiled.folds import fold_span
from archsim.tiled.packing import output_units
from archsim.tiled.walk import fill_tile, region, tile_counts
from archsim.tiled.work import fill_work

GROUP, IMAGE, ROW, COLUMN, FILTER, CHANNEL, AXES = range(7)

(
    COUNT,  # + axis: tiles along it
    RUNS,  # + axis: its runs are `runs` from here on
    STEP,  # + axis: by how much a run more changes the number of the kind
    INSIDE,  # + axis: tiles of one step of its loop: those of the loops inside it
    PLACE,  # + axis: tiles of it that are behind
    RUN,  # + axis: the run in which the tile lies
    KINDS,
    NEST_COLUMNS,
) = (*range(0, 6 * AXES + 1, AXES), 6 * AXES + 1)
"""A nest, and where in it a tile lies: one array."""

RUN_START, RUN_END, RUN_COLUMNS = range(3)


@kernel
def _add_run(runs: IntArray, count: int, start: int, end: int) -> int:
    runs[count, RUN_START], runs[count, RUN_END] = start, end
    return count + 1


@kernel
def _whole_tiles(problem: IntArray, tile: int, axis: int) -> int:
    """Pixel tiles along an axis that are whole and not clipped at its end."""
    stride = problem[pb.STRIDE_HEIGHT + axis]
    reach = (problem[pb.KERNEL_HEIGHT + axis] - 1) * problem[pb.DILATION_HEIGHT + axis]
    room = problem[pb.HEIGHT + axis] - 1 + problem[pb.PAD_TOP + axis] - reach
    return max(min(problem[pb.OUT_HEIGHT + axis], room // stride + 1) // tile, 0)


@kernel
def _pixel_runs(runs: IntArray, count: int, problem: IntArray, tile: int, axis: int) -> int:
    """The runs along pixel rows (axis 0) or columns (1); tiles that ask the same are one."""
    tiles, at, begin = -(-problem[pb.OUT_HEIGHT + axis] // tile), 0, count
    size, height = np.int64(-1), np.int64(-1)
    whole, pad = _whole_tiles(problem, tile, axis), problem[pb.PAD_TOP + axis]
    while at < tiles:
        pixels = min(tile, problem[pb.OUT_HEIGHT + axis] - at * tile)
        loaded = region(at * tile, pixels, problem, axis)[1]
        clipped = at * tile * problem[pb.STRIDE_HEIGHT + axis] < pad
        end = at + 1 if clipped else max(at + 1, whole)
        if count > begin and pixels == size and loaded == height:
            runs[count - 1, RUN_END] = end
        else:
            count = _add_run(runs, count, at, end)
        size, height, at = pixels, loaded, end
    return count


@kernel
def _end_runs(runs: IntArray, count: int, tiles: int, first: bool, last: bool) -> int:
    """The runs of an axis whose first tile differs from the others, or its last one."""
    begin = 0
    if first and tiles > 1:
        count, begin = _add_run(runs, count, 0, 1), 1
    if last and tiles > begin + 1:
        count = _add_run(runs, count, begin, tiles - 1)
        begin = tiles - 1
    return _add_run(runs, count, begin, tiles)


@kernel
def most_runs(problem: IntArray, tiling: IntArray) -> int:
    """Room for the runs of all axes: pixel tiles that are clipped are runs of their own."""
    room = 10
    for axis in range(2):
        tile = tiling[pb.T_ROWS + axis]
        before = -(-problem[pb.PAD_TOP + axis] // (tile * problem[pb.STRIDE_HEIGHT + axis]))
        tiles = -(-problem[pb.OUT_HEIGHT + axis] // tile)
        behind = tiles - _whole_tiles(problem, tile, axis)
        room += min(before + 1 + behind, tiles)
    return room


@kernel
def levels(tiling: IntArray) -> tuple[int, int, int, int, int, int]:
    """The axes, from the outermost loop to the innermost."""
    if tiling[pb.T_FILTERS_OUTER] == 1:
        return GROUP, FILTER, IMAGE, ROW, COLUMN, CHANNEL
    return GROUP, IMAGE, ROW, COLUMN, FILTER, CHANNEL


@kernel
def make_nest(problem: IntArray, tiling: IntArray, runs: IntArray) -> IntArray:
    """[NEST_COLUMNS] of a layer in a tiling, at its first tile; fills `runs` [·, RUN_COLUMNS]."""
    nest = np.zeros(NEST_COLUMNS, np.int64)
    counts = tile_counts(problem, tiling)
    nest[COUNT + GROUP] = problem[pb.GROUPS]
    for axis in range(5):
        nest[COUNT + IMAGE + axis] = counts[axis]
    made, kinds = _add_run(runs, 0, 0, problem[pb.GROUPS]), 1
    for axis in range(IMAGE, AXES):
        nest[RUNS + axis] = made
        cut = axis == CHANNEL
        if axis == IMAGE:
            cut = problem[pb.IMAGES] % tiling[pb.T_IMAGES] > 0
        elif axis == FILTER:
            cut = problem[pb.FILTERS] % tiling[pb.T_FILTERS] > 0
        if axis in (ROW, COLUMN):
            made = _pixel_runs(runs, made, problem, tiling[pb.T_ROWS + axis - ROW], axis - ROW)
        else:
            made = _end_runs(runs, made, nest[COUNT + axis], axis == CHANNEL, cut)
        nest[STEP + axis] = kinds
        kinds *= made - nest[RUNS + axis]
    nest[KINDS] = kinds
    inside = 1
    order = levels(tiling)
    for level in range(AXES - 1, -1, -1):
        nest[INSIDE + order[level]] = inside
        inside *= nest[COUNT + order[level]]
    return nest


@kernel
def tiles_in(nest: IntArray) -> int:
    """Tiles of the layer."""
    total = 1
    for axis in range(AXES):
        total *= nest[COUNT + axis]
    return total


@inlined
def kind_of(nest: IntArray) -> int:
    """The kind of the tile at which the nest is."""
    kind = 0
    for axis in range(IMAGE, AXES):
        kind += nest[RUN + axis] * nest[STEP + axis]
    return kind


@kernel
def fill_command(
    row: IntArray, kind: int, nest: IntArray, runs: IntArray,
    layer: tuple[IntArray, IntArray, IntArray],
) -> None:  # fmt: skip
    """The command of a kind's first tile into `row` [WALK_COLUMNS], loads and ofmap words apart.

    layer: its problem, tiling and machine.
    """
    problem, tiling, machine = layer
    for axis in range(IMAGE, AXES):
        size = tiling[pb.T_IMAGES]
        if axis in (FILTER, CHANNEL):
            size = tiling[pb.T_FILTERS + axis - FILTER]
        elif axis != IMAGE:
            size = tiling[pb.T_ROWS + axis - ROW]
        run = nest[RUNS + axis] + _run_of_kind(kind, nest, axis)
        row[cmd.TILE_IMAGE + axis - IMAGE] = runs[run, RUN_START] * size
    fill_tile(row, problem, tiling, machine)


@kernel
def _run_of_kind(kind: int, nest: IntArray, axis: int) -> int:
    """Which of an axis's runs a kind is of."""
    above = nest[KINDS] if axis == CHANNEL else nest[STEP + axis + 1]
    return kind % above // nest[STEP + axis]


@kernel
def tiles_of_kind(kind: int, nest: IntArray, runs: IntArray) -> int:
    """How many tiles of the layer are of a kind."""
    tiles = nest[COUNT + GROUP]
    for axis in range(IMAGE, AXES):
        run = nest[RUNS + axis] + _run_of_kind(kind, nest, axis)
        tiles *= runs[run, RUN_END] - runs[run, RUN_START]
    return tiles


@kernel
def fill_kind(
    works: IntArray, kind: int, nest: IntArray, runs: IntArray, row: IntArray,
    layer: tuple[IntArray, IntArray, IntArray],
) -> None:  # fmt: skip
    """What tiles of a kind ask for into `works` [kinds, WORK_COLUMNS].

    row: to work with; layer: its problem, tiling and machine.
    """
    machine = layer[2]
    fill_command(row, kind, nest, runs, layer)
    fill_work(works, kind, row, machine)
    works[kind, wk.PIXELS] = row[cmd.PIXELS]
    works[kind, wk.FILTERS] = row[cmd.TILE_FILTERS]
    works[kind, wk.UNITS] = output_units(row, machine)
    works[kind, wk.BEGUN] = -1
    span = fold_span(row, machine)
    works[kind, wk.LEAST_STREAM] = least_stream(span)
    works[kind, wk.LEAST_LOADING] = 0
    if machine[mc.DATAFLOW] != mc.OUTPUT_STATIONARY:
        works[kind, wk.LEAST_LOADING] = least_loading(span)


@kernel
def load_intervals(nest: IntArray, tiling: IntArray) -> tuple[int, int]:
    """Tiles from one load of the ifmap to the next, and of the weights: the loops inside the
    innermost one that moves on the operand's tiles."""
    order = levels(tiling)
    ifmap = weight = tiles_in(nest)
    for level in range(AXES):
        axis = order[level]
        if nest[COUNT + axis] > 1:
            if axis != FILTER:
                ifmap = nest[INSIDE + axis]
            if axis in (GROUP, FILTER, CHANNEL):
                weight = nest[INSIDE + axis]
    return ifmap, weight


@inlined
def _sweep_words(nest: IntArray, layer: tuple[IntArray, IntArray, IntArray], plane: int) -> int:
    """Words that tiles of so many pixels of the ifmap load: of all images and channels of one."""
    problem, tiling, machine = layer
    words = 0
    for images in range(2):
        n_images, size = nest[COUNT + IMAGE] - 1, tiling[pb.T_IMAGES]
        if images == 1:
            n_images, size = 1, problem[pb.IMAGES] - n_images * size
        for channels in range(2):
            many, part = nest[COUNT + CHANNEL] - 1, tiling[pb.T_CHANNELS]
            if channels == 1:
                many, part = 1, problem[pb.CHANNELS] - many * part
            if many * n_images > 0:
                elements = size * plane * part
                words += many * n_images * -(-elements // machine[mc.IFMAP_LANES])
    return words


@kernel
def ifmap_words(nest: IntArray, runs: IntArray, layer: tuple[IntArray, IntArray, IntArray]) -> int:
    """Words of the ifmap that cross in all loads of a layer, where no gather unit brings them.

    layer: its problem, tiling and machine.
    """
    problem, tiling, _ = layer
    words, loads = 0, tiles_in(nest) // load_intervals(nest, tiling)[0]
    for row in range(nest[RUNS + ROW], nest[RUNS + COLUMN]):
        first = runs[row, RUN_START] * tiling[pb.T_ROWS]
        pixels = min(tiling[pb.T_ROWS], problem[pb.OUT_HEIGHT] - first)
        height = region(first, pixels, problem, 0)[1]
        for column in range(nest[RUNS + COLUMN], nest[RUNS + FILTER]):
            first = runs[column, RUN_START] * tiling[pb.T_COLUMNS]
            pixels = min(tiling[pb.T_COLUMNS], problem[pb.OUT_WIDTH] - first)
            plane = height * region(first, pixels, problem, 1)[1]
            many = runs[row, RUN_END] - runs[row, RUN_START]
            many *= runs[column, RUN_END] - runs[column, RUN_START]
            words += many * _sweep_words(nest, layer, plane)
    of_sweep = nest[COUNT + IMAGE] * nest[COUNT + ROW] * nest[COUNT + COLUMN]
    return words * (loads // (of_sweep * nest[COUNT + CHANNEL]))


@inlined
def step(nest: IntArray, runs: IntArray, axis: int) -> bool:
    """One tile on along an axis; False, and the axis is at its begin again, behind its last."""
    place = nest[PLACE + axis] + 1
    if place == nest[COUNT + axis]:
        nest[PLACE + axis] = nest[RUN + axis] = 0
        return False
    nest[PLACE + axis] = place
    if place == runs[nest[RUNS + axis] + nest[RUN + axis], RUN_END]:
        nest[RUN + axis] += 1
    return True
