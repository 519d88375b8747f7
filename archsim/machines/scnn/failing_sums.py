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
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from archsim.codecs.zero_run import BoolArray, Lists
from archsim.layer.values import requantize
from archsim.machines.scnn.addresses import decoded
from archsim.machines.scnn.axis import Axis
from archsim.machines.scnn.design import Scnn
from archsim.machines.scnn.mapping import Mapping
from archsim.machines.scnn.pooling import largest_of_windows
from archsim.machines.scnn.seen_weights import SeenWeights
from archsim.machines.scnn.sum_kernels import Elements, Region, add_products
from archsim.memory import Use
from archsim.memory.at_once import Reader, bit_by_bit, reader, words_that_fail
from archsim.numbers import IntArray, wrap

Kind = TypeVar("Kind", bound=np.generic)

LEAST_ROOM = 1 << 12
"""Products of a PE and a group that are kept, of sums that are read by way of their cells."""

_NO_ROOM = np.zeros(0, np.int64), np.zeros(0, np.int64)


class AfterSums(NamedTuple):
    """What becomes of sums: the bias of each filter [K], or 0; multiplier and shift; ReLU; bits of
    an output."""

    bias: IntArray | int
    scaling: tuple[int, int]
    relu: bool
    bits: int

    def of(self, filters: slice, sums: IntArray) -> IntArray:
        """Outputs of sums [..., filters]."""
        bias = self.bias if isinstance(self.bias, int) else self.bias[filters]
        return requantize(sums, bias, self.scaling, self.relu, self.bits)


def given_of_failing_sums(
    mapping: Mapping, lists: Lists, weights: SeenWeights, after: AfterSums
) -> IntArray:
    """The ofmap [U, V, K] that PEs make of their sums, pooled where the layer is; lists: of
    activations, as they are read."""
    rows, columns = mapping.rows.window.outputs, mapping.columns.window.outputs
    found = np.zeros((rows, columns, mapping.filters), np.int64)
    design, activations = weights.design, _activations(mapping, lists)
    halves = [_Cells(design=design, mapping=mapping, half=half) for half in range(2)]
    moves = [*_moves(mapping)]
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
    fails = _Cells(design=design, mapping=mapping, half=half).fails
    planes = _planes(mapping, fails)
    sent = np.zeros_like(planes)
    for moves in _moves(mapping):
        for move in moves:
            sent[move.source] |= not move.kept
    return planes, planes & sent


@dataclass(frozen=True, kw_only=True, eq=False)
class _Cells:
    """Of a half of the banks of a mapping's PEs, by the sums [PEs, addresses] that lie there."""

    design: Scnn
    mapping: Mapping
    half: int

    @cached_property
    def _use(self) -> Use:
        return self.design.use("accumulator").in_half(self.half)

    @cached_property
    def _words(self) -> IntArray:
        """[PEs, addresses]: the word of each sum among those of all banks."""
        design, mapping = self.design, self.mapping
        places = (mapping.place(pe) for pe in range(mapping.used_pes))
        pes = np.array([row * design.grid_columns + column for row, column in places])
        entry, bank = np.divmod(np.arange(mapping.accumulators), design.banks)
        return (pes[:, None] * design.banks + bank << design.bank_entry_bits) + entry

    @cached_property
    def masks(self) -> tuple[IntArray, IntArray] | None:
        """[PEs, addresses] each: bits that read 1 where 0 is stored, and where 1 is; None where
        bits do not fare by themselves."""
        memory, count = self.design.accumulator_memory, self.design.bank_words
        found = bit_by_bit(memory, self._use, count)
        return None if found is None else (found[0][self._words, 0], found[1][self._words, 0])

    @cached_property
    def fails(self) -> BoolArray:
        """[PEs, addresses]: whether a sum may be read otherwise than it was written."""
        memory, count = self.design.accumulator_memory, self.design.bank_words
        return words_that_fail(memory, self._use, count)[self._words]

    @cached_property
    def _reader(self) -> Reader:
        return reader(self.design.accumulator_memory, self._use, self.design.bank_words)

    def read_at(self, places: tuple[IntArray, IntArray], values: IntArray) -> IntArray:
        """What is read of values [n] stored at places: PEs and addresses, [n] each."""
        if self.masks is not None:
            zero, one = (mask[places] for mask in self.masks)
            return wrap(values & one | ~values & zero, self.design.accumulator_bits)
        return self._reader(self._words[places], values[:, None])[:, 0]

    def read(self, sums: IntArray) -> IntArray:
        """What is read of sums [PEs, addresses], all of them stored."""
        found, (pes, places) = sums.copy(), np.nonzero(self.fails)
        found[pes, places] = self.read_at((pes, places), sums[pes, places])
        return found


def _elements(fields: tuple[IntArray, IntArray, IntArray, IntArray], starts: IntArray) -> Elements:
    """Of vectors [vectors, lanes]: values, rows, columns and addresses."""
    some = fields[0] != 0
    values, rows, columns, addresses = (np.ascontiguousarray(one[some]) for one in fields)
    vectors = np.concatenate([[0], np.cumsum(some.sum(axis=1))])
    return Elements(values, rows, columns, addresses, vectors, np.ascontiguousarray(starts))


def _activations(mapping: Mapping, lists: Lists) -> Elements:
    """Of all PEs: rows and columns of the outputs of their first taps in the region."""
    number = np.repeat(np.arange(len(lists)), lists.lengths)
    pe, block = np.divmod(number, mapping.lists)
    phases = np.array(mapping.phases)[block % len(mapping.phases)].T
    places = np.divmod(pe, mapping.columns.pes)
    outputs: list[IntArray] = []
    for axis, at, phase, offset in zip(
        (mapping.rows, mapping.columns), places, phases, decoded(mapping, lists.positions),
        strict=True,
    ):  # fmt: skip
        first = np.array([axis.base(pe) for pe in range(axis.pes)])[at]
        first -= phase >= np.array([axis.threshold(pe) for pe in range(axis.pes)])[at]
        outputs.append(offset + first[:, None])
    addresses = (outputs[0] * mapping.columns.extent + outputs[1]) * mapping.filter_pitch
    values = lists.values.astype(np.int64, copy=False)
    return _elements((values, outputs[0], outputs[1], addresses), lists.starts.astype(np.int64))


def _weights(weights: SeenWeights, group: int, pe: int) -> Elements:
    """Of a group, as a PE reads them."""
    mapping, every = weights.mapping, weights.read(group, slice(pe, pe + 1))
    values, filters, rows, columns = (one[0] for one in every)
    addresses = filters - (rows * mapping.columns.extent + columns) * mapping.filter_pitch
    return _elements((values, rows, columns, addresses), weights.starts(group))


class _Move(NamedTuple):
    """Sums from a PE to another, rows and columns of either one's region; kept: also where they
    were."""

    source: tuple[int, slice, slice]
    target: tuple[int, slice, slice]
    kept: bool


class _Sums:
    """Of a group, in all PEs, where zeros are stored at first."""

    def __init__(self, mapping: Mapping, cells: _Cells) -> None:
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

    def move(self, filters: int, every: Sequence[Sequence[_Move]]) -> None:
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
        return _planes(self._mapping, sums)


def _planes(mapping: Mapping, sums: npt.NDArray[Kind]) -> npt.NDArray[Kind]:
    """A view [PEs, rows, columns, filters of the pitch] of sums [PEs, addresses]."""
    shape = mapping.rows.extent, mapping.columns.extent, mapping.filter_pitch
    return sums.reshape(len(sums), *shape)


def _in_turns(places: IntArray, products: IntArray) -> Iterator[tuple[IntArray, IntArray]]:
    """The first product of every place, then the second ones, and so on."""
    order = np.argsort(places, kind="stable")
    _, first, counts = np.unique(places[order], return_index=True, return_counts=True)
    for turn in range(int(counts.max(initial=0))):
        some = order[first[counts > turn] + turn]
        yield places[some], products[some]


def _moves(mapping: Mapping) -> Iterator[list[_Move]]:
    """Halos to the left, to the right, up and down, then copies."""
    for kept in (False, True):
        for across in (True, False):
            for step in (-1, 1):
                found = [*_moves_of(mapping, step, across=across, kept=kept)]
                if found:
                    yield found


def _moves_of(mapping: Mapping, step: int, *, across: bool, kept: bool) -> Iterator[_Move]:
    """Of every PE to the one before, or the next one, of its row (across) or of its column."""
    for pe in range(mapping.used_pes):
        place = mapping.place(pe)
        axis, at = (mapping.columns, place[1]) if across else (mapping.rows, place[0])
        if not 0 <= at + step < axis.pes:
            continue
        beside, other = (mapping.rows, place[0]) if across else (mapping.columns, place[1])
        moved = _copied(axis, at, step) if kept else _halo(axis, at, step)
        along = _along(beside, other, across=across, kept=kept)
        if not (moved and along):
            continue
        to = pe + step * (1 if across else mapping.columns.pes)
        ends: list[tuple[int, slice, slice]] = []
        for number, one in ((pe, at), (to, at + step)):
            pair = _in_region(along, beside.region(other)), _in_region(moved, axis.region(one))
            first, second = pair if across else pair[::-1]
            ends.append((number, first, second))
        yield _Move(source=ends[0], target=ends[1], kept=kept)


def _halo(axis: Axis, pe: int, step: int) -> range:
    """Outputs whose sums a PE sends to the one before, or to the next."""
    region = axis.region(pe)
    if step < 0:
        return range(region.start, region.start + axis.below(pe))
    return range(region.stop - axis.above(pe), region.stop)


def _copied(axis: Axis, pe: int, step: int) -> range:
    """Outputs that the PE before, or the next one, has in windows of its own."""
    own, (before, behind) = axis.owned(pe), axis.sent(pe)
    if step < 0:
        return range(own.start, own.start + before)
    return range(own.stop - behind, own.stop)


def _along(axis: Axis, pe: int, *, across: bool, kept: bool) -> range:
    """Outputs along the border that sums cross: all of a region to the sides and, up and down, the
    PE's own; of copies its own, then all that it holds."""
    own = axis.owned(pe)
    if not kept:
        return axis.region(pe) if across else own
    if across:
        return own
    return range(own.start - axis.copies_before(pe), own.stop + axis.copies_behind(pe))


def _in_region(outputs: range, region: range) -> slice:
    return slice(outputs.start - region.start, outputs.stop - region.start)


__all__ = ["AfterSums", "failing_places", "given_of_failing_sums"]
