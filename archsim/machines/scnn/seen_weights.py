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
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from archsim.codecs.zero_run import Lists
from archsim.machines.scnn.backlog import padded
from archsim.machines.scnn.design import Scnn
from archsim.machines.scnn.kernels import Lists as ScanLists
from archsim.machines.scnn.lists import weight_lists
from archsim.machines.scnn.mapping import Mapping
from archsim.machines.scnn.seen_kernels import Cells, Given, Reading, add_taps, for_scan, read_lists
from archsim.memory.lane_masks import LaneMasks
from archsim.numbers import AnyIntArray, IntArray

Floats = npt.NDArray[np.float64]

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


class SeenTaps(NamedTuple):
    """Of a phase [rows, columns, channels, filters]; how many are not zero [rows, columns,
    channels]; those of the kernel's own taps, of that shape [channels, rows, columns; filters]; the
    other taps (row, column) with any."""

    values: Floats
    counts: Floats
    shape: tuple[int, int]
    kernel: Floats
    beside: list[tuple[int, int]]


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

    def taps(self, pe: int) -> tuple[tuple[SeenTaps, ...], IntArray]:
        """By phase, what a PE sees of all groups; values of each list that are not zero [lists]."""
        mapping = self.mapping
        size = mapping.rows.last_tap + 1, mapping.columns.last_tap + 1
        places = len(mapping.phases) * size[0] * size[1] * mapping.channels * mapping.filters
        if places * mapping.used_pes > MOST_KEPT:
            return self._taps(pe, size)
        return self._known(("taps", pe), lambda: self._taps(pe, size))

    def _taps(self, pe: int, size: tuple[int, int]) -> tuple[tuple[SeenTaps, ...], IntArray]:
        mapping = self.mapping
        places = len(mapping.phases), *size, mapping.channels
        taps, counts = np.zeros((*places, mapping.filters)), np.zeros(places)
        found = np.zeros(mapping.lists, np.int64)
        add_taps(
            *self._seen_by(pe, self._given[-1], 0), self._cells, self._reading,
            (mapping.lists, mapping.group_size, mapping.filters, size[0] - 1, size[1] - 1),
            (taps, counts, found),
        )  # fmt: skip
        each = zip(taps, counts, mapping.phases, strict=True)
        return tuple(self._of_phase(*one) for one in each), found

    def _of_phase(self, values: Floats, counts: Floats, phase: tuple[int, int]) -> SeenTaps:
        shape = self.mapping.rows.taps(phase[0]), self.mapping.columns.taps(phase[1])
        own = values[: shape[0], : shape[1]].transpose(2, 0, 1, 3)
        used = [(int(row), int(column)) for row, column in np.argwhere(counts.any(axis=2))]
        return SeenTaps(
            values=values,
            counts=counts,
            shape=shape,
            kernel=own.reshape(-1, self.mapping.filters),
            beside=[at for at in used if at[0] >= shape[0] or at[1] >= shape[1]],
        )

    def for_scan(self, group: int, addresses: int, scale: int) -> ScanLists:
        """A group's lists, with the lanes of every PE's vectors one behind the other; lanes without
        a value have the address behind a table of so many; all are multiplied by `scale`."""
        lanes = self.mapping.used_pes * int(self._firsts[-1]) * self.design.weight_lanes
        if lanes > MOST_KEPT:
            return self._for_scan(group, addresses, scale)
        key = "scan", group, addresses, scale
        return self._known(key, lambda: self._for_scan(group, addresses, scale))

    def _known(self, key: Any, make: Callable[[], Any]) -> Any:
        if key not in self._kept:
            self._kept[key] = make()
        return self._kept[key]

    def _for_scan(self, group: int, addresses: int, scale: int) -> ScanLists:
        mapping, lists, nowhere = self.mapping, self.meant[group], addresses * scale
        read, rows, columns = self.read(group), mapping.rows, mapping.columns
        found = np.empty((len(read.values) * lists.vectors, padded(lists.lanes)), np.int32)
        counts = np.empty(len(found), np.int64)
        place = (
            rows.last_tap, columns.last_tap, columns.addressed_extent, mapping.filter_pitch, scale,
            nowhere,
        )  # fmt: skip
        each = read.values, read.filters, read.rows, read.columns
        for_scan(each, place, counts, found)
        return self._given[group][1], (counts, found)


class SeenWeightLists:
    """Those lists for the scan: what `archsim.machines.scnn.weights.WeightLists` is of others."""

    def __init__(self, seen: SeenWeights, addresses: int, scale: int) -> None:
        self._seen, self._table = seen, (addresses, scale)

    def group(self, group: int) -> ScanLists:
        """The lists of a group's filters."""
        return self._seen.for_scan(group, *self._table)


__all__ = ["Met", "SeenTaps", "SeenWeightLists", "SeenWeights", "Weights"]
