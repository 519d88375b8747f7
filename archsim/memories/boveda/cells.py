"""Words of a compressed scratchpad as its SRAMs hold them, and as they are read from there.

rows [columns, rows, G · B]: of each group column; container s of a row begins at bit s · B.
directory [columns, units, entry bits]: the first row of a unit, and w − 1 of each of its words.
flip-flops [columns, count bits]: how many rows of each group column the tile has written.

Rows and entries are those that the words take; what a tile has not written is not read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from archsim.blocks import address_bits
from archsim.codecs import boveda_columns as columns
from archsim.codecs.boveda_format import Bytes
from archsim.errors import require
from archsim.memory import FLIP_FLOPS, Cells, Use
from archsim.numbers import IntArray

if TYPE_CHECKING:
    from archsim.memories.boveda.scratchpad import Boveda

ROWS, DIRECTORY = "rows", "directory"


def stored(memory: Boveda, use: Use, words: IntArray) -> Cells:
    """The cells of one half.  Raises `InputError` for words that do not fit it."""
    form, size = memory.format(use), memory.unit_words
    most, units = memory.rows(use.word_bits), -(-len(words) // size)
    require(units <= memory.units(use.word_bits), "words must be at most those of the directory")
    lanes = np.moveaxis(words.reshape(len(words), -1, form.group), 1, 0)
    in_units = np.zeros((units * size, len(lanes)), np.int64)
    for column, own in enumerate(lanes):
        in_units[: len(words), column] = columns.widths_needed(own, form)
    in_units = in_units.reshape(units, size, -1)
    taken = -(-in_units.sum(axis=1) // form.container_bits)
    first, rows = np.cumsum(taken, axis=0) - taken, taken.sum(axis=0)
    require(int(rows.max()) <= most, f"words must take at most {most} rows, not {rows.max()}")
    found = np.zeros((len(lanes), int(rows.max()), form.group, form.container_bits), np.uint8)
    for column, own in enumerate(lanes):
        widths = in_units[:, :, column]
        starts = starts_of(first[:, column], widths, form.container_bits)[: len(words)]
        columns.write(starts, own, widths.reshape(-1)[: len(words)], found[column], form)
    return {
        ROWS: found.reshape(*found.shape[:2], -1),
        DIRECTORY: entries_of(first, in_units, (address_bits(most), form.field_bits)),
        FLIP_FLOPS: bits_of(rows, most.bit_length()),
    }


def entries_of(first: IntArray, in_units: IntArray, bits: tuple[int, int]) -> Bytes:
    """The directory [columns, units, entry bits] of first rows [units, columns] and widths
    [units, U, columns], 0 where there is no word; bits: of a row's number, of a width's field."""
    rows = bits_of(first.T, bits[0])
    codes = np.moveaxis(np.maximum(in_units, 1) - 1, 2, 0)
    fields = bits_of(codes, bits[1]).reshape(*rows.shape[:2], -1)
    return np.concatenate([rows, fields], axis=2)


def entries_read(directory: Bytes, bits: tuple[int, int]) -> tuple[IntArray, IntArray]:
    """The first rows [units, columns] and widths [units, U, columns] that a directory says."""
    rows, fields = directory[:, :, : bits[0]], directory[:, :, bits[0] :]
    fields = fields.reshape(*fields.shape[:2], -1, bits[1])
    return _numbers(rows).T, np.moveaxis(_numbers(fields) + 1, 0, 2)


def read_back(memory: Boveda, use: Use, cells: Cells, words: int) -> IntArray:
    """Words [words, lanes] of one half: of rows that the tile has not written, zeros."""
    form, most = memory.format(use), memory.rows(use.word_bits)
    bits = address_bits(most), form.field_bits
    first, in_units = entries_read(cells[DIRECTORY], bits)
    written = _numbers(cells[FLIP_FLOPS])
    found = np.empty((words, use.lanes // form.group, form.group), np.int64)
    wrap = form.container_bits << bits[0]
    for column, rows in enumerate(cells[ROWS]):
        widths = in_units[:, :, column]
        starts = starts_of(first[:, column], widths, form.container_bits)[:words] % wrap
        there = rows[: written[column]].reshape(-1, form.group, form.container_bits)
        found[:, column] = columns.read(starts, widths.reshape(-1)[:words], there, form)
    return found.reshape(words, -1)


def bits_of(numbers: IntArray, bits: int) -> Bytes:
    """Numbers [...] as bits [..., bits], the lowest first."""
    return ((numbers[..., None] >> np.arange(bits)) & 1).astype(np.uint8)


def _numbers(bits: Bytes) -> IntArray:
    return bits.astype(np.int64) @ (np.int64(1) << np.arange(int(bits.shape[-1])))


def starts_of(first: IntArray, in_units: IntArray, container_bits: int) -> IntArray:
    """Where each group begins; in_units [units, U]: widths; first: row of each unit."""
    before = np.cumsum(in_units, axis=1) - in_units
    return (first[:, None] * container_bits + before).reshape(-1)


__all__ = [
    "DIRECTORY",
    "ROWS",
    "bits_of",
    "entries_of",
    "entries_read",
    "read_back",
    "starts_of",
    "stored",
]
