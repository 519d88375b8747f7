"""Groups one behind another in columns of containers, bit by bit: written there, and read again.

What `archsim.codecs.boveda` does for whole tensors, for groups that begin anywhere: a memory's
cells may also hold what no encoder wrote, so reading gives values whatever the bits are, as the
hardware does (`rtl.core.boveda_shift.Expand`).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from archsim.codecs.boveda import group_widths
from archsim.codecs.boveda_format import BovedaFormat, Bytes
from archsim.numbers import IntArray


def codes_of(values: IntArray, form: BovedaFormat) -> tuple[IntArray, Bytes]:
    """Widths [groups] of values [groups, G], and their codes [groups, G, B], 0 above the width.

    Raises `InputError` for values that do not fit the container.
    """
    widths = group_widths(values, form).astype(np.int64)
    places = np.arange(form.container_bits)
    codes = (np.abs(values)[:, :, None] >> places) & 1
    if form.signed:
        top = places == widths[:, None, None] - 1
        codes = np.where(top, (values < 0)[:, :, None], codes)
    return widths, (codes * (places < widths[:, None, None])).astype(np.uint8)


def values_of(codes: Bytes, widths: IntArray, form: BovedaFormat) -> IntArray:
    """Values [groups, G] of codes [groups, G, B], whatever is above their widths."""
    places = np.arange(form.container_bits)
    weights = np.int64(1) << places
    kept = places < (widths - form.signed)[:, None, None]
    magnitudes = (codes * kept).astype(np.int64) @ weights
    if not form.signed:
        return magnitudes
    half = np.int64(1) << (form.container_bits - 1)
    signs = (codes * (places == widths[:, None, None] - 1)).any(axis=2)
    return np.where(signs, (-magnitudes & (half - 1)) - half, magnitudes)


def _places(
    starts: IntArray, container_bits: int
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Row and bit [groups, B] of each bit of groups that begin at `starts`."""
    at = starts[:, None] + np.arange(container_bits)
    return at // container_bits, at % container_bits


def write(starts: IntArray, codes: Bytes, widths: IntArray, rows: Bytes) -> None:
    """Put groups into rows [rows, G, B] of zeros; starts: row · B + bit of each."""
    bits = int(rows.shape[2])
    row, bit = _places(starts, bits)
    group, place = np.nonzero(np.arange(bits) < widths[:, None])
    rows[row[group, place], :, bit[group, place]] = codes[group, :, place]


def read(starts: IntArray, rows: Bytes) -> Bytes:
    """B bits [groups, G, B] from where each group begins: its code, and what is behind it.

    Rows that are not there read as zeros.
    """
    row, bit = _places(starts, rows.shape[2])
    behind = np.zeros((1, *rows.shape[1:]), np.uint8)
    found = np.concatenate([rows, behind])[np.minimum(row, len(rows)), :, bit]
    return np.moveaxis(found, 1, 2)


def fields_of(widths: IntArray, form: BovedaFormat) -> Bytes:
    """Widths [...] as they are written: [..., log2 B] bits."""
    codes = np.where(widths == 0, 0, widths - 1)
    return ((codes[..., None] >> np.arange(form.field_bits)) & 1).astype(np.uint8)


def widths_of(fields: Bytes, form: BovedaFormat) -> IntArray:
    """Widths [...] of fields [..., log2 B]."""
    codes = fields.astype(np.int64) @ (np.int64(1) << np.arange(form.field_bits))
    return np.where((codes == 0) & form.zero_width, 0, codes + 1)


__all__ = ["codes_of", "fields_of", "read", "values_of", "widths_of", "write"]
