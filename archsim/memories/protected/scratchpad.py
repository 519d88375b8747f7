"""Scratchpads with check bits, around any other: parity, and SECDED.

Check bits take room of the inner one's capacity.  What is detected and not corrected reads as
zeros, of the code word alone.  Coding is combinational: no cycle is added.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import gcd
from typing import ClassVar

from archsim.blocks import Components
from archsim.memories.protected.coding import Coding, ParityCode, SecdedCode
from archsim.memory import Use
from archsim.memory.around import Around


@dataclass(frozen=True, kw_only=True)
class Protected(Coding, Around):
    """inner: what keeps words and check bits; data_bits: of a code word, of whole lanes."""

    def depth(self, word_bits: int) -> int:
        """Words with their check bits."""
        return self.inner.depth(self.coded_bits(word_bits))

    def sure_depth(self, word_bits: int) -> int:
        """Likewise."""
        return self.inner.sure_depth(self.coded_bits(word_bits))

    def total_bits(self, use: Use) -> int:
        """With check bits."""
        return self.inner.total_bits(self.coded(use))

    def by_value(self, use: Use) -> None:
        """A word takes what it takes."""

    def components(self, use: Use) -> Components:
        """The inner one's, and those of coders.

        use: as whoever prices counts its lanes, which code words need not respect.
        """
        bits = use.word_bits // use.lanes if use.by_lane else use.word_bits
        times = use.lanes if use.by_lane else 1
        coded = replace(use, lane_bits=(times * self.coded_bits(bits),), lane_signed=(True,))
        read, write = ({f"{use.name}_{what}": 1.0} for what in ("read", "write"))
        return (
            *self.inner.components(coded.as_lanes(gcd(use.lanes, coded.word_bits))),
            *self.coders(f"{use.name}.code", (1, bits), read, write, times=times),
        )


@dataclass(frozen=True, kw_only=True)
class Parity(ParityCode, Protected):
    """A check bit for every `data_bits`: an odd number of errors makes these zeros."""

    kind: ClassVar[str] = "parity"


@dataclass(frozen=True, kw_only=True)
class Secded(SecdedCode, Protected):
    """Of every code word one error is corrected; two make it zeros."""

    kind: ClassVar[str] = "secded"


__all__ = ["Parity", "Protected", "Secded"]
