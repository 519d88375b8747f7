"""A pass whose lists are read from failing cells: what its PEs see, compute and give out.

A PE reads its ifmap from its IARAM, always in the same order, so that what it sees is a list again:
other values, and, where an index is read wrong, all that stand behind it at other places.  A place
beside the PE's tile is a place like any other: the value is multiplied, and what has an output in
the PE's region is added there.  The flags that end lists do not fail, so there are as many lists of
as many vectors, and nothing waits for what does not come.

Weights are read as wrongly where cells of FIFOs fail (`archsim.machines.scnn.seen_weights`), and
sums where those of accumulators do (`archsim.machines.scnn.failing_sums`).

The ofmap is computed of that, compressed, and read as wrongly when it leaves.  Its lists may be
longer than those that the strips were cut for: vectors behind an OARAM's last are lost, and lists
that end there end with a vector of nothing (docs/contracts/scnn.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

from archsim.codecs.zero_run import BoolArray, Lists
from archsim.machines.scnn.addresses import decoded
from archsim.machines.scnn.changed_lists import sums_changed, sums_of_seen
from archsim.machines.scnn.design import Scnn
from archsim.machines.scnn.failing_sums import given_of_failing_sums
from archsim.machines.scnn.few_sums import FailingSums, Seen, given_of_few_sums
from archsim.machines.scnn.lists import given_places, ofmap_lists, vectors_by_pe
from archsim.machines.scnn.mapping import Mapping
from archsim.machines.scnn.pooling import pooled_plane
from archsim.machines.scnn.seen_kernels import place_elements, put, put_outputs
from archsim.machines.scnn.seen_weights import SeenWeights
from archsim.machines.scnn.strips import Strip
from archsim.machines.scnn.sum_cells import AfterSums
from archsim.memory.seam import KeepsLists
from archsim.numbers import AnyIntArray, IntArray, wrap
from workloads.operands import Operands

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class SeenLists(Lists):
    """Lists as they are read: every lane has a position, as the core's decoder counts them.

    walked_rows: of memories that compress values, the rows that a walk over all of them uses up.
    """

    walked_rows: int | None = None

    @property
    def empty(self) -> BoolArray:
        """[lists]: whether a list is one vector without a value."""
        return (self.lengths == 1) & ~self.values[self.starts[:-1]].any(axis=1)


class Sound(NamedTuple):
    """What a strip gives out where no cell fails [U, V, K], and the sums [P, Q, K] before that,
    where they are known."""

    ofmap: IntArray
    sums: IntArray | None


class SeenByLayer:
    """What PEs read of weights in a layer's passes, and which of their sums fail: images of one cut
    read the same."""

    def __init__(self, design: Scnn) -> None:
        self.design = design
        self._known: dict[tuple[Any, ...], SeenWeights] = {}
        self._sums: dict[Mapping, FailingSums] = {}

    def sums_of(self, strip: Strip) -> FailingSums | None:
        """Of a strip; None where no cell of a bank fails."""
        if self.design.accumulator_memory.exact:
            return None
        made = FailingSums(design=self.design, mapping=strip.mapping)
        return self._sums.setdefault(strip.mapping, made)

    def of(self, strip: Strip) -> SeenWeights | None:
        """Of a strip; None where no cell of a FIFO fails."""
        if self.design.weight_memory.exact:
            return None
        weight, mapping = strip.operands.weight, strip.mapping
        key = int(weight.__array_interface__["data"][0]), weight.shape, mapping
        made = SeenWeights(design=self.design, mapping=mapping, weight=weight)
        return self._known.setdefault(key, made)


def seen_strip(
    by_layer: SeenByLayer,
    strip: Strip,
    operands: Operands,
    bias: IntArray | None,
    sound: Sound,
    *,
    relu: bool,
) -> Strip:
    """A strip with its lists as they are read, and what its PEs then give out (`Strip.values`).

    by_layer: what passes have in common; bias [K] of its filters.
    """
    design, mapping, meant = by_layer.design, strip.mapping, strip.operands
    seen, failing = by_layer.of(strip), by_layer.sums_of(strip)
    memory, read, met = design.activation_memory, None, None
    if not memory.exact:
        used = [mapping.place(pe) for pe in range(mapping.used_pes)]
        read = seen_lists(design, "iaram", meant.ifmap, used)
    lists = read or meant.ifmap
    after = AfterSums(
        bias=0 if bias is None else bias,
        scaling=(operands.multiplier, operands.shift),
        relu=relu,
        bits=design.operand_bits,
    )
    reads = Seen(lists, read is not None, meant.weight, seen)
    sums, few = _nothing(mapping), failing is None or failing.few_of(reads)
    known = read is None and seen is None and not mapping.pooled  # outputs, that is
    if few and not known:
        sums = _with_weights_as_meant(mapping, (meant.ifmap, read), meant.weight, sound.sums)
    if seen is not None:
        sums, met = sums_of_seen(mapping, lists, seen, sums)
    if few:
        plane = sound.ofmap
        if not known:
            plane = after.of(slice(None), wrap(sums, design.accumulator_bits))
        if failing is None:
            given = pooled_plane(plane, (mapping.rows.window, mapping.columns.window))
        else:
            given = given_of_few_sums(failing, reads, plane, after)
    else:
        assert failing is not None
        weights = seen or SeenWeights(design=design, mapping=mapping, weight=meant.weight)
        given = given_of_failing_sums(mapping, lists, weights, failing.halves, after)
    written = ofmap_lists(design, mapping, given)
    givers = [
        (row, column)
        for row in range(mapping.rows.givers)
        for column in range(mapping.columns.givers)
    ]
    leaves = None
    if not memory.exact or memory.by_value:
        leaves = seen_lists(design, "oaram", written, givers)
    left = _held(leaves or written, len(givers), design.oaram_entries)
    walked = read and read.walked_rows, leaves and leaves.walked_rows
    own = replace(meant, read=read, written=written, ofmap=left, walked=walked, seen=seen, met=met)
    values = given if left is written else given_out(mapping, left)
    return replace(strip, operands=own, values=values)


def _with_weights_as_meant(
    mapping: Mapping, lists: tuple[Lists, Lists | None], weight: AnyIntArray, sums: IntArray | None
) -> IntArray:
    """The sums [P, Q, K] of activations as they are read, where they fail, with weights as they are
    meant.  sums: of those that are meant, where they are known."""
    meant, read = lists
    if sums is None:
        return sums_of(mapping, read or meant, weight)
    return sums if read is None else sums_changed(mapping, (meant, read), weight, sums)


def seen_lists(design: Scnn, name: str, lists: Lists, places: list[tuple[int, int]]) -> SeenLists:
    """What is read of lists from the "iaram" or "oaram" of PEs at such places of the grid."""
    use, memory = design.stream_use(name), design.activation_memory
    numbers = np.array([row * design.grid_columns + column for row, column in places])
    if memory.by_value:
        assert isinstance(memory, KeepsLists), "a kind that stores by value says what is read"
        values, indices, walked = memory.lists_read(use, lists, numbers)
        return _seen(lists, values, indices, lists.starts, int(walked.sum()))
    each = vectors_by_pe(lists, len(places))
    first = np.concatenate([[0], np.cumsum(each)[:-1]])
    within = np.arange(lists.vectors) - np.repeat(first, each)
    rows = np.minimum(within, (1 << use.row_bits) - 1) + np.repeat(numbers << use.row_bits, each)
    values, indices = memory.as_read(use, (lists.values, lists.indices), rows)
    return _seen(lists, values, indices, lists.starts)


def _seen(
    of: Lists, values: IntArray, indices: IntArray, starts: IntArray, walked: int | None = None
) -> SeenLists:
    """Lists in the place of others."""
    positions = np.empty_like(indices)
    place_elements(indices, starts, positions)
    return SeenLists(
        values=values,
        indices=indices,
        positions=positions,
        starts=starts,
        index_bits=of.index_bits,
        walked_rows=walked,
    )


def sums_of(mapping: Mapping, lists: Lists, weight: AnyIntArray) -> IntArray:
    """The sums [P, Q, K] that all PEs together have of what they see; weight [K, R, S, C]."""
    found = _nothing(mapping)
    cuts = [_cut(mapping, weight, phase) for phase in mapping.phases]
    for tile in _tiles(mapping, lists):
        taps, shape = cuts[tile.number]
        region = found[tile.region]
        if not region.size or not tile.values.any():
            continue
        products = _windows(tile.values, region, shape).reshape(-1, len(taps)) @ taps
        region += products.reshape(region.shape).astype(np.int64)
    return found


def _windows(tile: Floats, region: IntArray, shape: tuple[int, int]) -> Floats:
    """[P, Q, channels, rows, columns]: what taps of a shape see from each output of a region."""
    height, width = shape[0] + region.shape[0] - 1, shape[1] + region.shape[1] - 1
    return sliding_window_view(tile[:height, :width], shape, axis=(0, 1))


def _cut(
    mapping: Mapping, weight: AnyIntArray, phase: tuple[int, int]
) -> tuple[Floats, tuple[int, int]]:
    """A phase's weights [channels, rows, columns of taps; K], and its taps along both axes."""
    cut = weight[:, phase[0] :: mapping.rows.stride, phase[1] :: mapping.columns.stride]
    taps = cut.transpose(3, 1, 2, 0).astype(np.float64).reshape(-1, len(cut))
    return taps, (cut.shape[1], cut.shape[2])


class _Tile(NamedTuple):
    """What a PE sees of a phase around its region, from the region's first output on: sums of
    values at each place [rows, columns, channels].

    number: of the phase; region: of the PE, in a plane of outputs."""

    number: int
    region: tuple[slice, slice]
    values: Floats


def _nothing(mapping: Mapping) -> IntArray:
    return np.zeros((mapping.rows.outputs, mapping.columns.outputs, mapping.filters), np.int64)


def _tiles(mapping: Mapping, lists: Lists) -> Iterator[_Tile]:
    """PE by PE, phase by phase."""
    rows, columns = mapping.rows, mapping.columns
    number = np.repeat(np.arange(len(lists)), lists.lengths)
    pe, block = np.divmod(number, mapping.lists)
    channel, phase = np.divmod(block, len(mapping.phases))
    y, x = decoded(mapping, lists.positions)
    ends = np.searchsorted(pe, np.arange(mapping.used_pes + 1))
    for at in range(mapping.used_pes):
        own = slice(ends[at], ends[at + 1])
        row, column = mapping.place(at)
        region = rows.region(row), columns.region(column)
        shape = (len(region[0]) + rows.last_tap, len(region[1]) + columns.last_tap)
        for which, (row_phase, column_phase) in enumerate(mapping.phases):
            vectors = np.flatnonzero(phase[own] == which) + ends[at]
            y0 = rows.first_output(row, row_phase)
            x0 = columns.first_output(column, column_phase)
            values = np.zeros((*shape, mapping.channels))
            put(
                np.ascontiguousarray(lists.values[vectors], np.int64), y[vectors] + y0,
                x[vectors] + x0, np.ascontiguousarray(channel[vectors]), values,
            )  # fmt: skip
            yield _Tile(which, (_slice(region[0]), _slice(region[1])), values)


def _slice(places: range) -> slice:
    return slice(places.start, places.stop)


def _held(lists: Lists, pes: int, depth: int) -> Lists:
    """What is read of lists in memories of so many vectors: those behind are lost, and a list of
    which the last is ends with one of nothing."""
    each = vectors_by_pe(lists, pes)
    if not len(each) or int(each.max()) <= depth:
        return lists
    first = np.repeat(np.concatenate([[0], np.cumsum(each)[:-1]]), len(lists) // pes)
    begin, end = lists.starts[:-1] - first, lists.starts[1:] - first
    stays = np.clip(depth - begin, 0, end - begin)
    starts = np.concatenate([[0], np.cumsum(np.where(end <= depth, stays, stays + 1))])
    values, indices = np.zeros((2, int(starts[-1]), lists.lanes), np.int64)
    before, number = np.cumsum(stays) - stays, np.arange(int(stays.sum()))
    to = number + np.repeat(starts[:-1] - before, stays)
    of = number + np.repeat(lists.starts[:-1] - before, stays)
    values[to], indices[to] = lists.values[of], lists.indices[of]
    return _seen(lists, values, indices, starts)


def given_out(mapping: Mapping, lists: Lists) -> IntArray:
    """The ofmap [U, V, K] that lists of outputs say; values beyond the last place are none."""
    rows, columns = mapping.rows, mapping.columns
    found = np.zeros((rows.window.outputs, columns.window.outputs, mapping.filters), np.int64)
    down, right = (np.stack(given_places(axis), axis=1) for axis in (rows, columns))
    put_outputs((lists.values, lists.positions, lists.starts), (down, right), found)
    return found


__all__ = [
    "SeenByLayer",
    "SeenLists",
    "Sound",
    "given_out",
    "seen_lists",
    "seen_strip",
    "sums_of",
]
