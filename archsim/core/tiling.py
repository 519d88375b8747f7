"""The automatic tiling: fits the scratchpads, fewest off-chip bytes, then fewest cycles.

Tilings whose traffic is within 1/16 of the least count as equal in bytes, and the one with the
least estimated time wins: a layer in one tile moves the fewest bytes but overlaps nothing.
"""

from __future__ import annotations

import numpy as np

from archsim.core import commands as cmd
from archsim.core import machine as mc
from archsim.core import problem as pb
from archsim.core.kernel import kernel
from archsim.core.problem import Problem, Tiling
from archsim.core.schedule import fold_span
from archsim.core.walk import chunks_of, fill_tile, region, run_shape
from archsim.errors import InputError
from archsim.numbers import IntArray

SPLITS = 4
"""How many sizes are tried along each axis below the largest that fits, each half the one above."""

MAX_CANDIDATES = 512


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
    """Words that a tile's ifmap region, and its sums, take of their scratchpads."""
    height = _reach(tiling[pb.T_ROWS], problem, 0)
    width = _reach(tiling[pb.T_COLUMNS], problem, 1)
    region_words = _ceil(height * width * tiling[pb.T_CHANNELS], machine[mc.IFMAP_LANES])
    pixels = tiling[pb.T_ROWS] * tiling[pb.T_COLUMNS]
    if machine[mc.DATAFLOW] == mc.INPUT_STATIONARY:
        return region_words, _ceil(pixels, machine[mc.COLUMNS]) * tiling[pb.T_FILTERS]
    return region_words, pixels * _ceil(tiling[pb.T_FILTERS], machine[mc.COLUMNS])


@kernel
def pixels_fit(problem: IntArray, machine: IntArray, tiling: IntArray) -> bool:
    """Whether the ifmap region and the sums of a tile fit a half of their scratchpads."""
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
    block = 1
    if machine[mc.DATAFLOW] == mc.OUTPUT_STATIONARY:
        block = machine[mc.ROWS]
    elif machine[mc.DATAFLOW] == mc.INPUT_STATIONARY:
        block = machine[mc.COLUMNS]
    whole = _ceil(tiling[pb.T_COLUMNS], block) * block
    if tiling[pb.T_ROWS] == 1 and whole < problem[pb.OUT_WIDTH]:
        before = tiling[pb.T_COLUMNS]
        tiling[pb.T_COLUMNS] = whole
        if not pixels_fit(problem, machine, tiling):
            tiling[pb.T_COLUMNS] = before


@kernel
def _swept(problem: IntArray, tile: int, axis: int) -> tuple[int, int]:
    """Tiles of `tile` pixels along an axis, and the ifmap rows or columns that they load."""
    size, total, count = problem[pb.OUT_HEIGHT + axis], 0, 0
    for start in range(0, size, tile):
        total += region(start, min(tile, size - start), problem, axis)[1]
        count += 1
    return count, total


@kernel
def _estimate(
    problem: IntArray, machine: IntArray, tiling: IntArray, row: IntArray
) -> tuple[int, int]:
    """Off-chip bytes of a tiling (operands densely packed), and its cycles, roughly."""
    n_rows, height = _swept(problem, tiling[pb.T_ROWS], 0)
    n_columns, width = _swept(problem, tiling[pb.T_COLUMNS], 1)
    n_filters = _ceil(problem[pb.FILTERS], tiling[pb.T_FILTERS])
    n_channels = _ceil(problem[pb.CHANNELS], tiling[pb.T_CHANNELS])
    n_pixels = problem[pb.IMAGES] * n_rows * n_columns
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
    outputs = groups * n_pixels * n_filters * row[cmd.OUTPUT_WORDS]
    operand_bytes = machine[mc.IFMAP_WORD_BYTES] / machine[mc.IFMAP_LANES]
    ofmap_bytes = outputs * machine[mc.OFMAP_WORD_BYTES]
    moved = int((ifmap + weight) * operand_bytes) + ofmap_bytes
    compute = tiles * (fold_span(row, machine)[5] + 2)
    first = row[cmd.IFMAP_WORDS] + row[cmd.WEIGHT_WORDS]
    load = ifmap // machine[mc.IFMAP_LANES]
    if machine[mc.OFFCHIP_WEIGHT_RATE] > 0:
        load = max(load, int(weight * operand_bytes) * 1024 // machine[mc.OFFCHIP_WEIGHT_RATE])
    if machine[mc.OFFCHIP_RATE] > 0:
        load = max(load, moved * 1024 // machine[mc.OFFCHIP_RATE])
        first += first * machine[mc.IFMAP_WORD_BYTES] * 1024 // machine[mc.OFFCHIP_RATE]
    busy = max(max(compute, load), outputs)
    # of equals, the one that keeps the array less busy: fewer folds
    busy += compute // 16
    return moved, busy + first + row[cmd.OUTPUT_WORDS] + tiles * machine[mc.OFFCHIP_LATENCY] // 8


@kernel
def _offer(
    found: IntArray, count: int, problem: IntArray, machine: IntArray, tiling: IntArray,
    row: IntArray,
) -> int:  # fmt: skip
    """Add a tiling, with the filters inside and, where it differs, outside, to the candidates."""
    for outer in range(2):
        if count == MAX_CANDIDATES:
            return count
        tiling[pb.T_FILTERS_OUTER] = outer
        found[count, :5] = tiling
        found[count, 5], found[count, 6] = _estimate(problem, machine, tiling, row)
        count += 1
        if tiling[pb.T_FILTERS] == problem[pb.FILTERS]:
            break
    return count


@kernel
def _offer_pixels(
    found: IntArray, count: int, problem: IntArray, machine: IntArray, tiling: IntArray,
    row: IntArray,
) -> int:  # fmt: skip
    """The largest pixel tile that fits, and some smaller ones."""
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
        axis = 0 if tiling[pb.T_ROWS] > 1 else 1
        if tiling[axis] == 1:
            break
        tiling[axis] = (tiling[axis] + 1) // 2
        _balance(problem, machine, tiling)
    return count


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
    tiling = np.zeros(5, np.int64)
    splits, sizes = 1, 0
    while splits < 2 * steps and sizes < SPLITS:
        filters = min(_ceil(steps, splits) * unit, problem[pb.FILTERS])
        splits = splits + 1 if splits < 4 else splits * 2
        if weights_fit(problem, machine, filters, channels):
            tiling[pb.T_FILTERS], tiling[pb.T_CHANNELS] = filters, channels
            before = count
            count = _offer_pixels(found, count, problem, machine, tiling, row)
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
def _search(found: IntArray, problem: IntArray, machine: IntArray) -> int:
    """Fill `found` [MAX_CANDIDATES, 7] with tilings that fit, their bytes and their cycles.

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
        if count > before and 16 * found[before:count, 5].min() <= 17 * least:
            break
        splits = splits + 1 if splits < 8 else splits * 2
    return count


@kernel
def best_tiling(problem: IntArray, machine: IntArray, tiling: IntArray) -> bool:
    """Write the best tiling into `tiling` [5]; False if none fits."""
    found = np.zeros((MAX_CANDIDATES, 7), np.int64)
    count = _search(found, problem, machine)
    if count == 0:
        return False
    least = found[:count, 5].min()
    best = -1
    for at in range(count):
        close = 16 * found[at, 5] <= 17 * least
        if close and (best < 0 or found[at, 6] < found[best, 6]):
            best = at
    tiling[:] = found[best, :5]
    return True


def find_tiling(problem: Problem, machine: IntArray) -> Tiling | None:
    """The best tiling; None if none fits."""
    found = np.zeros(5, np.int64)
    return Tiling.from_vector(found) if best_tiling(problem.vector(), machine, found) else None


def check_tiling(name: str, problem: Problem, machine: IntArray, tiling: Tiling) -> None:
    """Raise `InputError` if a tiling does not fit, naming the scratchpad that is too small."""
    vector, together = problem.vector(), int(machine[mc.OUTPUT_VECTOR])
    if tiling.filters < problem.filters and tiling.filters % together:
        raise InputError(
            f"{name}: filters must be a multiple of {together}, which share a scale, or all "
            f"{problem.filters}, not {tiling.filters}"
        )
    weights, biases = weight_words(vector, machine, tiling.filters, tiling.channels)
    region_words, sums = pixel_words(vector, machine, tiling.vector())
    pixels = f"{tiling.pixel_rows} × {tiling.pixel_columns} pixels"
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
