"""A bank whose cells fail, around any other: what `scratchpad.Faulty` is of scratchpads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from archsim.blocks import Components, Events
from archsim.errors import require
from archsim.memories.faulty.cell_faults import Bits, CellFaults
from archsim.memories.faulty.components import at_voltage
from archsim.memories.faulty.word_masks import lane_masks
from archsim.memory import Cells, Use
from archsim.memory.around import AroundBank
from archsim.memory.at_once import Through, Wrong, wrong_bits
from archsim.memory.bits import words_of
from archsim.memory.lane_masks import LaneMasks
from archsim.memory.plain import WORDS, keeps_words
from archsim.numbers import AnyIntArray, IntArray


@dataclass(frozen=True, kw_only=True)
class FaultyBank(CellFaults, AroundBank):
    """inner: the bank whose cells fail; the rest: how (`CellFaults`, `FaultMap`).

    With `voltage` its SRAMs are priced at that supply.
    """

    kind: ClassVar[str] = "faulty"

    @property
    def exact(self) -> bool:
        """At no rate at all, where the inner one is."""
        return self.bit_rate == 0 and self.inner.exact

    def check(self, use: Use) -> None:
        """As the inner one; protected bits must be of a lane."""
        self.check_lanes(use)
        for sram, size in self.srams(use).items():
            self.check_geometry(use, sram, size)
        super().check(use)
        cells = self.inner.stored(use, np.zeros((1, use.lanes), np.int64))
        require(
            WORDS not in cells or cells[WORDS].shape[-1] == use.word_bits,
            f"inner of a faulty memory must keep words without check bits, not "
            f"{self.inner.kind}: cells fail below them, so that kind=faulty is set first",
        )

    def srams(self, use: Use) -> Mapping[str, tuple[int, int]]:
        """Of each SRAM the words of a half, 0 where that is not known, and their bits."""
        return {WORDS: (use.depth, use.word_bits)}

    def stored(self, use: Use, words: IntArray) -> Cells:
        """The inner one's cells, as they are read."""
        return self.failing(use, super().stored(use, words))

    def masks(self, use: Use, words: int) -> LaneMasks | None:
        """Of whole lanes, where words lie in the inner one as they are."""
        return lane_masks(self, use, words) if self._keeps_words else None

    @property
    def _keeps_words(self) -> bool:
        """Whether words lie in the inner one as they are, and are read so but for faults."""
        return self._plainly and keeps_words(self.inner)

    @property
    def _plainly(self) -> bool:
        own = type(self)
        return own.stored is FaultyBank.stored and own.read_back is AroundBank.read_back

    def by_bits(self, use: Use, words: int) -> tuple[IntArray, IntArray] | None:
        """Of any map and size, where words lie in the inner one as they are."""
        if not self._keeps_words:
            return None
        masks = self.masks(use, words)
        if masks is not None:
            return masks.if_zero[:words], masks.if_one[:words]
        if self.map is not None:
            return self.by_cells(use, words)
        places, zero, one = _failing_words(self, use, words)
        shape = words, use.lanes
        if_zero, if_one = np.zeros(shape, np.int64), np.full(shape, -1, np.int64)
        if_zero[places], if_one[places] = zero, one
        return if_zero, if_one

    def by_cells(self, use: Use, words: int) -> tuple[IntArray, IntArray]:
        """As `by_bits`, of every cell."""
        zero, one = self.everywhere(use, WORDS, (words, use.word_bits))
        plain = (False,) * use.lanes
        return words_of(zero, use.lane_bits, plain), ~words_of(1 - one, use.lane_bits, plain)

    def wrong(self, use: Use, tiles: AnyIntArray) -> Wrong | None:
        """By the inner one, where it reads words through other cells; not of a map, a file."""
        if not (self._plainly and self.map is None and isinstance(self.inner, Through)):
            return None
        return self.inner.wrong_through(use, tiles, self)

    def everywhere(self, use: Use, sram: str, size: tuple[int, int]) -> tuple[Bits, Bits]:
        """What [rows, bits] is read of an SRAM where 0 is stored everywhere, and where 1 is."""
        zero, one = (np.full(size, value, np.uint8) for value in (0, 1))
        return self.failing_bits(use, sram, zero), self.failing_bits(use, sram, one)

    def macros(
        self, name: str, shape: tuple[int, int, int, int], read: Events, write: Events
    ) -> Components:
        """The inner one's at the voltage: what makes cells fail on an FPGA is not in the chip."""
        return at_voltage(super().macros(name, shape, read, write), self.voltage)


@lru_cache(maxsize=8)
def _failing_words(memory: FaultyBank, use: Use, words: int) -> tuple[IntArray, IntArray, IntArray]:
    """Of a memory too large for masks that are kept, those of its words with failing cells: their
    places [n], and [n, lanes] the bits that read 1 where 0 is stored, and where 1 is."""
    both = memory.by_cells(use, words)
    places = np.flatnonzero(wrong_bits(use, both).any(axis=1))
    return places, both[0][places], both[1][places]


__all__ = ["FaultyBank"]
