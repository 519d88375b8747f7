"""Groups one behind another in columns of containers, bit by bit: written there, and read again.

What `archsim.codecs.boveda` does for whole tensors, for groups that begin anywhere: a memory's
cells may also hold what no encoder wrote, so reading gives values whatever the bits are, as the
hardware does (`rtl.core.boveda_shift.Expand`).
"""

from __future__ import annotations

import numpy as np

from archsim.codecs.boveda import group_widths
from archsim.codecs.boveda_format import BovedaFormat, Bytes
from archsim.codecs.boveda_kernels import Form
from archsim.kernels import kernel
from archsim.numbers import IntArray


def widths_needed(values: IntArray, form: BovedaFormat) -> IntArray:
    """Widths [groups] of values [groups, G].  Raises `InputError` for values that do not fit the
    container."""
    return group_widths(values, form).astype(np.int64)


def write(
    starts: IntArray, values: IntArray, widths: IntArray, rows: Bytes, form: BovedaFormat
) -> None:
    """Put groups [groups, G] into rows [rows, G, B] of zeros; starts: row · B + bit of each."""
    _write(starts, values, widths, form.numbers, rows)


def read(starts: IntArray, widths: IntArray, rows: Bytes, form: BovedaFormat) -> IntArray:
    """Values [groups, G] of groups that begin at `starts`, whatever the bits are.

    Rows that are not there read as zeros.
    """
    found = np.empty((len(starts), form.group), np.int64)
    _read(starts, widths, form.numbers, rows, found)
    return found


@kernel("i8.1, i8.2, i8.1, (int, int, int, int), u1.3")
def _write(starts: IntArray, values: IntArray, widths: IntArray, form: Form, rows: Bytes) -> None:
    lanes, container, signed = form[0], form[1], form[2]
    codes = np.empty(lanes, np.int64)
    for group in range(len(starts)):
        width = widths[group]
        if width == 0:
            continue
        top = np.int64(1) << np.int64(width - 1)
        for lane in range(lanes):
            value = values[group, lane]
            codes[lane] = abs(value)
            if signed:
                codes[lane] = (abs(value) & (top - 1)) | (top if value < 0 else 0)
        row, bit = divmod(starts[group], container)
        for place in range(width):
            for lane in range(lanes):
                rows[row, lane, bit] = (codes[lane] >> place) & 1
            bit += 1
            if bit == container:
                row, bit = row + 1, 0


@kernel("i8.1, i8.1, (int, int, int, int), u1.3, i8.2")
def _read(starts: IntArray, widths: IntArray, form: Form, rows: Bytes, found: IntArray) -> None:
    lanes, container, signed = form[0], form[1], form[2]
    half = np.int64(1) << np.int64(container - 1)
    for group in range(len(starts)):
        width, own = widths[group], found[group]
        own[:] = 0
        row, bit = divmod(starts[group], container)
        for place in range(width):
            if row >= len(rows):
                break
            for lane in range(lanes):
                own[lane] |= np.int64(rows[row, lane, bit]) << np.int64(place)
            bit += 1
            if bit == container:
                row, bit = row + 1, 0
        if signed and width > 0:
            top = np.int64(1) << np.int64(width - 1)
            for lane in range(lanes):
                magnitude = own[lane] & (top - 1)
                own[lane] = (-magnitude & (half - 1)) - half if own[lane] & top else magnitude


def fields_of(widths: IntArray, form: BovedaFormat) -> Bytes:
    """Widths [...] as they are written: [..., log2 B] bits."""
    codes = np.where(widths == 0, 0, widths - 1)
    return ((codes[..., None] >> np.arange(form.field_bits)) & 1).astype(np.uint8)


def widths_of(fields: Bytes, form: BovedaFormat) -> IntArray:
    """Widths [...] of fields [..., log2 B]."""
    codes = fields.astype(np.int64) @ (np.int64(1) << np.arange(form.field_bits))
    return np.where((codes == 0) & form.zero_width, 0, codes + 1)


__all__ = ["fields_of", "read", "widths_needed", "widths_of", "write"]
