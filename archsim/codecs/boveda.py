"""Boveda's layout on chip: groups of values as wide as they need, in virtual columns.

Edo et al., "Boveda: Building an On-Chip Deep Learning Memory Hierarchy Brick by Brick", MLSys
2021.  Only its abstract is public to us; the layout is that of the same group's patent application
and of their simulator DNNsim (`DynamicStripes::on_chip`, in its history).  Marked "chosen" is what
neither says.

Width.  G values along the last axis are a group (a short one is filled with zeros), and

    w = bit length of the largest magnitude (+ 1 in a signed tensor),

at least 1 (signed 2).  A value takes w bits: magnitude, and the sign in bit w - 1.  Chosen:
-2^(B-1), which has no magnitude of B - 1 bits, is minus zero in a group with w = B.

Columns.  Rows are G containers of B bits; value s of every group lies in column s.  All columns
share one pointer p: a group takes bits p to p + w - 1, and what reaches past B - 1 continues at
bit 0 of the next row; p becomes (p + w) mod B.

Units.  At the end of each aligned unit (a brick of activations of one (x, y), a filter of
weights) p becomes 0, and the rest of its last row is zeros: a row pointer finds a unit.  The
first `aligned_axes` axes of the tensor number the units: 2 of activations [H, W, C], 1 of weights
[K, R, S, C], 0 where the whole tensor is one unit.

Metadata.  w - 1 in log2 B bits a group; or ("same") a 1 where a group is as wide as the one before
in its unit, else a 0 and w - 1.  Pointers, chosen: ⌈log2(rows + 1)⌉ bits a unit, and with "same"
⌈log2(bits + 1)⌉ more for its place in the metadata.

    format, stream, footprint   `boveda_format`: BovedaFormat, Encoded, Footprint
    reading                     `boveda_decode`: decode, decode_unit
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from archsim.codecs import boveda_kernels as kernels
from archsim.codecs.boveda_decode import decode, decode_unit
from archsim.codecs.boveda_format import (
    BovedaFormat,
    Bytes,
    Encoded,
    Footprint,
    Places,
    footprint_of,
    places_of,
)
from archsim.codecs.chunks import in_chunks
from archsim.numbers import IntArray, ceil_div

__all__ = [
    "BovedaFormat",
    "Encoded",
    "Footprint",
    "decode",
    "decode_unit",
    "encode",
    "footprint",
    "group_widths",
]


def encode(values: npt.NDArray[Any], form: BovedaFormat, *, aligned_axes: int) -> Encoded:
    """Store integers [..., channels].

    Raises InputError for arrays without values or not of integers, values that do not fit the
    container, and aligned_axes that are not 0 to axes - 1.
    """
    places, fitting, widths = _measured(values, form, aligned_axes)
    rows, bits = _unit_sizes(places, form, widths)
    pointers = _starts(rows)
    stored = np.zeros((int(rows.sum()), form.group), form.row_type)
    line = values.shape[-1], places.line_groups
    source, target = (fitting.reshape(-1), widths), (pointers, stored)

    def work(begin: int, end: int) -> None:
        kernels.pack(source, line, form.numbers, (begin, end, places.unit_groups), target)

    in_chunks(work, places.units, fitting.size)
    metadata_bits = int(bits.sum())
    metadata = np.zeros(ceil_div(metadata_bits, 8), np.uint8)
    same = form.metadata == "same"
    kernels.write_widths(widths, places.unit_groups, form.field_bits, int(same), metadata)
    return Encoded(
        rows=stored,
        widths=widths,
        metadata=metadata,
        row_pointers=pointers,
        metadata_pointers=_starts(bits) if same else np.zeros(0, np.int64),
        shape=values.shape,
        aligned_axes=aligned_axes,
        format=form,
        metadata_bits=metadata_bits,
    )


def footprint(values: npt.NDArray[Any], form: BovedaFormat, *, aligned_axes: int) -> Footprint:
    """What `encode` would take, without making the rows: one pass.  Raises as it."""
    places, _, widths = _measured(values, form, aligned_axes)
    rows, bits = _unit_sizes(places, form, widths)
    return footprint_of(places, form, widths, (int(rows.sum()), int(bits.sum())))


def group_widths(values: npt.NDArray[Any], form: BovedaFormat) -> Bytes:
    """w of every group [groups], in the order of the values.  Raises as `encode`."""
    return _measured(values, form, 0)[2]


def _measured(
    values: npt.NDArray[Any], form: BovedaFormat, aligned_axes: int
) -> tuple[Places, npt.NDArray[np.integer[Any]], Bytes]:
    places = places_of(values.shape, aligned_axes, form.group)
    fitting = form.fitting(values)
    widths = np.empty(places.groups, np.uint8)
    flat, line = fitting.reshape(-1), (values.shape[-1], places.line_groups)

    def work(begin: int, end: int) -> None:
        kernels.measure(flat, line, form.numbers, (begin, end), widths)

    in_chunks(work, places.groups, fitting.size)
    return places, fitting, widths


def _unit_sizes(places: Places, form: BovedaFormat, widths: Bytes) -> tuple[IntArray, IntArray]:
    """Rows, and bits of metadata, of each unit."""
    sums, same = np.empty((2, places.units), np.int64)
    kernels.sum_units(widths, places.unit_groups, sums, same)
    rows = -(-sums // form.container_bits)
    if form.metadata == "plain":
        return rows, np.full(places.units, places.unit_groups * form.field_bits)
    return rows, places.unit_groups * (1 + form.field_bits) - same * form.field_bits


def _starts(sizes: IntArray) -> IntArray:
    return np.cumsum(sizes) - sizes
