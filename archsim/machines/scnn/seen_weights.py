"""Weights of a pass as the PEs read them from FIFOs whose cells fail.

A FIFO then holds vectors as they cross, values and indices, and decodes them as they are read: of
each vector n of a pass, every PE has its own copy at place n mod D, and sees a list of its own.  An
index that is read wrong moves what stands behind it in its list, to other taps and filters; a
filter that the group has not is not multiplied, a tap that the kernel has not is one like any
other.  Flags that end lists do not fail (docs/contracts/scnn.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from archsim.codecs.zero_run import BoolArray, Lists
from archsim.machines.scnn.axis import POSITION_BITS, TAP_BITS
from archsim.machines.scnn.backlog import padded
from archsim.machines.scnn.design import Scnn
from archsim.machines.scnn.kernels import Lists as ScanLists
from archsim.machines.scnn.lists import weight_lists
from archsim.machines.scnn.mapping import Mapping
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


def positions_read(indices: IntArray, starts: IntArray) -> IntArray:
    """[..., vectors, lanes]: each lane takes a place behind its zeros; from a vector to the next
    POSITION_BITS are kept."""
    steps = np.cumsum(indices + 1, axis=-1)
    before = np.cumsum(steps[..., -1], axis=-1) - steps[..., -1]
    lists = np.repeat(before[..., starts[:-1]], np.diff(starts), axis=-1)
    base = (before - lists) & (1 << POSITION_BITS) - 1
    return base[..., None] + steps - 1


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
    def _masks(self) -> LaneMasks:
        design = self.design
        found = design.weight_memory.masks(design.use("weight"), design.weight_fifo_rows)
        assert found is not None, "the design has refused others"
        return found

    def read(self, group: int, pes: slice = slice(None)) -> Weights:
        """What some PEs read of a group's lists."""
        design, mapping, lists = self.design, self.mapping, self.meant[group]
        number = np.arange(lists.vectors) + self._firsts[group]
        place = number % design.weight_fifo_vectors
        rows = (self._numbers[pes, None] << design.weight_place_bits) + place
        low = (1 << design.operand_bits) - 1
        words = lists.values & low | lists.indices << design.operand_bits
        at = rows[..., None], np.arange(lists.lanes)
        read = self._masks.read_at(at, np.broadcast_to(words, (*rows.shape, lists.lanes)))
        sign = 1 << (design.operand_bits - 1)
        values = ((read & low) ^ sign) - sign
        indices = read >> design.operand_bits & (1 << design.index_bits) - 1
        position = positions_read(indices, lists.starts)
        filters = position & mapping.filter_pitch - 1
        tap = position >> (mapping.filter_pitch - 1).bit_length() & (1 << POSITION_BITS) - 1
        bits = [(mapping.tap_pitch(column) - 1).bit_length() for _, column in mapping.phases]
        of_lists = np.tile(np.array(bits), mapping.channels)
        bits_of = np.repeat(of_lists, lists.lengths)[:, None]
        return Weights(
            values=np.where(filters < mapping.group_filters(group), values, 0),
            filters=filters,
            rows=tap >> bits_of & (1 << TAP_BITS) - 1,
            columns=tap & (1 << bits_of) - 1,
        )

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
        phases, found = len(mapping.phases), np.zeros(mapping.lists, np.int64)
        places = phases, *size, mapping.channels
        lanes: list[IntArray] = []
        numbers: list[IntArray] = []
        for group, lists in enumerate(self.meant):
            read = self.read(group, slice(pe, pe + 1))
            number = np.repeat(np.arange(len(lists)), lists.lengths)
            values = (read.values[0] != 0).sum(axis=-1)
            found += np.bincount(number, values, len(lists)).astype(np.int64)
            leads = self.leads(read)[0]
            own = np.broadcast_to(number[:, None], leads.shape)[leads]
            channel, phase = np.divmod(own, phases)
            at = phase, read.rows[0][leads], read.columns[0][leads], channel
            filters = read.filters[0][leads] + group * mapping.group_size
            lanes.append(np.ravel_multi_index(at, places) * mapping.filters + filters)
            numbers.append(read.values[0][leads])
        where, every = np.concatenate(lanes), math.prod(places)
        taps = np.bincount(where, np.concatenate(numbers), every * mapping.filters)
        counts = np.bincount(where // mapping.filters, minlength=every).astype(np.float64)
        taps, counts = taps.reshape(*places, -1), counts.reshape(places)
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
        read = self.read(group)
        valued = self.leads(read)
        span = mapping.columns.addressed_extent
        to_address = read.filters - (read.rows * span + read.columns) * mapping.filter_pitch
        address = np.where(valued, to_address * scale, nowhere)
        first = np.argsort(~valued, axis=-1, kind="stable")
        lanes = lists.lanes
        found = np.full((valued.shape[0] * lists.vectors, padded(lanes)), nowhere, np.int32)
        found[:, :lanes] = np.take_along_axis(address, first, -1).reshape(-1, lanes)
        counts = valued.sum(axis=-1, dtype=np.int64).reshape(-1)
        return np.ascontiguousarray(lists.starts, np.int64), (counts, found)

    def leads(self, weights: Weights) -> BoolArray:
        """Which lanes have a value, and a tap that may lead to an output."""
        rows, columns = self.mapping.rows, self.mapping.columns
        near = (weights.rows <= rows.last_tap) & (weights.columns <= columns.last_tap)
        return near & (weights.values != 0)


class SeenWeightLists:
    """Those lists for the scan: what `archsim.machines.scnn.weights.WeightLists` is of others."""

    def __init__(self, seen: SeenWeights, addresses: int, scale: int) -> None:
        self._seen, self._table = seen, (addresses, scale)

    def group(self, group: int) -> ScanLists:
        """The lists of a group's filters."""
        return self._seen.for_scan(group, *self._table)


__all__ = ["Met", "SeenTaps", "SeenWeightLists", "SeenWeights", "Weights", "positions_read"]
