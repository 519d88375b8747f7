"""Streams with check bits, around any other that keeps vectors as words: parity, and SECDED.

A code word is of whole elements, values with their indices; check bits lie beside the vectors, as
the flags do, whose cells do not fail.  What is detected and not corrected reads as zeros, of value
and index alike.  Coding is combinational: no cycle is added.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from archsim.blocks import Components
from archsim.errors import InputError, require
from archsim.memories.protected.coding import CodeWords, ParityCode, SecdedCode
from archsim.memories.protected.layout import coded_use, decoded, encoded
from archsim.memory import StreamUse, Use
from archsim.memory.around import AroundStream
from archsim.memory.plain import STREAM_READS, STREAM_WRITES
from archsim.memory.seam import KeepsWords
from archsim.numbers import IntArray


@dataclass(frozen=True, kw_only=True)
class ProtectedStream(CodeWords, AroundStream):
    """inner: what keeps words and check bits; data_bits: of a code word, of whole elements."""

    def kept(self, use: StreamUse) -> StreamUse:
        """Vectors with check bits."""
        return replace(use, kept=self.coded(use.words).lane_bits)

    def check(self, use: StreamUse) -> None:
        """Raise `InputError` for elements that code words would cut, and for an inner one that does
        not keep words; else as the inner one."""
        field = use.words.field
        require(
            isinstance(self.inner, KeepsWords) and not self.inner.by_value,
            f"{field}: inner must keep vectors as they are, not compress their values: check bits "
            "are of whole elements",
        )
        try:
            self.groups(use.words)
        except InputError as error:
            raise InputError(f"{field}: {error}") from error
        super().check(use)

    def logic(self, use: StreamUse, address_bits: int) -> Components:
        """The inner one's, and coders at both ports of a PE."""
        shape = 2 * use.pes, use.words.word_bits
        return (
            *super().logic(use, address_bits),
            *self.coders("memories.code", shape, STREAM_READS, STREAM_WRITES),
        )

    def may_fail(self, use: Use, rows: IntArray) -> IntArray:
        """As the inner one, with check bits."""
        return self.words_of_inner.may_fail(self.coded(use), rows)

    def read_words(self, use: Use, words: IntArray, rows: IntArray) -> IntArray:
        """Corrected where that can be, zeros where it cannot."""
        groups = self.groups(use)
        written = encoded(use, groups, words)
        read = self.words_of_inner.read_words(coded_use(use, groups), written, rows)
        return decoded(use, groups, read)


@dataclass(frozen=True, kw_only=True)
class ParityStream(ParityCode, ProtectedStream):
    """A check bit for every `data_bits`."""

    kind: ClassVar[str] = "parity"


@dataclass(frozen=True, kw_only=True)
class SecdedStream(SecdedCode, ProtectedStream):
    """Check bits that correct one error of every `data_bits`."""

    kind: ClassVar[str] = "secded"


__all__ = ["ParityStream", "ProtectedStream", "SecdedStream"]
