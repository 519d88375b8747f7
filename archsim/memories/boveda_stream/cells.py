"""Values of a compressed stream as its SRAMs hold them, and as they are read from there.

rows [columns, rows, G · B]: of each group column; container s of a row begins at bit s · B.
widths [entries, columns · log2 B]: the fields of each vector.
"""

from __future__ import annotations

import numpy as np

from archsim.codecs import boveda_columns as columns
from archsim.errors import require
from archsim.memories.boveda_stream.stream import ROWS, BovedaStream
from archsim.memory import Cells, StreamUse
from archsim.numbers import IntArray

WIDTHS = "widths"


def stored(memory: BovedaStream, use: StreamUse, vectors: IntArray) -> Cells:
    """The cells of a content.  Raises `InputError` for vectors that do not fit."""
    form, entries = memory.format(use.value_bits), memory.entries(use.rows)
    require(len(vectors) <= entries, f"vectors must be at most {entries}, not {len(vectors)}")
    lanes = vectors.reshape(len(vectors), -1, form.group)
    rows = np.zeros((lanes.shape[1], use.rows, form.group, form.container_bits), np.uint8)
    fields = np.zeros((entries, lanes.shape[1], form.field_bits), np.uint8)
    for column in range(lanes.shape[1]):
        widths = columns.widths_needed(lanes[:, column], form)
        taken = -(-int(widths.sum()) // form.container_bits)
        require(taken <= use.rows, f"values must take at most {use.rows} rows, not {taken}")
        starts = np.cumsum(widths) - widths
        columns.write(starts, lanes[:, column], widths, rows[column], form)
        fields[: len(vectors), column] = columns.fields_of(widths, form)
    return {ROWS: rows.reshape(len(rows), use.rows, -1), WIDTHS: fields.reshape(entries, -1)}


def read_back(memory: BovedaStream, use: StreamUse, cells: Cells, vectors: int) -> IntArray:
    """Values [vectors, lanes]: behind the last row are zeros."""
    form = memory.format(use.value_bits)
    fields = cells[WIDTHS][:vectors].reshape(vectors, -1, form.field_bits)
    widths = columns.widths_of(fields, form)
    found = np.empty((vectors, widths.shape[1], form.group), np.int64)
    for column, rows in enumerate(cells[ROWS]):
        own = widths[:, column]
        bits = rows.reshape(len(rows), form.group, form.container_bits)
        found[:, column] = columns.read(np.cumsum(own) - own, own, bits, form)
    return found.reshape(vectors, -1)


__all__ = ["ROWS", "WIDTHS", "read_back", "stored"]
