"""The lists of a pass: activations by PE, weights by group of filters, outputs by PE.

An operand whose sparsity the design does not use is stored with its zeros: every position that
there is in the tile or the kernel is an element of its list.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt

from archsim.codecs.zero_run import NOWHERE, BoolArray, Lists, encode
from archsim.machines.scnn.axis import Axis
from archsim.machines.scnn.design import Scnn
from archsim.machines.scnn.mapping import Mapping
from archsim.numbers import AnyIntArray, IntArray, ceil_div


def ifmap_lists(design: Scnn, mapping: Mapping, plane: AnyIntArray) -> Lists:
    """Of plane [H, W, C]: for each PE, for each channel, for each phase.

    position = y' · `input_pitch` + x', counted in the phase from the PE's first row and column.
    """
    rows = _phase_places(mapping.rows, mapping.rows.phase_tile)[:, None, :, None, :, None]
    columns = _phase_places(mapping.columns, mapping.input_pitch)[None, :, None, :, None, :]
    tiles = np.moveaxis(_padded(plane)[rows, columns], -1, 2)
    kept = None
    if design.sparsity == "weights":
        present = (rows != NOWHERE) & (columns != NOWHERE)
        kept = np.broadcast_to(present[:, :, None], tiles.shape).reshape(-1, mapping.input_places)
    return encode(
        tiles.reshape(-1, mapping.input_places),
        lanes=design.ifmap_lanes,
        index_bits=design.index_bits,
        kept=kept,
    )


def _phase_places(axis: Axis, length: int) -> IntArray:
    """The inputs of each PE in each phase, NOWHERE behind them [PEs, phases, length]."""
    places = np.full((axis.pes, axis.phases, length), NOWHERE)
    for pe in range(axis.pes):
        for phase in range(axis.phases):
            found = axis.phase_inputs(pe, phase)
            places[pe, phase, : len(found)] = found
    return places


def _padded(plane: AnyIntArray) -> AnyIntArray:
    """With a row and a column of zeros behind, which are those at NOWHERE."""
    return np.pad(plane, ((0, 1), (0, 1), (0, 0)))


def weight_lists(design: Scnn, mapping: Mapping, weight: AnyIntArray, group: int) -> Lists:
    """Of weight [K, R, S, C], one group's filters: for each channel, for each phase.

    position = (r' · `tap_pitch` + s') · `filter_pitch` + k.
    """
    first, filters = group * mapping.group_size, mapping.group_filters(group)
    part = weight[first : first + filters]
    widths = [mapping.tap_pitch(column) for _, column in mapping.phases]
    shape = (len(mapping.phases), mapping.rows.taps(0) * max(widths), mapping.filter_pitch)
    taps, present = np.zeros((*shape, mapping.channels), weight.dtype), np.zeros(shape, np.bool_)
    for number, (row_phase, column_phase) in enumerate(mapping.phases):
        stride = mapping.rows.stride, mapping.columns.stride
        cut = part[:, row_phase :: stride[0], column_phase :: stride[1]].transpose(1, 2, 0, 3)
        for row in range(len(cut)):
            start = row * widths[number]
            at = (number, slice(start, start + cut.shape[1]), slice(0, filters))
            taps[at], present[at] = cut[row], True
    flat = np.moveaxis(taps, -1, 0).reshape(mapping.lists, -1)
    return encode(
        flat,
        lanes=design.weight_lanes,
        index_bits=design.index_bits,
        kept=_kept(present, mapping.channels) if design.sparsity == "activations" else None,
    )


def ofmap_lists(design: Scnn, mapping: Mapping, ofmap: AnyIntArray) -> Lists:
    """Of ofmap [P, Q, K], pooled where the layer is: for each PE that gives outputs out, for each
    filter.

    position = row · its columns + column, both counted from the PE's first output.
    """
    first_row, heights = given_places(mapping.rows)
    first_column, widths = given_places(mapping.columns)
    positions = np.arange(mapping.rows.give * mapping.columns.give)
    row, column = np.divmod(positions, widths[:, None])
    present = row < heights[:, None, None]
    rows = np.where(present, first_row[:, None, None] + row, NOWHERE)
    columns = np.where(present, first_column[:, None] + column, NOWHERE)
    places = np.moveaxis(_padded(ofmap)[rows, columns], -1, 2)
    kept = None
    if design.sparsity == "weights":
        kept = np.broadcast_to(present[:, :, None], places.shape).reshape(-1, len(positions))
    return encode(
        places.reshape(-1, len(positions)),
        lanes=design.ifmap_lanes,
        index_bits=design.index_bits,
        kept=kept,
    )


def ofmap_writes(mapping: Mapping, lists: Lists) -> int:
    """Vectors that are written to the OARAMs: those of the ofmap's lists, and what is written again
    or taken back as a list grows (`Lists.writes`)."""
    if mapping.keep_ofmap:
        places = np.array(mapping.rows.give * mapping.output_pitch)
    else:
        (_, heights), (_, widths) = given_places(mapping.rows), given_places(mapping.columns)
        places = np.repeat(np.outer(heights, widths).ravel(), mapping.filters)
    return lists.writes(places)


def given_places(axis: Axis) -> tuple[IntArray, IntArray]:
    """First output and number of outputs of each PE that gives some out."""
    given = [axis.given(pe) for pe in range(axis.givers)]
    return np.array([one.start for one in given]), np.array([len(one) for one in given])


def vectors_by_pe(lists: Lists, pes: int) -> npt.NDArray[np.int64]:
    """Vectors of each PE, if all of them have as many lists."""
    return np.diff(lists.starts[:: len(lists) // pes])


def longest_list(design: Scnn, mapping: Mapping, weight: AnyIntArray) -> int:
    """The longest list of weights [K, R, S, C] of a pass, in vectors."""
    groups = range(mapping.groups)
    return max(int(weight_lists(design, mapping, weight, g).lengths.max()) for g in groups)


def stored_before(design: Scnn, plane: Mapping, weight: AnyIntArray) -> IntArray:
    """Values of each list of weights that are surely stored, in the filters before each
    [K + 1, lists]; lists channel by channel, phase by phase."""
    rows, columns = plane.rows.stride, plane.columns.stride
    stored = weight != 0
    if design.sparsity == "activations":
        stored[:] = True
    counts = [
        stored[:, row::rows, column::columns].sum(axis=(1, 2)) for row, column in plane.phases
    ]
    by_list = np.stack(counts, axis=2).reshape(len(weight), -1)
    return np.pad(np.cumsum(by_list, axis=0), ((1, 0), (0, 0)))


def stored_of_groups(before: IntArray, mapping: Mapping) -> IntArray:
    """Of `stored_before`, by group [groups, lists]."""
    first = np.arange(0, mapping.filters, mapping.group_size)
    behind = np.minimum(first + mapping.group_size, mapping.filters)
    return before[behind] - before[first]


class FifoFit:
    """Which sizes of groups have no list of weights [K, R, S, C] that is longer than the FIFO."""

    def __init__(self, design: Scnn, plane: Mapping, weight: AnyIntArray) -> None:
        self._design, self._plane, self._weight = design, plane, weight
        self._places = plane.rows.taps(0) * plane.tap_pitch(0)

    @cached_property
    def _before(self) -> IntArray:
        return stored_before(self._design, self._plane, self._weight)

    def __call__(self, mapping: Mapping) -> bool:
        """Whether all lists fit with this size of groups: asked of the positions that there are,
        then of the values that are surely stored, then of the lists themselves."""
        design = self._design
        lanes, most = design.weight_lanes, design.weight_fifo_vectors
        if ceil_div(self._places * mapping.filter_pitch, lanes) <= most:
            return True
        if ceil_div(int(stored_of_groups(self._before, mapping).max()), lanes) > most:
            return False
        return all(
            weight_lists(design, mapping, self._weight, group).lengths.max() <= most
            for group in range(mapping.groups)
        )


def _kept(present: BoolArray, channels: int) -> BoolArray:
    """[phases, …] for each channel: [channels · phases, positions]."""
    return np.tile(present.reshape(len(present), -1), (channels, 1))
