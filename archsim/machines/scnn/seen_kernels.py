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

BoolArray = npt.NDArray[np.bool_]

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
    "i8.1, (i8.2, i8.2, i8.1, i8.1), (i8.1, i8.2, i8.2, b1.1), (int, int, int, int), "
    "(int, int, int), (i8.1, i8.1, i4.3, i8.2, b1.1)"
)
def changed_vectors(
    fifos: IntArray,
    given: tuple[IntArray, IntArray, IntArray, IntArray],
    cells: tuple[IntArray, IntArray, IntArray, BoolArray],
    reading: Reading,
    place: tuple[int, int, int],
    out: tuple[IntArray, IntArray, Words, IntArray, BoolArray],
) -> int:
    """Vectors of all groups' lists that PEs read otherwise than they are meant; how many.

    fifos [PEs]: the row of the masks where each one's begins.  given: words as they are meant, and
    as they lie before the masks; where lists begin; places that the lanes of each vector take.
    cells: as for `read_lists`, and which rows have a failing cell.  place: lists of a group,
    filters of a group and of all.  out: the first vector behind those of each PE [PEs]; numbers of
    vectors [n]; of their lanes value, filter, row and column of the tap [n, lanes, 4]; added to,
    values that are not zero of each list [PEs, lists]; made true, whether a list goes on beyond
    what a position counts [1], so that its taps may begin again.
    """
    (meant, words, starts, steps), (column_bits, zero, one, fails) = given, cells
    (ends, numbers, lanes, values, far), (lists, size, filters) = out, place
    every = (np.int64(1) << POSITION_BITS) - 1
    none, all_ = np.int64(0), np.int64(-1)
    count = 0
    for pe in range(len(fifos)):
        for number in range(len(starts) - 1):
            group, own = divmod(number, lists)
            first = group * size
            most = min(size, filters - first)
            counted = np.int64(1) << (TAP_BITS + column_bits[own] + reading[3])
            counted = min(counted, every)
            at = was = np.int64(0)
            for vector in range(starts[number], starts[number + 1]):
                row = fifos[pe] + vector % reading[0]
                at, was = at & every, was & every
                if at == was and not fails[row]:
                    at = was = at + steps[vector]
                    continue
                changed, found = False, 0
                for lane in range(words.shape[1]):
                    own_cell = zero[row, lane], one[row, lane]
                    at, value, filter_, tap_row, tap_column = _element(
                        words[vector, lane], own_cell, at, column_bits[own], reading
                    )
                    was, right, its, its_row, its_column = _element(
                        meant[vector, lane], (none, all_), was, column_bits[own], reading
                    )
                    far[0] |= at > counted
                    if filter_ >= most:
                        value = np.int64(0)
                    changed |= value != right
                    if value:
                        changed |= filter_ != its or tap_row != its_row or tap_column != its_column
                    lanes[count, lane, 0], lanes[count, lane, 1] = value, first + filter_
                    lanes[count, lane, 2], lanes[count, lane, 3] = tap_row, tap_column
                    found += int(value != 0) - int(right != 0)
                if changed:
                    values[pe, own] += found
                    numbers[count] = vector
                    count += 1
        ends[pe] = count
    return count


@inlined
def _addresses(lanes: Words, place: tuple[int, int, int, int, int, int, int], found: Words) -> int:
    """Those of lanes with a value and a tap that may lead to an output; how many."""
    last_row, last_column, span, pitch, scale, nowhere, first = place
    count = 0
    for lane in range(len(lanes)):
        value, filter_, row = lanes[lane, 0], lanes[lane, 1], lanes[lane, 2]
        column = lanes[lane, 3]
        if value and row <= last_row and column <= last_column:
            away = (row * span + column) * pitch
            found[count] = (filter_ - first - away) * scale
            count += 1
    for lane in range(count, len(found)):
        found[lane] = nowhere
    return count


@kernel("i4.3, (i8.1, i8.1, i4.3), (int, int), (int, int, int, int, int, int, int), i8.1, i4.2")
def for_scan(
    meant: Words,
    changed: tuple[IntArray, IntArray, Words],
    group: tuple[int, int],
    place: tuple[int, int, int, int, int, int, int],
    counts: IntArray,
    found: Words,
) -> None:
    """Of vectors of all PEs, one behind the other, the addresses of lanes with a value and a tap
    that may lead to an output, in order, and how many they are.

    meant, changed: as for `add_changed`.  group: its first vector, and the one behind its last.
    place: last tap of rows and columns; addresses from a row to the next; Kp; by what addresses are
    multiplied; the address of lanes without; the group's first filter.
    """
    (ends, numbers, lanes), vectors = changed, group[1] - group[0]
    right = np.empty((vectors, found.shape[1]), np.int32)
    held = np.empty(vectors, np.int64)
    for vector in range(vectors):
        held[vector] = _addresses(meant[group[0] + vector], place, right[vector])
    for pe in range(len(ends)):
        first = pe * vectors
        for vector in range(vectors):
            counts[first + vector] = held[vector]
            for lane in range(found.shape[1]):
                found[first + vector, lane] = right[vector, lane]
        at = ends[pe - 1] if pe else np.int64(0)
        while at < ends[pe] and numbers[at] < group[0]:
            at += 1
        while at < ends[pe] and numbers[at] < group[1]:
            to = first + numbers[at] - group[0]
            counts[to] = _addresses(lanes[at], place, found[to])
            at += 1


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


__all__ = [
    "Cells",
    "Given",
    "Reading",
    "Weights",
    "changed_vectors",
    "for_scan",
    "place_elements",
    "put",
    "put_outputs",
    "read_lists",
]
