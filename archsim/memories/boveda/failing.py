"""Compressed words in cells that fail, without a way over every bit.

Tiles are read from the same rows again and again: what their cells do is kept as whole numbers, a
container's or an entry field's bits together.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from archsim.blocks import address_bits
from archsim.codecs.boveda_format import Bytes
from archsim.errors import require
from archsim.memories.boveda.cells import DIRECTORY, ROWS
from archsim.memories.boveda.failing_kernels import Masks, wrong_words
from archsim.memories.boveda.widths import scratch_of
from archsim.memory import Use
from archsim.memory.at_once import CellReads, Wrong
from archsim.numbers import AnyIntArray, IntArray

if TYPE_CHECKING:
    from archsim.memories.boveda.scratchpad import Boveda

Failing = tuple[Masks, Masks, Bytes, IntArray, IntArray]


def wrong_through(memory: Boveda, use: Use, tiles: AnyIntArray, reads: CellReads) -> Wrong:
    """Elements that are read wrong of tiles [tiles, words, lanes], each written from address 0 on.

    Raises `InputError` for words that do not fit the memory.
    """
    form, size, most = memory.format(use), memory.unit_words, memory.rows(use.word_bits)
    units = -(-tiles.shape[1] // size)
    require(units <= memory.units(use.word_bits), "words must be at most those of the directory")
    values = form.fitting(tiles)
    out = np.empty(tiles.size, np.int64), np.empty(tiles.size, np.int64)
    failing, sizes = failing_of(memory, use, reads), (size, most, address_bits(most))
    given = values, scratch_of(values.reshape(-1))
    count = wrong_words(given, form.numbers, sizes, failing, out)
    require(count >= 0, f"words must take at most {most} rows, not more")
    return out[0][:count], out[1][:count]


@lru_cache(maxsize=32)
def failing_of(memory: Boveda, use: Use, reads: CellReads) -> Failing:
    """As `wrong_words` takes them."""
    form, most = memory.format(use), memory.rows(use.word_bits)
    columns, bits = use.lanes // form.group, form.container_bits
    each = [
        _numbers(one.reshape(most, columns, form.group, bits)).swapaxes(0, 1)
        for one in reads.everywhere(use, ROWS, (most, use.word_bits))
    ]
    zero, one = (np.ascontiguousarray(every).reshape(columns, -1) for every in each)
    column, cell = np.nonzero((zero != 0) | (one != (1 << bits) - 1))
    begins = np.searchsorted(column, np.arange(columns + 1)).astype(np.int64)
    cells = np.stack(np.divmod(cell, form.group), axis=1)
    return (zero, one), *_entries(memory, use, reads), begins, cells


def _entries(memory: Boveda, use: Use, reads: CellReads) -> tuple[Masks, Bytes]:
    """Of directories [units, columns, 1 + U]: rows' numbers, and widths less 1; which have cells
    that fail [units, columns]."""
    form, first = memory.format(use), address_bits(memory.rows(use.word_bits))
    columns, entry = use.lanes // form.group, memory.entry_bits(use.word_bits, form.container_bits)
    units, each = memory.units(use.word_bits), list[IntArray]()
    zero, one = (
        every.reshape(units, columns, entry)
        for every in reads.everywhere(use, DIRECTORY, (units, columns * entry))
    )
    for bits in (zero, one):
        widths = bits[..., first:].reshape(units, columns, memory.unit_words, form.field_bits)
        each.append(np.concatenate([_numbers(bits[..., :first])[..., None], _numbers(widths)], 2))
    return (each[0], each[1]), ((zero != 0) | (one == 0)).any(axis=2).view(np.uint8)


def _numbers(bits: npt.NDArray[np.uint8]) -> IntArray:
    weights = np.int64(1) << np.arange(bits.shape[-1], dtype=np.int64)
    found: IntArray = bits.astype(np.int64) @ weights
    return found


__all__ = ["failing_of", "wrong_through"]
