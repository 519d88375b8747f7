"""The kernels behind `archsim.tiled.changed_sums`, compiled by numba."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from archsim.codecs.boveda_kernels import wide
from archsim.kernels import inlined, kernel
from archsim.layer import problem as pb
from archsim.numbers import AnyIntArray, IntArray
from archsim.tiled import commands as cmd

Integers = npt.NDArray[np.int32]

Values = tuple[AnyIntArray, AnyIntArray]
"""An ifmap and weights, split as `archsim.layer.layout` says, channels last, flat."""

Changes = tuple[IntArray, IntArray, Integers]
"""Of each load of a tile, the first of its changes, and one more; of each change the element (in
the tile, or by its place in the operand), and by how much it is read wrong."""

Failing = tuple[IntArray, IntArray]
"""Of each half the first of its failing lanes, and one more; of each of them row, lane, the bits
that read 1 where 0 is stored and those that do where 1 is: [failing, 4]."""

Runs = tuple[IntArray, IntArray]
"""Of each tile the first of its runs, and one more; of each run of channels where it begins, from a
pixel's first window word and from a filter's first weight on, how long it is, and whether the
accumulators are added to behind it: [runs, 4]."""


@kernel("i8.2, i8.1, i8.1, i4.5, (i8.1, i8.1, i4.1), i4.5")
def add_changes(
    tiles: IntArray,
    problem: IntArray,
    load_of: IntArray,
    weight: Integers,
    changes: Changes,
    sums: Integers,
) -> None:
    """Add to sums [images, groups, P, Q, K] what wrong elements of ifmap tiles add to them.

    load_of [tiles]: the load whose ifmap each of the tiles is computed with.  weight
    [groups, R, S, C, K]: filters last.
    """
    starts, elements, wrong = changes
    down, across = problem[pb.STRIDE_HEIGHT], problem[pb.STRIDE_WIDTH]
    for tile in range(len(tiles)):
        row = tiles[tile]
        group, channels = row[cmd.TILE_GROUP], row[cmd.TILE_CHANNELS]
        wide, high = row[cmd.PITCH] // channels, row[cmd.HEIGHT]
        first = row[cmd.TILE_FILTER]
        last = first + row[cmd.TILE_FILTERS]
        for at in range(starts[load_of[tile]], starts[load_of[tile] + 1]):
            pixel, channel = divmod(elements[at], channels)
            line, x = divmod(pixel, wide)
            image, y = divmod(line, high)
            y += row[cmd.IFMAP_ROW] + problem[pb.PAD_TOP]
            x += row[cmd.IFMAP_COLUMN] + problem[pb.PAD_LEFT]
            for r in range(problem[pb.KERNEL_HEIGHT]):
                p, rest = divmod(y - r * problem[pb.DILATION_HEIGHT], down)
                if rest or p < row[cmd.TILE_ROW] or p >= row[cmd.TILE_ROW] + row[cmd.PIXEL_ROWS]:
                    continue
                for s in range(problem[pb.KERNEL_WIDTH]):
                    q, rest = divmod(x - s * problem[pb.DILATION_WIDTH], across)
                    left = row[cmd.TILE_COLUMN]
                    if rest or q < left or q >= left + row[cmd.PIXEL_COLUMNS]:
                        continue
                    found = sums[row[cmd.TILE_IMAGE] + image, group, p, q, first:last]
                    own = weight[group, r, s, row[cmd.TILE_CHANNEL] + channel, first:last]
                    for k in range(len(found)):
                        found[k] += wrong[at] * own[k]


@kernel("i8.2, i8.1, i8.1, i4.5, (i8.1, i8.2, i4.1), i4.5")
def add_weights(
    tiles: IntArray,
    problem: IntArray,
    load_of: IntArray,
    ifmap: Integers,
    changes: Changes,
    sums: Integers,
) -> None:
    """Add to sums [images, groups, K, P, Q] what wrong elements of weight tiles add to them.

    load_of [tiles]: the load whose weights each of the tiles is computed with.  ifmap
    [images, groups, C, H, W].  Of each change group, filter, kernel row and column, and channel.
    """
    starts, places, wrong = changes
    down, across = problem[pb.STRIDE_HEIGHT], problem[pb.STRIDE_WIDTH]
    height, width = problem[pb.HEIGHT], problem[pb.WIDTH]
    for tile in range(len(tiles)):
        row = tiles[tile]
        top, left = row[cmd.TILE_ROW], row[cmd.TILE_COLUMN]
        right = left + row[cmd.PIXEL_COLUMNS]
        for at in range(starts[load_of[tile]], starts[load_of[tile] + 1]):
            group, k, channel, more = places[at, 0], places[at, 1], places[at, 4], wrong[at]
            y0 = places[at, 2] * problem[pb.DILATION_HEIGHT] - problem[pb.PAD_TOP]
            x0 = places[at, 3] * problem[pb.DILATION_WIDTH] - problem[pb.PAD_LEFT]
            first = max(left, -(x0 // across))
            last = min(right, (width - 1 - x0) // across + 1)
            for image in range(row[cmd.TILE_IMAGE], row[cmd.TILE_IMAGE] + row[cmd.TILE_IMAGES]):
                for p in range(top, top + row[cmd.PIXEL_ROWS]):
                    y = p * down + y0
                    if y < 0 or y >= height:
                        continue
                    own = sums[image, group, k, p]
                    seen = ifmap[image, group, channel, y]
                    for q in range(first, last):
                        own[q] += more * seen[q * across + x0]


@inlined
def _wrapped(value: int, above: int) -> int:
    shift = np.int64(above)
    return wide((value << shift) >> shift)


@inlined
def _product(
    words: AnyIntArray, factors: AnyIntArray, place: tuple[int, int, int], total: np.int32
) -> np.int32:
    """A sum and products of words and factors, from two places on, so many: by sixteen at a time,
    whose number is known to the compiler."""
    here, there, count = place
    at = 0
    for _ in range(count >> 4):
        first, other = np.uint64(here + at), np.uint64(there + at)
        for c in range(16):
            own = words[first + np.uint64(c)] * factors[other + np.uint64(c)]
            total = np.int32(total + np.int32(own))
        at += 16
    for c in range(at, count):
        total = np.int32(total + np.int32(words[here + c] * factors[there + c]))
    return total


@kernel(
    "(i8.2, i8.1), (i?.1, i?.1), (i8.1, i8.2), (i8.1, i8.2), (int, int, int, bool), i4.5",
    short_loops=True,
)
def add_failing(
    layer: tuple[IntArray, IntArray],
    values: Values,
    runs: Runs,
    failing: Failing,
    array: tuple[int, int, int, bool],
    sums: Integers,
) -> None:
    """Add to sums [images, groups, P, Q, K] what failing lanes of accumulators make of them.

    layer: its tiles and the problem.  values: the ifmap with the padding that windows reach into,
    of the size that the problem says; weights.  array: lanes of a row of sums; bits of 64 that a
    lane lacks; the half of the first output tile; whether a row holds pixels of a filter, not
    filters of a pixel.
    """
    (tiles, problem), (lanes, above, half, moving) = layer, array
    (firsts, each), (starts, cells), (ifmap, weight) = runs, failing, values
    channels, groups = problem[pb.CHANNELS], problem[pb.GROUPS]
    height, width = problem[pb.HEIGHT], problem[pb.WIDTH]
    filter_size = channels * problem[pb.KERNEL_HEIGHT] * problem[pb.KERNEL_WIDTH]
    begin = 0
    for end in range(len(tiles)):
        last = tiles[end]
        if not last[cmd.LAST_K]:
            continue
        pixels, filters, group = last[cmd.PIXELS], last[cmd.TILE_FILTERS], last[cmd.TILE_GROUP]
        across, along = (pixels, filters) if moving else (filters, pixels)
        for at in range(starts[half], starts[half + 1]):
            block, place = divmod(cells[at, 0], along)
            lane = block * lanes + cells[at, 1]
            if block * lanes >= across:
                break
            if lane >= across:
                continue
            pixel, number = (lane, place) if moving else (place, lane)
            line, q = divmod(pixel, last[cmd.PIXEL_COLUMNS])
            image, p = divmod(line, last[cmd.PIXEL_ROWS])
            image, number = image + last[cmd.TILE_IMAGE], number + last[cmd.TILE_FILTER]
            p, q = p + last[cmd.TILE_ROW], q + last[cmd.TILE_COLUMN]
            y, x = p * problem[pb.STRIDE_HEIGHT], q * problem[pb.STRIDE_WIDTH]
            seen = (((image * groups + group) * height + y) * width + x) * channels
            own = (group * problem[pb.FILTERS] + number) * filter_size
            if_zero = np.int32(cells[at, 2])
            kept = np.int32(if_zero ^ cells[at, 3])  # a read is if_zero ^ (what is held & kept)
            held = meant = total = np.int32(0)
            before = if_zero  # what the first sum is written over; read as 0
            for tile in range(begin, end + 1):
                here = seen + tiles[tile, cmd.TILE_CHANNEL]
                there = own + tiles[tile, cmd.TILE_CHANNEL]
                for step in range(firsts[tile], firsts[tile + 1]):
                    run = each[np.uint64(step)]
                    span = here + run[0], there + run[1], run[2]
                    total = _product(ifmap, weight, span, total)
                    if run[3]:
                        meant = np.int32(meant + total)
                        held = np.int32((if_zero ^ (held & kept) ^ before) + total)
                        total = before = np.int32(0)
            read = _wrapped(wide(np.int32(if_zero ^ (held & kept))), above)
            change = np.int32(read) - meant
            sums[image, group, p, q, number] += change
        begin, half = end + 1, 1 - half


__all__ = ["add_changes", "add_failing"]
