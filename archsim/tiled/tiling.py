"""The search for tilings: fits the scratchpads, fewest off-chip bytes, then fewest cycles.

Tilings whose traffic is within 1/16 of the least count as equal in bytes, and the one with the
least estimated time wins: a layer in one tile moves the fewest bytes but overlaps nothing.
"""

from __future__ import annotations

import numpy as np

from archsim.kernels import kernel
from archsim.layer import problem as pb
from archsim.numbers import IntArray
from archsim.tiled import commands as cmd
from archsim.tiled import machine_vector as mc
from archsim.tiled.tile_fit import ceil, pixels_fit, weights_fit
from archsim.tiled.tiling_estimate import estimate

SPLITS = 4
"""How many sizes are tried along each axis below the largest that fits, each half the one above."""

MAX_CANDIDATES = 512

IMAGE_SIZES = SPLITS + 2
"""How many numbers of images are tried: one, some below all, as many as fit whole."""

BYTES, CYCLES, FOUND_COLUMNS = range(pb.TILING_COLUMNS, pb.TILING_COLUMNS + 3)
"""Of a candidate, behind its sizes: what was estimated."""


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
        tiling[axis] = ceil(size, ceil(size, tiling[axis]))
    block = _pixel_block(machine)
    whole = ceil(tiling[pb.T_COLUMNS], block) * block
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
    now = width // columns * ceil(columns, block) + ceil(width % columns, block)
    return less if ceil(width, block) < now else 0


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
        found[count, BYTES], found[count, CYCLES] = estimate(problem, machine, tiling, row)
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
        tiling[pb.T_IMAGES] = ceil(problem[pb.IMAGES], ceil(problem[pb.IMAGES], whole))
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
    steps = ceil(problem[pb.FILTERS], unit)
    tiling = np.ones(pb.TILING_COLUMNS, np.int64)
    splits, sizes = 1, 0
    while splits < 2 * steps and sizes < SPLITS:
        filters = min(ceil(steps, splits) * unit, problem[pb.FILTERS])
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
        size = ceil(whole, splits)
        before, aligned = count, ceil(size, chunk) * chunk
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
