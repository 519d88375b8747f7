"""A stream of vectors whose cells fail: values and indices of compressed lists, in every PE.

Of vectors that lie as they are an element is a value and above it its index, so that
`protected_bits` says of both what does not fail: from value_bits on they are the index's.  Of
vectors whose values are compressed rows of these fail, and directories of widths and indices.  The
flag `last` lies beside, and does not fail: a machine counts its lists by it.  What a wrong index
does is the machine's to say.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from archsim.blocks import Components, Events
from archsim.errors import InputError, require
from archsim.memories.faulty.cell_faults import (
    DIRECTORY,
    HALF_BIT,
    LEAST_KEPT,
    MOST_KEPT_BITS,
    MOST_ROWS,
    CellFaults,
    wrong_bits,
    wrong_of_rows,
)  # fmt: skip
from archsim.memories.faulty.components import at_voltage
from archsim.memories.faulty.fault_map import FaultMap
from archsim.memory import StreamUse, Use
from archsim.memory.around import AroundStream
from archsim.memory.at_once import BoolArray
from archsim.memory.bits import Bits, words_of
from archsim.memory.plain import WORDS
from archsim.memory.seam import KeepsLists, KeepsWords, ListsRead, StreamCells
from archsim.numbers import IntArray, bit_ceil


@dataclass(frozen=True, kw_only=True)
class FaultyStream(CellFaults, AroundStream):
    """inner: the stream whose cells fail, one without check bits; the rest: how (`CellFaults`,
    `FaultMap`).  Of a compressed one fail rows of values, and directories of widths and indices.

    With `voltage` its SRAMs are priced at that supply.
    """

    kind: ClassVar[str] = "faulty"

    @property
    def exact(self) -> bool:
        """At no rate at all."""
        return self.bit_rate == 0 and self.inner.exact

    def check(self, use: StreamUse) -> None:
        """As the inner one; raise `InputError` for protected bits beyond an element, a measured map
        of another geometry, an inner one with check bits, and for more vectors than the hash tells
        apart."""
        super().check(use)
        words, inner = use.words, self.inner
        require(
            inner.exact and (self._lists is not None or self._as_they_are(use)),
            f"{words.field}: inner must keep vectors without check bits, not {inner.kind}: cells "
            "fail below them, so that kind=faulty is set first",
        )
        try:
            self.check_lanes(self._use_of(use))
            for sram, (_, bits) in self.srams(use).items():
                self.check_geometry(words, sram, (use.every_row, bits))
        except InputError as error:
            raise InputError(f"{words.field}: {error}") from error
        rows = bit_ceil(max(use.pes, 2)) << use.row_bits
        require(
            rows <= MOST_ROWS,
            f"{words.field}: the memories of all PEs must have at most {MOST_ROWS} vectors to "
            f"fail, in powers of two, not {rows}",
        )

    def _as_they_are(self, use: StreamUse) -> bool:
        """Whether a vector lies in the inner one with its flag alone."""
        sizes = [number * bits for _, (number, bits, _), _, _ in self.inner.words(use)]
        return isinstance(self.inner, KeepsWords) and sizes == [use.kept_bits]

    @property
    def _lists(self) -> KeepsLists | None:
        """The inner one where it compresses values."""
        inner = self.inner
        return inner if isinstance(inner, KeepsLists) and inner.by_value else None

    def srams(self, use: StreamUse) -> Mapping[str, tuple[int, int]]:
        """As the inner one; one of vectors where that keeps words."""
        lists = self._lists
        return {WORDS: (use.rows, use.words.word_bits)} if lists is None else lists.srams(use)

    def _use_of(self, use: StreamUse) -> Use:
        """The words of which bits may be protected: those of vectors, or rows of values."""
        if self._lists is None:
            return use.words
        lanes = (use.value_bits,) * use.lanes
        return replace(use.words, lane_bits=lanes, lane_signed=(False,) * use.lanes)

    def maps(self, use: StreamUse) -> dict[str, FaultMap]:
        """The faults of each SRAM."""
        words = self._use_of(use)
        return {
            sram: self.fault_map(words if sram != DIRECTORY else _no_words(words), sram, bits)
            for sram, (_, bits) in self.srams(use).items()
        }

    def table(
        self, use: StreamUse, sram: str, lane_bits: tuple[int, ...]
    ) -> tuple[npt.NDArray[np.uint8], IntArray, IntArray]:
        """By the faults of its cells."""
        found = self.maps(use)[sram], use.half << HALF_BIT, use.every_row, lane_bits
        kept = use.every_row * found[0].word_bits <= MOST_KEPT_BITS
        fails, zero, one = (_element_masks if kept else _masks_of)(*found)
        return fails.view(np.uint8), zero, one

    def lists_read(
        self, use: StreamUse, lists: Any, places: IntArray, cells: StreamCells | None = None
    ) -> ListsRead:
        """As the inner one, through these cells."""
        assert self._lists is not None
        return self._lists.lists_read(use, lists, places, self)

    def words_map(self, use: Use) -> FaultMap:
        """The faults of words as they are."""
        return self.fault_map(use, WORDS, use.word_bits)

    def may_fail(self, use: Use, rows: IntArray) -> IntArray:
        """Those with a failing cell; all of a memory too large for masks that are kept."""
        known = self._kept_masks(use, rows)
        return np.arange(len(rows)) if known is None else np.flatnonzero(known[0][rows])

    def read_words(self, use: Use, words: IntArray, rows: IntArray) -> IntArray:
        """With the faults of their cells."""
        known = self._kept_masks(use, rows)
        if known is None:
            wrong = wrong_of_rows(self.words_map(use), use.half << HALF_BIT, rows)
            zero, one = _as_numbers(wrong, use.lane_bits)
        else:
            zero, one = known[1][rows], known[2][rows]
        return words & one | ~words & zero

    def _kept_masks(self, use: Use, rows: IntArray) -> tuple[BoolArray, IntArray, IntArray] | None:
        """`_element_masks` of the addresses up to the last of these, and some more; None where they
        would not be kept."""
        faults, count = self.words_map(use), bit_ceil(max(int(rows.max(initial=0)) + 1, LEAST_KEPT))
        if faults.measured is not None or count * faults.word_bits > MOST_KEPT_BITS:
            return None
        return _element_masks(faults, use.half << HALF_BIT, count, use.lane_bits)

    def macros(
        self, name: str, shape: tuple[int, int, int, int], read: Events, write: Events
    ) -> Components:
        """The inner one's at the voltage: what makes cells fail on an FPGA is not in the chip."""
        return at_voltage(super().macros(name, shape, read, write), self.voltage)

    def at(self, rate: float) -> FaultyStream:
        """The same cells at another rate."""
        return replace(self, rate=rate, voltage=None)


def _no_words(use: Use) -> Use:
    """Of an SRAM of other words: nothing in it is protected."""
    return replace(use, lane_bits=(), lane_signed=())


def _masks_of(
    faults: FaultMap, first: int, rows: int, lane_bits: tuple[int, ...]
) -> tuple[BoolArray, IntArray, IntArray]:
    """Of so many rows from a first one on whether one has a failing cell, and [rows, lanes] what is
    read of its bits."""
    wrong = wrong_bits(faults, first, rows)
    fails: BoolArray = np.logical_or(wrong[0].any(axis=1), wrong[1].any(axis=1))
    return fails, *_as_numbers(wrong, lane_bits)


_element_masks = lru_cache(maxsize=8)(_masks_of)
"""The same, kept."""


def _as_numbers(wrong: tuple[Bits, Bits], lane_bits: tuple[int, ...]) -> tuple[IntArray, IntArray]:
    """Bits that are wrong where 0 is stored, and where 1 is, as what is read of lanes."""
    plain = (False,) * len(lane_bits)
    if_zero = words_of(wrong[0], lane_bits, plain)
    if_one = if_zero if wrong[1] is wrong[0] else words_of(wrong[1], lane_bits, plain)
    low = np.array([(1 << bits) - 1 for bits in lane_bits], np.int64)
    return if_zero, ~if_one & low


__all__ = ["FaultyStream"]
