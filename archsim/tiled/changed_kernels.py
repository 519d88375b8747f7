"""The kernels behind `archsim.tiled.changed_sums`, compiled by numba."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from archsim.codecs.boveda_kernels import wide
from archsim.kernels import inlined, kernel
from archsim.layer import problem as pb
from archsim.numbers import AnyIntArray, IntArray
from archsim.tiled import commands as cmd

Integers = npt.NDArray[np.int32]

Values = tuple[AnyIntArray, AnyIntArray, Integers]
"""An ifmap and weights, split as `archsim.layer.layout` says, channels last, flat.  Of an ifmap of
unsigned bytes, 128 more than they are meant [2, weights + 1]: 128 times the sum of all weights
before each, and what that of sixteen from each takes off, modulo 2^32; no rows of others."""

Changes = tuple[IntArray, IntArray, Integers]
"""Of each load of a tile, the first of its changes, and one more; of each change the element (in
the tile, or by its place in the operand), and by how much it is read wrong."""

Tiles = tuple[IntArray, IntArray]
"""Of each tile its first place in an operand, and in what is known of places [2, tiles]; of each
word of a tile its element, -1 where none, and how far it lies from those [3, words]."""

Failing = tuple[IntArray, IntArray]
"""Of both halves their failing lanes, in order: row, lane, the bits that read 1 where 0 is stored
and those that do where 1 is, [failing, 4]."""

Spans = tuple[IntArray, IntArray]
"""Of each tile the first of its rows, and the one behind its last [tiles, 2]; rows of runs of
channels, side by side: where the first begins, from a pixel's first window word and from a filter's
first weight on; how long each is, and how many there are; the span, which is what accumulators add
at once, of the first, each of the others having the next; whether that span has begun: [rows, 6].
"""

WIDE = 32
"""Lanes that are walked side by side."""


@inlined
def _put(
    found: tuple[Any, Any, Any, Any], loads: Any, counts: tuple[int, int], out: IntArray
) -> tuple[int, int]:
    """An element that so many loads read, behind those that one load alone reads or before those
    that several do; how many of either there are then."""
    alone, several = counts
    if loads > 1:
        several += 1
        to = out.shape[1] - several
    else:
        to = alone
        alone += 1
    out[0, to], out[1, to], out[2, to], out[3, to] = found
    return alone, several


@kernel("(i8.1, i8.1), (i8.2, i8.2), i8.1, i8.2")
def place_changes(
    changes: tuple[IntArray, IntArray], tiles: Tiles, read_by: IntArray, out: IntArray
) -> tuple[int, int]:
    """Where elements of tiles lie that are read wrong.

    changes: their places in the words of tiles, one behind the other, and by how much they are
    wrong.  read_by: of each place how many loads read it.  out [4, n]: tiles, elements in them,
    changes, and places in the operand; those that one load alone reads from the front, and those
    that several do from the back on, last one first.  Returns how many of either.
    """
    (at, change), (begins, words) = changes, tiles
    size, alone, several = words.shape[1], 0, 0
    which = first = np.int64(0)
    for n in range(len(at)):
        if not first <= at[n] < first + size:
            which = at[n] // size
            first = which * size
        word = at[n] - first
        element = words[0, word]
        if element < 0:
            continue
        found = which, element, change[n], begins[0, which] + words[1, word]
        loads = read_by[begins[1, which] + words[2, word]]
        alone, several = _put(found, loads, (alone, several), out)
    return alone, several


@kernel("i?.1, (i8.2, i8.2), (i8.2, i8.2), i8.1, i8.2")
def read_by_masks(
    whole: AnyIntArray,
    masks: tuple[IntArray, IntArray],
    tiles: Tiles,
    read_by: IntArray,
    out: IntArray,
) -> tuple[int, int]:
    """The same of every word of tiles that masks say may be read wrong.

    whole: the operand, flat.  masks: failing cells, word, lane, and the bits that read 1 where 0 is
    stored and where 1 is [cells, 4]; of each lane, bits of 64 that it lacks, and what its sign
    leaves [lanes, 2] (`archsim.memory.lane_masks.LaneMasks`).
    """
    (cells, lanes), (begins, words), alone, several = masks, tiles, 0, 0
    for which in range(begins.shape[1]):
        for row in cells:
            word = row[0] * len(lanes) + row[1]
            if words[0, word] < 0:
                continue
            place, above = begins[0, which] + words[1, word], lanes[row[1], 0]
            meant = np.int64(whole[place])
            read = (meant & row[3]) | (~meant & row[2])
            change = (((read << above) >> above) & lanes[row[1], 1]) - meant
            if change == 0:
                continue
            loads = read_by[begins[1, which] + words[2, word]]
            found = which, words[0, word], change, place
            alone, several = _put(found, loads, (alone, several), out)
    return alone, several


@inlined
def _divided(number: Any, by: Any) -> tuple[Any, Any]:
    """The quotient and what is left: nearly always by 1."""
    return (number, np.int64(0)) if by == 1 else divmod(number, by)


@kernel("i8.2, i8.1, i8.1, i4.1, (i8.1, i8.1, i4.1), (i8.1, i8.1, i4.2)")
def add_changes(
    tiles: IntArray,
    problem: IntArray,
    load_of: IntArray,
    weight: Integers,
    changes: Changes,
    out: tuple[IntArray, IntArray, Integers],
) -> int:
    """What wrong elements of ifmap tiles add to sums of pixels: to those of how many.

    load_of [tiles]: the load whose ifmap each of the tiles is computed with.  weight
    [groups, R, S, C, K], flat.  out: of each pixel of [images, groups, P, Q], flat, its row, -1
    until it has one; of each row its pixel, and what is added [pixels, K].
    """
    (starts, elements, wrong), (row_of, pixel_of, sums) = changes, out
    down, across = problem[pb.STRIDE_HEIGHT], problem[pb.STRIDE_WIDTH]
    columns, taps = problem[pb.KERNEL_WIDTH], problem[pb.KERNEL_HEIGHT] * problem[pb.KERNEL_WIDTH]
    count = 0
    for tile in range(len(tiles)):
        row = tiles[tile]
        channels, filters = row[cmd.TILE_CHANNELS], row[cmd.TILE_FILTERS]
        wide, high = row[cmd.PITCH] // channels, row[cmd.HEIGHT]
        for at in range(starts[load_of[tile]], starts[load_of[tile] + 1]):
            pixel, channel = divmod(elements[at], channels)
            line, x = divmod(pixel, wide)
            image, y = divmod(line, high)
            y += row[cmd.IFMAP_ROW] + problem[pb.PAD_TOP] - row[cmd.TILE_ROW] * down
            x += row[cmd.IFMAP_COLUMN] + problem[pb.PAD_LEFT] - row[cmd.TILE_COLUMN] * across
            plane = (row[cmd.TILE_IMAGE] + image) * problem[pb.GROUPS] + row[cmd.TILE_GROUP]
            for r in range(problem[pb.KERNEL_HEIGHT]):
                p, rest = _divided(y - r * problem[pb.DILATION_HEIGHT], down)
                if rest or p < 0 or p >= row[cmd.PIXEL_ROWS]:
                    continue
                line = plane * problem[pb.OUT_HEIGHT] + row[cmd.TILE_ROW] + p
                for s in range(columns):
                    q, rest = _divided(x - s * problem[pb.DILATION_WIDTH], across)
                    if rest or q < 0 or q >= row[cmd.PIXEL_COLUMNS]:
                        continue
                    to = line * problem[pb.OUT_WIDTH] + row[cmd.TILE_COLUMN] + q
                    if row_of[to] < 0:
                        row_of[to], pixel_of[count], sums[count] = count, to, np.int32(0)
                        count += 1
                    own = row[cmd.TILE_GROUP] * taps + r * columns + s
                    own = own * problem[pb.CHANNELS] + row[cmd.TILE_CHANNEL] + channel
                    first = own * problem[pb.FILTERS] + row[cmd.TILE_FILTER]
                    found = sums[row_of[to], row[cmd.TILE_FILTER] :]
                    factors = weight[first : first + filters]
                    for k in range(filters):
                        found[k] += wrong[at] * factors[k]
    return count


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
def _wrapped_sum(one: Any, other: Any) -> Any:
    """Of two numbers, modulo 2^32."""
    return np.int32(np.int64(one) + np.int64(other))


@inlined
def _times(word: Any, factor: Any) -> Any:
    """Of two numbers the product, modulo 2^32."""
    return np.int32(np.int64(word) * np.int64(factor))


@inlined
def _sixteen(words: AnyIntArray, factors: AnyIntArray, here: Any, there: Any) -> Any:
    """Products of words and factors from two places on: so many that the compiler knows it."""
    total = np.int32(0)
    for c in range(16):
        total = _wrapped_sum(
            total, _times(words[here + np.uint64(c)], factors[there + np.uint64(c)])
        )
    return total


@inlined
def _product(words: AnyIntArray, factors: AnyIntArray, here: Any, there: Any, count: Any) -> Any:
    """The same of so many."""
    total = np.int32(0)
    for _ in range(count >> np.uint64(4)):
        total = _wrapped_sum(total, _sixteen(words, factors, here, there))
        here, there = here + np.uint64(16), there + np.uint64(16)
    for c in range(count & np.uint64(15)):
        total = _wrapped_sum(
            total, _times(words[here + np.uint64(c)], factors[there + np.uint64(c)])
        )
    return total


@inlined
def _spans(
    values: Values, spans: IntArray, place: tuple[Any, Any], found: Integers, lane: Any
) -> None:
    """Sums of a tile's spans [spans, lanes], flat, of a lane, by the places of its first pixel and
    weight."""
    ifmap, weight, lifted = values
    for row in spans:
        here, there = np.uint64(place[0] + row[0]), np.uint64(place[1] + row[1])
        length, at = np.uint64(row[2]), np.uint64(row[4] * WIDE + lane)
        if length == np.uint64(16) and not row[5]:
            for _ in range(row[3]):
                total = _sixteen(ifmap, weight, here, there)
                found[at] = _wrapped_sum(total, lifted[1, there]) if len(lifted) else total
                here, there = here + np.uint64(16), there + np.uint64(16)
                at += np.uint64(WIDE)
            continue
        for _ in range(row[3]):
            total = _product(ifmap, weight, here, there, length)
            if len(lifted):
                total = _wrapped_sum(total, lifted[0, there])
                total = _wrapped_sum(total, -lifted[0, there + length])
            found[at] = _wrapped_sum(total, found[at]) if row[5] else total
            here, there, at = here + length, there + length, at + np.uint64(WIDE)


@kernel("i4.1, i4.2, i4.1, int, int", answer="none")
def add_spans(held: Integers, cells: Integers, found: Integers, first: int, count: int) -> None:
    """Add spans [spans, lanes], flat, from the first on, to what is read of what lanes hold.

    held [lanes]; cells [2, lanes]: a read is cells[0] ^ (what is held & cells[1]).
    """
    for span in range(first, count):
        for lane in range(WIDE):
            read = cells[0, lane] ^ (held[lane] & cells[1, lane])
            held[lane] = _wrapped_sum(read, found[np.uint64(span * WIDE + lane)])


@inlined
def _lanes_of(
    tile: IntArray, problem: IntArray, failing: IntArray, array: tuple[Any, Any], places: IntArray
) -> Any:
    """Of failing lanes those with a sum of an output tile, by their number, and the places of its
    pixel's first window word, of its filter's first weight and of its output: places [lanes, 4];
    how many they are.  failing [n, 4]; array: lanes of a row, whether they are pixels."""
    lanes, moving = array
    channels, groups, filters = problem[pb.CHANNELS], problem[pb.GROUPS], problem[pb.FILTERS]
    height, width = problem[pb.HEIGHT], problem[pb.WIDTH]
    out_height, out_width = problem[pb.OUT_HEIGHT], problem[pb.OUT_WIDTH]
    filter_size = channels * problem[pb.KERNEL_HEIGHT] * problem[pb.KERNEL_WIDTH]
    pixels, group = tile[cmd.PIXELS], tile[cmd.TILE_GROUP]
    seen, given = np.empty(pixels, np.int64), np.empty(pixels, np.int64)
    image, p, q = tile[cmd.TILE_IMAGE], np.int64(0), np.int64(0)
    for pixel in range(pixels):
        row, column = p + tile[cmd.TILE_ROW], q + tile[cmd.TILE_COLUMN]
        y, x = row * problem[pb.STRIDE_HEIGHT], column * problem[pb.STRIDE_WIDTH]
        seen[pixel] = (((image * groups + group) * height + y) * width + x) * channels
        given[pixel] = ((image * groups + group) * filters * out_height + row) * out_width + column
        q += 1
        if q == tile[cmd.PIXEL_COLUMNS]:
            p, q = p + 1, np.int64(0)
        if p == tile[cmd.PIXEL_ROWS]:
            image, p = image + 1, np.int64(0)
    along, across = tile[cmd.TILE_FILTERS], pixels
    if not moving:
        along, across = across, along
    found, block = 0, 0
    for at in range(len(failing)):
        while failing[at, 0] >= (block + 1) * along and block * lanes < across:
            block += 1
        if block * lanes >= across:
            break
        lane, place = block * lanes + failing[at, 1], failing[at, 0] - block * along
        if lane >= across:
            continue
        pixel, number = (lane, place) if moving else (place, lane)
        number += tile[cmd.TILE_FILTER]
        places[found, 0], places[found, 1] = at, seen[pixel]
        places[found, 2] = (group * filters + number) * filter_size
        places[found, 3] = given[pixel] + number * out_height * out_width
        found += 1
    return found


@kernel(
    "(i8.2, i8.1), (??.1, i?.1, i4.2), (i8.2, i8.2), (i8.2, i8.2), (int, int, int, bool), "
    "(i8.1, i8.1)",
    short_loops=True,
)
def read_failing(
    layer: tuple[IntArray, IntArray],
    values: Values,
    spans: Spans,
    failing: Failing,
    array: tuple[int, int, int, bool],
    out: tuple[IntArray, IntArray],
) -> int:
    """What output stages read of failing lanes of accumulators: of how many; out: where the sums
    lie in [images, groups, K, P, Q], flat, and as they are read [of so many, or more].

    layer: its tiles and the problem.  values: the ifmap with the padding that windows reach into,
    of the size that the problem says; weights.  array: lanes of a row of sums; bits of 64 that a
    lane lacks; the half of the first output tile; whether a row holds pixels of a filter, not
    filters of a pixel.
    """
    (tiles, problem), (lanes, above, half, moving) = layer, array
    of_tile, each = spans
    most = np.int64(0)
    for row in each:
        most = max(most, row[4] + row[3])
    found = np.zeros(most * WIDE, np.int32)
    held, cells = np.empty(WIDE, np.int32), np.zeros((2, WIDE), np.int32)
    places = np.empty((max(len(failing[0]), len(failing[1])), 4), np.int64)
    begin, count = 0, 0
    for end in range(len(tiles)):
        if not tiles[end, cmd.LAST_K]:
            continue
        own = failing[half]
        number = _lanes_of(tiles[end], problem, own, (lanes, moving), places)
        for first in range(0, number, WIDE):
            some = min(WIDE, number - first)
            for lane in range(some):
                row = own[places[first + lane, 0]]
                cells[0, lane] = np.int32(row[2])
                cells[1, lane] = np.int32(row[2] ^ row[3])
            for tile in range(begin, end + 1):
                channel = tiles[tile, cmd.TILE_CHANNEL]
                those = each[of_tile[tile, 0] : of_tile[tile, 1]]
                for lane in range(some):
                    own_place = places[first + lane, 1] + channel, places[first + lane, 2] + channel
                    _spans(values, those, own_place, found, lane)
                if tile == begin:  # what the first sum is written over is not read
                    held[:] = found[:WIDE]
                add_spans(held, cells, found, int(tile == begin), those[-1, 4] + those[-1, 3])
            for lane in range(some):
                read = np.int32(cells[0, lane] ^ (held[lane] & cells[1, lane]))
                out[0][count], out[1][count] = places[first + lane, 3], _wrapped(wide(read), above)
                count += 1
        begin, half = end + 1, 1 - half
    return count


__all__ = ["add_changes", "add_weights", "place_changes", "read_by_masks", "read_failing"]
