"""Contents of compressed lists, packed and read again container by container, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from archsim.codecs.boveda_kernels import Form, code_of, group_width, value_of
from archsim.kernels import inlined, kernel
from archsim.numbers import IntArray

Fails = npt.NDArray[np.uint8]
CellTable = tuple[Fails, IntArray, IntArray]
"""Of an SRAM's words by address whether a cell fails [words], and what is read of every lane's
bits [words, lanes] where 0 is stored, and where 1 is; of no words where none fails."""

Sizes = tuple[int, int, int, int]
"""Rows and entries of a memory, how many numbers rows have, and bits of an address below a PE's
number."""


@inlined
def _width(values: IntArray, form: Form) -> int:
    """Of a group."""
    union: Any = np.int64(0)
    for value in values:
        union |= abs(value)
    return group_width(union, form)


@inlined
def _as_read(value: Any, zero: Any, one: Any) -> Any:
    """Bits as cells give them."""
    return (value & one) | (~value & zero)


@inlined
def _packed(groups: Any, form: Form, room: Any) -> int:
    """Put groups [vectors, G], one behind another, into containers; returns their bits."""
    container = form[1]
    low, end, used = (np.int64(1) << np.int64(container)) - 1, 0, 0
    for own in groups:
        width = _width(own, form)
        if width == 0:
            continue
        row, bit = divmod(end, container)
        while used < row + 2:
            room[used, :] = 0
            used += 1
        for lane in range(len(own)):
            code = code_of(own[lane], width, form)
            room[row, lane] |= code << np.int64(bit) & low
            if bit + width > container:
                room[row + 1, lane] |= code >> np.int64(container - bit)
        end += width
    return end


@inlined
def _unpack(own: Any, place: tuple[int, int, int], rows: Any, form: Form) -> None:
    """Put into a group what lies in rows at (row, bit), of a width."""
    (row, bit, width), container = place, form[1]
    own[:] = 0
    if width == 0:
        return
    mask = (np.int64(1) << np.int64(width)) - 1
    for lane in range(len(own)):
        code = np.int64(0)
        if row < len(rows):
            code = rows[row, lane] >> np.int64(bit)
        if row + 1 < len(rows) and bit + width > container:
            code |= rows[row + 1, lane] << np.int64(container - bit)
        own[lane] = value_of(code & mask, width, form)


@kernel(
    "(i8.2, i8.2, i8.1, i8.1), (int, int, int, int), (int, int, int, int), "
    "((u1.1, i8.2, i8.2), (u1.1, i8.2, i8.2)), i8.2, i8.1"
)
def read_contents(
    lists: tuple[IntArray, IntArray, IntArray, IntArray],
    form: Form,
    sizes: Sizes,
    cells: tuple[CellTable, CellTable],
    room: IntArray,
    walked: IntArray,
) -> None:
    """Put in the place of values and indices what is read of them.

    lists: values and indices [vectors, lanes], where the lists of each PE begin [PEs + 1], and the
    numbers of PEs.  cells: of rows, lanes being containers, and of directories, lanes being width
    fields and indices.  room [rows, G]: for the containers of a column, two more than there are
    vectors in a PE.  walked [PEs]: rows that a walk uses up.
    """
    values, indices, starts, numbers = lists
    group, container = form[0], form[1]
    rows_there, entries, row_numbers, row_bits = sizes
    (row_fails, row_zero, row_one), (entry_fails, entry_zero, entry_one) = cells
    columns = values.shape[1] // group
    for pe in range(len(walked)):
        begin, first = starts[pe], numbers[pe] << row_bits
        held = min(starts[pe + 1] - begin, entries)
        walked[pe] = 0
        for column in range(columns):
            lane0 = column * group
            groups = values[begin : begin + held, lane0 : lane0 + group]
            end = _packed(groups, form, room)
            rows = room[: min((end + container - 1) // container, rows_there)]
            for row in range(len(rows) if len(row_fails) else 0):
                if row_fails[first + row]:
                    zero, one = row_zero[first + row], row_one[first + row]
                    for lane in range(group):
                        at = lane0 + lane
                        rows[row, lane] = _as_read(rows[row, lane], zero[at], one[at])
            end = 0
            for n in range(held):
                width = _width(groups[n], form)
                if len(entry_fails) and entry_fails[first + n]:
                    zero, one = entry_zero[first + n], entry_one[first + n]
                    field = _as_read(max(width - 1, 0), zero[column], one[column])
                    width = field + 1 if field else 0
                row, bit = divmod(end, container)
                _unpack(groups[n], (row % row_numbers, bit, width), rows, form)
                end += width
            walked[pe] += (end + container - 1) // container
        for n in range(held if len(entry_fails) else 0):
            if entry_fails[first + n]:
                zero, one = entry_zero[first + n], entry_one[first + n]
                for lane in range(values.shape[1]):
                    at = columns + lane
                    indices[begin + n, lane] = _as_read(indices[begin + n, lane], zero[at], one[at])


__all__ = ["CellTable", "Sizes", "read_contents"]
