"""Words of a compressed scratchpad as its SRAMs hold them, and as they are read from there.

rows [columns, rows, G · B]: of each group column; container s of a row begins at bit s · B.
directory [columns, units, entry bits]: the first row of a unit, and w − 1 of each of its words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from archsim.blocks import address_bits
from archsim.codecs import boveda_columns as columns
from archsim.errors import require
from archsim.memory import Cells, Use
from archsim.numbers import IntArray

if TYPE_CHECKING:
    from archsim.memories.boveda.scratchpad import Boveda

ROWS, DIRECTORY = "rows", "directory"


def stored(memory: Boveda, use: Use, words: IntArray) -> Cells:
    """The cells of one half.  Raises `InputError` for words that do not fit it."""
    form, size = memory.format(use), memory.unit_words
    rows, units = memory.rows(use.word_bits), -(-len(words) // size)
    require(units <= memory.units(use.word_bits), "words must be at most those of the directory")
    lanes = words.reshape(len(words), -1, form.group)
    found = np.zeros((lanes.shape[1], rows, form.group, form.container_bits), np.uint8)
    entry = memory.entry_bits(use.word_bits, form.container_bits)
    directory = np.zeros((lanes.shape[1], memory.units(use.word_bits), entry), np.uint8)
    pointer = address_bits(rows)
    for column in range(lanes.shape[1]):
        widths, codes = columns.codes_of(lanes[:, column], form)
        in_units = np.zeros((units, size), np.int64)
        in_units.reshape(-1)[: len(widths)] = widths
        taken = -(-in_units.sum(axis=1) // form.container_bits)
        first = np.cumsum(taken) - taken
        require(int(taken.sum()) <= rows, f"words must take at most {rows} rows, not {taken.sum()}")
        starts = _starts(first, in_units, form.container_bits)[: len(words)]
        columns.write(starts, codes, widths, found[column])
        directory[column, :units, :pointer] = (first[:, None] >> np.arange(pointer)) & 1
        fields = columns.fields_of(np.maximum(in_units, 1), form)
        directory[column, :units, pointer:] = fields.reshape(units, -1)
    return {ROWS: found.reshape(len(found), rows, -1), DIRECTORY: directory}


def read_back(memory: Boveda, use: Use, cells: Cells, words: int) -> IntArray:
    """Words [words, lanes] of one half: what is behind its last row is its first one."""
    form, size = memory.format(use), memory.unit_words
    units, pointer = -(-words // size), address_bits(memory.rows(use.word_bits))
    found = np.empty((words, use.lanes // form.group, form.group), np.int64)
    for column, (rows, directory) in enumerate(zip(cells[ROWS], cells[DIRECTORY], strict=True)):
        entries = directory[:units].astype(np.int64)
        first = entries[:, :pointer] @ (np.int64(1) << np.arange(pointer))
        fields = directory[:units, pointer:].reshape(units, size, form.field_bits)
        in_units = columns.widths_of(fields, form)
        starts = _starts(first, in_units, form.container_bits)[:words]
        bits = rows.reshape(len(rows), form.group, form.container_bits)
        widths = in_units.reshape(-1)[:words]
        found[:, column] = columns.values_of(columns.read(starts, bits), widths, form)
    return found.reshape(words, -1)


def _starts(first: IntArray, in_units: IntArray, container_bits: int) -> IntArray:
    """Where each group begins; in_units [units, U]: widths; first: row of each unit."""
    before = np.cumsum(in_units, axis=1) - in_units
    return (first[:, None] * container_bits + before).reshape(-1)


__all__ = ["DIRECTORY", "ROWS", "read_back", "stored"]
