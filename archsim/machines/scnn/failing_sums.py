"""Sums of a pass whose cells fail: added to, moved and read one behind the other, as by the banks.

What is read of a failing cell does not commute with the additions behind it, so sums are walked in
the order of the hardware.  A queue gives products out as they come, and a pair's come from the
lowest i · F + f on, so that every sum is added to by pairs and lanes, whatever waits.  Then halos
go left, right, up and down, each sum read where it is and where it goes; copies alike; and outputs
are read, or the places of their windows.  What passes by the cells fails too.  A command begins
with the first half of the banks (docs/contracts/scnn.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from archsim.codecs.zero_run import BoolArray, Lists
from archsim.machines.scnn.addresses import outputs_of
from archsim.machines.scnn.design import Scnn
from archsim.machines.scnn.mapping import Mapping
from archsim.machines.scnn.pooling import largest_of_windows
from archsim.machines.scnn.seen_weights import SeenWeights
from archsim.machines.scnn.sum_cells import AfterSums, Move, SumCells, moves_of, planes
from archsim.machines.scnn.sum_kernels import Elements, Region, add_products
from archsim.numbers import IntArray, wrap

LEAST_ROOM = 1 << 12
"""Products of a PE and a group that are kept, of sums that are read by way of their cells."""

_NO_ROOM = np.zeros(0, np.int64), np.zeros(0, np.int64)


def given_of_failing_sums(
    mapping: Mapping,
    lists: Lists,
    weights: SeenWeights,
    halves: Sequence[SumCells],
    after: AfterSums,
) -> IntArray:
    """The ofmap [U, V, K] that PEs make of their sums, pooled where the layer is; lists: of
    activations, as they are read; halves: of the banks."""
    rows, columns = mapping.rows.window.outputs, mapping.columns.window.outputs
    found = np.zeros((rows, columns, mapping.filters), np.int64)
    activations, moves = _activations(mapping, lists), moves_of(mapping)
    for group in range(mapping.groups):
        sums = _Sums(mapping, halves[group % 2])
        sums.add(activations, weights, group)
        sums.move(mapping.group_filters(group), moves)
        first = group * mapping.group_size
        filters = slice(first, first + mapping.group_filters(group))
        sums.give(found, filters, after)
    return found


def failing_places(design: Scnn, mapping: Mapping, half: int) -> tuple[BoolArray, BoolArray]:
    """[PEs, rows, columns, filters of the pitch] of a half: whether a sum may be read otherwise
    than it was written; and of those, which are halos'."""
    fails = SumCells(design=design, mapping=mapping, half=half).fails
    every = planes(mapping, fails)
    sent = np.zeros_like(every)
    for moves in moves_of(mapping):
        for move in moves:
            sent[move.source] |= not move.kept
    return every, every & sent


def _elements(fields: tuple[IntArray, IntArray, IntArray, IntArray], starts: IntArray) -> Elements:
    """Of vectors [vectors, lanes]: values, rows, columns and addresses."""
    some = fields[0] != 0
    values, rows, columns, addresses = (np.ascontiguousarray(one[some]) for one in fields)
    vectors = np.concatenate([[0], np.cumsum(some.sum(axis=1))])
    return Elements(values, rows, columns, addresses, vectors, np.ascontiguousarray(starts))


def _activations(mapping: Mapping, lists: Lists) -> Elements:
    """Of all PEs: rows and columns of the outputs of their first taps in the region."""
    number = np.repeat(np.arange(len(lists)), lists.lengths)
    outputs = outputs_of(mapping, number, lists.positions)
    addresses = (outputs[0] * mapping.columns.extent + outputs[1]) * mapping.filter_pitch
    values = lists.values.astype(np.int64, copy=False)
    return _elements((values, outputs[0], outputs[1], addresses), lists.starts.astype(np.int64))


def _weights(weights: SeenWeights, group: int, pe: int) -> Elements:
    """Of a group, as a PE reads them."""
    mapping, every = weights.mapping, weights.read(group, slice(pe, pe + 1))
    values, filters, rows, columns = (one[0] for one in every)
    addresses = filters - (rows * mapping.columns.extent + columns) * mapping.filter_pitch
    return _elements((values, rows, columns, addresses), weights.starts(group))


class _Sums:
    """Of a group, in all PEs, where zeros are stored at first."""

    def __init__(self, mapping: Mapping, cells: SumCells) -> None:
        self._mapping, self._cells = mapping, cells
        self._bits = cells.design.accumulator_bits
        self._stored = np.zeros((mapping.used_pes, mapping.accumulators), np.int64)

    def add(self, activations: Elements, weights: SeenWeights, group: int) -> None:
        """All products of a group, in order."""
        mapping, lists = self._mapping, self._mapping.lists
        every = range(mapping.used_pes)
        # what each PE reads of weights in failing cells is its own
        some = [every] if weights.design.weight_memory.exact else [range(n, n + 1) for n in every]
        for pes in some:
            sizes = np.array([mapping.region_size(pe) for pe in pes], np.int64)
            own = activations.starts[pes.start * lists : pes.stop * lists + 1]
            given = activations._replace(starts=own), _weights(weights, group, pes.start)
            self._add(slice(pes.start, pes.stop), (*given, (sizes, lists, 64 - self._bits)))

    def _add(self, pes: slice, given: tuple[Elements, Elements, Region]) -> None:
        """Of some PEs; sums that are read by way of their cells take their n-th products at once,
        behind all others."""
        stored = self._stored[pes]
        if self._cells.masks is not None:
            zero, one = self._cells.masks
            none = np.zeros_like(stored, np.bool_)
            add_products(*given, (stored, zero[pes], one[pes]), (none, *_NO_ROOM))
            return
        zero, one, fails = np.zeros_like(stored), np.full_like(stored, -1), self._cells.fails[pes]
        found, (places, products) = LEAST_ROOM, _NO_ROOM
        while found > len(places):
            stored[:] = 0
            places, products = np.empty((2, found), np.int64)
            found = add_products(*given, (stored, zero, one), (fails, places, products))
        for at, more in _in_turns(places[:found], products[:found]):
            pe, address = np.divmod(at, self._mapping.accumulators)
            seen = self._cells.read_at((pe + pes.start, address), stored[pe, address])
            stored[pe, address] = wrap(seen + more, self._bits)

    def move(self, filters: int, every: Sequence[Sequence[Move]]) -> None:
        """Halos, then copies, of so many filters; every: those of a step, one after the other."""
        for moves in every:
            read = self._planes(self._cells.read(self._stored))
            stored = self._planes(self._stored)
            for move in moves:
                sent = read[move.source][..., :filters]
                if not move.kept:
                    stored[move.source][..., :filters] = 0
                there = read[move.target][..., :filters]
                stored[move.target][..., :filters] = wrap(there + sent, self._bits)

    def give(self, into: IntArray, filters: slice, after: AfterSums) -> None:
        """What PEs read and give out, into [U, V, K]."""
        mapping = self._mapping
        read = self._planes(self._cells.read(self._stored))[..., : filters.stop - filters.start]
        for pe in range(mapping.used_pes):
            row, column = mapping.place(pe)
            rows, columns = mapping.rows.given(row), mapping.columns.given(column)
            if not (rows and columns):
                continue
            plane, ends = after.of(filters, read[pe]), (rows, columns)
            for number, axis in enumerate((mapping.rows, mapping.columns)):
                at = axis.region((row, column)[number])
                moved = np.moveaxis(plane, number, 0)[: len(at)]
                moved = largest_of_windows(axis.window, ends[number], at.start, moved)
                plane = np.moveaxis(moved, 0, number)
            into[rows.start : rows.stop, columns.start : columns.stop, filters] = plane

    def _planes(self, sums: IntArray) -> IntArray:
        return planes(self._mapping, sums)


def _in_turns(places: IntArray, products: IntArray) -> Iterator[tuple[IntArray, IntArray]]:
    """The first product of every place, then the second ones, and so on."""
    order = np.argsort(places, kind="stable")
    _, first, counts = np.unique(places[order], return_index=True, return_counts=True)
    for turn in range(int(counts.max(initial=0))):
        some = order[first[counts > turn] + turn]
        yield places[some], products[some]


__all__ = ["failing_places", "given_of_failing_sums"]
