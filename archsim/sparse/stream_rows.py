"""What a PE's lists take of a memory that compresses values (`archsim.stream_memory`).

rows of a column = ⌈Σ w / B⌉ over all vectors of the PE, w the width of the column's group, 0 for
zeros only.  Counted from the values, exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from archsim.codecs.boveda_kernels import measure
from archsim.codecs.zero_run import Lists
from archsim.designs.scnn import Scnn
from archsim.numbers import AnyIntArray, IntArray, ceil_div
from archsim.stream_memory import BovedaStream


@dataclass(frozen=True, kw_only=True, eq=False)
class StoredLists:
    """The content of a memory in each PE: vectors [PEs], rows [PEs, columns] of groups."""

    vectors: IntArray
    rows: IntArray

    @property
    def all_rows(self) -> int:
        """Of all columns and PEs."""
        return int(self.rows.sum())

    def bits(self, design: Scnn, memory: BovedaStream) -> int:
        """Rows and entries: of values, and of widths, indices and flags."""
        lanes, value = design.ifmap_lanes, design.operand_bits
        entry = lanes * design.index_bits + 1 + memory.width_bits(lanes, value)
        return self.all_rows * memory.group * value + int(self.vectors.sum()) * entry

    def plain_bits(self, design: Scnn) -> int:
        """What a plain memory would take for the same vectors."""
        return int(self.vectors.sum()) * (design.ifmap_vector_bits + 1)


def stored_lists(design: Scnn, memory: BovedaStream, lists: Lists, pes: int) -> StoredLists:
    """Of lists PE by PE, as many in each."""
    form = memory.format(design.operand_bits)
    columns = lists.lanes // memory.group
    widths = np.empty(lists.vectors * columns, np.uint8)
    values = np.ascontiguousarray(lists.values, form.value_type).reshape(-1)
    measure(values, (lists.lanes, columns), form.numbers, (0, len(widths)), widths)
    starts = lists.starts[:: len(lists) // pes]
    sums = np.add.reduceat(widths.reshape(-1, columns), starts[:-1], axis=0, dtype=np.int64)
    return StoredLists(vectors=np.diff(starts), rows=-(-sums // design.operand_bits))


def value_bits(design: Scnn, memory: BovedaStream, tensor: AnyIntArray) -> int:
    """Σ of the widths that values would have in groups of their own: no group of them takes less
    of its lanes together."""
    form = BovedaStream(group=1, expansion=memory.expansion).format(design.operand_bits)
    values = np.ascontiguousarray(tensor, form.value_type).reshape(-1)
    widths = np.empty(len(values), np.uint8)
    measure(values, (len(values), len(values)), form.numbers, (0, len(values)), widths)
    return int(widths.sum(dtype=np.int64))


def why_not(design: Scnn, memory: BovedaStream, name: str, lists: Lists, pes: int) -> str | None:
    """The size of the memory `name` ("iaram_bytes") that would hold the lists, as a refusal; None
    if it holds them."""
    given = getattr(design, name)
    held = 8 * given // design.ifmap_vector_bits
    found = stored_lists(design, memory, lists, pes)
    rows, vectors = int(found.rows.max()), int(found.vectors.max())
    if rows <= held and vectors <= memory.entries(held):
        return None
    needed = max(rows, ceil_div(vectors, memory.expansion))
    least = ceil_div(needed * design.ifmap_vector_bits, 8)
    return (
        f"{name} must be at least {least} ({rows} rows of values and {vectors} vectors in a PE, "
        f"for the smallest strip of the plane), not {given}"
    )


__all__ = ["StoredLists", "stored_lists", "value_bits", "why_not"]
