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
from typing import Any, ClassVar, Self

from archsim.blocks import Components, Events
from archsim.memory.lane_masks import LaneMasks
from archsim.memory.plain import PlainBank, PlainStream, kibibytes
from archsim.memory.seam import (
    Access,
    Bank,
    Cells,
    KeepsWords,
    Scratchpad,
    StreamContent,
    StreamMemory,
    StreamUse,
    StreamWords,
    Use,
)
from archsim.memory.tile_store import TileStore
from archsim.numbers import AnyIntArray, IntArray


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


@dataclass(frozen=True, kw_only=True)
class AroundStream:
    """inner: the stream that keeps the vectors."""

    inner: StreamMemory = field(default_factory=PlainStream)

    access: ClassVar[Access] = "stream"

    @property
    def stepped(self) -> bool:
        """As the inner one."""
        return self.inner.stepped

    @property
    def by_value(self) -> bool:
        """As the inner one."""
        return self.inner.by_value

    @property
    def exact(self) -> bool:
        """Where the inner one is."""
        return self.inner.exact

    @property
    def latency_cycles(self) -> int:
        return self.inner.latency_cycles

    def kept(self, use: StreamUse) -> StreamUse:
        """What the inner one is asked to keep."""
        return use

    def check(self, use: StreamUse) -> None:
        """As the inner one."""
        self.inner.check(self.kept(use))

    def entries(self, rows: int) -> int:
        """As the inner one."""
        return self.inner.entries(rows)

    def content(self, use: StreamUse, lists: Any, pes: int) -> StreamContent | None:
        """As the inner one."""
        return self.inner.content(use, lists, pes)

    def least_bits(self, use: StreamUse, tensor: AnyIntArray) -> int:
        """As the inner one."""
        return self.inner.least_bits(use, tensor)

    def why_not(self, use: StreamUse, lists: Any, pes: int) -> str | None:
        """As the inner one, of the lists that are meant."""
        return self.inner.why_not(use, lists, pes)

    def macros(
        self, name: str, shape: tuple[int, int, int, int], read: Events, write: Events
    ) -> Components:
        """As the inner one."""
        return self.inner.macros(name, shape, read, write)

    def words(self, use: StreamUse) -> tuple[StreamWords, ...]:
        """The inner one's, of what it keeps."""
        return self.inner.words(self.kept(use))

    def logic(self, use: StreamUse, address_bits: int) -> Components:
        """The inner one's, of what it keeps."""
        return self.inner.logic(self.kept(use), address_bits)

    def state_bits(self, address_bits: int) -> tuple[int, int]:
        """As the inner one."""
        return self.inner.state_bits(address_bits)

    def event_bits(self, use: StreamUse) -> tuple[int, ...]:
        """As the inner one."""
        return self.inner.event_bits(use)

    def stored(self, use: StreamUse, vectors: IntArray) -> Cells:
        """As the inner one."""
        return self.inner.stored(use, vectors)

    def read_back(self, use: StreamUse, cells: Cells, vectors: int) -> IntArray:
        """As the inner one: what is read otherwise is of whole vectors (`as_read`)."""
        return self.inner.read_back(use, cells, vectors)

    def as_read(
        self, use: StreamUse, elements: tuple[IntArray, IntArray], rows: IntArray
    ) -> tuple[IntArray, IntArray]:
        """By the words, of an inner one that keeps some, which may be read otherwise than they were
        written."""
        (values, indices), some = elements, self.may_fail(use.words, rows)
        written = use.packed(values[some], indices[some])
        read = self.read_words(use.words, written, rows[some])
        values, indices = values.copy(), indices.copy()
        values[some], indices[some] = use.unpacked(read)
        return values, indices

    def may_fail(self, use: Use, rows: IntArray) -> IntArray:
        """As the inner one."""
        return self.words_of_inner.may_fail(use, rows)

    def read_words(self, use: Use, words: IntArray, rows: IntArray) -> IntArray:
        """As the inner one."""
        return self.words_of_inner.read_words(use, words, rows)

    @property
    def words_of_inner(self) -> KeepsWords:
        """The inner one, of which `check` has found that it keeps words."""
        assert isinstance(self.inner, KeepsWords)
        return self.inner


__all__ = ["Around", "AroundBank", "AroundStream", "plain_scratchpad"]
