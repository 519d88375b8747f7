"""Sums of a pass that fail, where they are few.

An output is what a core with sound cells gives out unless one of the sums that become it fails: its
own, a halo's or a copy's, in whichever PE.  So only those outputs are walked, with all of their
sums, and laid over the others (docs/adr/0065-failing-sums-over-sound-ones.md).  What is walked is
what `archsim.machines.scnn.failing_sums` says, of operands as PEs read them
(docs/adr/0067-failing-sums-of-any-pass.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from archsim.codecs.zero_run import Lists
from archsim.machines.scnn.addresses import position_bits
from archsim.machines.scnn.axis import POSITION_BITS
from archsim.machines.scnn.design import Scnn
from archsim.machines.scnn.few_kernels import (
    Code,
    Edits,
    Grid,
    find_edits,
    move_sums,
    pool_words,
    put_elements,
    read_words,
)
from archsim.machines.scnn.mapping import Mapping, first_outputs
from archsim.machines.scnn.pooling import pooled_plane
from archsim.machines.scnn.seen_weights import SeenWeights
from archsim.machines.scnn.sum_cells import AfterSums, SumCells, moves_of, planes
from archsim.machines.scnn.sum_kernels import Words, add_in_order
from archsim.numbers import AnyIntArray, IntArray

MOST = 4
"""Of outputs as large a share of them all is walked alone as the weights that are not zero have of
theirs, so many times: a walk of the lists passes those alone."""

MANY = 6
"""Sums of a place that take as long one by one as those of all filters side by side."""


NO_CODE: Code = 1, np.zeros(0, np.int64), np.zeros(1, np.int64)
"""Of sums without check bits."""


class _Step(NamedTuple):
    """Sums that are sent, and to which; whether they stay where they were too."""

    sources: IntArray
    targets: IntArray
    kept: bool


class _Half(NamedTuple):
    """Sums that are walked: `Words`, and what past check bits is read of some; what is sent, step
    by step; which PEs give out, or see in windows, [m], and as which row, column and filter of the
    group [m, 3]."""

    own: Words
    code: Code
    moves: list[_Step]
    given: IntArray
    outputs: IntArray

    @property
    def words(self) -> IntArray:
        """PE, row, column and filter of the group [n, 4]."""
        return self.own[0]

    def read(self, sums: IntArray, bits: int) -> IntArray:
        """What is read of the sums [groups, n] that are given out, or seen."""
        found = np.empty((len(sums), len(self.given)), np.int64)
        read_words(sums, self.own[1:], self.given, self.code, 64 - bits, found)
        return found

    def move(self, sums: IntArray, bits: int) -> None:
        """Halos, then copies, of sums [groups, n]."""
        for step in self.moves:
            ends = step.sources, step.targets, step.kept
            move_sums(sums, self.own[1:], ends, self.code, 64 - bits)


class Seen(NamedTuple):
    """Operands of a pass as PEs read them: lists of activations, and whether they are others than
    were meant; weights that are meant [K, R, S, C], and what PEs read of them where FIFOs fail."""

    lists: Lists
    elsewhere: bool
    weight: AnyIntArray
    weights: SeenWeights | None

    def in_order(self, mapping: Mapping) -> bool:
        """Whether elements of a list lie one behind the other wherever they are read: positions
        have so many bits, and begin again behind the last."""
        if self.elsewhere:
            most = min((1 << POSITION_BITS) - 1, 1 << sum(position_bits(mapping)))
            if int(self.lists.positions.max(initial=0)) >= most:
                return False
        return self.weights is None or not self.weights.changed()[0].far


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

    def few_of(self, seen: Seen) -> bool:
        """Whether a pass with such operands is walked sooner where its sums fail."""
        mapping, weight = self.mapping, seen.weight
        if self.halves[0].masks is None and self.halves[0].coded is None:
            return False
        outputs = mapping.rows.outputs * mapping.columns.outputs * mapping.group_size
        walked = max(len(half.outputs) for half in self.each) / max(outputs, 1)
        if walked > MOST * np.count_nonzero(weight) / weight.size:
            return False
        return seen.in_order(mapping)


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
    for pe, (places, (down, right), looked_at) in enumerate(regions):
        walked[pe, :down, :right] = spoilt[places]
        own[pe][looked_at] = True
    number = np.cumsum(walked).reshape(walked.shape) - 1
    moves: list[_Step] = []
    for step in moves_of(mapping):
        ends = [
            tuple(number[end][walked[end]] for end in (move.source, move.target)) for move in step
        ]
        source, target = (np.concatenate(some) for some in zip(*ends, strict=True))
        moves.append(_Step(source, target, step[0].kept))
    words, masks = np.argwhere(walked), cells.masks
    given = np.flatnonzero(own[walked])
    first = np.array([[at.start for at in places] for places, _, _ in regions])
    outputs = words[given, 1:].copy()
    outputs[:, :2] += first[words[given, 0]]
    coded, code = np.zeros(len(words), np.bool_), NO_CODE
    if masks is None:
        assert cells.coded is not None
        masks, coded = (cells.coded.zero, cells.coded.one), fails[walked]
        code = cells.coded.bits, cells.coded.covers, cells.coded.corrections
    zero, one = (planes(mapping, mask)[walked] for mask in masks)
    zero[~coded & ~fails[walked]], one[~coded & ~fails[walked]] = 0, -1
    return _Half((words, zero, one, coded), code, moves, given, outputs)


@lru_cache(maxsize=1 << 10)
def _region(
    mapping: Mapping, pe: int
) -> tuple[tuple[slice, slice], tuple[int, int], tuple[slice, slice]]:
    """Of a PE its region in the plane, its size, and in it the outputs that the PE gives out, or
    looks at in its windows."""
    places, looked_at = list[slice](), list[slice]()
    for axis, at in zip((mapping.rows, mapping.columns), mapping.place(pe), strict=True):
        region = axis.region(at)
        mine = axis.seen(at) if mapping.pooled else axis.owned(at)
        places.append(slice(region.start, region.stop))
        begin = max(mine.start - region.start, 0)
        looked_at.append(slice(begin, begin + len(mine)))
    return (places[0], places[1]), mapping.region_size(pe), (looked_at[0], looked_at[1])


def given_of_few_sums(
    failing: FailingSums, seen: Seen, plane: IntArray, after: AfterSums
) -> IntArray:
    """The ofmap [U, V, K] that PEs make of their sums, pooled where the layer is; plane [P, Q, K]:
    what they make of sums that do not fail."""
    mapping, bits = failing.mapping, failing.design.accumulator_bits
    plane = plane.copy() if mapping.pooled else plane
    found = pooled_plane(plane, (mapping.rows.window, mapping.columns.window)).copy()
    for number, (half, own) in enumerate(zip(failing.each, _walked(failing, seen), strict=True)):
        half.move(own, bits)
        rows, columns, filters = half.outputs.T
        every = (np.arange(len(own))[:, None] * 2 + number) * mapping.group_size + filters
        some = every < mapping.filters
        filters = every[some]
        given = after.of(filters, half.read(own, bits)[some])
        rows, columns = (np.broadcast_to(one, every.shape)[some] for one in (rows, columns))
        if not mapping.pooled:
            found[rows, columns, filters] = given
            continue
        pes = np.broadcast_to(half.words[half.given, 0], every.shape)[some]
        order = np.argsort(pes, kind="stable")
        places = np.stack([rows, columns, filters], axis=1)[order]
        _pool(mapping, (places, pes[order], given[order]), plane, found)
    return found


def _pool(
    mapping: Mapping, words: tuple[IntArray, IntArray, IntArray], plane: IntArray, found: IntArray
) -> None:
    """Windows over words of PEs, as `pool_words` takes them."""
    axes = mapping.rows, mapping.columns
    places = [mapping.place(pe) for pe in range(mapping.used_pes)]
    each = [[axis.given(at[number]) for at in places] for number, axis in enumerate(axes)]
    down, right = (np.array([(one.start, one.stop) for one in some]) for some in each)
    rows, columns = (
        np.array([axis.window.size, axis.window.stride, axis.window.pad]) for axis in axes
    )
    pool_words(words, (down, right), (rows, columns), plane, found)


def _walked(failing: FailingSums, seen: Seen) -> tuple[IntArray, IntArray]:
    """Sums of both halves [groups in them, n], before they are moved."""
    mapping, bits, each = failing.mapping, failing.design.accumulator_bits, failing.each
    grid, places = _grid(mapping, seen)
    own = _weights(mapping, seen.weight, grid)
    activations = _activations(mapping, seen.lists, places)
    used = np.count_nonzero(own, axis=0)
    operands = activations, own, np.ascontiguousarray(own.T, np.int32), used
    met = *first_outputs(mapping), _edits(mapping, seen.weights, grid, own), grid
    pitch = mapping.input_pitch
    many = MANY if bits <= 32 else 0
    plane = places, pitch, pitch, mapping.group_size, mapping.filters, 64 - bits, many
    first, other = (
        np.zeros((len(range(half, mapping.groups, 2)), len(one.words)), np.int64)
        for half, one in enumerate(each)
    )
    sums = first, other, each[0].code
    add_in_order(each[0].own, each[1].own, sums, operands, met, plane)
    return first, other


def _grid(mapping: Mapping, seen: Seen) -> tuple[Grid, int]:
    """Taps at which PEs have weights; rows of places of activations that meet them."""
    rows, columns = mapping.rows, mapping.columns
    counts = np.array([(rows.taps(row), columns.taps(column)) for row, column in mapping.phases])
    if seen.weights is not None:
        counts = np.maximum(counts, seen.weights.last_taps() + 1)
    each = np.cumsum([0, *counts.prod(axis=1)])
    places = rows.phase_tile
    if seen.elsewhere:
        firsts = first_outputs(mapping)[0].min()
        reach = rows.extent + int(counts[:, 0].max()) - 1 - int(firsts)
        most = int(seen.lists.positions.max(initial=0)) // mapping.input_pitch + 1
        places = max(places, min(reach, most))
    return (int(each[-1]), each[:-1], counts), places


def _edits(mapping: Mapping, seen: SeenWeights | None, grid: Grid, weights: IntArray) -> Edits:
    """What PEs read of weights [K, C · taps] otherwise."""

    def found(seen: SeenWeights) -> Edits:
        changed = seen.changed()[0]
        ends = np.empty(len(changed.ends), np.int64)
        one, two, three, four = np.empty((4, 2 * changed.lanes[..., 0].size), np.int64)
        lanes = changed.ends, changed.numbers, changed.lanes
        as_meant = weights, weights.copy()
        out = ends, one, two, three, four
        count = find_edits(lanes, (seen.lanes, seen.list_of), grid, as_meant, out)
        return (
            ends,
            one[:count].copy(),
            two[:count].copy(),
            three[:count].copy(),
            four[:count].copy(),
        )

    if seen is not None:
        return seen.kept("edits", lambda: found(seen))
    none = np.zeros(0, np.int64)
    return np.zeros(mapping.used_pes, np.int64), none, none, none, none


def _activations(mapping: Mapping, lists: Lists, rows: int) -> IntArray:
    """[PEs, channels, phases · places], of so many rows of places."""
    found = np.zeros((len(lists), rows * mapping.input_pitch), np.int64)
    values = np.ascontiguousarray(lists.values, np.int64)
    put_elements((values, lists.positions, lists.starts.astype(np.int64)), found)
    return found.reshape(mapping.used_pes, mapping.channels, -1)


def _weights(mapping: Mapping, weight: AnyIntArray, grid: Grid) -> IntArray:
    """[K, C · taps] of [K, R, S, C], phase by phase."""
    down, right = mapping.rows.stride, mapping.columns.stride
    size, begins, counts = grid
    found = np.zeros((len(weight), mapping.channels, size), np.int64)
    for number, (row, column) in enumerate(mapping.phases):
        cut = weight[:, row::down, column::right].transpose(0, 3, 1, 2)
        own = np.zeros((*cut.shape[:2], *counts[number]), np.int64)
        own[:, :, : cut.shape[2], : cut.shape[3]] = cut
        flat = own.reshape(*cut.shape[:2], -1)
        found[:, :, begins[number] : begins[number] + flat.shape[2]] = flat
    return found.reshape(len(weight), -1)


__all__ = ["FailingSums", "Seen", "given_of_few_sums"]
