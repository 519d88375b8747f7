"""The tile loop, written once: a problem and a tiling become the matrix of tile commands.

Order of the tiles: groups; then pixels (tiles of images, rows, columns) and filters, one inside the
other as the tiling says; channels innermost.  An operand tile is loaded when the tile needs another
one than the tile before, and freed when the next tile does.
"""

from __future__ import annotations

import numpy as np

from archsim.kernels import kernel
from archsim.layer import problem as pb
from archsim.layer.problem import Problem, Tiling
from archsim.numbers import IntArray
from archsim.tiled import commands as cmd
from archsim.tiled import machine_vector as mc
from archsim.tiled.packing import mark_words


@kernel
def _ceil(numerator: int, denominator: int) -> int:
    return -(-numerator // denominator)


@kernel
def tile_counts(problem: IntArray, tiling: IntArray) -> tuple[int, int, int, int, int]:
    """Tiles along images, pixel rows, pixel columns, filters and channels."""
    return (
        _ceil(problem[pb.IMAGES], tiling[pb.T_IMAGES]),
        _ceil(problem[pb.OUT_HEIGHT], tiling[pb.T_ROWS]),
        _ceil(problem[pb.OUT_WIDTH], tiling[pb.T_COLUMNS]),
        _ceil(problem[pb.FILTERS], tiling[pb.T_FILTERS]),
        _ceil(problem[pb.CHANNELS], tiling[pb.T_CHANNELS]),
    )


@kernel
def region(start: int, pixels: int, problem: IntArray, axis: int) -> tuple[int, int, int]:
    """The ifmap rows (axis 0) or columns (axis 1) that `pixels` output pixels from `start` need.

    Returns the first one, their number (at least 1: a window wholly in the padding still names
    one), and where the first window begins relative to the first one (negative in padding).
    """
    stride = problem[pb.STRIDE_HEIGHT + axis]
    reach = (problem[pb.KERNEL_HEIGHT + axis] - 1) * problem[pb.DILATION_HEIGHT + axis]
    size = problem[pb.HEIGHT + axis]
    window = start * stride - problem[pb.PAD_TOP + axis]
    low = min(max(window, 0), size - 1)
    high = min(max(window + (pixels - 1) * stride + reach, low), size - 1)
    return low, high - low + 1, window - low


@kernel
def run_shape(problem: IntArray, channels: int) -> tuple[int, int]:
    """Runs of contiguous elements in a kernel row, and the elements of each."""
    if problem[pb.DILATION_WIDTH] == 1:
        return 1, problem[pb.KERNEL_WIDTH] * channels
    return problem[pb.KERNEL_WIDTH], channels


@kernel
def chunks_of(run_length: int, machine: IntArray) -> int:
    """Chunks that a run of elements is cut into."""
    return _ceil(run_length, machine[mc.CHUNK])


@kernel
def operand_words(row: IntArray, problem: IntArray, machine: IntArray, filters: int) -> None:
    """Fill in the words that a tile loads of weights and biases, and the rows of its outputs."""
    runs = row[cmd.TAPS] * row[cmd.RUNS]
    if machine[mc.DATAFLOW] == mc.INPUT_STATIONARY:
        row[cmd.FILTER_STEPS] = filters
        row[cmd.WEIGHT_WORDS] = runs * chunks_of(row[cmd.RUN_LENGTH], machine) * filters
        row[cmd.OUTPUT_ROWS] = _ceil(row[cmd.PIXELS], machine[mc.COLUMNS]) * filters
        row[cmd.STEP_LANES] = 1
    else:
        steps = _ceil(filters, machine[mc.COLUMNS])
        row[cmd.FILTER_STEPS] = steps
        row[cmd.WEIGHT_WORDS] = runs * row[cmd.RUN_LENGTH] * steps
        row[cmd.OUTPUT_ROWS] = row[cmd.PIXELS] * steps
        row[cmd.STEP_LANES] = filters - (steps - 1) * machine[mc.COLUMNS]
    row[cmd.HAS_BIAS] = problem[pb.HAS_BIAS] * row[cmd.LAST_K]
    row[cmd.BIAS_WORDS] = row[cmd.FILTER_STEPS] * row[cmd.HAS_BIAS]


@kernel
def fill_tile(row: IntArray, problem: IntArray, tiling: IntArray, machine: IntArray) -> None:
    """Complete a command of which only the position (TILE_ROW, ...) is set."""
    images = min(tiling[pb.T_IMAGES], problem[pb.IMAGES] - row[cmd.TILE_IMAGE])
    rows = min(tiling[pb.T_ROWS], problem[pb.OUT_HEIGHT] - row[cmd.TILE_ROW])
    columns = min(tiling[pb.T_COLUMNS], problem[pb.OUT_WIDTH] - row[cmd.TILE_COLUMN])
    filters = min(tiling[pb.T_FILTERS], problem[pb.FILTERS] - row[cmd.TILE_FILTER])
    channels = min(tiling[pb.T_CHANNELS], problem[pb.CHANNELS] - row[cmd.TILE_CHANNEL])
    first_row, height, row_start = region(row[cmd.TILE_ROW], rows, problem, 0)
    first_column, width, column_start = region(row[cmd.TILE_COLUMN], columns, problem, 1)
    pitch = width * channels
    row[cmd.TILE_IMAGES] = images
    row[cmd.TILE_FILTERS] = filters
    row[cmd.TILE_CHANNELS] = channels
    row[cmd.IFMAP_ROW] = first_row
    row[cmd.IFMAP_COLUMN] = first_column
    row[cmd.FIRST_K] = row[cmd.TILE_CHANNEL] == 0
    row[cmd.LAST_K] = row[cmd.TILE_CHANNEL] + channels == problem[pb.CHANNELS]
    row[cmd.RELU] = problem[pb.RELU]
    row[cmd.PIXELS] = images * rows * columns
    row[cmd.PIXEL_ROWS] = rows
    row[cmd.PIXEL_COLUMNS] = columns
    row[cmd.COLUMN_STEP] = problem[pb.STRIDE_WIDTH] * channels
    row[cmd.ROW_STRIDE] = problem[pb.STRIDE_HEIGHT]
    row[cmd.ROW_STEP] = problem[pb.STRIDE_HEIGHT] * pitch
    row[cmd.PITCH] = pitch
    row[cmd.HEIGHT] = height
    row[cmd.IMAGE_STEP] = height * pitch
    row[cmd.IFMAP_WORDS] = _ceil(images * height * pitch, machine[mc.IFMAP_LANES])
    if machine[mc.GATHER_BITS] > 0 and problem[pb.ROW_UNITS] > 0:
        words = _ceil(problem[pb.ROW_UNITS], machine[mc.IFMAP_LANES])
        row[cmd.ROW_WORDS] = words
        row[cmd.IFMAP_WORDS] = _ceil(words, machine[mc.GATHER_BITS]) + row[cmd.PIXELS] * words
    row[cmd.ELEMENT_START] = column_start * channels
    row[cmd.ROW_START] = row_start
    row[cmd.ADDRESS_START] = row_start * pitch
    row[cmd.TAPS] = problem[pb.KERNEL_HEIGHT]
    row[cmd.TAP_ROWS] = problem[pb.DILATION_HEIGHT]
    row[cmd.TAP_STEP] = problem[pb.DILATION_HEIGHT] * pitch
    row[cmd.RUNS], row[cmd.RUN_LENGTH] = run_shape(problem, channels)
    row[cmd.RUN_STEP] = problem[pb.DILATION_WIDTH] * channels
    operand_words(row, problem, machine, filters)


@kernel
def _mark_loads(tiles: IntArray) -> None:
    """Set the load and free flags from which operand tile each tile and its neighbours use."""
    last = len(tiles) - 1
    for at in range(len(tiles)):
        new_ifmap = new_weight = at == 0
        if at > 0:
            a, b = tiles[at - 1], tiles[at]
            shared = (
                a[cmd.TILE_GROUP] == b[cmd.TILE_GROUP]
                and a[cmd.TILE_CHANNEL] == b[cmd.TILE_CHANNEL]
            )
            new_weight = not (shared and a[cmd.TILE_FILTER] == b[cmd.TILE_FILTER])
            new_ifmap = not (
                shared
                and a[cmd.TILE_IMAGE] == b[cmd.TILE_IMAGE]
                and a[cmd.TILE_ROW] == b[cmd.TILE_ROW]
                and a[cmd.TILE_COLUMN] == b[cmd.TILE_COLUMN]
            )
            tiles[at - 1, cmd.FREE_IFMAP] = new_ifmap
            tiles[at - 1, cmd.FREE_WEIGHT] = new_weight
        tiles[at, cmd.LOAD_IFMAP] = new_ifmap
        tiles[at, cmd.LOAD_WEIGHT] = new_weight
    tiles[last, cmd.FREE_IFMAP] = 1
    tiles[last, cmd.FREE_WEIGHT] = 1


@kernel
def _position(
    at: int, problem: IntArray, tiling: IntArray, counts: tuple[int, int, int, int, int]
) -> tuple[int, int, int, int]:
    """Of a tile of the walk: its group, pixel tile (of all images), filter and channel tile."""
    n_images, n_rows, n_columns, n_filters, n_channels = counts
    pixel_tiles = n_images * n_rows * n_columns
    step, channel = divmod(at, n_channels)
    if tiling[pb.T_FILTERS_OUTER] == 0:
        outer, filter_tile = divmod(step, n_filters)
        group, pixel = divmod(outer, pixel_tiles)
    else:
        outer, pixel = divmod(step, pixel_tiles)
        group, filter_tile = divmod(outer, n_filters)
    return group, pixel, filter_tile, channel


@kernel("i8.1, i8.1")
def operand_tiles(
    problem: IntArray, tiling: IntArray
) -> tuple[tuple[IntArray, IntArray], tuple[IntArray, IntArray]]:
    """Of the ifmap and of the weights, which distinct tile each tile of the walk reads.

    Of each operand: numbers [tiles] of distinct tiles, from 0 on, and [distinct tiles] the first
    tile of the walk that reads each.
    """
    counts = tile_counts(problem, tiling)
    n_images, n_rows, n_columns, n_filters, n_channels = counts
    pixel_tiles = n_images * n_rows * n_columns
    shared = problem[pb.GROUPS] * n_channels
    total = shared * pixel_tiles * n_filters
    ifmap, weight = np.empty(total, np.int64), np.empty(total, np.int64)
    first_ifmap = np.empty(shared * pixel_tiles, np.int64)
    first_weight = np.empty(shared * n_filters, np.int64)
    for at in range(total - 1, -1, -1):
        group, pixel, filter_tile, channel = _position(at, problem, tiling, counts)
        ifmap[at] = (group * pixel_tiles + pixel) * n_channels + channel
        weight[at] = (group * n_filters + filter_tile) * n_channels + channel
        first_ifmap[ifmap[at]] = first_weight[weight[at]] = at
    return (ifmap, first_ifmap), (weight, first_weight)


@kernel("i8.1, i8.1, i8.1")
def walk(problem: IntArray, tiling: IntArray, machine: IntArray) -> IntArray:
    """All tiles of a layer, in order: [tiles, WALK_COLUMNS]; MULTIPLIER and SHIFT are left 0."""
    counts = tile_counts(problem, tiling)
    n_images, n_rows, n_columns, n_filters, n_channels = counts
    pixel_tiles = n_images * n_rows * n_columns
    total = problem[pb.GROUPS] * pixel_tiles * n_filters * n_channels
    tiles = np.zeros((total, cmd.WALK_COLUMNS), np.int64)
    for at in range(total):
        group, pixel, filter_tile, channel = _position(at, problem, tiling, counts)
        row = tiles[at]
        row[cmd.TILE_GROUP] = group
        row[cmd.TILE_IMAGE] = pixel // (n_rows * n_columns) * tiling[pb.T_IMAGES]
        row[cmd.TILE_ROW] = pixel // n_columns % n_rows * tiling[pb.T_ROWS]
        row[cmd.TILE_COLUMN] = pixel % n_columns * tiling[pb.T_COLUMNS]
        row[cmd.TILE_FILTER] = filter_tile * tiling[pb.T_FILTERS]
        row[cmd.TILE_CHANNEL] = channel * tiling[pb.T_CHANNELS]
        fill_tile(row, problem, tiling, machine)
    _mark_loads(tiles)
    mark_words(tiles, machine)
    return tiles


def walk_layer(problem: Problem, tiling: Tiling, machine: IntArray) -> IntArray:
    """`walk` of a layer's problem in a tiling: the tiles of its blocks of groups.

    TILE_GROUP is the block; channels and filters count those of a block.
    """
    return walk(problem.side_by_side(tiling.groups).vector(), tiling.vector(), machine)
