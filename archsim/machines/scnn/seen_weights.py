"""Weights of a pass as the PEs read them from FIFOs whose cells fail.

A FIFO then holds vectors as they cross, values and indices, and decodes them as they are read: of
each vector n of a pass, every PE has its own copy at place n mod D, and sees a list of its own.  An
index that is read wrong moves what stands behind it in its list, to other taps and filters; a
filter that the group has not is not multiplied, a tap that the kernel has not is one like any
other.  Flags that end lists do not fail (docs/contracts/scnn.md).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from archsim.codecs.zero_run import Lists
from archsim.machines.scnn.backlog import padded
from archsim.machines.scnn.design import Scnn
from archsim.machines.scnn.kernels import BoolArray
from archsim.machines.scnn.kernels import Lists as ScanLists
from archsim.machines.scnn.lists import weight_lists
from archsim.machines.scnn.mapping import Mapping
from archsim.machines.scnn.seen_kernels import (
    Cells,
    Given,
    Reading,
    changed_vectors,
    for_scan,
    read_lists,
)  # fmt: skip
from archsim.memory.lane_masks import LaneMasks
from archsim.numbers import AnyIntArray, IntArray

Narrow = npt.NDArray[np.int32]
Kept = TypeVar("Kept")

MOST_KEPT = 1 << 25
"""Numbers of a pass that are kept for the next image."""


class Met(NamedTuple):
    """Products that PEs send [PEs]; weights that are not zero in their lists, of the filters of all
    groups [PEs, lists]."""

    products: IntArray
    values: IntArray


class Weights(NamedTuple):
    """Of PEs [PEs, vectors, lanes]: values, 0 of lanes that are not multiplied; the filter in its
    group; the tap of the phase."""

    values: IntArray
    filters: IntArray
    rows: IntArray
    columns: IntArray


class Changed(NamedTuple):
    """Vectors that PEs read otherwise: those behind the last one of each PE [PEs]; numbers in the
    pass [n]; lanes [n, lanes, 4]: value, filter, row and column of the tap.  far: whether positions
    of a list may begin again, so that elements are at one tap, or a later one at an earlier."""

    ends: IntArray
    numbers: IntArray
    lanes: Narrow
    far: bool


@dataclass(frozen=True, kw_only=True, eq=False)
class SeenWeights:
    """Of passes with weight [K, R, S, C]: what is found of it is kept where it is small."""

    design: Scnn
    mapping: Mapping
    weight: AnyIntArray
    _kept: dict[Any, Any] = field(default_factory=dict[Any, Any])

    @cached_property
    def meant(self) -> tuple[Lists, ...]:
        """Every group's lists as they are meant."""
        groups = range(self.mapping.groups)
        return tuple(weight_lists(self.design, self.mapping, self.weight, one) for one in groups)

    @cached_property
    def _firsts(self) -> IntArray:
        """The number of each group's first vector in the pass."""
        return np.cumsum([0, *(one.vectors for one in self.meant)])

    @cached_property
    def _numbers(self) -> IntArray:
        """Of the PEs that are used, in the grid."""
        places = (self.mapping.place(pe) for pe in range(self.mapping.used_pes))
        return np.array([row * self.design.grid_columns + column for row, column in places])

    @cached_property
    def _masks(self) -> LaneMasks | None:
        """Of the FIFOs of all PEs; None where none fails, or words are read otherwise than bit by
        bit."""
        design = self.design
        if design.weight_memory.exact:
            return None
        return design.weight_memory.masks(design.use("weight"), design.weight_fifo_rows)

    @cached_property
    def _cells(self) -> Cells:
        """With masks of words that were read already where there are none."""
        mapping, found = self.mapping, self._masks
        pitches = (mapping.tap_pitch(column) for _, column in mapping.phases)
        bits = np.array([(pitch - 1).bit_length() for pitch in pitches], np.int64)
        column_bits = np.tile(bits, mapping.channels)
        if found is None:
            shape = self.design.weight_fifo_vectors, self.design.weight_lanes
            return column_bits, np.zeros(shape, np.int64), np.full(shape, -1, np.int64)
        if_zero, if_one = (np.ascontiguousarray(one) for one in (found.if_zero, found.if_one))
        return column_bits, if_zero, if_one

    @cached_property
    def _words_read(self) -> npt.NDArray[np.int32]:
        """[PEs, vectors of a pass, lanes]: by way of the cells, as many vectors at once as lie in
        the FIFOs."""
        design, words = self.design, self._given[-1][0]
        kind, use, depth = design.weight_memory, design.use("weight"), design.weight_fifo_vectors
        found = np.empty((len(self._fifos), *words.shape), np.int32)
        held = np.zeros((design.pes, 1 << design.weight_place_bits, design.weight_lanes), np.int64)
        for first in range(0, len(words), depth):
            here = words[first : first + depth]
            held[:, : len(here)] = here
            flat = held.reshape(-1, held.shape[-1])
            read = kind.read_back(use, kind.stored(use, flat), len(flat)).reshape(held.shape)
            found[:, first : first + depth] = read[self._numbers, : len(here)]
        return found

    def _seen_by(self, pe: int, given: Given, first: int) -> tuple[int, Given]:
        """Where a PE's masks begin, and vectors from a number on as its masks take them."""
        if self._masks is not None:
            return int(self._fifos[pe]), given
        if self.design.weight_memory.exact:
            return 0, given
        words = self._words_read[pe, first : first + len(given[0])]
        return 0, (words.astype(np.int64), given[1])

    @cached_property
    def _reading(self) -> Reading:
        design, pitch = self.design, self.mapping.filter_pitch
        bits = design.operand_bits, design.index_bits, (pitch - 1).bit_length()
        return (design.weight_fifo_vectors, *bits)

    @cached_property
    def _given(self) -> tuple[Given, ...]:
        """Of each group, and of all one behind the other."""
        low, bits = (1 << self.design.operand_bits) - 1, self.design.operand_bits
        each = [one.values & low | one.indices << bits for one in self.meant]
        words = [np.ascontiguousarray(one, np.int64) for one in each]
        starts = [np.ascontiguousarray(one.starts, np.int64) for one in self.meant]
        behind = [one[:-1] + first for one, first in zip(starts, self._firsts, strict=False)]
        whole = np.concatenate([*behind, self._firsts[-1:]]).astype(np.int64)
        return (*zip(words, starts, strict=True), (np.concatenate(words), whole))

    @cached_property
    def _fifos(self) -> IntArray:
        """[PEs]: where each one's begins."""
        return self._numbers << self.design.weight_place_bits

    def read(self, group: int, pes: slice = slice(None)) -> Weights:
        """What some PEs read of a group's lists."""
        numbers, lists = range(len(self._fifos))[pes], self.meant[group]
        shape = len(numbers), lists.vectors, lists.lanes
        one, two, three, four = (np.empty(shape, np.int64) for _ in Weights._fields)
        out = one, two, three, four
        first = int(self._firsts[group]), self.mapping.group_filters(group)
        if self._masks is not None:
            fifos = np.ascontiguousarray(self._fifos[pes])
            read_lists(fifos, self._given[group], first, self._cells, self._reading, out)
            return Weights(*out)
        for row, pe in enumerate(numbers):
            fifo, given = self._seen_by(pe, self._given[group], first[0])
            at = slice(row, row + 1)
            into = one[at], two[at], three[at], four[at]
            read_lists(np.array([fifo]), given, first, self._cells, self._reading, into)
        return Weights(*out)

    def starts(self, group: int) -> IntArray:
        """Where each list of a group begins [lists + 1]."""
        return self._given[group][1]

    @cached_property
    def lanes(self) -> Narrow:
        """All vectors' lanes as they are meant, as `Changed.lanes`."""
        mapping, every = self.mapping, list[Narrow]()
        none = self._cells[0], np.zeros((1, self._lanes), np.int64)
        cells = (*none, np.full((1, self._lanes), -1, np.int64))
        reading = (1, *self._reading[1:])
        for group, (given, lists) in enumerate(zip(self._given, self.meant, strict=False)):
            shape = 1, lists.vectors, lists.lanes
            one, two, three, four = (np.empty(shape, np.int64) for _ in Weights._fields)
            out = one, two, three, four
            filters = mapping.group_filters(group)
            read_lists(np.zeros(1, np.int64), given, (0, filters), cells, reading, out)
            two[:] += group * mapping.group_size
            every.append(np.stack([field[0] for field in out], axis=-1).astype(np.int32))
        return np.concatenate(every)

    @cached_property
    def list_of(self) -> IntArray:
        """[vectors of the pass]: which list of its group each is in."""
        lengths = [one.lengths for one in self.meant]
        return np.concatenate([np.repeat(np.arange(len(one)), one) for one in lengths])

    @cached_property
    def counts(self) -> IntArray:
        """[lists, rows, columns]: weights that are not zero at each tap of a phase."""
        rows, columns = self.mapping.rows.taps(0), self.mapping.columns.taps(0)
        flat = self.lanes.reshape(-1, 4)
        some = flat[:, 0] != 0
        number = np.repeat(self.list_of, self.lanes.shape[1])[some]
        at = (number * rows + flat[some, 2]) * columns + flat[some, 3]
        each = np.bincount(at, minlength=self.mapping.lists * rows * columns)
        return each.reshape(self.mapping.lists, rows, columns)

    def changed(self) -> tuple[Changed, IntArray]:
        """What PEs read of all groups; values of each list that are not zero [PEs, lists]."""
        return self.kept("changed", self._changed)

    def kept(self, key: str, make: Callable[[], Kept]) -> Kept:
        """What is made of `changed`, kept for the next image as it is."""
        vectors = self._given[-1][0]
        if vectors.size * len(self._fifos) > MOST_KEPT:
            return make()
        return self._known(key, make)

    def last_taps(self) -> IntArray:
        """Row and column of the last taps at which PEs read other weights than were meant, of those
        that may lead to an output [2]."""
        return self._known("taps", self._last_taps)

    def _last_taps(self) -> IntArray:
        lanes = self.changed()[0].lanes
        some = lanes[lanes[..., 0] != 0]
        axes = self.mapping.rows, self.mapping.columns
        taps = (some[:, 2 + number] for number in range(2))
        near = (own[own <= axis.last_tap] for own, axis in zip(taps, axes, strict=True))
        return np.array([own.max(initial=0) for own in near], np.int64)

    def _changed(self) -> tuple[Changed, IntArray]:
        mapping, (words, starts) = self.mapping, self._given[-1]
        steps = (np.concatenate([one.indices for one in self.meant]) + 1).sum(axis=1)
        values = np.tile(self.counts.sum(axis=(1, 2)), (len(self._fifos), 1))
        place = mapping.lists, mapping.group_size, mapping.filters
        each, far = list[Changed](), np.zeros(1, np.bool_)
        slices = [slice(0, len(self._fifos))]
        if self._masks is None:
            slices = [slice(pe, pe + 1) for pe in range(len(self._fifos))]
        for pes in slices:
            count = pes.stop - pes.start
            ends, numbers = np.empty(count, np.int64), np.empty(count * len(words), np.int64)
            lanes = np.empty((len(numbers) + 1, self._lanes, 4), np.int32)
            own, fifos = words, np.ascontiguousarray(self._fifos[pes])
            if self._masks is None:
                fifos, own = (
                    np.zeros(1, np.int64),
                    self._seen_by(pes.start, self._given[-1], 0)[1][0],
                )
            found = changed_vectors(
                fifos, (words, own, starts, steps), (*self._cells, self._fails), self._reading,
                place, (ends, numbers, lanes, values[pes], far),
            )  # fmt: skip
            own_lanes = lanes[:found].copy()
            each.append(Changed(ends, numbers[:found].copy(), own_lanes, bool(far[0])))
        if len(each) == 1:
            return each[0], values
        before = np.cumsum([0, *(len(one.numbers) for one in each)])[:-1]
        ends = np.concatenate([one.ends + first for one, first in zip(each, before, strict=True)])
        numbers, lanes = (
            np.concatenate(one) for one in zip(*(one[1:3] for one in each), strict=True)
        )
        return Changed(ends, numbers, lanes, bool(far[0])), values

    @cached_property
    def _fails(self) -> BoolArray:
        """Of rows of the masks, whether one has a failing cell; all of rows without masks."""
        if self._masks is None:
            return np.ones(len(self._cells[1]), np.bool_)
        low = np.array([(1 << bits) - 1 for bits in self.design.use("weight").lane_bits])
        return (((self._cells[1] | ~self._cells[2]) & low) != 0).any(axis=1)

    @property
    def _lanes(self) -> int:
        return self.design.weight_lanes

    def for_scan(self, group: int, addresses: int, scale: int) -> ScanLists:
        """A group's lists, with the lanes of every PE's vectors one behind the other; lanes without
        a value have the address behind a table of so many; all are multiplied by `scale`."""
        lanes = self.mapping.used_pes * int(self._firsts[-1]) * self._lanes
        if lanes > MOST_KEPT:
            return self._for_scan(group, addresses, scale)
        key = "scan", group, addresses, scale
        return self._known(key, lambda: self._for_scan(group, addresses, scale))

    def _known(self, key: Any, make: Callable[[], Any]) -> Any:
        if key not in self._kept:
            self._kept[key] = make()
        return self._kept[key]

    def _for_scan(self, group: int, addresses: int, scale: int) -> ScanLists:
        mapping, lists = self.mapping, self.meant[group]
        rows, columns = mapping.rows, mapping.columns
        found = np.empty((len(self._fifos) * lists.vectors, padded(lists.lanes)), np.int32)
        counts = np.empty(len(found), np.int64)
        place = (
            rows.last_tap, columns.last_tap, columns.addressed_extent, mapping.filter_pitch, scale,
            addresses * scale, group * mapping.group_size,
        )  # fmt: skip
        ends = int(self._firsts[group]), int(self._firsts[group + 1])
        own = self.changed()[0]
        changed = own.ends, own.numbers, own.lanes
        for_scan(self.lanes, changed, ends, place, counts, found)
        return self._given[group][1], (counts, found)


class SeenWeightLists:
    """Those lists for the scan: what `archsim.machines.scnn.weights.WeightLists` is of others."""

    def __init__(self, seen: SeenWeights, addresses: int, scale: int) -> None:
        self._seen, self._table = seen, (addresses, scale)

    def group(self, group: int) -> ScanLists:
        """The lists of a group's filters."""
        return self._seen.for_scan(group, *self._table)


__all__ = ["Changed", "Met", "SeenWeightLists", "SeenWeights", "Weights"]
