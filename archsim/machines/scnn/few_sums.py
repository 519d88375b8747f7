"""Sums of a pass that fail, where they are few and operands are read as they are meant.

An output is what a core with sound cells gives out unless one of the sums that become it fails: its
own, or a halo's, in whichever PE.  So only those outputs are walked, with all of their sums, and
laid over the others (docs/adr/0065-failing-sums-over-sound-ones.md).  What is walked is what
`archsim.machines.scnn.failing_sums` says; a pooled layer is walked there.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from archsim.codecs.zero_run import Lists, decode
from archsim.machines.scnn.design import Scnn
from archsim.machines.scnn.mapping import Mapping, first_outputs
from archsim.machines.scnn.sum_cells import AfterSums, SumCells, moves_of, planes, read_by
from archsim.machines.scnn.sum_kernels import Words, add_in_order, move_sums
from archsim.numbers import AnyIntArray, IntArray

MOST = 4
"""Of outputs as large a share of them all is walked alone as the weights that are not zero have of
theirs, so many times: a walk of the lists passes those alone."""

MANY = 6
"""Sums of a place that take as long one by one as those of all filters side by side."""


class _Half(NamedTuple):
    """Sums that are walked [n, 4]: PE, row, column, filter of the group; bits of them that read 1
    where 0 is stored, and where 1 is [n]; which are sent, and to which, step by step; which are
    given out [m], and as which row, column and filter of the group [m, 3]."""

    words: IntArray
    zero: IntArray
    one: IntArray
    moves: list[tuple[IntArray, IntArray]]
    given: IntArray
    outputs: IntArray

    def read(self, sums: IntArray, which: IntArray, bits: int) -> IntArray:
        """What is read of some sums [groups, n]."""
        return read_by((self.zero[which], self.one[which]), sums[:, which], bits)

    @property
    def own(self) -> Words:
        """As `add_in_order` takes them."""
        return self.words, self.zero, self.one


@dataclass(frozen=True, kw_only=True, eq=False)
class FailingSums:
    """Of passes of a mapping: what hangs on their cells alone."""

    design: Scnn
    mapping: Mapping

    @cached_property
    def halves(self) -> tuple[SumCells, SumCells]:
        """Both halves of the banks."""
        first, other = (
            SumCells(design=self.design, mapping=self.mapping, half=half) for half in range(2)
        )
        return first, other

    @cached_property
    def each(self) -> tuple[_Half, _Half]:
        """What is walked of both halves."""
        return _half(self.halves[0]), _half(self.halves[1])

    def few_of(self, weight: AnyIntArray) -> bool:
        """Whether a pass with such weights is walked sooner where its sums fail."""
        design, mapping = self.design, self.mapping
        exact = design.activation_memory.exact and design.weight_memory.exact
        if not exact or mapping.pooled or self.halves[0].masks is None:
            return False
        outputs = mapping.rows.outputs * mapping.columns.outputs * mapping.group_size
        walked = max(len(half.outputs) for half in self.each) / max(outputs, 1)
        return walked <= MOST * np.count_nonzero(weight) / weight.size


def _half(cells: SumCells) -> _Half:
    mapping = cells.mapping
    rows, columns = mapping.rows, mapping.columns
    fails = planes(mapping, cells.fails)
    spoilt = np.zeros((rows.outputs, columns.outputs, mapping.filter_pitch), np.bool_)
    walked, own = np.zeros_like(fails), np.zeros_like(fails)
    regions = [_region(mapping, pe) for pe in range(mapping.used_pes)]
    for pe, (places, (down, right), _) in enumerate(regions):
        spoilt[places] |= fails[pe, :down, :right]
    spoilt[:, :, mapping.group_size :] = False
    for pe, (places, (down, right), owned) in enumerate(regions):
        walked[pe, :down, :right] = spoilt[places]
        own[pe][owned] = True
    number = np.cumsum(walked).reshape(walked.shape) - 1
    moves: list[tuple[IntArray, IntArray]] = []
    for step in moves_of(mapping):
        ends = [
            tuple(number[end][walked[end]] for end in (move.source, move.target)) for move in step
        ]
        source, target = (np.concatenate(some) for some in zip(*ends, strict=True))
        moves.append((source, target))
    words, masks = np.argwhere(walked), cells.masks
    assert masks is not None
    given = np.flatnonzero(own[walked])
    first = np.array([[at.start for at in places] for places, _, _ in regions])
    outputs = words[given, 1:].copy()
    outputs[:, :2] += first[words[given, 0]]
    zero, one = (planes(mapping, mask)[walked] for mask in masks)
    return _Half(words, zero, one, moves, given, outputs)


@lru_cache(maxsize=1 << 10)
def _region(
    mapping: Mapping, pe: int
) -> tuple[tuple[slice, slice], tuple[int, int], tuple[slice, slice]]:
    """Of a PE its region in the plane, its size, and the PE's own outputs in it."""
    places, owned = list[slice](), list[slice]()
    for axis, at in zip((mapping.rows, mapping.columns), mapping.place(pe), strict=True):
        region, mine = axis.region(at), axis.owned(at)
        places.append(slice(region.start, region.stop))
        owned.append(slice(mine.start - region.start, mine.stop - region.start))
    return (places[0], places[1]), mapping.region_size(pe), (owned[0], owned[1])


def given_of_few_sums(
    failing: FailingSums, lists: Lists, weight: AnyIntArray, sound: IntArray, after: AfterSums
) -> IntArray:
    """The ofmap [P, Q, K] that PEs make of their sums; sound: what they make of sums that do not
    fail; weight [K, R, S, C]."""
    mapping, bits, found = failing.mapping, failing.design.accumulator_bits, sound.copy()
    own = _weights(mapping, weight)
    operands = _activations(mapping, lists), own, np.ascontiguousarray(own.T, np.int32)
    taps = *first_outputs(mapping), _taps(mapping)
    places = mapping.rows.phase_tile, mapping.input_pitch, mapping.input_pitch
    many = MANY if bits <= 32 else 0
    plane = *places, mapping.group_size, mapping.filters, 64 - bits, many
    first, second = failing.each
    own_sums, other_sums = (
        np.zeros((len(range(half, mapping.groups, 2)), len(one.words)), np.int64)
        for half, one in enumerate(failing.each)
    )
    sums = own_sums, other_sums
    add_in_order(first.own, second.own, sums, operands, taps, plane)
    for number, (half, own) in enumerate(zip(failing.each, sums, strict=True)):
        for source, target in half.moves:
            move_sums(own, (half.zero, half.one), (source, target), 64 - bits)
        rows, columns, filters = half.outputs.T
        every = (np.arange(len(own))[:, None] * 2 + number) * mapping.group_size + filters
        some = every < mapping.filters
        filters = every[some]
        given = after.of(filters, half.read(own, half.given, bits)[some])
        at = (np.broadcast_to(one, every.shape)[some] for one in (rows, columns))
        found[(*at, filters)] = given
    return found


def _activations(mapping: Mapping, lists: Lists) -> IntArray:
    return decode(lists, mapping.input_places).reshape(mapping.used_pes, mapping.channels, -1)


def _weights(mapping: Mapping, weight: AnyIntArray) -> IntArray:
    """[K, C · taps] of [K, R, S, C], phase by phase."""
    down, right = mapping.rows.stride, mapping.columns.stride
    each = [weight[:, row::down, column::right] for row, column in mapping.phases]
    flat = [one.reshape(len(one), -1, mapping.channels) for one in each]
    whole = np.concatenate(flat, axis=1).transpose(0, 2, 1)
    return np.ascontiguousarray(whole, np.int64).reshape(len(whole), -1)


@lru_cache(maxsize=32)
def _taps(mapping: Mapping) -> IntArray:
    rows, columns = mapping.rows, mapping.columns
    return np.array([(rows.taps(row), columns.taps(column)) for row, column in mapping.phases])


__all__ = ["FailingSums", "given_of_few_sums"]
