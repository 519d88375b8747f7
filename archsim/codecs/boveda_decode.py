"""Boveda's layout, read and checked: a stream that `encode` cannot have made is refused.

The layout: `archsim.codecs.boveda`.  Every finding is an InputError that names the place.
"""

from __future__ import annotations

import numpy as np

from archsim.codecs import boveda_kernels as kernels
from archsim.codecs.boveda_format import Bytes, Encoded, Values
from archsim.codecs.chunks import in_chunks
from archsim.errors import InputError, require
from archsim.numbers import IntArray


def decode(encoded: Encoded) -> Values:
    """The tensor: int8 or int16, uint8 or uint16 if unsigned.

    Raises InputError for metadata that cannot be (width 1 with a sign, "as before" in the first
    group of a unit, a width written out that is as before, bits that run out or are left over),
    for rows that run out or are left over, pointers and widths that are not those of the
    metadata, widths that are not those of the values, minus zero in a width below B, and for
    bits that are not zero in tails, padding, or beyond a container of 4 bits.
    """
    form, places = encoded.format, encoded.places
    widths = np.empty(places.groups, np.uint8)
    starts = np.empty(places.units, np.int64)
    _read(encoded, (0, encoded.metadata_bits), 0, (widths, starts))
    _check_left_over(encoded)
    if form.metadata == "same":
        _require_equal("metadata_pointers", encoded.metadata_pointers, starts)
    _require_equal("widths", encoded.widths, widths)
    rows = _unit_rows(encoded, widths)
    needed = int(rows.sum())
    _check_rows(encoded, needed)
    _require_equal("row_pointers", encoded.row_pointers, np.cumsum(rows) - rows)
    values = np.zeros(encoded.shape, form.value_type)
    source = encoded.row_pointers, encoded.rows, widths
    line = encoded.shape[-1], places.line_groups
    findings: list[IntArray] = []

    def work(begin: int, end: int) -> None:
        found = np.zeros(3, np.int64)
        units = begin, end, places.unit_groups
        kernels.unpack(source, line, form.numbers, units, values.reshape(-1), found)
        findings.append(found)

    in_chunks(work, places.units, values.size)
    wrong = [found for found in findings if found[0]]
    for found in sorted(wrong, key=lambda one: int(one[1])):
        _refuse(encoded, widths, found, 0)
    return values


def decode_unit(encoded: Encoded, unit: int) -> Values:
    """One aligned unit, of the shape behind the aligned axes, found by its pointers alone.

    unit: its number, the last of the aligned axes counting fastest.  Raises InputError for a
    number that there is not, and as `decode` for what it reads of the stream.
    """
    form, places = encoded.format, encoded.places
    require(0 <= unit < places.units, f"unit must be from 0 to {places.units - 1}, not {unit}")
    count = places.unit_groups
    begin = unit * count * form.field_bits
    end = begin + count * form.field_bits
    if form.metadata == "same":
        begin, end = int(encoded.metadata_pointers[unit]), encoded.metadata_bits
    require(
        0 <= begin <= end <= encoded.metadata_bits,
        f"unit {unit} must have metadata within {encoded.metadata_bits} bits, not at {begin}",
    )
    widths, starts = np.empty(count, np.uint8), np.empty(1, np.int64)
    _read(encoded, (begin, end), unit, (widths, starts))
    row = int(encoded.row_pointers[unit])
    needed = -(-int(widths.sum(dtype=np.int64)) // form.container_bits)
    require(
        0 <= row <= len(encoded.rows) - needed,
        f"unit {unit} must lie within {len(encoded.rows)} rows, "
        f"which {needed} from row {row} do not",
    )
    values = np.zeros(encoded.shape[encoded.aligned_axes :], form.value_type)
    found = np.zeros(3, np.int64)
    kernels.unpack(
        (np.array([row]), encoded.rows, widths),
        (encoded.shape[-1], places.line_groups),
        form.numbers,
        (0, 1, count),
        values.reshape(-1),
        found,
    )
    if found[0]:
        _refuse(encoded, widths, found, unit)
    return values


def _read(
    encoded: Encoded, bits: tuple[int, int], unit: int, answer: tuple[Bytes, IntArray]
) -> None:
    """Widths, and first bit, of units from `unit`, whose metadata lie at `bits`."""
    form, groups = encoded.format, encoded.places.unit_groups
    same = form.metadata == "same"
    finding, group, at = kernels.read_widths(
        (encoded.metadata, *bits), form.numbers, (groups, form.field_bits, int(same)), *answer
    )
    why = {
        kernels.RAN_OUT: "metadata must go on, but run out",
        kernels.NO_WIDTH: "a width of a signed tensor must be at least 2, not 1",
        kernels.SAME_FIRST: "the first group of a unit must have a width, not that before",
        kernels.NOT_SAME: "a width as that before must be said by one bit, not written out",
    }
    if finding:
        raise InputError(f"group {group + unit * groups}, metadata bit {at}: {why[finding]}")
    whole = encoded.places.units * groups == len(answer[0])
    require(not whole or at == bits[1], f"metadata must end at bit {at}, not at {bits[1]}")


def _check_left_over(encoded: Encoded) -> None:
    unused = -encoded.metadata_bits % 8
    last = int(encoded.metadata[-1]) >> (8 - unused)
    require(last == 0, "metadata must be zero behind their last bit")


def _require_equal(name: str, given: IntArray | Bytes, found: IntArray | Bytes) -> None:
    wrong = np.flatnonzero(given != found)
    if len(wrong):
        at = int(wrong[0])
        raise InputError(f"{name}[{at}] must be {found[at]}, not {given[at]}")


def _unit_rows(encoded: Encoded, widths: Bytes) -> IntArray:
    places = encoded.places
    sums, same = np.empty((2, places.units), np.int64)
    kernels.sum_units(widths, places.unit_groups, sums, same)
    return -(-sums // encoded.format.container_bits)


def _check_rows(encoded: Encoded, needed: int) -> None:
    rows, form = encoded.rows, encoded.format
    require(len(rows) >= needed, f"rows must go on to {needed}, but run out at {len(rows)}")
    require(len(rows) <= needed, f"rows must end at {needed}, but {len(rows) - needed} are left")
    if form.container_bits == 4 and rows.size and int(rows.max()) > 15:
        row, lane = np.argwhere(rows > 15)[0]
        raise InputError(f"rows[{row}, {lane}] must be at most 15, not {rows[row, lane]}")


def _refuse(encoded: Encoded, widths: Bytes, found: IntArray, unit: int) -> None:
    """Say what `unpack` found in the units from `unit`."""
    finding, at, lane = (int(number) for number in found)
    if finding == kernels.PADDING:
        raise InputError(f"unit {unit + at}, column {lane}: padding must be zero")
    where = f"group {at + unit * encoded.places.unit_groups}"
    if finding == kernels.NOT_LEAST:
        raise InputError(f"{where}: its width must be {lane}, as its values, not {widths[at]}")
    why = {
        kernels.MINUS_ZERO: f"minus zero must have width {encoded.format.container_bits}, "
        f"not {widths[at]}",
        kernels.TAIL: "the tail behind the last channel must be zero",
    }
    raise InputError(f"{where}, column {lane}: {why[finding]}")
