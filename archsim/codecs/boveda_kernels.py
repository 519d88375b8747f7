"""The kernels of Boveda's layout, compiled by numba; other threads run meanwhile.

numba's integers keep their width, and what would overflow is widened first: `wide`.

Each works on a range of groups or of units.  `form` is a tuple of whole numbers,
(G, B, signed, zero_width); `line` is (values of a line, groups of a line).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archsim.codecs.boveda_format import Bytes, Containers, Values
from archsim.kernels import inlined, kernel
from archsim.numbers import IntArray

Form = tuple[int, int, int, int]
Line = tuple[int, int]

BIT_LENGTH: Bytes = np.array([value.bit_length() for value in range(256)], np.uint8)
BIT_LENGTH.flags.writeable = False

(
    FINE,
    NOT_LEAST,  # a width that is not that of the largest magnitude
    MINUS_ZERO,
    TAIL,  # not zero behind the last value of a line
    PADDING,  # not zero behind the last group of a unit
    RAN_OUT,
    NO_WIDTH,  # 1 in a signed tensor
    SAME_FIRST,  # "as before" where nothing is before
    NOT_SAME,  # a width written out that is as before
) = range(9)
"""What `unpack` and `read_widths` find: nothing, or why a stream cannot be."""


@inlined
def wide(value: Any) -> int:
    """In 64 bits with a sign."""
    return np.int64(value)  # pyright: ignore[reportReturnType]


@inlined
def group_width(union: int, form: Form) -> int:
    """The width of a group, from the bitwise or of its magnitudes."""
    high = union > 255
    bits = wide(BIT_LENGTH[union >> 8 if high else union]) + 8 * high
    least = 2 if form[2] or form[3] else 1
    if bits == 0:
        return 0 if form[3] else least
    return min(max(bits + form[2], least), form[1])


@inlined
def code_of(value: Any, width: Any, form: Form) -> Any:
    """The bits of a value, of a width above 0."""
    size = abs(wide(value))
    if not form[2]:
        return size
    top = np.int64(1) << np.int64(width - 1)
    return (size & (top - 1)) | (top if value < 0 else 0)


@inlined
def value_of(code: Any, width: Any, form: Form) -> Any:
    """The value of bits, whatever they are, of a width above 0."""
    if not form[2]:
        return code
    half, top = np.int64(1) << np.int64(form[1] - 1), np.int64(1) << np.int64(width - 1)
    size = code & (top - 1)
    return (-size & (half - 1)) - half if code & top else size


@kernel("??.1, (int, int), (int, int, int, int), (int, int), u1.1")
def measure(values: Values, line: Line, form: Form, groups: tuple[int, int], widths: Bytes) -> None:
    """Widths of the groups from groups[0] to before groups[1]; values [lines · length]."""
    row, place = divmod(groups[0], line[1])
    for group in range(groups[0], groups[1]):
        begin = row * line[0] + place * form[0]
        end = min(begin + form[0], (row + 1) * line[0])
        union = 0
        for at in range(begin, end):
            union |= abs(wide(values[at]))
        widths[group] = group_width(union, form)
        place += 1
        if place == line[1]:
            row, place = row + 1, 0


@kernel("u1.1, int, i8.1, i8.1")
def sum_units(widths: Bytes, unit_groups: int, sums: IntArray, same: IntArray) -> None:
    """Of each unit: bits of a column, and groups as wide as the one before in it."""
    for unit in range(len(sums)):
        total, equal, before = 0, 0, -1
        for group in range(unit * unit_groups, (unit + 1) * unit_groups):
            width = wide(widths[group])
            total += width
            equal += width == before
            before = width
        sums[unit], same[unit] = total, equal


@kernel("(??.1, u1.1), (int, int), (int, int, int, int), (int, int, int), (i8.1, u?.2)")
def pack(
    source: tuple[Values, Bytes],
    line: Line,
    form: Form,
    units: tuple[int, int, int],
    target: tuple[IntArray, Containers],
) -> None:
    """Rows of the units from units[0] to before units[1], of units[2] groups each.

    source: values [lines · length], widths.  target: first row of each unit, rows of zeros.
    """
    values, widths = source
    pointers, rows = target
    full = (1 << form[1]) - 1
    codes = np.zeros(form[0], np.uint32)
    for unit in range(units[0], units[1]):
        at, column = pointers[unit], 0
        run, place = divmod(unit * units[2], line[1])
        for group in range(unit * units[2], (unit + 1) * units[2]):
            width = wide(widths[group])
            begin = run * line[0] + place * form[0]
            count = min(form[0], (run + 1) * line[0] - begin)
            sign = max(width - form[2], 0)
            mask = (1 << sign) - 1
            if width:
                for lane in range(count):
                    value = wide(values[begin + lane])
                    code = (abs(value) & mask) | (wide(value < 0) << sign)
                    codes[lane] = code
                    rows[at, lane] |= (code << column) & full
            if column + width > form[1]:
                for lane in range(count):
                    rows[at + 1, lane] |= wide(codes[lane]) >> (form[1] - column)
            column += width
            if column >= form[1]:
                column -= form[1]
                at += 1
            place += 1
            if place == line[1]:
                run, place = run + 1, 0


@inlined
def _code(rows: Containers, group: tuple[int, int, int, int], lane: int, bits: int) -> int:
    """A value's bits; a group is (first row, last row, first bit, width).

    In a group of one row the second term has no bit below the width.
    """
    first, last, column, width = group
    code = (wide(rows[first, lane]) >> column) | (wide(rows[last, lane]) << (bits - column))
    return code & ((1 << width) - 1)


@inlined
def _unpack_group(
    rows: Containers,
    group: tuple[int, int, int, int],
    form: Form,
    target: tuple[Values, int, int],
) -> tuple[int, int]:
    """A group of a width above 0 to (values, first place, how many): a finding, and where."""
    values, begin, count = target
    width = group[3]
    sign = width - form[2]
    least = 1 << (form[1] - 1)
    union, minus_zeros = 0, 0
    for lane in range(count):
        code = _code(rows, group, lane, form[1])
        negative = code >> sign
        magnitude = code & ((1 << sign) - 1)
        minus_zero = negative & int(magnitude == 0)
        minus_zeros |= minus_zero
        magnitude += minus_zero * least
        union |= magnitude
        values[begin + lane] = (magnitude ^ -negative) + negative
    if minus_zeros and width < form[1]:
        for lane in range(count):
            if _code(rows, group, lane, form[1]) == 1 << sign:
                return MINUS_ZERO, lane
    for lane in range(count, form[0]):
        if _code(rows, group, lane, form[1]):
            return TAIL, lane
    needed = group_width(union, form)
    return (FINE, 0) if needed == width else (NOT_LEAST, needed)


@kernel("(i8.1, u?.2, u1.1), (int, int), (int, int, int, int), (int, int, int), ??.1, i8.1")
def unpack(
    source: tuple[IntArray, Containers, Bytes],
    line: Line,
    form: Form,
    units: tuple[int, int, int],
    values: Values,
    found: IntArray,
) -> None:
    """The inverse of `pack`, into zeros; rows are there for all units.

    found becomes (finding, group, lane) of the first that cannot be.  PADDING names the unit
    instead of the group, NOT_LEAST the width that it should have instead of the lane.
    """
    pointers, rows, widths = source
    for unit in range(units[0], units[1]):
        at, column = pointers[unit], 0
        run, place = divmod(unit * units[2], line[1])
        for group in range(unit * units[2], (unit + 1) * units[2]):
            width = wide(widths[group])
            begin = run * line[0] + place * form[0]
            target = values, begin, min(form[0], (run + 1) * line[0] - begin)
            finding, where = FINE, 0
            if width:
                last = at + (column + width > form[1])
                finding, where = _unpack_group(rows, (at, last, column, width), form, target)
            if finding != FINE:
                found[:] = (finding, group, where)
                return
            column += width
            if column >= form[1]:
                column -= form[1]
                at += 1
            place += 1
            if place == line[1]:
                run, place = run + 1, 0
        for lane in range(form[0] if column else 0):
            if wide(rows[at, lane]) >> column:
                found[:] = (PADDING, unit, lane)
                return


@inlined
def _put(target: Bytes, at: int, field: int, bits: int) -> None:
    for bit in range(bits):
        target[(at + bit) >> 3] |= ((field >> bit) & 1) << ((at + bit) & 7)


@inlined
def _get(source: Bytes, at: int, bits: int) -> int:
    field = 0
    for bit in range(bits):
        field |= ((wide(source[(at + bit) >> 3]) >> ((at + bit) & 7)) & 1) << bit
    return field


@kernel("u1.1, int, int, int, u1.1")
def write_widths(
    widths: Bytes, unit_groups: int, field_bits: int, same: int, metadata: Bytes
) -> None:
    """The metadata of all groups, into bytes of zeros."""
    at, place, before = 0, 0, -1
    for group in range(len(widths)):
        width = wide(widths[group])
        if same:
            if place and width == before:
                _put(metadata, at, 1, 1)
                at += 1
            else:
                _put(metadata, at + 1, max(width - 1, 0), field_bits)
                at += 1 + field_bits
        else:
            _put(metadata, at, max(width - 1, 0), field_bits)
            at += field_bits
        before = width
        place += 1
        if place == unit_groups:
            place = 0


@kernel("(u1.1, int, int), (int, int, int, int), (int, int, int), u1.1, i8.1")
def read_widths(
    metadata: tuple[Bytes, int, int],
    form: Form,
    fields: tuple[int, int, int],
    widths: Bytes,
    starts: IntArray,
) -> tuple[int, int, int]:
    """Widths of groups from bit metadata[1] to before metadata[2] of the bytes metadata[0].

    fields: (groups of a unit, log2 B, whether "same").  starts: becomes the first bit of each
    unit.  The answer is a finding, the group where, and the bit behind the last one read.
    """
    source, at, end = metadata
    place, before = 0, -1
    for group in range(len(widths)):
        if place == 0:
            starts[group // fields[0]] = at
        flag = _get(source, at, 1) if fields[2] and at < end else 0
        size = 1 if flag else fields[1] + fields[2]
        at += size
        if at > end:
            return RAN_OUT, group, at - size
        width = before
        if flag:
            if place == 0:
                return SAME_FIRST, group, at
        else:
            code = _get(source, at - fields[1], fields[1])
            width = 0 if form[3] and code == 0 else code + 1
            if form[2] and width == 1:
                return NO_WIDTH, group, at
            if fields[2] and place and width == before:
                return NOT_SAME, group, at
        widths[group] = before = width
        place = (place + 1) % fields[0]
    return FINE, 0, at


__all__ = [
    "FINE",
    "MINUS_ZERO",
    "NOT_LEAST",
    "NOT_SAME",
    "NO_WIDTH",
    "PADDING",
    "RAN_OUT",
    "SAME_FIRST",
    "TAIL",
    "Form",
    "Line",
    "code_of",
    "group_width",
    "measure",
    "pack",
    "read_widths",
    "sum_units",
    "unpack",
    "value_of",
    "wide",
    "write_widths",
]
