"""Banks with check bits, around any other: parity, and SECDED.

What is detected and not corrected reads as zeros, of the code word alone.  Coding is combinational:
no cycle is added.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from archsim.memories.protected.coding import Coding, ParityCode, SecdedCode
from archsim.memory.around import AroundBank


@dataclass(frozen=True, kw_only=True)
class ParityBank(ParityCode, Coding, AroundBank):
    """A check bit for every `data_bits`."""

    kind: ClassVar[str] = "parity"


@dataclass(frozen=True, kw_only=True)
class SecdedBank(SecdedCode, Coding, AroundBank):
    """Check bits that correct one error of every `data_bits`."""

    kind: ClassVar[str] = "secded"


__all__ = ["ParityBank", "SecdedBank"]
