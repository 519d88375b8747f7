"""A scratchpad whose cells fail, around any other: it changes what lies in the inner one's cells.

Faults are of what is stored: of a plain memory the words, of a compressed one its rows of
containers and its directory of widths and places.  No cycle changes: tilings and latencies are
those of the values that were meant (ADR 19).  Of a compressed memory each word is read where a
wrong directory says, in rows that the tile has written, zeros behind them; such reads are counted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from archsim.blocks import Components, Events
from archsim.memories.faulty.cell_faults import CellFaults
from archsim.memories.faulty.components import at_voltage
from archsim.memories.faulty.word_masks import seen_words
from archsim.memory import Cells, Use
from archsim.memory.around import Around
from archsim.memory.plain import keeps_words
from archsim.memory.tile_store import TileStore
from archsim.numbers import IntArray


@dataclass(frozen=True, kw_only=True)
class Faulty(CellFaults, Around):
    """inner: the scratchpad whose cells fail; the rest: how (`CellFaults`, `FaultMap`).

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
        self.check_geometry(use, self.inner.depth(use.word_bits))
        super().check(use)

    def stored(self, use: Use, words: IntArray) -> Cells:
        """The inner one's cells, as they are read."""
        return self.failing(use, super().stored(use, words))

    def seen(self, use: Use, words: IntArray) -> IntArray | None:
        """By masks of whole lanes, where words lie in the inner one as they are."""
        own = type(self)
        plainly = own.stored is Faulty.stored and own.read_back is Around.read_back
        if not (plainly and keeps_words(self.inner)):
            return None
        return seen_words(self, use, words)

    def by_value(self, use: Use) -> TileStore | None:
        """The inner one's, with cells that fail."""
        found = super().by_value(use)
        return found if found is None or self.bit_rate == 0 else found.through(self, use)

    def components(self, use: Use) -> Components:
        """The inner one's, at the voltage: what makes cells fail on an FPGA is not in the chip."""
        return at_voltage(super().components(use), self.voltage)

    def macros(
        self, name: str, shape: tuple[int, int, int, int], read: Events, write: Events
    ) -> Components:
        """The inner one's at the voltage."""
        return at_voltage(super().macros(name, shape, read, write), self.voltage)

    def at(self, rate: float) -> Faulty:
        """The same cells at another rate."""
        return replace(self, rate=rate, voltage=None)
