"""The weights of a pass as the scan needs them, group by group, compiled.

Lists are those of `archsim.machines.scnn.lists.weight_lists`, in which a lane without a value takes
a place too; kept are the lanes with one, as the address that their weight adds
(`archsim.machines.scnn.addresses`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from archsim.kernels import kernel
from archsim.machines.scnn.backlog import SmallArray, padded
from archsim.machines.scnn.design import Scnn
from archsim.machines.scnn.kernels import BoolArray, Lists
from archsim.machines.scnn.mapping import Mapping
from archsim.numbers import AnyIntArray, IntArray, ceil_div


class Sizes(NamedTuple):
    """Of lists: Kp; addresses from a row of outputs to the next; the strides of rows and columns;
    lanes; bits of an index; 1 if zeros are stored; by what addresses are multiplied."""

    filter_pitch: int
    span_pitch: int
    row_stride: int
    column_stride: int
    lanes: int
    index_bits: int
    dense: int
    scale: int


class WeightLists:
    """Of weight [K, R, S, C].

    addresses: of a table; lanes without a value have the one behind.  scale: by what all addresses
    are multiplied.  taps [lists, taps of a phase]: weights that are not zero, of the filters of all
    groups so far.
    """

    def __init__(
        self, design: Scnn, mapping: Mapping, weight: AnyIntArray, addresses: int, scale: int
    ) -> None:
        rows, columns = mapping.rows, mapping.columns
        self._mapping = mapping
        self._stored = np.ascontiguousarray(weight != 0)
        self._phases = np.array(
            [
                (row, column, rows.taps(row), columns.taps(column), mapping.tap_pitch(column))
                for row, column in mapping.phases
            ]
        )
        places = rows.taps(0) * mapping.tap_pitch(0) * mapping.filter_pitch
        lists = mapping.lists * ceil_div(places, design.weight_lanes)
        self._room = lists, padded(design.weight_lanes)
        self._nowhere = addresses * scale
        self._sizes = Sizes(
            filter_pitch=mapping.filter_pitch,
            span_pitch=columns.addressed_extent,
            row_stride=rows.stride,
            column_stride=columns.stride,
            lanes=design.weight_lanes,
            index_bits=design.index_bits,
            dense=int(design.sparsity == "activations"),
            scale=scale,
        )
        self.taps = np.zeros((mapping.lists, rows.taps(0) * columns.taps(0)), np.int64)

    def group(self, group: int) -> Lists:
        """The lists of a group's filters."""
        first = group * self._mapping.group_size
        filters = first, first + self._mapping.group_filters(group)
        starts = np.zeros(self._mapping.lists + 1, np.int64)
        counts = np.zeros(self._room[0], np.int64)
        address = np.full(self._room, self._nowhere, np.int32)
        answer = starts, counts, address, self.taps
        write_lists(self._stored, filters, self._phases, self._sizes, answer)
        return starts, (counts[: starts[-1]], address[: starts[-1]])


@kernel("b1.4, (int,int), i8.2, Sizes(int,int,int,int,int,int,int,int), (i8.1, i8.1, i4.2, i8.2)")
def write_lists(
    stored: BoolArray,
    filters: tuple[int, int],
    phases: IntArray,
    sizes: Sizes,
    answer: tuple[IntArray, IntArray, SmallArray, IntArray],
) -> None:
    """Lists of every channel and phase, in this order.

    stored [K, R, S, C]: weights that are not zero.  filters: the first, and that behind the last.
    phases [phases, 5]: row, column, taps of both, the pitch of taps in a row.  sizes: `Sizes`.
    answer: first vectors; of each vector its lanes with a value, and their addresses, ahead of
    others; and taps, which are added to.
    """
    filter_pitch, span_pitch, row_stride, column_stride, lanes, index_bits, dense, scale = sizes
    starts, counts, address, taps = answer
    vector, first = 0, filters[0]
    for number in range(len(starts) - 1):
        channel, phase = divmod(number, len(phases))
        row, column, row_taps, column_taps, pitch = phases[phase]
        element, before = 0, -1  # elements of the list; the position of the last
        for r in range(row_taps):
            for s in range(column_taps):
                position = (r * pitch + s) * filter_pitch - first
                to_address = -(r * span_pitch + s) * filter_pitch - first
                for k in range(first, filters[1]):
                    value = stored[k, row + r * row_stride, column + s * column_stride, channel]
                    if value or dense:
                        element += (position + k - before - 1) >> index_bits
                        before = position + k
                        if value:
                            at = vector + element // lanes
                            address[at, counts[at]] = scale * (to_address + k)
                            counts[at] += 1
                            taps[number, r * column_taps + s] += 1
                        element += 1
        vector += max(1, (element + lanes - 1) // lanes)
        starts[number + 1] = vector


__all__ = ["WeightLists"]
