"""What a PE's lists take of a memory that compresses values.

rows of a column = ⌈Σ w / B⌉ over all vectors of the PE, w the width of the column's group, 0 for
zeros only.  Counted from the values, exactly.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from archsim.codecs.boveda_kernels import measure
from archsim.codecs.zero_run import Lists
from archsim.memories.boveda_stream.stream import BovedaStream
from archsim.memory import StreamUse
from archsim.numbers import AnyIntArray, IntArray, ceil_div


@dataclass(frozen=True, kw_only=True, eq=False)
class StoredLists:
    """The content of a memory in each PE: vectors [PEs], rows [PEs, columns] of groups.

    walked_rows: that a walk over all of them uses up, where widths are read otherwise than they
    were written.
    """

    use: StreamUse
    memory: BovedaStream
    vectors: IntArray
    rows: IntArray
    walked_rows: int | None = None

    @property
    def walked(self) -> int:
        """Rows that a walk over all of them uses up."""
        return self.all_rows if self.walked_rows is None else self.walked_rows

    def walked_in(self, rows: int) -> StoredLists:
        """The same, of which a walk uses up so many rows."""
        return replace(self, walked_rows=rows)

    @property
    def all_rows(self) -> int:
        """Of all columns and PEs."""
        return int(self.rows.sum())

    @property
    def stored_bits(self) -> int:
        """Rows and entries: of values, and of widths, indices and flags."""
        lanes, value = self.use.lanes, self.use.value_bits
        entry = lanes * self.use.index_bits + 1 + self.memory.width_bits(lanes, value)
        return self.all_rows * self.memory.group * value + int(self.vectors.sum()) * entry

    @property
    def plain_bits(self) -> int:
        """What a plain memory would take for the same vectors."""
        return int(self.vectors.sum()) * (self.use.vector_bits + 1)


def held_lists(use: StreamUse, memory: BovedaStream, lists: Lists, pes: int) -> StoredLists:
    """What of lists a memory has room for."""
    found, entries = stored_lists(use, memory, lists, pes), memory.entries(use.rows)
    if int(found.vectors.max()) > entries:
        found = stored_lists(use, memory, lists, pes, entries)
    return replace(found, rows=np.minimum(found.rows, use.rows))


def stored_lists(
    use: StreamUse, memory: BovedaStream, lists: Lists, pes: int, most: int | None = None
) -> StoredLists:
    """Of lists PE by PE, as many in each; of the first `most` vectors of each."""
    form = memory.format(use.value_bits)
    columns = lists.lanes // memory.group
    widths = np.empty(lists.vectors * columns, np.uint8)
    values = np.ascontiguousarray(lists.values, form.value_type).reshape(-1)
    measure(values, (lists.lanes, columns), form.numbers, (0, len(widths)), widths)
    starts = lists.starts[:: len(lists) // pes]
    vectors = np.diff(starts)
    if most is not None:
        within = np.arange(lists.vectors) - np.repeat(starts[:-1], vectors)
        widths.reshape(-1, columns)[within >= most] = 0
        vectors = np.minimum(vectors, most)
    sums = np.add.reduceat(widths.reshape(-1, columns), starts[:-1], axis=0, dtype=np.int64)
    rows = -(-sums // use.value_bits)
    return StoredLists(use=use, memory=memory, vectors=vectors, rows=rows)


def value_bits(use: StreamUse, tensor: AnyIntArray) -> int:
    """Σ of the widths that values would have in groups of their own: no group of them takes less
    of its lanes together."""
    form = BovedaStream(group=1).format(use.value_bits)
    values = np.ascontiguousarray(tensor, form.value_type).reshape(-1)
    widths = np.empty(len(values), np.uint8)
    measure(values, (len(values), len(values)), form.numbers, (0, len(values)), widths)
    return int(widths.sum(dtype=np.int64))


def why_not(use: StreamUse, memory: BovedaStream, lists: Lists, pes: int) -> str | None:
    """The size that would hold the lists, as a refusal; None if it holds them."""
    found = stored_lists(use, memory, lists, pes)
    rows, vectors = int(found.rows.max()), int(found.vectors.max())
    if rows <= use.rows and vectors <= memory.entries(use.rows):
        return None
    needed = max(rows, ceil_div(vectors, memory.expansion))
    least = ceil_div(needed * use.vector_bits, 8)
    return (
        f"{use.field} must be at least {least} ({rows} rows of values and {vectors} vectors in a "
        f"PE, for the smallest strip of the plane), not {use.given_bytes}"
    )


__all__ = ["StoredLists", "held_lists", "stored_lists", "value_bits", "why_not"]
