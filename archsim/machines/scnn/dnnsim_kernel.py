"""The scan of DNNsim's count: lists of each PE, vectors by vectors, and products in the same bank.

Operands are given as whether each value is not zero.  Sums are spread over the banks by a hash
whose three parts (of the filter, of the row and of the column of the output) are joined by
exclusive or, so it is read from three tables; an output beside the plane has a mark in its part.
Pairs of vectors that make no product take one cycle, and are counted without being looked at.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from archsim.kernels import inlined, kernel
from archsim.machines.scnn.kernels import BoolArray
from archsim.numbers import IntArray

ByteArray = npt.NDArray[np.uint8]
PlaceArray = npt.NDArray[np.int32]

HASHED = 32
"""Banks that the hash tells apart."""

NO_ROW, NO_COLUMN = 128, 64
"""Marks in the tables of outputs that are not in the plane: no bank has a number so high."""

FIGURES = 6

(BUSY, CONFLICT, PAIRS, PRODUCTS, MULTIPLIED, VECTORS) = range(FIGURES)
"""Figures of a PE: its cycles; those of them that products wait for a bank; pairs of vectors;
products with an output; products; vectors of activations that meet taps, for each group of
filters."""


class PeCounts(NamedTuple):
    """Those figures by name and in order: [PEs] each."""

    busy: IntArray
    conflict: IntArray
    pairs: IntArray
    products: IntArray
    multiplied: IntArray
    vectors: IntArray


Places = tuple[PlaceArray, PlaceArray]
"""Row and column of each element of lists that follow one another."""

Axis = tuple[int, int, int, int, int]
"""Rows, or columns: of a tile; the stride; PEs; padding before the first; outputs."""

Tables = tuple[ByteArray, ByteArray, ByteArray]
"""Parts of the hash: by input row less tap row, of the padded plane, from 1 − taps on; by column,
alike.  A mask of the banks whose products are seen [32], 0 or 255."""

WeightLists = tuple[Places, ByteArray, IntArray, IntArray]
"""Of one channel and group: row and column of the tap, and the hash's part, of each element; the
first element of each phase [phases + 1]; how many of a phase lie before each of its taps
[phases, rows, columns + 1].  Phases are those with a tap; elements are in order of phase, tap and
filter."""


@inlined
def _pair(
    activations: tuple[int, int],
    weights: tuple[int, int],
    lanes: tuple[Places, Places, ByteArray],
    tables: Tables,
    counts: ByteArray,
) -> tuple[int, int]:
    """Cycles of a pair of vectors, and its products: the most in a bank, counted in 8 bits."""
    (y, x), (r, s), part = lanes
    of_row, of_column, seen = tables
    products = 0
    for f in range(np.uint64(weights[0]), np.uint64(weights[1])):
        for i in range(np.uint64(activations[0]), np.uint64(activations[1])):
            bank = of_row[np.uint64(y[i] - r[f])] ^ of_column[np.uint64(x[i] - s[f])] ^ part[f]
            counts[bank] += np.uint8(1)
            products += int(bank < NO_COLUMN)
    most = np.uint8(1)
    for bank in range(HASHED):
        most = max(most, counts[bank] & seen[bank])
        counts[bank] = 0
    return int(most), products


@inlined
def _taps_that_meet(
    places: PlaceArray, vector: tuple[int, int], side: tuple[int, int, int, int]
) -> tuple[int, int]:
    """Of the taps of a phase along an axis, the first that makes an output of the plane with a
    vector of activations, and the one behind the last.

    side: taps, outputs, stride, the first tap of the phase.
    """
    taps, outputs, stride, phase = side
    low, high = places[vector[0]], places[vector[0]]
    for i in range(vector[0], vector[1]):
        low, high = min(low, places[i]), max(high, places[i])
    first = max(low - (taps - 1) - outputs * stride + 1, 0)
    behind = min(high - (taps - 1) + stride, taps)
    return max(-((phase - first) // stride), 0), max(-((phase - behind) // stride), 0)


@inlined
def _block(
    own: int,
    elements: tuple[int, int, IntArray],
    lanes: tuple[Places, Places, ByteArray],
    tables: Tables,
    sides: tuple[tuple[int, int, int, int], tuple[int, int, int, int], int, int],
    counts: ByteArray,
) -> tuple[int, int]:
    """Cycles in which pairs of a PE's list of `own` elements wait for a bank, and products.

    elements: the first of the list of weights, and the one behind the last; how many lie before
    each tap [rows, columns + 1].  sides: of `_taps_that_meet`, rows and columns; lanes of
    activations and of weights.
    """
    begin, end, before = elements
    rows, columns, i_lanes, f_lanes = sides
    waited, products = 0, 0
    for i in range(0, own, i_lanes):
        vector = i, min(i + i_lanes, own)
        first_row, behind_row = _taps_that_meet(lanes[0][0], vector, rows)
        left, right = _taps_that_meet(lanes[0][1], vector, columns)
        following = 0
        for r in range(first_row, behind_row):
            if left >= right or before[r, left] >= before[r, right]:
                continue
            low = max(before[r, left] // f_lanes, following)
            following = (before[r, right] - 1) // f_lanes + 1
            for f in range(low, following):
                first = begin + f * f_lanes
                weights = first, min(first + f_lanes, end)
                cost, made = _pair(vector, weights, lanes, tables, counts)
                waited += cost - 1
                products += made
    return waited, products


@inlined
def _list_weights(
    taps: BoolArray,
    filters: tuple[int, int],
    strides: tuple[int, int],
    lists: WeightLists,
    parts: ByteArray,
) -> None:
    """The lists of a group of filters of taps [rows, columns, filters]."""
    (rows, columns), part, starts, before = lists
    height, width, _ = taps.shape
    across = min(strides[1], width)
    count = 0
    for phase in range(len(starts) - 1):
        starts[phase] = count
        for r in range(phase // across, height, strides[0]):
            here = before[phase, r // strides[0]]
            for s in range(phase % across, width, strides[1]):
                here[s // strides[1]] = count - starts[phase]
                for k in range(filters[0], filters[1]):
                    if taps[r, s, k]:
                        rows[count], columns[count], part[count] = r, s, parts[k]
                        count += 1
                here[s // strides[1] + 1] = count - starts[phase]
    starts[-1] = count


@inlined
def _list_activations(
    plane: BoolArray,
    pe: tuple[int, int],
    phase: tuple[int, int],
    axes: tuple[Axis, Axis],
    offset: tuple[int, int],
    places: Places,
) -> int:
    """How many values of a PE's tile meet the taps of a phase; their places, with an offset."""
    (height, row_stride, _, above, _), (width, column_stride, _, before, _) = axes
    top, left = pe[0] * height, pe[1] * width
    bottom, right = min(top + height, plane.shape[0]), min(left + width, plane.shape[1])
    count = 0
    for y in range(top + (phase[0] + above - top) % row_stride, bottom, row_stride):
        for x in range(left + (phase[1] + before - left) % column_stride, right, column_stride):
            if plane[y, x]:
                places[0][count], places[1][count] = y + offset[0], x + offset[1]
                count += 1
    return count


@inlined
def _count_pe(
    plane: BoolArray,
    pe: tuple[int, int],
    lists: tuple[WeightLists, tuple[int, int]],
    rules: tuple[Any, Any, Any, Any],
    scratch: tuple[Places, ByteArray],
    figures: IntArray,
) -> int:
    """Cycles of a PE with one channel and group, which are added to its figures.

    lists: of weights; rows and columns of the taps.
    """
    axes, lanes, _, tables = rules
    (taps, part, starts, before), (height, width) = lists
    places, counts = scratch
    across = min(axes[1][1], width)
    spent = 0
    for phase in range(len(starts) - 1):
        cut = phase // across, phase % across
        own = _list_activations(plane, pe, cut, axes, (height - 1, width - 1), places)
        others = starts[phase + 1] - starts[phase]
        vectors = -(-own // lanes[0])
        pairs = vectors * -(-others // lanes[1])
        waited, products = 0, 0
        if pairs:
            rows = height, axes[0][4], axes[0][1], cut[0]
            columns = width, axes[1][4], axes[1][1], cut[1]
            elements = starts[phase], starts[phase + 1], before[phase]
            sides = rows, columns, lanes[0], lanes[1]
            waited, products = _block(own, elements, (places, taps, part), tables, sides, counts)
        spent += pairs + waited
        figures[CONFLICT] += waited
        figures[PAIRS] += pairs
        figures[PRODUCTS] += products
        figures[MULTIPLIED] += own * others
        figures[VECTORS] += vectors
    figures[BUSY] += spent
    return spent


@kernel(
    "(b1.4, b1.4), i8.2, (int, int), (((int, int, int, int, int), (int, int, int, int, int)), "
    "(int, int), u1.1, (u1.1, u1.1, u1.1)), i8.2, i8.3"
)
def count_blocks(
    operands: tuple[BoolArray, BoolArray],
    groups: IntArray,
    blocks: tuple[int, int],
    rules: tuple[tuple[Axis, Axis], tuple[int, int], ByteArray, Tables],
    most: IntArray,
    figures: IntArray,
) -> None:
    """Some of the blocks, which are the channels of each group of filters.

    operands: ifmap [images, channels, rows, columns], padded; weight [channels of a filter, rows,
    columns, filters].  groups: first filter, filters, first channel of the ifmap.  rules: axes;
    lanes of activations and of weights; the hash's part of each filter; tables.  Added to: most
    [images, groups], the cycles of the PE with most in each block; figures [images, PEs, 6].
    """
    ifmap, weight = operands
    ((height, row_stride, rows, _, _), (width, column_stride, columns, _, _)), _, parts, _ = rules
    channels, tap_rows, tap_columns, _ = weight.shape
    phases = min(row_stride, tap_rows) * min(column_stride, tap_columns)
    most_filters = groups[0, 1]
    for group in range(len(groups)):
        most_filters = max(most_filters, groups[group, 1])
    longest = tap_rows * tap_columns * most_filters
    most_taps = -(-tap_rows // row_stride), -(-tap_columns // column_stride)
    lists = (
        (np.empty(longest, np.int32), np.empty(longest, np.int32)),
        np.empty(longest, np.uint8),
        np.empty(phases + 1, np.int64),
        np.empty((phases, most_taps[0], most_taps[1] + 1), np.int64),
    )
    places = np.empty(height * width, np.int32), np.empty(height * width, np.int32)
    scratch = places, np.zeros(256, np.uint8)
    strides, taps = (row_stride, column_stride), (tap_rows, tap_columns)
    for block in range(blocks[0], blocks[1]):
        group, channel = block // channels, block % channels
        first, filters, offset = groups[group]
        _list_weights(weight[channel], (first, first + filters), strides, lists, parts)
        for image in range(len(ifmap)):
            slowest = 0
            for pe in range(rows * columns):
                at = pe // columns, pe % columns
                plane, own = ifmap[image, offset + channel], figures[image, pe]
                slowest = max(slowest, _count_pe(plane, at, (lists, taps), rules, scratch, own))
            most[image, group] += slowest
