"""The lists of a pass: activations by PE, weights by group of filters, outputs by PE.

An operand whose sparsity the design does not use is stored with its zeros: every position that
there is in the tile or the kernel is an element of its list.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from archsim.codecs.zero_run import BoolArray, Lists, encode, join
from archsim.designs.scnn import Scnn
from archsim.numbers import AnyIntArray, ceil_div
from archsim.sparse.mapping import Mapping


def ifmap_lists(design: Scnn, mapping: Mapping, plane: AnyIntArray) -> Lists:
    """Of plane [H, W, C]: for each PE, for each channel, for each phase.

    position = y' · `input_pitch` + x', counted in the phase from the PE's first row and column.
    """
    return join([_tile_lists(design, mapping, plane, pe) for pe in range(mapping.used_pes)])


def _tile_lists(design: Scnn, mapping: Mapping, plane: AnyIntArray, pe: int) -> Lists:
    row, column = mapping.place(pe)
    shape = (len(mapping.phases), mapping.rows.phase_tile, mapping.input_pitch, mapping.channels)
    tile, present = np.zeros(shape, plane.dtype), np.zeros(shape[:-1], np.bool_)
    for number, (row_phase, column_phase) in enumerate(mapping.phases):
        rows = mapping.rows.phase_inputs(row, row_phase)
        columns = mapping.columns.phase_inputs(column, column_phase)
        part = plane[_slice(rows), _slice(columns)]
        tile[number, : len(rows), : len(columns)] = part
        present[number, : len(rows), : len(columns)] = True
    flat = np.moveaxis(tile, -1, 0).reshape(mapping.lists, -1)
    return encode(
        flat,
        lanes=design.ifmap_lanes,
        index_bits=design.index_bits,
        kept=_kept(present, mapping.channels) if design.sparsity == "weights" else None,
    )


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
    parts: list[Lists] = []
    for pe in range(mapping.used_pes):
        row, column = mapping.place(pe)
        own = ofmap[_slice(mapping.rows.given(row)), _slice(mapping.columns.given(column))]
        if not own.size:
            continue
        flat = np.moveaxis(own, -1, 0).reshape(mapping.filters, -1)
        kept = np.ones((1, flat.shape[1]), np.bool_) if design.sparsity == "weights" else None
        parts.append(
            encode(flat, lanes=design.ifmap_lanes, index_bits=design.index_bits, kept=kept)
        )
    return join(parts)


def vectors_by_pe(lists: Lists, pes: int) -> npt.NDArray[np.int64]:
    """Vectors of each PE, if all of them have as many lists."""
    return np.diff(lists.starts[:: len(lists) // pes])


def fit_fifo(design: Scnn, mapping: Mapping, weight: AnyIntArray) -> int:
    """The longest list of weights [K, R, S, C] in vectors, or a bound of it that fits the FIFO."""
    taps = mapping.rows.taps(0) * mapping.tap_pitch(0)
    bound = ceil_div(taps * mapping.filter_pitch, design.weight_lanes)
    if bound <= design.weight_fifo_vectors:
        return bound
    groups = range(mapping.groups)
    return max(int(weight_lists(design, mapping, weight, g).lengths.max()) for g in groups)


def _kept(present: BoolArray, channels: int) -> BoolArray:
    """[phases, …] for each channel: [channels · phases, positions]."""
    return np.tile(present.reshape(len(present), -1), (channels, 1))


def _slice(places: range) -> slice:
    return slice(places.start, places.stop, places.step)
