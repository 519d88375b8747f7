"""What is read of compressed lists where cells fail, or where a memory has no room for them.

Values are sought in the rows by the widths that are read, summed from the content's first vector
on: a wrong one moves all that stands behind it in its column.  A row that the content has not
written is zeros.  A row's number wraps at its bits; the row behind the last number is not there.
Vectors without an entry take no bit, and rows behind the last one are lost.
"""

from __future__ import annotations

import numpy as np

from archsim.blocks import address_bits
from archsim.codecs.zero_run import Lists
from archsim.memories.boveda_stream.content_kernels import CellTable, read_contents
from archsim.memories.boveda_stream.stream import DIRECTORY, ROWS, BovedaStream
from archsim.memory import StreamUse
from archsim.memory.seam import ListsRead, StreamCells
from archsim.numbers import IntArray


def lists_read(
    memory: BovedaStream, use: StreamUse, lists: Lists, places: IntArray, cells: StreamCells | None
) -> ListsRead:
    """As `archsim.memory.seam.KeepsLists` says."""
    form, entries = memory.format(use.value_bits), memory.entries(use.rows)
    starts = np.ascontiguousarray(lists.starts[:: len(lists) // len(places)], np.int64)
    values, indices = (one.astype(np.int64) for one in (lists.values, lists.indices))
    most = min(int(np.diff(starts).max(initial=0)), entries)
    walked = np.empty(len(places), np.int64)
    read_contents(
        (values, indices, starts, places.astype(np.int64)), form.numbers,
        (use.rows, entries, 1 << address_bits(use.most_rows), use.row_bits),
        _cells(memory, use, cells), np.empty((most + 2, form.group), np.int64), walked,
    )  # fmt: skip
    return values, indices, walked


def _cells(
    memory: BovedaStream, use: StreamUse, cells: StreamCells | None
) -> tuple[CellTable, CellTable]:
    """Of rows and of directories."""
    if cells is None:
        nothing = np.zeros(0, np.uint8), np.zeros((0, 0), np.int64), np.zeros((0, 0), np.int64)
        return nothing, nothing
    fields = (memory.format(use.value_bits).field_bits,) * (use.lanes // memory.group)
    rows = cells.table(use, ROWS, (use.value_bits,) * use.lanes)
    return rows, cells.table(use, DIRECTORY, fields + (use.index_bits,) * use.lanes)


__all__ = ["lists_read"]
