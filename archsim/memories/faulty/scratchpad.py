"""A scratchpad whose cells fail, around any other: it changes what lies in the inner one's cells.

Faults are of what is stored: of a plain memory the words, of a compressed one its rows of
containers and its directory of widths and places.  No cycle changes: tilings and latencies are
those of the values that were meant (ADR 19).  Of a compressed memory each word is read where a
wrong directory says, in rows that the tile has written, zeros behind them; such reads are counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from archsim.blocks import Components
from archsim.memories.faulty.bank import FaultyBank
from archsim.memories.faulty.components import at_voltage
from archsim.memory import Scratchpad, Use
from archsim.memory.around import Around, plain_scratchpad
from archsim.memory.tile_store import TileStore


@dataclass(frozen=True, kw_only=True)
class Faulty(FaultyBank, Around):
    """inner: the scratchpad whose cells fail; the rest: how (`CellFaults`, `FaultMap`).

    With `voltage` its SRAMs are priced at that supply.
    """

    inner: Scratchpad = field(default_factory=plain_scratchpad)

    def srams(self, use: Use) -> Mapping[str, tuple[int, int]]:
        """The inner one's."""
        return self.inner.srams(use)

    def by_value(self, use: Use) -> TileStore | None:
        """The inner one's, with cells that fail."""
        found = super().by_value(use)
        return found if found is None or self.bit_rate == 0 else found.through(self, use)

    def components(self, use: Use) -> Components:
        """The inner one's, at the voltage: what makes cells fail on an FPGA is not in the chip."""
        return at_voltage(super().components(use), self.voltage)

    def at(self, rate: float) -> Faulty:
        """The same cells at another rate."""
        return replace(self, rate=rate, voltage=None)
