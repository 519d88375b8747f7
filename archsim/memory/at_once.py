"""What is read of words, without a way over the cells where a memory knows a shorter one."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol, runtime_checkable

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


Reader = Callable[[IntArray, IntArray], IntArray]
"""What is read of values [n, lanes] in words at [n], of which each may be there several times."""


@runtime_checkable
class ReadsWords(Protocol):
    """A memory that knows what is read of some of its words, whatever lies in the others."""

    def failing_words(self, use: Use, words: int) -> BoolArray:
        """[words] from address 0 on that may be read otherwise than they were written."""
        ...

    def reader(self, use: Use, words: int) -> Reader:
        """Of words from address 0 on."""
        ...


@runtime_checkable
class ByBits(Protocol):
    """A memory of which bits may fare by themselves."""

    def by_bits(self, use: Use, words: int) -> tuple[IntArray, IntArray] | None:
        """As `bit_by_bit`."""
        ...


class CodedWords(NamedTuple):
    """How words of one lane are read past check bits.

    zero, one [words]: bits that read 1 where 0 is stored, and where 1 is, check bits above the
    lane's.  bits: of the lane.  covers [checks]: those that each check bit is of.  corrections: by
    syndrome, bits that are turned, -1 where zeros are read.
    """

    zero: IntArray
    one: IntArray
    bits: int
    covers: IntArray
    corrections: IntArray


@runtime_checkable
class ByCode(Protocol):
    """A memory with check bits, of which bits may fare by themselves."""

    def coded_words(self, use: Use, words: int) -> CodedWords | None:
        """As the function of that name."""
        ...


def coded_words(memory: Bank, use: Use, words: int) -> CodedWords | None:
    """Of words from address 0 on; None of words of several lanes, and where it is not known."""
    return memory.coded_words(use, words) if isinstance(memory, ByCode) else None


def words_that_fail(memory: Bank, use: Use, words: int) -> BoolArray:
    """[words] from address 0 on that may be read otherwise than they were written: all of a memory
    that does not know."""
    if isinstance(memory, ReadsWords):
        return memory.failing_words(use, words)
    both = bit_by_bit(memory, use, words)
    if both is None:
        return np.full(words, not memory.exact)
    return np.asarray(wrong_bits(use, both).any(axis=1))


def wrong_bits(use: Use, both: tuple[IntArray, IntArray]) -> IntArray:
    """[words, lanes] of `bit_by_bit`: bits that may be read otherwise than they were written."""
    low = np.array([(1 << bits) - 1 if bits < 63 else -1 for bits in use.lane_bits])
    return (both[0] | ~both[1]) & low


def bit_by_bit(memory: Bank, use: Use, words: int) -> tuple[IntArray, IntArray] | None:
    """Of words [words, lanes] from address 0 on: bits that read 1 where 0 is stored, and where 1
    is; None where bits do not fare by themselves."""
    return memory.by_bits(use, words) if isinstance(memory, ByBits) else None


def reader(memory: Bank, use: Use, words: int) -> Reader:
    """Of words from address 0 on; of a memory that does not know, by all of its cells."""
    if isinstance(memory, ReadsWords):
        return memory.reader(use, words)
    both = bit_by_bit(memory, use, words)
    above = np.array([64 - bits for bits in use.lane_bits], np.int64)
    signed = np.array(use.lane_signed)

    def by_bits(at: IntArray, values: IntArray) -> IntArray:
        assert both is not None
        found = (values & both[1][at] | ~values & both[0][at]) << above
        plain = (found.view(np.uint64) >> above.view(np.uint64)).view(np.int64)
        return np.where(signed, found >> above, plain)

    def by_cells(at: IntArray, values: IntArray) -> IntArray:
        every = np.zeros((words, use.lanes), np.int64)
        every[at] = values
        return memory.read_back(use, memory.stored(use, every), words)[at]

    return by_cells if both is None else by_bits


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
    "ByBits",
    "ByCode",
    "CellReads",
    "CodedWords",
    "Reader",
    "ReadsWords",
    "Through",
    "Wrong",
    "bit_by_bit",
    "coded_words",
    "reader",
    "seen",
    "words_that_fail",
    "wrong_bits",
    "wrong_of",
]
