"""Hardware of memories with check bits.

codec       encoder and decoder of a code word
scratchpad  a memory with them, around any other
stream      both memories of a sparse machine's activations with them
proofs      what is proved of every code
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from amaranth.lib import wiring

from archsim.errors import require
from archsim.memories.protected.code import parity, secded
from archsim.memories.protected.layout import Group
from archsim.memory import StreamUse
from rtl.core.memory import (
    Placed,
    Settings,
    Words,
    bank_for,
    built,
    may_overflow,
    rtl_of,
    settings_of,
    stream_answer,
)
from rtl.memories.protected.scratchpad import ProtectedMemory
from rtl.memories.protected.stream import ProtectedActivations

if TYPE_CHECKING:
    from rtl.formal import Proof


class ProtectedBankRtl:
    """`ProtectedMemory` around what the inner kind places for words with check bits."""

    def __init__(self, memory: Any) -> None:
        self.memory, self.inner = memory, rtl_of(memory.inner)

    def groups(self, words: Words) -> tuple[Group, ...]:
        """Those among the lanes that are asked for."""
        require(words.use is not None, "a protected memory must be told what it is used for")
        assert words.use is not None
        end = words.first_bit + words.lanes * words.bits
        every = self.memory.groups(words.use)
        return tuple(one for one in every if words.first_bit <= one.bit < end)

    def coded(self, words: Words) -> Words:
        """The words that the inner kind is asked for."""
        groups, use = self.groups(words), words.use
        assert use is not None
        whole = self.memory.coded(use)
        return replace(
            words,
            lanes=1,
            bits=sum(one.code.bits for one in groups),
            signed=False,
            use=whole,
            first_bit=groups[0].coded_bit,
            word_bits=whole.word_bits,
        )

    def settings(self, words: Words) -> Settings | None:
        """Those of the inner one."""
        return settings_of(self.memory.inner, self.coded(words))

    def built(self) -> Any:
        """Around the inner one as that is built."""
        return replace(self.memory, inner=built(self.memory.inner))

    def bank(self, *, bits: int, depth: int, transparent: bool) -> Placed:
        """The inner one's: a bank that is not told of which words keeps no check bits."""
        return self.inner.bank(bits=bits, depth=depth, transparent=transparent)

    def bank_for(self, words: Words, *, transparent: bool) -> Placed:
        """The inner one's bank, between coders."""
        inner = bank_for(self.memory.inner, self.coded(words), transparent=transparent)
        return self._around(inner, words)

    def _around(self, inner: Placed, words: Words) -> Placed:
        unit, parameters = inner
        return ProtectedMemory, {
            "unit": unit,
            "parameters": tuple(sorted(parameters.items())),
            "codes": tuple(one.code for one in self.groups(words)),
        }


class ProtectedRtl(ProtectedBankRtl):
    """Of scratchpads."""

    def __init__(self, memory: Any) -> None:
        super().__init__(memory)
        self.whole_words = self.inner.whole_words

    def unit(self, words: Words, *, by_lane: bool) -> Placed:
        """The inner one's, between coders."""
        return self._around(self.inner.unit(self.coded(words), by_lane=by_lane), words)

    def events(self, words: Words, *, by_lane: bool) -> dict[str, Any]:
        """As the inner one."""
        return self.inner.events(words, by_lane=by_lane)


class ProtectedStreamRtl:
    """Of the activations of a sparse machine: what the inner kind places, between coders."""

    def __init__(self, memory: Any) -> None:
        self.memory, self.inner = memory, rtl_of(memory.inner)
        self.overflows = may_overflow(memory.inner)

    def unit(self, design: Any, use: StreamUse | None = None) -> Placed:
        """Both memories of a PE."""
        use = self._use(design, use)
        unit, parameters = self.inner.unit(design, self.memory.kept(use))
        return ProtectedActivations, {
            "unit": unit,
            "parameters": tuple(sorted(parameters.items())),
            "codes": tuple(one.code for one in self.memory.groups(use.words)),
        }

    def port(self, design: Any) -> wiring.Signature:
        """Of either, as the inner one."""
        return self.inner.port(design)

    def events(self, design: Any) -> dict[str, int]:
        """As the inner one."""
        return self.inner.events(design)

    def outside(self, design: Any, use: StreamUse | None = None) -> dict[str, int]:
        """As the inner one."""
        return self._asked("outside", design, use) or {}

    def settings(self, design: Any, use: StreamUse | None = None) -> Settings | None:
        """Those of the inner one."""
        return self._asked("settings", design, use)

    def bank(self, *, bits: int, depth: int, transparent: bool) -> Placed:
        """The inner one's."""
        return self.inner.bank(bits=bits, depth=depth, transparent=transparent)

    def _asked(self, what: str, design: Any, use: StreamUse | None) -> Any:
        """What the inner one answers of what it keeps."""
        kept = self.memory.kept(self._use(design, use))
        return stream_answer(self.memory.inner, what, design, kept)

    @staticmethod
    def _use(design: Any, use: StreamUse | None) -> StreamUse:
        """What is kept; vectors as they are where nothing stands around."""
        return design.stream_use("iaram") if use is None else use


class ParityBankRtl(ProtectedBankRtl):
    """With parity."""

    @staticmethod
    def proofs() -> Iterable[Proof]:
        """What is written is read back."""
        from rtl.memories.protected.proofs import bank_proofs

        return bank_proofs(parity)


class SecdedBankRtl(ProtectedBankRtl):
    """With a code that corrects."""

    @staticmethod
    def proofs() -> Iterable[Proof]:
        """What is written is read back."""
        from rtl.memories.protected.proofs import bank_proofs

        return bank_proofs(secded)


class ParityStreamRtl(ProtectedStreamRtl):
    """With parity."""

    @staticmethod
    def proofs() -> Iterable[Proof]:
        """What is written is read back, through exchanges."""
        from rtl.memories.protected.proofs import stream_proofs

        return stream_proofs(parity)


class SecdedStreamRtl(ProtectedStreamRtl):
    """With a code that corrects."""

    @staticmethod
    def proofs() -> Iterable[Proof]:
        """What is written is read back, through exchanges."""
        from rtl.memories.protected.proofs import stream_proofs

        return stream_proofs(secded)


class ParityRtl(ProtectedRtl):
    """With parity."""

    @staticmethod
    def proofs() -> Iterable[Proof]:
        """Of the code."""
        from rtl.memories.protected.proofs import code_proofs

        return code_proofs(corrects=False)


class SecdedRtl(ProtectedRtl):
    """With a code that corrects."""

    @staticmethod
    def proofs() -> Iterable[Proof]:
        """Of the code."""
        from rtl.memories.protected.proofs import code_proofs

        return code_proofs(corrects=True)


__all__ = [
    "ParityBankRtl",
    "ParityRtl",
    "ParityStreamRtl",
    "SecdedBankRtl",
    "SecdedRtl",
    "SecdedStreamRtl",
]
