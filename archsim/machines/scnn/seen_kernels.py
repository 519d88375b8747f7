"""The kernels behind `archsim.machines.scnn.seen_weights`, compiled by numba."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from archsim.kernels import inlined, kernel
from archsim.machines.scnn.axis import POSITION_BITS, TAP_BITS
from archsim.numbers import IntArray

Floats = npt.NDArray[np.float64]
Words = npt.NDArray[np.int32]

Given = tuple[IntArray, IntArray]
"""Words of lists [vectors, lanes], a value and above it its index, and where each list begins
[lists + 1]."""

Elements = tuple[IntArray, IntArray, IntArray, IntArray]
"""Of vectors of activations: values and places along both axes [vectors, lanes]; channels
[vectors]."""

Cells = tuple[IntArray, IntArray, IntArray]
"""Bits of a tap's column in each list of a group; masks [rows, lanes] of bits that read 1 where 0
is stored, and where 1 is."""

Weights = tuple[IntArray, IntArray, IntArray, IntArray]
"""Of PEs [PEs, vectors, lanes]: values, 0 of lanes that are not multiplied; the filter in its
group; row and column of the tap of the phase."""


Reading = tuple[int, int, int, int]
"""How vectors lie in FIFOs: places of a FIFO; bits of a value, of an index, and of a filter in a
position."""


@inlined
def _element(
    word: Any, masks: tuple[Any, Any], at: Any, column_bits: Any, reading: Reading
) -> tuple[Any, Any, Any, Any, Any]:
    """What a lane is read as, behind a position: the next position; value, filter, row, column."""
    _, value_bits, index_bits, filter_bits = reading
    low, top = (np.int64(1) << value_bits) - 1, np.int64(1) << (value_bits - 1)
    read = (word & masks[1]) | (~word & masks[0])
    own = at + ((read >> value_bits) & ((np.int64(1) << index_bits) - 1))
    tap = (own >> filter_bits) & ((np.int64(1) << POSITION_BITS) - 1)
    row = (tap >> column_bits) & ((np.int64(1) << TAP_BITS) - 1)
    column = tap & ((np.int64(1) << column_bits) - 1)
    value = ((read & low) ^ top) - top
    return own + 1, value, own & ((np.int64(1) << filter_bits) - 1), row, column


@kernel(
    "i8.1, (i8.2, i8.1), (int, int), (i8.1, i8.2, i8.2), (int, int, int, int), "
    "(i8.3, i8.3, i8.3, i8.3)"
)
def read_lists(
    fifos: IntArray,
    given: Given,
    group: tuple[int, int],
    cells: Cells,
    reading: Reading,
    out: Weights,
) -> None:
    """What PEs read of a group's lists.

    fifos [PEs]: the row of the masks where each one's begins.  group: the number of its first
    vector, and its filters.
    """
    (words, starts), (column_bits, zero, one) = given, cells
    every = (np.int64(1) << POSITION_BITS) - 1
    for pe in range(len(fifos)):
        for number in range(len(starts) - 1):
            at = np.int64(0)
            for vector in range(starts[number], starts[number + 1]):
                row, at = fifos[pe] + (group[0] + vector) % reading[0], at & every
                for lane in range(words.shape[1]):
                    own = zero[row, lane], one[row, lane]
                    at, value, filter_, tap_row, tap_column = _element(
                        words[vector, lane], own, at, column_bits[number], reading
                    )
                    out[0][pe, vector, lane] = value if filter_ < group[1] else 0
                    out[1][pe, vector, lane] = filter_
                    out[2][pe, vector, lane] = tap_row
                    out[3][pe, vector, lane] = tap_column


@kernel(
    "int, (i8.2, i8.1), (i8.1, i8.2, i8.2), (int, int, int, int), (int, int, int, int, int), "
    "(f8.5, f8.4, i8.1)"
)
def add_taps(
    fifo: int,
    given: Given,
    cells: Cells,
    reading: Reading,
    place: tuple[int, int, int, int, int],
    into: tuple[Floats, Floats, IntArray],
) -> None:
    """Add what a PE reads of all groups' lists to taps [phases, rows, columns, channels, filters],
    how many values are not zero to counts [phases, rows, columns, channels], and to those of each
    list of a group [lists], whatever their tap.

    fifo: the row of the masks where it begins.  place: lists of a group, filters of a group and of
    all, the last tap of rows and columns that may lead to an output.
    """
    (words, starts), (column_bits, zero, one), (taps, counts, found) = given, cells, into
    lists, size, filters, last_row, last_column = place
    for number in range(len(starts) - 1):
        group, own = divmod(number, lists)
        channel, phase = divmod(own, len(taps))
        at, first = np.int64(0), group * size
        for vector in range(starts[number], starts[number + 1]):
            row, at = fifo + vector % reading[0], at & ((np.int64(1) << POSITION_BITS) - 1)
            for lane in range(words.shape[1]):
                cell = zero[row, lane], one[row, lane]
                at, value, filter_, tap_row, tap_column = _element(
                    words[vector, lane], cell, at, column_bits[own], reading
                )
                if value == 0 or filter_ >= min(size, filters - first):
                    continue
                found[own] += 1
                if tap_row <= last_row and tap_column <= last_column:
                    taps[phase, tap_row, tap_column, channel, first + filter_] += value
                    counts[phase, tap_row, tap_column, channel] += 1


@kernel("(i8.3, i8.3, i8.3, i8.3), (int, int, int, int, int, int), i8.1, i4.2")
def for_scan(
    weights: Weights,
    place: tuple[int, int, int, int, int, int],
    counts: IntArray,
    found: Words,
) -> None:
    """Of vectors of all PEs, one behind the other, the addresses of lanes with a value and a tap
    that may lead to an output, in order, and how many they are.

    place: last tap of rows and columns; addresses from a row to the next; Kp; by what addresses are
    multiplied; the address of lanes without.
    """
    values, filters, rows, columns = weights
    last_row, last_column, span, pitch, scale, nowhere = place
    vectors = values.shape[1]
    for pe in range(len(values)):
        for vector in range(vectors):
            count, own = 0, found[pe * vectors + vector]
            for lane in range(values.shape[2]):
                row, column = rows[pe, vector, lane], columns[pe, vector, lane]
                if values[pe, vector, lane] and row <= last_row and column <= last_column:
                    away = (row * span + column) * pitch
                    own[count] = (filters[pe, vector, lane] - away) * scale
                    count += 1
            counts[pe * vectors + vector] = count
            for lane in range(count, len(own)):
                own[lane] = nowhere


@kernel("i8.2, i8.2, i8.2, i8.1, f8.3")
def put(values: IntArray, y: IntArray, x: IntArray, channels: IntArray, tile: Floats) -> None:
    """Add elements [vectors, lanes] of channels [vectors] to a tile [rows, columns, channels],
    those that lie in it."""
    height, width = tile.shape[:2]
    for vector in range(len(values)):
        for lane in range(values.shape[1]):
            row, column = y[vector, lane], x[vector, lane]
            if values[vector, lane] and 0 <= row < height and 0 <= column < width:
                tile[row, column, channels[vector]] += values[vector, lane]


@kernel("i8.2, i8.1, i8.2")
def place_elements(indices: IntArray, starts: IntArray, positions: IntArray) -> None:
    """Positions of lists as a decoder counts them, all [vectors, lanes]: each lane takes a place
    behind its zeros; from a vector to the next POSITION_BITS are kept.

    starts [lists + 1]: the first vector of each.
    """
    every = (np.int64(1) << POSITION_BITS) - 1
    for number in range(len(starts) - 1):
        at = np.int64(-1)
        for vector in range(starts[number], starts[number + 1]):
            at = ((at + 1) & every) - 1
            for lane in range(indices.shape[1]):
                at += indices[vector, lane] + 1
                positions[vector, lane] = at


@kernel("(i8.2, i8.2, i8.1), (i8.2, i8.2), i8.3")
def put_outputs(
    lists: tuple[IntArray, IntArray, IntArray], places: tuple[IntArray, IntArray], ofmap: IntArray
) -> None:
    """Put the values of lists [vectors, lanes], by PE and filter, where their positions say in the
    ofmap [rows, columns, K]; values beyond a PE's last row are none.

    places [PEs along an axis, 2]: of rows, then columns, the first output of a PE, and how many.
    """
    (values, positions, starts), (rows, columns) = lists, places
    filters = ofmap.shape[2]
    for number in range(len(starts) - 1):
        pe, own = divmod(number, filters)
        row, column = divmod(pe, len(columns))
        for vector in range(starts[number], starts[number + 1]):
            for lane in range(values.shape[1]):
                if values[vector, lane] == 0:
                    continue
                y, x = divmod(positions[vector, lane], columns[column, 1])
                if y < rows[row, 1]:
                    ofmap[rows[row, 0] + y, columns[column, 0] + x, own] = values[vector, lane]


@kernel("i8.2, i4.4, i8.2, i8.3")
def add_elements(elements: IntArray, taps: Words, regions: IntArray, sums: IntArray) -> None:
    """Add products of single elements to sums [P, Q, K].

    elements [n, 5]: PE, phase and channel in one, row and column of the output of the first tap in
    the PE's region, value.  taps [channels · phases, rows, columns, K]: 0 where a phase has none.
    regions [PEs, 4]: of each first row and column, rows and columns.
    """
    height, width, filters = taps.shape[1:]
    for n in range(len(elements)):
        region, own = regions[elements[n, 0]], taps[elements[n, 1]]
        down, right, value = elements[n, 2], elements[n, 3], np.int32(elements[n, 4])
        for row in range(max(0, down - region[2] + 1), min(height, down + 1)):
            for column in range(max(0, right - region[3] + 1), min(width, right + 1)):
                into = sums[region[0] + down - row, region[1] + right - column]
                factors = own[row, column]
                for k in range(filters):
                    into[k] += np.int64(value) * np.int64(factors[k])


@kernel("(i8.2, i8.2, i8.2, i8.1), f8.3, (int, int)")
def products_of(elements: Elements, counts: Floats, region: tuple[int, int]) -> int:
    """Products of elements that are not zero with taps that lead to an output of a region of so
    many rows and columns; counts [rows, columns, channels]: weights of each tap."""
    (values, y, x, channels), (height, width) = elements, region
    found = 0.0
    for vector in range(len(values)):
        for lane in range(values.shape[1]):
            if values[vector, lane] == 0:
                continue
            row, column = y[vector, lane], x[vector, lane]
            for tap in range(max(0, row - height + 1), min(len(counts), row + 1)):
                for other in range(max(0, column - width + 1), min(counts.shape[1], column + 1)):
                    found += counts[tap, other, channels[vector]]
    return int(found)


__all__ = [
    "Cells",
    "Elements",
    "Given",
    "Reading",
    "Weights",
    "add_elements",
    "add_taps",
    "for_scan",
    "place_elements",
    "products_of",
    "put",
    "put_outputs",
    "read_lists",
]
