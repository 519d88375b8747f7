"""A pass whose lists are read from failing cells: what its PEs see, compute and give out.

A PE reads its ifmap from its IARAM, always in the same order, so that what it sees is a list again:
other values, and, where an index is read wrong, all that stand behind it at other places.  A place
beside the PE's tile is a place like any other: the value is multiplied, and what has an output in
the PE's region is added there.  The flags that end lists do not fail, so there are as many lists of
as many vectors, and nothing waits for what does not come.

The ofmap is computed of that, compressed, and read as wrongly when it leaves.  Its lists may be
longer than those that the strips were cut for: vectors behind an OARAM's last are lost, and lists
that end there end with a vector of nothing (docs/contracts/scnn.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from archsim.codecs.zero_run import BoolArray, Lists
from archsim.layer.values import requantize
from archsim.machines.scnn.addresses import decoded
from archsim.machines.scnn.axis import POSITION_BITS
from archsim.machines.scnn.design import Scnn
from archsim.machines.scnn.lists import given_places, ofmap_lists, vectors_by_pe
from archsim.machines.scnn.mapping import Mapping
from archsim.machines.scnn.pooling import Window
from archsim.machines.scnn.strips import Strip
from archsim.numbers import AnyIntArray, IntArray, wrap
from workloads.operands import Operands

Floats = npt.NDArray[np.float64]

LOWEST = np.iinfo(np.int64).min
"""What is below every output, beside the plane of a window."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SeenLists(Lists):
    """Lists as they are read: every lane has a position, as the core's decoder counts them."""

    @property
    def empty(self) -> BoolArray:
        """[lists]: whether a list is one vector without a value."""
        return (self.lengths == 1) & ~self.values[self.starts[:-1]].any(axis=1)


def seen_strip(
    design: Scnn, strip: Strip, operands: Operands, bias: IntArray | None, *, relu: bool
) -> Strip:
    """A strip with its lists as they are read, and what its PEs then give out (`Strip.values`).

    bias [K] of its filters.
    """
    mapping, meant = strip.mapping, strip.operands
    used = [mapping.place(pe) for pe in range(mapping.used_pes)]
    read = seen_lists(design, "iaram", meant.ifmap, used)
    sums = wrap(sums_of(mapping, read, meant.weight), design.accumulator_bits)
    scaling = operands.multiplier, operands.shift
    plane = requantize(sums, 0 if bias is None else bias, scaling, relu, design.operand_bits)
    windows = mapping.rows.window, mapping.columns.window
    written = ofmap_lists(design, mapping, _pooled(plane, windows))
    givers = [
        (row, column)
        for row in range(mapping.rows.givers)
        for column in range(mapping.columns.givers)
    ]
    left = _held(seen_lists(design, "oaram", written, givers), len(givers), design.oaram_vectors)
    own = replace(meant, read=read, written=written, ofmap=left)
    return replace(strip, operands=own, values=given_out(mapping, left))


def seen_lists(design: Scnn, name: str, lists: Lists, places: list[tuple[int, int]]) -> SeenLists:
    """What is read of lists from the "iaram" or "oaram" of PEs at such places of the grid."""
    use, each = design.stream_use(name), vectors_by_pe(lists, len(places))
    first = np.concatenate([[0], np.cumsum(each)[:-1]])
    numbers = np.array([row * design.grid_columns + column for row, column in places])
    within = np.arange(lists.vectors) - np.repeat(first, each)
    rows = np.minimum(within, (1 << use.row_bits) - 1) + np.repeat(numbers << use.row_bits, each)
    elements = lists.values, lists.indices
    values, indices = design.activation_memory.as_read(use, elements, rows)
    return _seen(lists, values, indices, lists.starts)


def _seen(of: Lists, values: IntArray, indices: IntArray, starts: IntArray) -> SeenLists:
    """Lists in the place of others."""
    return SeenLists(
        values=values,
        indices=indices,
        positions=_positions(indices, starts),
        starts=starts,
        index_bits=of.index_bits,
    )


def _positions(indices: IntArray, starts: IntArray) -> IntArray:
    """[vectors, lanes]: each lane takes a place behind its zeros; from a vector to the next
    POSITION_BITS are kept."""
    steps = np.cumsum(indices + 1, axis=1)
    before = np.concatenate([[0], np.cumsum(steps[:, -1])])
    lists = np.repeat(before[starts[:-1]], np.diff(starts))
    base = (before[:-1] - lists) & (1 << POSITION_BITS) - 1
    return base[:, None] + steps - 1


def sums_of(mapping: Mapping, lists: SeenLists, weight: AnyIntArray) -> IntArray:
    """The sums [P, Q, K] that all PEs together have of what they see; weight [K, R, S, C]."""
    rows, columns = mapping.rows, mapping.columns
    found = np.zeros((rows.outputs, columns.outputs, mapping.filters), np.int64)
    lengths = lists.lengths
    number = np.repeat(np.arange(len(lists)), lengths)
    pe, block = np.divmod(number, mapping.lists)
    channel, phase = np.divmod(block, len(mapping.phases))
    y, x = decoded(mapping, lists.positions)
    ends = np.searchsorted(pe, np.arange(mapping.used_pes + 1))
    taps = weight.astype(np.float64)
    for at in range(mapping.used_pes):
        own = slice(ends[at], ends[at + 1])
        row, column = mapping.place(at)
        for which, (row_phase, column_phase) in enumerate(mapping.phases):
            vectors = np.flatnonzero(phase[own] == which) + ends[at]
            y0 = rows.base(row) - (row_phase >= rows.threshold(row))
            x0 = columns.base(column) - (column_phase >= columns.threshold(column))
            tile = np.zeros(
                (
                    len(rows.region(row)) + rows.taps(row_phase) - 1,
                    len(columns.region(column)) + columns.taps(column_phase) - 1,
                    mapping.channels,
                )
            )
            _place(tile, lists.values[vectors], (y[vectors] + y0, x[vectors] + x0),
                   channel[vectors])  # fmt: skip
            cut = taps[:, row_phase :: rows.stride, column_phase :: columns.stride]
            region = found[_slice(rows.region(row)), _slice(columns.region(column))]
            for part in _products(tile, cut, region.shape[:2]):
                region += part.astype(np.int64)
    return found


def _slice(places: range) -> slice:
    return slice(places.start, places.stop)


def _place(
    tile: Floats, values: IntArray, places: tuple[IntArray, IntArray], channel: IntArray
) -> None:
    """Put elements into a tile [rows, columns, channels], those that lie in it."""
    y, x = places
    inside = (values != 0) & (y >= 0) & (y < tile.shape[0]) & (x >= 0) & (x < tile.shape[1])
    channels = np.broadcast_to(channel[:, None], values.shape)
    np.add.at(tile, (y[inside], x[inside], channels[inside]), values[inside])


def _products(tile: Floats, taps: Floats, shape: tuple[int, ...]) -> Iterator[Floats]:
    """A tap's part of the sums each: that of output p, tap r' is of row p + r'."""
    if not tile.any():
        return
    for row in range(taps.shape[1]):
        for column in range(taps.shape[2]):
            seen = tile[row : row + shape[0], column : column + shape[1]]
            yield seen @ taps[:, row, column].T


def _pooled(plane: IntArray, windows: tuple[Window, Window]) -> IntArray:
    """[U, V, K] of [P, Q, K]: the largest of each window, which is one output without pooling."""
    for axis, window in enumerate(windows):
        moved = np.moveaxis(plane, axis, 0)
        found = np.full((window.outputs, *moved.shape[1:]), LOWEST)
        for place in range(window.size):
            at = np.arange(window.outputs) * window.stride - window.pad + place
            inside = (at >= 0) & (at < len(moved))
            found[inside] = np.maximum(found[inside], moved[at[inside]])
        plane = np.moveaxis(found, 0, axis)
    return plane


def _held(lists: SeenLists, pes: int, depth: int) -> SeenLists:
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


def given_out(mapping: Mapping, lists: SeenLists) -> IntArray:
    """The ofmap [U, V, K] that lists of outputs say; values beyond the last place are none."""
    rows, columns = mapping.rows, mapping.columns
    found = np.zeros((rows.window.outputs, columns.window.outputs, mapping.filters), np.int64)
    (first_row, heights), (first_column, widths) = given_places(rows), given_places(columns)
    number = np.repeat(np.arange(len(lists)), lists.lengths)
    pe, filter_ = np.divmod(number, mapping.filters)
    at_row, at_column = np.divmod(pe, columns.givers)
    y, x = np.divmod(lists.positions, widths[at_column][:, None])
    inside = (lists.values != 0) & (y < heights[at_row][:, None])
    whole = np.broadcast_to(filter_[:, None], y.shape)
    place = (y + first_row[at_row][:, None])[inside], (x + first_column[at_column][:, None])[inside]
    found[(*place, whole[inside])] = lists.values[inside]
    return found


__all__ = ["SeenLists", "given_out", "seen_lists", "seen_strip", "sums_of"]
