"""Sizes of a tile that the fast mapper tries, along each axis: no memory has a say in them.

So a design with more memory has the same ones to choose from, and those that did not fit before.
"""

from __future__ import annotations

import numpy as np

from archsim.kernels import kernel
from archsim.layer import problem as pb
from archsim.numbers import IntArray
from archsim.tiled import machine_vector as mc
from archsim.tiled.side_by_side import MOST_COUNTS, group_counts, may_share
from archsim.tiled.tile_fit import ceil
from archsim.tiled.tiling import filter_unit
from archsim.tiled.walk import run_shape

MOST_SIZES = 448
"""Room for the sizes along an axis."""

FINE = 16
"""Up to so many tiles, and down to tiles of so many units, every number of them is tried; between,
each number of tiles is a FINE-th above the one before, of channels two."""

COARSE = 8192
"""From so many tiles on, steps are twice as large."""

FEW = 8
"""Up to so many tiles, the last may be another than the others: of whole chunks while these have a
part of one, or shorter by far."""


@kernel
def _add(sizes: IntArray, count: int, size: int) -> int:
    """Put a size into the falling list `sizes`, unless it is there; returns how many there are.

    Without room it takes the place of the smallest, if it is smaller.
    """
    if size < 1:
        return count
    if count == len(sizes):
        sizes[count - 1] = min(sizes[count - 1], size)
        return count
    at = count
    while at > 0 and sizes[at - 1] < size:
        at -= 1
    if at > 0 and sizes[at - 1] == size:
        return count
    for place in range(count, at, -1):
        sizes[place] = sizes[place - 1]
    sizes[at] = size
    return count + 1


@kernel
def _next_tiles(units: int, tiles: int, step: int) -> int:
    """The number of tiles behind `tiles`; step: times a FINE-th."""
    size = ceil(units, tiles)
    if size <= FINE:
        return ceil(units, size - 1)
    return tiles + max(1, tiles * (step if tiles < COARSE else 2 * step) // FINE)


@kernel
def even_sizes(
    sizes: IntArray, total: int, unit: int, whole: tuple[int, int], step: int = 1
) -> int:
    """Write sizes that make tiles as equal as can be into `sizes`, falling; returns how many.

    In `unit`s; and, where `whole` = (chunk, over) says so, in as many as fill whole chunks when
    each counts `over` times, and in the fewest beside a last tile of whole chunks.
    """
    chunk, over = whole
    count, tiles, units, chunks = 0, 1, ceil(total, unit), ceil(total * over, chunk)
    filled = total * over // chunk
    while True:
        even = min(total, ceil(units, tiles) * unit)
        count = _add(sizes, count, even)
        if chunk > over:
            count = _add(sizes, count, min(total, ceil(chunks, tiles) * chunk // over))
            if 1 < tiles <= FEW:
                last = filled // tiles * chunk // over
                count = _add(sizes, count, ceil(total - last, tiles - 1))
        if even <= unit:
            return count
        tiles = _next_tiles(units, tiles, step)


@kernel
def filter_sizes(sizes: IntArray, problem: IntArray, machine: IntArray) -> int:
    """Numbers of filters."""
    together, total = machine[mc.OUTPUT_VECTOR], problem[pb.FILTERS]
    if machine[mc.DATAFLOW] != mc.INPUT_STATIONARY:
        return even_sizes(sizes, total, max(filter_unit(machine), together), (1, 1))
    count = even_sizes(sizes, total, together, (1, 1))
    # a fold takes as long as its stationary words at least: so many filters hide them
    return _add(sizes, count, min(total, ceil(machine[mc.COLUMNS], together) * together))


@kernel
def channel_sizes(sizes: IntArray, problem: IntArray, machine: IntArray) -> int:
    """Numbers of channels: also those whose runs fill whole chunks, and between as equal as can be
    of a number of tiles and of one fewer."""
    runs_of_one, total = run_shape(problem, 1)[1], problem[pb.CHANNELS]
    count = even_sizes(sizes, total, 1, (machine[mc.CHUNK], runs_of_one), 2)
    for tiles in range(2, FEW + 1):
        count = _add(sizes, count, (ceil(total, tiles) + ceil(total, tiles - 1)) // 2)
    return count


@kernel
def pixel_block(machine: IntArray) -> int:
    """Pixels that lie side by side on the array."""
    if machine[mc.DATAFLOW] == mc.OUTPUT_STATIONARY:
        return machine[mc.ROWS]
    return machine[mc.COLUMNS] if machine[mc.DATAFLOW] == mc.INPUT_STATIONARY else 1


@kernel
def column_sizes(sizes: IntArray, problem: IntArray, machine: IntArray) -> int:
    """Pixel columns: of a single row, also whole blocks of the array's pixels."""
    block = pixel_block(machine) if problem[pb.OUT_HEIGHT] == 1 else 1
    return even_sizes(sizes, problem[pb.OUT_WIDTH], 1, (block, 1))


@kernel
def row_sizes(sizes: IntArray, problem: IntArray, machine: IntArray, columns: int) -> int:
    """Pixel rows of tiles of so many columns: also those that fill whole blocks."""
    return even_sizes(sizes, problem[pb.OUT_HEIGHT], 1, (pixel_block(machine), columns))


@kernel
def group_sizes(sizes: IntArray, problem: IntArray, machine: IntArray, share: bool) -> int:
    """Groups side by side, 1 among them; share: whether there may be more."""
    if not share or not may_share(problem, machine):
        return _add(sizes, 0, 1)
    count, some = even_sizes(sizes, problem[pb.GROUPS], 1, (1, 1)), np.ones(MOST_COUNTS, np.int64)
    for at in range(group_counts(problem, machine, some)):
        count = _add(sizes, count, some[at])
    return count
