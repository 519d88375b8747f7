"""What is read of compressed lists where cells fail, or where a memory has no room for them.

Values are sought in the rows by the widths that are read, summed from the content's first vector
on: a wrong one moves all that stands behind it in its column.  A row that the content has not
written is zeros.  A row's number wraps at its bits; the row behind the last number is not there.
Vectors without an entry take no bit, and rows behind the last one are lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from archsim.blocks import address_bits
from archsim.codecs import boveda_columns as columns
from archsim.codecs.boveda_format import BovedaFormat, Bytes
from archsim.codecs.zero_run import Lists
from archsim.memory import StreamUse
from archsim.memory.seam import ListsRead, StreamCells
from archsim.numbers import IntArray, ceil_div

if TYPE_CHECKING:
    from archsim.memories.boveda_stream.stream import BovedaStream

ROWS, DIRECTORY = "rows", "directory"


def lists_read(
    memory: BovedaStream, use: StreamUse, lists: Lists, places: IntArray, cells: StreamCells | None
) -> ListsRead:
    """As `archsim.memory.seam.KeepsLists` says."""
    starts = lists.starts[:: len(lists) // len(places)]
    values, indices = lists.values.astype(np.int64), lists.indices.astype(np.int64)
    walked = np.zeros(len(places), np.int64)
    for number, place in enumerate(places):
        held = min(int(starts[number + 1] - starts[number]), memory.entries(use.rows))
        own = slice(int(starts[number]), int(starts[number]) + held)
        content = _Content(memory, use, int(place) << use.row_bits, cells)
        values[own], indices[own], walked[number] = content.read(values[own], indices[own])
    return values, indices, walked


class _Content:
    """The vectors of a PE that have an entry."""

    def __init__(
        self, memory: BovedaStream, use: StreamUse, first: int, cells: StreamCells | None
    ) -> None:
        """first: address of all its SRAMs."""
        self.memory, self.use, self.first, self.cells = memory, use, first, cells
        self.form: BovedaFormat = memory.format(use.value_bits)
        self.columns = use.lanes // memory.group

    def read(self, values: IntArray, indices: IntArray) -> tuple[IntArray, IntArray, int]:
        """Of values and indices [vectors, lanes] these as they are read, and rows that a walk uses
        up."""
        groups = values.reshape(len(values), self.columns, -1)
        meant = np.empty(groups.shape[:2], np.int64)
        for column in range(self.columns):
            meant[:, column] = columns.widths_needed(
                np.ascontiguousarray(groups[:, column]), self.form
            )
        rows = self._rows(groups, meant)
        widths, indices = self._entries(meant, indices)
        found, walked = np.empty_like(groups), 0
        wraps = self.form.container_bits << address_bits(self.use.most_rows)
        for column in range(self.columns):
            ends = np.cumsum(widths[:, column])
            own = np.ascontiguousarray(widths[:, column])
            found[:, column] = columns.read((ends - own) % wraps, own, rows[column], self.form)
            walked += ceil_div(int(ends[-1]), self.form.container_bits) if len(ends) else 0
        return found.reshape(values.shape), indices, walked

    def _rows(self, groups: IntArray, widths: IntArray) -> list[Bytes]:
        """By column the rows that are there [rows, G, B], as they are read."""
        bits, written = self.form.container_bits, list[Bytes]()
        for column in range(self.columns):
            own = np.ascontiguousarray(widths[:, column])
            count = ceil_div(int(own.sum()), bits)
            rows = np.zeros((count, self.form.group, bits), np.uint8)
            columns.write(
                np.cumsum(own) - own, np.ascontiguousarray(groups[:, column]), own, rows, self.form
            )
            written.append(rows[: self.use.rows])
        most = max(map(len, written))
        if self.cells is None or not most:
            return written
        every = np.zeros((most, self.columns, self.form.group, bits), np.uint8)
        for column, rows in enumerate(written):
            every[: len(rows), column] = rows
        read = self._seen(ROWS, every.reshape(most, -1)).reshape(every.shape)
        return [np.ascontiguousarray(read[: len(rows), at]) for at, rows in enumerate(written)]

    def _entries(self, widths: IntArray, indices: IntArray) -> tuple[IntArray, IntArray]:
        """Widths [vectors, columns] and indices [vectors, lanes] as they are read."""
        if self.cells is None or not len(widths):
            return widths, indices
        places, count = np.arange(self.use.index_bits), len(widths)
        fields = columns.fields_of(widths, self.form).reshape(count, -1)
        marks = (indices[..., None] >> places & 1).astype(np.uint8).reshape(count, -1)
        read = self._seen(DIRECTORY, np.concatenate([fields, marks], axis=1))
        fields, marks = read[:, : fields.shape[1]], read[:, fields.shape[1] :]
        shape = count, self.columns, self.form.field_bits
        found = marks.reshape(*indices.shape, -1).astype(np.int64) @ (np.int64(1) << places)
        return columns.widths_of(np.ascontiguousarray(fields).reshape(shape), self.form), found

    def _seen(self, sram: str, bits: Bytes) -> Any:
        """Words of an SRAM, from its first one on."""
        assert self.cells is not None
        return self.cells.bits_read(self.use, sram, bits, self.first + np.arange(len(bits)))


__all__ = ["lists_read"]
