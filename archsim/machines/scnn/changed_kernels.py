"""The kernels behind `archsim.machines.scnn.changed_lists`, compiled by numba."""

from __future__ import annotations

from typing import Any

import numpy as np

from archsim.kernels import inlined, kernel
from archsim.machines.scnn.seen_kernels import Words
from archsim.numbers import IntArray

Elements = tuple[IntArray, IntArray, IntArray, IntArray]
"""Of activations that are not zero: values; the output of their first tap in the PE's region, its
row and column; the place of its first filter's sum."""

Plane = tuple[IntArray, IntArray, Any, Any]
"""Of a PE its region, the first and last row and column of elements; Q and K."""


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


@inlined
def _add_element(
    weight: tuple[Any, Any, Any, Any], own: Elements, some: tuple[Any, Any], plane: Plane,
    sums: IntArray,
) -> Any:  # fmt: skip
    """Add a weight's products with some elements; how many of them have an output.

    weight: value, filter, row and column of its tap.
    """
    (values, y, x, bases), (region, near, pitch, filters) = own, plane
    value, filter_, row, column = weight
    away = (row * pitch + column) * filters - filter_
    height, width = region[2], region[3]
    if near[0] >= row and near[1] - row < height and near[2] >= column and near[3] - column < width:
        for n in range(np.uint64(some[0]), np.uint64(some[1])):
            sums[np.uint64(bases[n] - away)] += values[n] * value
        return some[1] - some[0]
    products = np.int64(0)
    for n in range(some[0], some[1]):
        if 0 <= y[n] - row < height and 0 <= x[n] - column < width:
            sums[np.uint64(bases[n] - away)] += values[n] * value
            products += 1
    return products


@kernel(
    "(i8.1, i8.1, i4.3), (i4.3, i8.1), ((i8.1, i8.1, i8.1, i8.1), i8.1), "
    "(i8.2, i8.2, int, int, int), (i8.1, i8.1)"
)
def add_changed(
    changed: tuple[IntArray, IntArray, Words],
    meant: tuple[Words, IntArray],
    activations: tuple[Elements, IntArray],
    pes: tuple[IntArray, IntArray, int, int, int],
    into: tuple[IntArray, IntArray],
) -> None:
    """Add to sums [P, Q, K], flat, and products [PEs] what weights make that PEs read otherwise.

    changed: as `changed_vectors` gives them.  meant: all vectors' lanes, and the list of a group
    that each is in.  activations: of all PEs, where each list's begin, and one more.  pes: regions
    [PEs, 4] as for `add_elements`; the first and last row and column of elements of each; lists of
    each; Q and K.
    """
    (ends, numbers, lanes), (right, list_of), (own, begins) = changed, meant, activations
    (regions, near, lists, pitch, filters), (sums, products) = pes, into
    for pe in range(len(ends)):
        plane = regions[pe], near[pe], pitch, filters
        for n in range(ends[pe - 1] if pe else 0, ends[pe]):
            vector = numbers[n]
            number = pe * lists + list_of[vector]
            some = begins[number], begins[number + 1]
            if some[0] == some[1]:
                continue
            for lane in range(lanes.shape[1]):
                value, filter_ = np.int64(lanes[n, lane, 0]), np.int64(lanes[n, lane, 1])
                row, column = np.int64(lanes[n, lane, 2]), np.int64(lanes[n, lane, 3])
                was, its = np.int64(right[vector, lane, 0]), np.int64(right[vector, lane, 1])
                its_row, its_column = (
                    np.int64(right[vector, lane, 2]), np.int64(right[vector, lane, 3]),
                )  # fmt: skip
                if filter_ == its and row == its_row and column == its_column:
                    if value != was:
                        weight = value - was, its, row, column
                        met = _add_element(weight, own, some, plane, sums)
                        products[pe] += (int(value != 0) - int(was != 0)) * met
                    continue
                if was:
                    weight = -was, its, its_row, its_column
                    products[pe] -= _add_element(weight, own, some, plane, sums)
                if value:
                    weight = value, filter_, row, column
                    products[pe] += _add_element(weight, own, some, plane, sums)


@kernel(
    "(i8.2, i8.2, i8.1), (i8.2, i8.2), (i8.2, int, int, int), (int, int), "
    "((i8.1, i8.1, i8.1, i8.1), i8.1), i8.2"
)
def place_activations(
    lists: tuple[IntArray, IntArray, IntArray],
    firsts: tuple[IntArray, IntArray],
    pes: tuple[IntArray, int, int, int],
    coding: tuple[int, int],
    out: tuple[Elements, IntArray],
    near: IntArray,
) -> None:
    """Activations of lists that are not zero, into `out`; where each list's begin, and one more;
    and the first and last row and column of those of each PE.

    lists: values and positions [vectors, lanes], and where each begins.  firsts [PEs, phases]: the
    output of each PE's first row of inputs at the first tap, in its region, and of its first
    column.  pes: regions [PEs, 4]; lists of each; Q and K.  coding: bits of a column in a position,
    and of a row.
    """
    (values, positions, starts), (regions, each, pitch, filters) = lists, pes
    (column_bits, row_bits), (found, begins) = coding, out
    count, phases = 0, firsts[0].shape[1]
    for pe in range(len(regions)):
        near[pe, 0] = near[pe, 1] = near[pe, 2] = near[pe, 3] = 0
        none = count
        for own in range(each):
            number, phase = pe * each + own, own % phases
            begins[number] = count
            for vector in range(starts[number], starts[number + 1]):
                for lane in range(values.shape[1]):
                    value, position = values[vector, lane], positions[vector, lane]
                    if value == 0:
                        continue
                    y = (position >> column_bits) & ((np.int64(1) << row_bits) - 1)
                    x = position & ((np.int64(1) << column_bits) - 1)
                    y, x = y + firsts[0][pe, phase], x + firsts[1][pe, phase]
                    place = (regions[pe, 0] + y) * pitch + regions[pe, 1] + x
                    found[0][count], found[1][count], found[2][count] = value, y, x
                    found[3][count] = place * filters
                    first = count == none
                    near[pe, 0] = y if first else min(near[pe, 0], y)
                    near[pe, 1] = y if first else max(near[pe, 1], y)
                    near[pe, 2] = x if first else min(near[pe, 2], x)
                    near[pe, 3] = x if first else max(near[pe, 3], x)
                    count += 1
    begins[len(starts) - 1] = count


@kernel("i8.3, ((i8.1, i8.1, i8.1, i8.1), i8.1), i8.2, i8.1")
def add_products_sent(
    counts: IntArray,
    activations: tuple[Elements, IntArray],
    regions: IntArray,
    products: IntArray,
) -> None:
    """Add to products [PEs] those of all activations, as for `add_changed`, with weights that lead
    to an output; counts [lists, rows, columns]: of each tap those that are not zero."""
    ((_, y, x, _), begins), lists = activations, len(counts)
    for pe in range(len(products)):
        height, width = regions[pe, 2], regions[pe, 3]
        for number in range(lists):
            own = counts[number]
            for n in range(begins[pe * lists + number], begins[pe * lists + number + 1]):
                down, right = y[n], x[n]
                for row in range(max(0, down - height + 1), min(len(own), down + 1)):
                    last = min(own.shape[1], right + 1)
                    for column in range(max(0, right - width + 1), last):
                        products[pe] += own[row, column]


__all__ = [
    "Elements",
    "Words",
    "add_changed",
    "add_elements",
    "add_products_sent",
    "place_activations",
]
