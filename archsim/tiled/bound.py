"""What a tiling takes at least: cycles, bytes and actions, without a walk and without a schedule.

The cycles are the longest of some paths through the schedule, which every schedule of these tiles
has to go: from the first loads through all work of one unit to the last word that leaves.  So
no tiling is scheduled (`archsim.tiled.schedule`) whose bound is above what another one takes.
`docs/mapping.md`, *Lower bounds*, proves each of them.
"""

from __future__ import annotations

from archsim.kernels import inlined, kernel
from archsim.layer import problem as pb
from archsim.numbers import IntArray
from archsim.tiled import machine_vector as mc
from archsim.tiled.folds import Span, span_of
from archsim.tiled.tile_fit import ceil
from archsim.tiled.walk import chunks_of, run_shape

(
    CYCLES,
    BYTES,
    IFMAP_WRITES,  # from here on actions (`archsim.tiled.actions`)
    WEIGHT_WRITES,
    BIAS_WRITES,
    IFMAP_READS,
    WEIGHT_READS,
    SUMS,  # accumulator reads, and as many writes
    MOVING,  # array_step
    STATIC,  # stationary_step
    ROWS,  # output_read
    OFMAP_WRITES,
    WHOLE_STREAMS,  # from here on of the array, of one group: as STREAMS, of tiles of all channels
    STREAMS,  # of a tile but the last ones; cycles of its streams at least
    LOADINGS,  # and of its stationary loads
    FOLDS,  # and of its folds, the longer of stream and stationary load of each
    BY_CHANNEL,  # cycles by the path over the channel, where it is one; else 0
    BEHIND_STREAM,  # cycles from a stream's start on, of this one and a cycle before it of all
    BEHIND_LOADING,  # and the same from a stationary load's start on
    BEHIND_FOLDS,  # and of all folds, from where the first one's stream may begin on
    BOUND_COLUMNS,
) = range(21)
"""Columns of a bound: what all tiles of a layer take at least, and for the actions exactly (but for
the words of the ifmap, which are packed tile by tile)."""


@inlined
def least_stream(span: Span) -> int:
    """Cycles from the start of a tile's stream to its end, at least."""
    folds, moving, first, second, _, total = span
    if first == 0:
        return total
    if folds < 3:
        return folds * moving
    return 2 * moving + total - max(moving, first) - max(moving, second)


@inlined
def least_loading(span: Span) -> int:
    """Cycles from the start of a tile's stationary loads to their end, at least."""
    folds, moving, first, second, last, total = span
    if folds == 1:
        return first
    if folds == 2:
        return first + second
    rest = total - max(moving, first) - max(moving, second) - max(moving, last)
    return first + second + rest + last


@inlined
def last_size(total: int, tile: int) -> int:
    """The size of the last tile along an axis."""
    return total - (ceil(total, tile) - 1) * tile


@inlined
def filter_steps(machine: IntArray, filters: int) -> int:
    """Blocks of filters of a tile."""
    if machine[mc.DATAFLOW] == mc.INPUT_STATIONARY:
        return filters
    return ceil(filters, machine[mc.COLUMNS])


@inlined
def sum_rows(machine: IntArray, pixels: int, steps: int) -> int:
    """Rows of sums of a tile."""
    if machine[mc.DATAFLOW] == mc.INPUT_STATIONARY:
        return ceil(pixels, machine[mc.COLUMNS]) * steps
    return pixels * steps


@kernel
def add_tiles(
    found: IntArray, machine: IntArray, many: int, tile: tuple[int, int, int, int]
) -> None:
    """Add the array's work of so many tiles alike.

    tile: pixels, filter steps, runs of the kernel, elements of a run.
    """
    pixels, steps, runs, length = tile
    span = span_of(machine, pixels, steps, runs, length)
    moving, flow = span[0] * span[1], machine[mc.DATAFLOW]
    chunks = runs * chunks_of(length, machine)
    found[STREAMS] += many * least_stream(span)
    found[LOADINGS] += many * least_loading(span)
    found[FOLDS] += many * span[5]
    if flow == mc.OUTPUT_STATIONARY:
        blocks = ceil(pixels, machine[mc.ROWS])
        found[MOVING] += many * span[5]
        found[IFMAP_READS] += many * chunks * steps * pixels
        found[WEIGHT_READS] += many * runs * length * steps * blocks
        found[SUMS] += many * steps * pixels
        return
    found[MOVING] += many * moving
    found[SUMS] += many * moving
    if flow == mc.INPUT_STATIONARY:
        blocks = ceil(pixels, machine[mc.COLUMNS])
        found[IFMAP_READS] += many * chunks * pixels
        found[WEIGHT_READS] += many * moving
        found[STATIC] += many * chunks * blocks * machine[mc.COLUMNS]
    else:
        found[IFMAP_READS] += many * moving
        found[WEIGHT_READS] += many * runs * length * steps
        found[STATIC] += many * runs * length * steps


@inlined
def kinds_along(total: int, size: int) -> tuple[int, int, int]:
    """Tiles of `size` along an axis but the last one, where that is smaller, its size, and how many
    such there are: 1, or 0 where all are alike."""
    tiles = ceil(total, size)
    last = total - (tiles - 1) * size
    return (tiles, 0, size) if last == size else (tiles - 1, 1, last)


@kernel
def _add_pixels(
    found: IntArray, problem: IntArray, machine: IntArray, tiling: IntArray, many: int, pixels: int
) -> None:
    """Add the work of so many pixel tiles alike, of all filters and channels."""
    filters, channels = tiling[pb.T_FILTERS], tiling[pb.T_CHANNELS]
    whole, others, last = kinds_along(problem[pb.FILTERS], filters)
    inner, rest, thin = kinds_along(problem[pb.CHANNELS], channels)
    for kind in range(2):
        count, size = (others, last) if kind == 1 else (whole, filters)
        if count == 0:
            continue
        steps, count = filter_steps(machine, size), many * count
        found[ROWS] += count * sum_rows(machine, pixels, steps)
        if inner > 0:
            before, (runs, length) = found[STREAMS], run_shape(problem, channels)
            tile = pixels, steps, runs * problem[pb.KERNEL_HEIGHT], length
            add_tiles(found, machine, count * inner, tile)
            # the last channel tile of each is not one of a tile of all channels
            added = found[STREAMS] - before
            found[WHOLE_STREAMS] += added if rest == 1 else added // inner * (inner - 1)
        if rest == 1:
            runs, length = run_shape(problem, thin)
            tile = pixels, steps, runs * problem[pb.KERNEL_HEIGHT], length
            add_tiles(found, machine, count, tile)


@kernel
def add_array(found: IntArray, problem: IntArray, machine: IntArray, tiling: IntArray) -> None:
    """Add the array's work of all tiles of a group."""
    of_images = kinds_along(problem[pb.IMAGES], tiling[pb.T_IMAGES])
    of_rows = kinds_along(problem[pb.OUT_HEIGHT], tiling[pb.T_ROWS])
    of_columns = kinds_along(problem[pb.OUT_WIDTH], tiling[pb.T_COLUMNS])
    for kind in range(8):
        many, pixels = of_images[0], tiling[pb.T_IMAGES]
        if kind & 1 == 1:
            _, many, pixels = of_images
        n_rows, high = of_rows[0], tiling[pb.T_ROWS]
        if kind & 2 == 2:
            _, n_rows, high = of_rows
        n_columns, wide = of_columns[0], tiling[pb.T_COLUMNS]
        if kind & 4 == 4:
            _, n_columns, wide = of_columns
        many *= n_rows * n_columns
        if many > 0:
            _add_pixels(found, problem, machine, tiling, many, pixels * high * wide)


@inlined
def add_bytes(found: IntArray, machine: IntArray) -> None:
    """The bytes of the words that cross."""
    found[BYTES] = (
        found[IFMAP_WRITES] * machine[mc.IFMAP_WORD_BYTES]
        + found[WEIGHT_WRITES] * machine[mc.WEIGHT_WORD_BYTES]
        + found[BIAS_WRITES] * machine[mc.BIAS_WORD_BYTES]
        + found[OFMAP_WRITES] * machine[mc.OFMAP_WORD_BYTES]
    )
