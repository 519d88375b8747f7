"""What a tiling costs, roughly and fast: its off-chip bytes and its cycles, without a walk."""

from __future__ import annotations

from archsim.kernels import kernel
from archsim.layer import problem as pb
from archsim.numbers import IntArray
from archsim.tiled import commands as cmd
from archsim.tiled import machine_vector as mc
from archsim.tiled.folds import fold_span
from archsim.tiled.packing import layer_words
from archsim.tiled.tile_fit import ceil
from archsim.tiled.tile_time import tiles_time
from archsim.tiled.walk import fill_tile, region


@kernel
def _below(limit: int, first: int, step: int, count: int) -> int:
    """How many of `count` numbers first, first + step, … are below a limit; step is positive."""
    return min(max(ceil(limit - first, step), 0), count)


@kernel
def _sum_clipped(first: int, step: int, count: int, low: int, high: int) -> int:
    """The sum of `count` numbers first, first + step, …, each brought to low … high."""
    under = _below(low, first, step, count)
    within = _below(high, first, step, count) - under
    pairs = within // 2 * (within - 1) if within % 2 == 0 else within * ((within - 1) // 2)
    middle = within * first + step * (under * within + pairs)
    return under * low + middle + (count - under - within) * high


@kernel
def swept(problem: IntArray, tile: int, axis: int) -> tuple[int, int]:
    """Tiles of `tile` pixels along an axis, and the ifmap rows or columns that they load.

    In closed form: of whole tiles, `region` begins and ends at numbers in equal steps, clipped.
    """
    size = problem[pb.OUT_HEIGHT + axis]
    whole, end = size // tile, problem[pb.HEIGHT + axis] - 1
    step = tile * problem[pb.STRIDE_HEIGHT + axis]
    first = -problem[pb.PAD_TOP + axis]
    reach = (problem[pb.KERNEL_HEIGHT + axis] - 1) * problem[pb.DILATION_HEIGHT + axis]
    last = first + (tile - 1) * problem[pb.STRIDE_HEIGHT + axis] + reach
    total = whole + _sum_clipped(last, step, whole, 0, end)
    total -= _sum_clipped(first, step, whole, 0, end)
    if size % tile > 0:
        return whole + 1, total + region(whole * tile, size % tile, problem, axis)[1]
    return whole, total


@kernel
def estimate(
    problem: IntArray, machine: IntArray, tiling: IntArray, row: IntArray
) -> tuple[int, int]:
    """Off-chip bytes of a tiling (operands densely packed), and its cycles, roughly."""
    n_rows, height = swept(problem, tiling[pb.T_ROWS], 0)
    n_columns, width = swept(problem, tiling[pb.T_COLUMNS], 1)
    n_filters = ceil(problem[pb.FILTERS], tiling[pb.T_FILTERS])
    n_channels = ceil(problem[pb.CHANNELS], tiling[pb.T_CHANNELS])
    n_pixels = ceil(problem[pb.IMAGES], tiling[pb.T_IMAGES]) * n_rows * n_columns
    groups, outer = problem[pb.GROUPS], tiling[pb.T_FILTERS_OUTER] == 1
    ifmap_sweeps, weight_sweeps = n_filters, n_pixels
    if n_channels == 1 and (n_pixels == 1 or not outer):
        ifmap_sweeps = 1
    if n_channels == 1 and (n_filters == 1 or outer):
        weight_sweeps = 1
    kernel = problem[pb.KERNEL_HEIGHT] * problem[pb.KERNEL_WIDTH]
    ifmap = groups * problem[pb.IMAGES] * height * width * problem[pb.CHANNELS] * ifmap_sweeps
    weight = groups * problem[pb.FILTERS] * problem[pb.CHANNELS] * kernel * weight_sweeps
    row[:] = 0
    fill_tile(row, problem, tiling, machine)
    tiles = groups * n_pixels * n_filters * n_channels
    # the last tile of images is shorter: per image, all are alike
    planes = problem[pb.IMAGES] * n_rows * n_columns
    outputs = groups * planes * n_filters * row[cmd.OUTPUT_ROWS] // tiling[pb.T_IMAGES]
    operand_bytes = machine[mc.IFMAP_WORD_BYTES] / machine[mc.IFMAP_LANES]
    ofmap_bytes = layer_words(problem, machine) * machine[mc.OFMAP_WORD_BYTES]
    ifmap_bytes = int(ifmap * operand_bytes)
    moved = int((ifmap + weight) * operand_bytes) + ofmap_bytes
    compute = groups * planes * n_filters * n_channels * fold_span(row, machine)[5]
    compute = compute // tiling[pb.T_IMAGES] + 2 * tiles
    weights = n_filters * weight_sweeps
    words = groups * n_channels * weights * row[cmd.WEIGHT_WORDS]
    words_moved = ifmap // machine[mc.IFMAP_LANES], words, outputs
    return moved, tiles_time(machine, row, compute, words_moved, (ifmap_bytes, ofmap_bytes))
