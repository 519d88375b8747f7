"""A kind of memory around another one: it answers as the inner one, but for what it changes.

A kind that protects, measures or slows what another one keeps is a subclass, and changes what its
users see of it: words, latencies, hardware.  A kind that changes what lies in the cells, as faults
do, changes `stored` or `read_back`; it is then not `exact`, unless it says so.  Either may stand
around any other, several deep; the RTL of such a kind is placed around that of the inner one
(`rtl.core.memory`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

from archsim.blocks import Components, Events
from archsim.memory.lane_masks import LaneMasks
from archsim.memory.plain import PlainBank, kibibytes
from archsim.memory.seam import Access, Bank, Cells, Scratchpad, Use
from archsim.memory.tile_store import TileStore
from archsim.numbers import IntArray


def plain_scratchpad() -> Scratchpad:
    """What others are around where nothing is said: 64 KiB."""
    return kibibytes(64)


@dataclass(frozen=True, kw_only=True)
class AroundBank:
    """inner: the bank that keeps the words."""

    inner: Bank = field(default_factory=PlainBank)

    access: ClassVar[Access] = "bank"

    @property
    def exact(self) -> bool:
        """Where the inner one is, and neither `stored` nor `read_back` is another one's."""
        own = type(self)
        plainly = own.stored is AroundBank.stored and own.read_back is AroundBank.read_back
        return plainly and self.inner.exact

    def check(self, use: Use) -> None:
        """As the inner one."""
        self.inner.check(use)

    def macros(
        self, name: str, shape: tuple[int, int, int, int], read: Events, write: Events
    ) -> Components:
        """As the inner one."""
        return self.inner.macros(name, shape, read, write)

    def stored(self, use: Use, words: IntArray) -> Cells:
        """As the inner one."""
        return self.inner.stored(use, words)

    def read_back(self, use: Use, cells: Cells, words: int) -> IntArray:
        """As the inner one."""
        return self.inner.read_back(use, cells, words)

    def masks(self, use: Use, words: int) -> LaneMasks | None:
        """By its cells."""
        return None


@dataclass(frozen=True, kw_only=True)
class Around(AroundBank):
    """inner: the scratchpad that keeps the words."""

    inner: Scratchpad = field(default_factory=plain_scratchpad)

    access: ClassVar[Access] = "scratchpad"

    @property
    def capacity_bytes(self) -> int:
        return self.inner.capacity_bytes

    @property
    def joined_halves(self) -> bool:
        return self.inner.joined_halves

    def for_fpga(self) -> Self:
        """Around what an FPGA wants the inner one to be."""
        return replace(self, inner=self.inner.for_fpga())

    @property
    def read_latency_cycles(self) -> int:
        return self.inner.read_latency_cycles

    @property
    def write_latency_cycles(self) -> int:
        return self.inner.write_latency_cycles

    def depth(self, word_bits: int) -> int:
        """As the inner one."""
        return self.inner.depth(word_bits)

    def sure_depth(self, word_bits: int) -> int:
        """As the inner one."""
        return self.inner.sure_depth(word_bits)

    def srams(self, use: Use) -> Mapping[str, tuple[int, int]]:
        """As the inner one."""
        return self.inner.srams(use)

    def total_bits(self, use: Use) -> int:
        """As the inner one."""
        return self.inner.total_bits(use)

    def by_value(self, use: Use) -> TileStore | None:
        """As the inner one."""
        return self.inner.by_value(use)

    def components(self, use: Use) -> Components:
        """As the inner one."""
        return self.inner.components(use)


__all__ = ["Around", "AroundBank", "plain_scratchpad"]
