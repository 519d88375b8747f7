"""Sums of a pass whose operands fail: what they are meant to be, and what is read otherwise.

Sums are whole numbers that wrap, so that an element which is read as another one, or at another
place, takes its products from them and adds others (docs/adr/0066-changes-on-sound-sums.md).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from archsim.codecs.zero_run import Lists
from archsim.machines.scnn.addresses import outputs_of, position_bits
from archsim.machines.scnn.changed_kernels import (
    Words,
    add_changed,
    add_elements,
    add_products_sent,
    place_activations,
)  # fmt: skip
from archsim.machines.scnn.mapping import Mapping, first_outputs
from archsim.machines.scnn.seen_weights import Met, SeenWeights
from archsim.numbers import AnyIntArray, IntArray


def sums_changed(
    mapping: Mapping, lists: tuple[Lists, Lists], weight: AnyIntArray, meant: IntArray
) -> IntArray:
    """The sums [P, Q, K] that all PEs together have of what they see.

    lists: as they are meant, and as they are read; weight [K, R, S, C]; meant [P, Q, K]: the sums
    of the former.
    """
    whole, read = lists
    other = (whole.values != read.values) | (
        (whole.positions != read.positions) & (whole.values != 0)
    )
    vectors, lanes = np.nonzero(other)
    number = np.repeat(np.arange(len(whole)), whole.lengths)[vectors]
    sums = meant.copy()
    if not len(number):
        return sums
    each = [
        _elements(mapping, number, one.positions[vectors, lanes], sign * one.values[vectors, lanes])
        for sign, one in ((-1, whole), (1, read))
    ]
    add_elements(np.concatenate(each), _taps(mapping, weight), _regions(mapping), sums)
    return sums


def sums_of_seen(
    mapping: Mapping, lists: Lists, seen: SeenWeights, meant: IntArray
) -> tuple[IntArray, Met]:
    """The same of weights that every PE sees otherwise, and what its products were.

    lists: of activations, as they are read; meant [P, Q, K]: their sums with weights as these are
    meant.
    """
    changed, values = seen.changed()
    sums, products = meant.copy(), np.zeros(mapping.used_pes, np.int64)
    regions, (_, pitch, filters) = _regions(mapping), sums.shape
    every = lists.values.astype(np.int64, copy=False)
    one, two, three, four = np.empty((4, np.count_nonzero(every)), np.int64)
    activations = (one, two, three, four), np.empty(len(lists) + 1, np.int64)
    near = np.empty((mapping.used_pes, 4), np.int64)
    place_activations(
        (every, lists.positions, lists.starts), first_outputs(mapping),
        (regions, mapping.lists, pitch, filters), position_bits(mapping), activations, near,
    )  # fmt: skip
    add_products_sent(seen.counts, activations, regions, products)
    add_changed(
        (changed.ends, changed.numbers, changed.lanes), (seen.lanes, seen.list_of), activations,
        (regions, near, mapping.lists, pitch, filters), (sums.reshape(-1), products),
    )  # fmt: skip
    return sums, Met(products=products, values=values)


def _elements(
    mapping: Mapping, number: IntArray, positions: IntArray, values: IntArray
) -> IntArray:
    """As `add_elements` takes them; number: of the list of each."""
    some = values != 0
    pe, block = np.divmod(number[some], mapping.lists)
    outputs = outputs_of(mapping, number[some], positions[some])
    return np.stack([pe, block, *outputs, values[some]], axis=1)


def _taps(mapping: Mapping, weight: AnyIntArray) -> Words:
    """[lists, rows, columns, K] of weight [K, R, S, C], channel by channel, phase by phase."""
    rows, columns = mapping.rows, mapping.columns
    shape = mapping.channels, len(mapping.phases), rows.taps(0), columns.taps(0), len(weight)
    found = np.zeros(shape, np.int32)
    for number, (row, column) in enumerate(mapping.phases):
        cut = weight[:, row :: rows.stride, column :: columns.stride].transpose(3, 1, 2, 0)
        found[:, number, : cut.shape[1], : cut.shape[2]] = cut
    return found.reshape(-1, *shape[2:])


@lru_cache(maxsize=32)
def _regions(mapping: Mapping) -> IntArray:
    """[PEs, 4]: first row and column of each region, rows and columns."""
    found = np.empty((mapping.used_pes, 4), np.int64)
    for pe in range(mapping.used_pes):
        row, column = mapping.place(pe)
        both = mapping.rows.region(row), mapping.columns.region(column)
        found[pe] = *(one.start for one in both), *mapping.region_size(pe)
    return found


__all__ = ["sums_changed", "sums_of_seen"]
