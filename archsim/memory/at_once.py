"""What is read of words, without a way over the cells where a memory knows a shorter one."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from archsim.memory.seam import Bank, Use
from archsim.numbers import AnyIntArray, IntArray

Bits = npt.NDArray[np.uint8]
BoolArray = npt.NDArray[np.bool_]

Wrong = tuple[IntArray, IntArray]
"""Elements of words that are read wrong, by their places in them as a flat array, and by how much:
[n] each, every place once."""


class CellReads(Protocol):
    """Cells that are read otherwise than they were written, each by itself; hashable."""

    def everywhere(self, use: Use, sram: str, size: tuple[int, int]) -> tuple[Bits, Bits]:
        """Of an SRAM of so many rows and bits a half: what is read [rows, bits] where 0 is stored
        everywhere, and where 1 is."""
        ...


@runtime_checkable
class Through(Protocol):
    """A memory that knows what is read of words through other cells than its own (`CellReads`)."""

    def wrong_through(self, use: Use, tiles: AnyIntArray, reads: CellReads) -> Wrong:
        """Of tiles [tiles, words, lanes], each written from address 0 on."""
        ...


@runtime_checkable
class AtOnce(Protocol):
    """A memory that may know a shorter way than that over its cells, whose words have no masks."""

    def wrong(self, use: Use, tiles: AnyIntArray) -> Wrong | None:
        """Of tiles [tiles, words, lanes], each written from address 0 on; None: by its cells."""
        ...


@runtime_checkable
class WordsFail(Protocol):
    """A memory that knows which of its words may be read otherwise than they were written."""

    def failing_words(self, use: Use, words: int) -> BoolArray:
        """[words] from address 0 on."""
        ...


def words_that_fail(memory: Bank, use: Use, words: int) -> BoolArray:
    """[words] from address 0 on that may be read otherwise than they were written: all of a memory
    that does not know."""
    if isinstance(memory, WordsFail):
        return memory.failing_words(use, words)
    return np.full(words, not memory.exact)


def bit_by_bit(memory: Bank, use: Use, words: int) -> tuple[IntArray, IntArray] | None:
    """Of words of signed lanes [words, lanes] from address 0 on: bits that read 1 where 0 is
    stored, and where 1 is; None where bits do not fare by themselves."""
    masks = memory.masks(use, words)
    if masks is not None:
        kept = ~masks.if_zero if masks.kept is None else masks.kept
        return masks.if_zero, kept
    if memory.masks(use, 1) is None:
        return None
    zero, one = (np.full((words, use.lanes), value, np.int64) for value in (0, -1))
    zero, one = (memory.read_back(use, memory.stored(use, one), words) for one in (zero, one))
    return zero, one


def seen(memory: Bank, use: Use, words: IntArray) -> IntArray:
    """The words [words, lanes] that are read of words written from address 0 on."""
    masks = memory.masks(use, len(words))
    if masks is not None:
        return masks.read(words)
    wrong = memory.wrong(use, words[None]) if isinstance(memory, AtOnce) else None
    if wrong is None:
        return memory.read_back(use, memory.stored(use, words), len(words))
    found = words.reshape(-1).copy()
    found[wrong[0]] += wrong[1]
    return found.reshape(words.shape)


def wrong_of(memory: Bank, use: Use, tiles: AnyIntArray) -> Wrong:
    """What is read wrong of tiles [tiles, words, lanes], each written from address 0 on."""
    found = memory.wrong(use, tiles) if isinstance(memory, AtOnce) else None
    if found is not None:
        return found
    wide = tiles.astype(np.int64, copy=False)
    read = [memory.read_back(use, memory.stored(use, one), len(one)) for one in wide]
    change = (np.stack(read) - wide).reshape(-1)
    places = np.flatnonzero(change)
    return places, change[places]


__all__ = [
    "AtOnce",
    "BoolArray",
    "CellReads",
    "Through",
    "WordsFail",
    "Wrong",
    "bit_by_bit",
    "seen",
    "words_that_fail",
    "wrong_of",
]
