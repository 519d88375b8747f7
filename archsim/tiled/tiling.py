"""The search for tilings: fits the scratchpads, fewest off-chip bytes, then fewest cycles.

Tilings whose traffic is within 1/16 of the least count as equal in bytes, and the one with the
least estimated time wins: a layer in one tile moves the fewest bytes but overlaps nothing.
"""

from __future__ import annotations

import numpy as np

from archsim.errors import InputError
from archsim.kernels import kernel
from archsim.layer import problem as pb
from archsim.layer.problem import Problem, Tiling
from archsim.numbers import IntArray
from archsim.tiled import commands as cmd
from archsim.tiled import machine_vector as mc
from archsim.tiled.block_check import checked_block
from archsim.tiled.folds import fold_span
from archsim.tiled.packing import layer_words
from archsim.tiled.tile_time import tiles_time
from archsim.tiled.walk import chunks_of, fill_tile, region, run_shape

SPLITS = 4
"""How many sizes are tried along each axis below the largest that fits, each half the one above."""

MAX_CANDIDATES = 512

IMAGE_SIZES = SPLITS + 2
"""How many numbers of images are tried: one, some below all, as many as fit whole."""

BYTES, CYCLES, FOUND_COLUMNS = range(pb.TILING_COLUMNS, pb.TILING_COLUMNS + 3)
"""Of a candidate, behind its sizes: what was estimated."""


@kernel
def _ceil(numerator: int, denominator: int) -> int:
    return -(-numerator // denominator)


@kernel
def _reach(pixels: int, problem: IntArray, axis: int) -> int:
    """Ifmap rows or columns under `pixels` output pixels, at most all."""
    window = (problem[pb.KERNEL_HEIGHT + axis] - 1) * problem[pb.DILATION_HEIGHT + axis] + 1
    span = (pixels - 1) * problem[pb.STRIDE_HEIGHT + axis] + window
    return min(span, problem[pb.HEIGHT + axis])


@kernel
def weight_words(
    problem: IntArray, machine: IntArray, filters: int, channels: int
) -> tuple[int, int]:
    """Words that a tile's weights, and its biases, take of their scratchpads."""
    runs, length = run_shape(problem, channels)
    runs *= problem[pb.KERNEL_HEIGHT]
    if machine[mc.DATAFLOW] == mc.INPUT_STATIONARY:
        return runs * chunks_of(length, machine) * filters, problem[pb.HAS_BIAS] * filters
    steps = _ceil(filters, machine[mc.COLUMNS])
    return runs * length * steps, problem[pb.HAS_BIAS] * steps


@kernel
def weights_fit(problem: IntArray, machine: IntArray, filters: int, channels: int) -> bool:
    """Whether the weights and biases of a tile fit a half of their scratchpads."""
    weights, biases = weight_words(problem, machine, filters, channels)
    return weights <= machine[mc.WEIGHT_DEPTH] and biases <= machine[mc.BIAS_DEPTH]


@kernel
def pixel_words(problem: IntArray, machine: IntArray, tiling: IntArray) -> tuple[int, int]:
    """Words that a tile's ifmap regions, and its sums, take of their scratchpads."""
    height = _reach(tiling[pb.T_ROWS], problem, 0)
    width = _reach(tiling[pb.T_COLUMNS], problem, 1)
    images = min(tiling[pb.T_IMAGES], problem[pb.IMAGES])
    region_words = _ceil(images * height * width * tiling[pb.T_CHANNELS], machine[mc.IFMAP_LANES])
    pixels = images * tiling[pb.T_ROWS] * tiling[pb.T_COLUMNS]
    if machine[mc.DATAFLOW] == mc.INPUT_STATIONARY:
        return region_words, _ceil(pixels, machine[mc.COLUMNS]) * tiling[pb.T_FILTERS]
    return region_words, pixels * _ceil(tiling[pb.T_FILTERS], machine[mc.COLUMNS])


@kernel
def pixels_fit(problem: IntArray, machine: IntArray, tiling: IntArray) -> bool:
    """Whether the ifmap regions and the sums of a tile fit a half of their scratchpads."""
    region_words, sums = pixel_words(problem, machine, tiling)
    return region_words <= machine[mc.IFMAP_DEPTH] and sums <= machine[mc.ACCUMULATOR_DEPTH]


@kernel
def _largest(problem: IntArray, machine: IntArray, tiling: IntArray, axis: int) -> int:
    """The largest size along pixel rows (0) or columns (1) that fits, 0 if none."""
    low, high = 0, problem[pb.OUT_HEIGHT + axis]
    while low < high:
        tiling[axis] = (low + high + 1) // 2
        if pixels_fit(problem, machine, tiling):
            low = tiling[axis]
        else:
            high = tiling[axis] - 1
    return low


@kernel
def _fit_pixels(problem: IntArray, machine: IntArray, tiling: IntArray) -> bool:
    """Set the largest pixel rows and columns: whole rows if one fits, else part of a row."""
    tiling[pb.T_COLUMNS] = problem[pb.OUT_WIDTH]
    rows = _largest(problem, machine, tiling, 0)
    if rows == 0:
        tiling[pb.T_ROWS] = 1
        columns = _largest(problem, machine, tiling, 1)
        if columns == 0:
            return False
        tiling[pb.T_COLUMNS] = columns
        rows = 1
    tiling[pb.T_ROWS] = rows
    _balance(problem, machine, tiling)
    return True


@kernel
def _balance(problem: IntArray, machine: IntArray, tiling: IntArray) -> None:
    """Make the tiles along each pixel axis equally large, without making more of them.

    Along a single row of pixels the size is a multiple of the array's pixel axis if that fits.
    """
    for axis in range(2):
        size = problem[pb.OUT_HEIGHT + axis]
        tiling[axis] = _ceil(size, _ceil(size, tiling[axis]))
    block = _pixel_block(machine)
    whole = _ceil(tiling[pb.T_COLUMNS], block) * block
    if tiling[pb.T_ROWS] == 1 and whole < problem[pb.OUT_WIDTH]:
        before = tiling[pb.T_COLUMNS]
        tiling[pb.T_COLUMNS] = whole
        if not pixels_fit(problem, machine, tiling):
            tiling[pb.T_COLUMNS] = before


@kernel
def _pixel_block(machine: IntArray) -> int:
    """Pixels that lie side by side on the array."""
    if machine[mc.DATAFLOW] == mc.OUTPUT_STATIONARY:
        return machine[mc.ROWS]
    return machine[mc.COLUMNS] if machine[mc.DATAFLOW] == mc.INPUT_STATIONARY else 1


@kernel
def _whole_blocks(problem: IntArray, machine: IntArray, tiling: IntArray) -> int:
    """Pixel columns of the next smaller tile of whole blocks, 0 if tiles of it have no fewer."""
    block, columns = _pixel_block(machine), tiling[pb.T_COLUMNS]
    less, width = columns // block * block, problem[pb.OUT_WIDTH]
    if tiling[pb.T_ROWS] > 1 or less == 0 or less == columns:
        return 0
    now = width // columns * _ceil(columns, block) + _ceil(width % columns, block)
    return less if _ceil(width, block) < now else 0


@kernel
def _below(limit: int, first: int, step: int, count: int) -> int:
    """How many of `count` numbers first, first + step, … are below a limit; step is positive."""
    return min(max(_ceil(limit - first, step), 0), count)


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
def _estimate(
    problem: IntArray, machine: IntArray, tiling: IntArray, row: IntArray
) -> tuple[int, int]:
    """Off-chip bytes of a tiling (operands densely packed), and its cycles, roughly."""
    n_rows, height = swept(problem, tiling[pb.T_ROWS], 0)
    n_columns, width = swept(problem, tiling[pb.T_COLUMNS], 1)
    n_filters = _ceil(problem[pb.FILTERS], tiling[pb.T_FILTERS])
    n_channels = _ceil(problem[pb.CHANNELS], tiling[pb.T_CHANNELS])
    n_pixels = _ceil(problem[pb.IMAGES], tiling[pb.T_IMAGES]) * n_rows * n_columns
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


@kernel
def _offer(
    found: IntArray, count: int, problem: IntArray, machine: IntArray, tiling: IntArray,
    row: IntArray,
) -> int:  # fmt: skip
    """Add a tiling, with the filters inside and, where it differs, outside, to the candidates."""
    for outer in range(2):
        if count == len(found):
            return count
        tiling[pb.T_FILTERS_OUTER] = outer
        for size in range(BYTES):
            found[count, size] = tiling[size]
        found[count, BYTES], found[count, CYCLES] = _estimate(problem, machine, tiling, row)
        count += 1
        if tiling[pb.T_FILTERS] == problem[pb.FILTERS]:
            break
    return count


@kernel
def _offer_pixels(
    found: IntArray, count: int, problem: IntArray, machine: IntArray, tiling: IntArray,
    row: IntArray,
) -> int:  # fmt: skip
    """The largest pixel tile that fits, and some smaller ones, of the images of a tile."""
    tiling[pb.T_ROWS] = problem[pb.OUT_HEIGHT]
    tiling[pb.T_COLUMNS] = _largest(problem, machine, tiling, 1)
    if 0 < tiling[pb.T_COLUMNS] < problem[pb.OUT_WIDTH]:
        # strips from top to bottom: no rows are loaded twice
        _balance(problem, machine, tiling)
        count = _offer(found, count, problem, machine, tiling, row)
    if not _fit_pixels(problem, machine, tiling):
        return count
    for _ in range(SPLITS):
        count = _offer(found, count, problem, machine, tiling, row)
        fewer, columns = _whole_blocks(problem, machine, tiling), tiling[pb.T_COLUMNS]
        if fewer > 0:
            tiling[pb.T_COLUMNS] = fewer
            count = _offer(found, count, problem, machine, tiling, row)
            tiling[pb.T_COLUMNS] = columns
        axis = 0 if tiling[pb.T_ROWS] > 1 else 1
        if tiling[axis] == 1:
            break
        tiling[axis] = (tiling[axis] + 1) // 2
        _balance(problem, machine, tiling)
    return count


@kernel
def offer_images(
    found: IntArray, count: int, problem: IntArray, machine: IntArray, tiling: IntArray,
    row: IntArray,
) -> int:  # fmt: skip
    """Pixel tiles of one image, of several, and of as many whole ones as fit."""
    tiling[pb.T_IMAGES] = 1
    count = _offer_pixels(found, count, problem, machine, tiling, row)
    images, sizes = problem[pb.IMAGES], 0
    while images > 1 and sizes < SPLITS:
        before = count
        tiling[pb.T_IMAGES] = images
        count = _offer_pixels(found, count, problem, machine, tiling, row)
        sizes += count > before
        images = (images + 1) // 2
    whole = _whole_images(problem, machine, tiling)
    if whole > 1:
        tiling[pb.T_IMAGES] = _ceil(problem[pb.IMAGES], _ceil(problem[pb.IMAGES], whole))
        count = _offer(found, count, problem, machine, tiling, row)
    return count


@kernel
def _whole_images(problem: IntArray, machine: IntArray, tiling: IntArray) -> int:
    """The most images that fit as a whole, 0 if none; sets the tile's rows and columns to all."""
    tiling[pb.T_ROWS], tiling[pb.T_COLUMNS] = problem[pb.OUT_HEIGHT], problem[pb.OUT_WIDTH]
    low, high = 0, problem[pb.IMAGES]
    while low < high:
        tiling[pb.T_IMAGES] = (low + high + 1) // 2
        if pixels_fit(problem, machine, tiling):
            low = tiling[pb.T_IMAGES]
        else:
            high = tiling[pb.T_IMAGES] - 1
    return low


@kernel
def filter_unit(machine: IntArray) -> int:
    """Filters that a tile's number of them is a multiple of: what the array takes at once."""
    if machine[mc.DATAFLOW] == mc.INPUT_STATIONARY:
        return 1
    return max(machine[mc.COLUMNS], machine[mc.OUTPUT_VECTOR])


@kernel
def _offer_filters(
    found: IntArray, count: int, problem: IntArray, machine: IntArray, channels: int,
    row: IntArray,
) -> int:  # fmt: skip
    """For tiles of so many channels: all filters, or as many as fit, and some fewer."""
    unit = filter_unit(machine)
    steps = _ceil(problem[pb.FILTERS], unit)
    tiling = np.ones(pb.TILING_COLUMNS, np.int64)
    splits, sizes = 1, 0
    while splits < 2 * steps and sizes < SPLITS:
        filters = min(_ceil(steps, splits) * unit, problem[pb.FILTERS])
        splits = splits + 1 if splits < 4 else splits * 2
        if weights_fit(problem, machine, filters, channels):
            tiling[pb.T_FILTERS], tiling[pb.T_CHANNELS] = filters, channels
            before = count
            count = offer_images(found, count, problem, machine, tiling, row)
            sizes += count > before
    return count


@kernel
def _least_bytes(problem: IntArray, machine: IntArray) -> int:
    """Bytes of a layer whose operands each cross once."""
    kernel_size = problem[pb.KERNEL_HEIGHT] * problem[pb.KERNEL_WIDTH]
    ifmap = problem[pb.IMAGES] * problem[pb.HEIGHT] * problem[pb.WIDTH] * problem[pb.CHANNELS]
    weight = problem[pb.FILTERS] * problem[pb.CHANNELS] * kernel_size
    ofmap = problem[pb.IMAGES] * problem[pb.OUT_HEIGHT] * problem[pb.OUT_WIDTH]
    operand_bytes = machine[mc.IFMAP_WORD_BYTES] / machine[mc.IFMAP_LANES]
    total = ifmap + weight + ofmap * problem[pb.FILTERS]
    return int(problem[pb.GROUPS] * total * operand_bytes)


@kernel
def fewest_bytes(found: IntArray, begin: int, end: int) -> int:
    """The least bytes of some candidates."""
    fewest = found[begin, BYTES]
    for at in range(begin + 1, end):
        fewest = min(fewest, found[at, BYTES])
    return fewest


@kernel
def _search(found: IntArray, problem: IntArray, machine: IntArray) -> int:
    """Fill `found` [candidates, FOUND_COLUMNS] with tilings that fit; returns how many.

    All channels first; parts of them while the traffic is not near the least there can be.
    """
    count, splits, feasible = 0, 1, 0
    chunk, whole = machine[mc.CHUNK], problem[pb.CHANNELS]
    least = _least_bytes(problem, machine)
    row = np.zeros(cmd.WALK_COLUMNS, np.int64)
    while splits < 2 * whole and feasible < SPLITS:
        size = _ceil(whole, splits)
        before, aligned = count, _ceil(size, chunk) * chunk
        if size > chunk and size != aligned and aligned < whole:
            count = _offer_filters(found, count, problem, machine, aligned, row)
        count = _offer_filters(found, count, problem, machine, size, row)
        feasible += count > before
        if count > before and 16 * fewest_bytes(found, before, count) <= 17 * least:
            break
        splits = splits + 1 if splits < 8 else splits * 2
    return count


@kernel
def candidates(problem: IntArray, machine: IntArray) -> IntArray:
    """Tilings that fit: [candidates, FOUND_COLUMNS], their sizes and what was estimated."""
    room = MAX_CANDIDATES if problem[pb.IMAGES] == 1 else IMAGE_SIZES * MAX_CANDIDATES
    found = np.zeros((room, FOUND_COLUMNS), np.int64)
    return found[: _search(found, problem, machine)]


@kernel
def best_of(found: IntArray) -> int:
    """The best of some candidates."""
    least, best = fewest_bytes(found, 0, len(found)), -1
    for at in range(len(found)):
        close = 16 * found[at, BYTES] <= 17 * least
        if close and (best < 0 or found[at, CYCLES] < found[best, CYCLES]):
            best = at
    return best


def check_tiling(name: str, problem: Problem, machine: IntArray, tiling: Tiling) -> None:
    """Raise `InputError` if a tiling does not fit, naming the scratchpad that is too small."""
    together = mc.machine_record(machine).output_vector
    problem = checked_block(name, problem, together, tiling)
    vector = problem.vector()
    if tiling.filters < problem.filters and tiling.filters % together:
        raise InputError(
            f"{name}: filters must be a multiple of {together}, which share a scale, or all "
            f"{problem.filters}, not {tiling.filters}"
        )
    weights, biases = weight_words(vector, machine, tiling.filters, tiling.channels)
    region_words, sums = pixel_words(vector, machine, tiling.vector())
    pixels = f"{tiling.pixel_rows} × {tiling.pixel_columns} pixels"
    if tiling.images > 1:
        pixels += f" of {tiling.images} images"
    kernels = f"{tiling.filters} filters of {tiling.channels} channels"
    needs = (
        ("weight scratchpad", weights, mc.WEIGHT_DEPTH, kernels, "filters or channels"),
        ("bias memory", biases, mc.BIAS_DEPTH, kernels, "filters"),
        ("ifmap scratchpad", region_words, mc.IFMAP_DEPTH, pixels, "pixels or channels"),
        ("accumulators", sums, mc.ACCUMULATOR_DEPTH, pixels, "pixels or filters"),
    )
    for memory, words, depth, what, fewer in needs:
        if words > machine[depth]:
            raise InputError(
                f"{name}: {what} do not fit half of the {memory}: they need {words} words, it has "
                f"{machine[depth]}; take fewer {fewer} a tile, or a larger memory"
            )


def why_nothing_fits(name: str, problem: Problem, machine: IntArray) -> InputError:
    """The error for a layer that no tiling fits: its smallest tile, and what is too small."""
    unit = int(filter_unit(machine))
    smallest = Tiling(pixel_rows=1, pixel_columns=1, filters=min(unit, problem.filters), channels=1)
    try:
        check_tiling(name, problem, machine, smallest)
    except InputError as error:
        reason = str(error).partition(";")[0]
        return InputError(f"no tiling fits; even the smallest does not: {reason}; enlarge it")
    return InputError(f"{name}: no tiling fits the scratchpads; give one by hand")
