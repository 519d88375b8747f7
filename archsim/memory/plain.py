"""Plain memories: SRAMs that keep words as they are, for each way of access."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, cast

import numpy as np

import archsim.blocks as blocks
from archsim.blocks import Components, Events, address_bits, selectors
from archsim.errors import require, require_flag, require_positive
from archsim.memory.bits import bits_of, words_of
from archsim.memory.lane_masks import LaneMasks
from archsim.memory.seam import Access, Cells, StreamUse, StreamWords, Use
from archsim.memory.tile_store import TileStore
from archsim.numbers import AnyIntArray, IntArray, ceil_div

WORDS = "words"

STREAM_READS: Events = {"iaram_read": 1.0, "oaram_read": 1.0}
STREAM_WRITES: Events = {"iaram_write": 1.0, "oaram_write": 1.0}
"""Of vectors, in a sparse core's memories."""


class _Sram:
    """What plain memories of all ways of access have in common."""

    kind: ClassVar[str] = "plain"

    @property
    def exact(self) -> bool:
        """Always."""
        return True

    def macros(
        self, name: str, shape: tuple[int, int, int, int], read: Events, write: Events
    ) -> Components:
        """One-read one-write memories of (count, lanes, lane_bits, depth)."""
        return blocks.memory(name, shape, read, write)


class _Words(_Sram):
    """Words of any lanes, as they are."""

    def check(self, use: Use) -> None:
        """Words of any lanes can be stored."""

    def stored(self, use: Use, words: IntArray) -> Cells:
        """A word a row."""
        return {WORDS: bits_of(words, use.lane_bits)}

    def read_back(self, use: Use, cells: Cells, words: int) -> IntArray:
        """As they lie there."""
        return words_of(cells[WORDS][:words], use.lane_bits, use.lane_signed)

    def masks(self, use: Use, words: int) -> LaneMasks | None:
        """Nobody asks: it is exact."""
        return None


@dataclass(frozen=True, kw_only=True)
class Plain(_Words):
    """A plain double-buffered SRAM: two halves, of which one is written while one is read.

    A word written in cycle t can be read with an address presented in cycle t + 1.
    joined_halves: both halves lie in one SRAM, the half being the highest bit of its addresses, and
    not in two of which one's word is chosen: half as many block RAMs of an FPGA, and nothing
    behind them.  No cycle and no word is another one.
    """

    capacity_bytes: int
    read_latency_cycles: int = 1
    joined_halves: bool = field(default=False, repr=False, metadata={"implied": True})

    access: ClassVar[Access] = "scratchpad"

    def __post_init__(self) -> None:
        require_positive(capacity_bytes=self.capacity_bytes)
        require(
            self.read_latency_cycles == 1,
            f"read_latency_cycles must be 1 for a plain memory, not {self.read_latency_cycles}",
        )
        require_flag(joined_halves=self.joined_halves)

    @property
    def write_latency_cycles(self) -> int:
        return 0

    def for_fpga(self) -> Plain:
        """With both halves in one SRAM."""
        return replace(self, joined_halves=True)

    def depth(self, word_bits: int) -> int:
        """Words of `word_bits` in each half."""
        return self.capacity_bytes * 8 // (2 * word_bits)

    def sure_depth(self, word_bits: int) -> int:
        """All of them."""
        return self.depth(word_bits)

    def srams(self, use: Use) -> Mapping[str, tuple[int, int]]:
        """One."""
        return {WORDS: (self.depth(use.word_bits), use.word_bits)}

    def total_bits(self, use: Use) -> int:
        """Those of the words."""
        return 8 * self.capacity_bytes

    def by_value(self, use: Use) -> TileStore | None:
        """A word takes a row, whatever its values are."""
        return None

    def components(self, use: Use) -> Components:
        """Two halves of whole words, or of a bank for each lane; or both in one SRAM."""
        name, lanes = f"{use.name}.memory", use.lanes
        bits, depth = use.word_bits // lanes, self.depth(use.word_bits)
        every_lane: Events = {f"{use.name}_read": float(lanes)}
        halves, chosen = 2, selectors(name, bits, lanes, every_lane)
        if self.joined_halves:
            halves, depth, chosen = 1, joined_depth(depth), ()
        if use.by_lane:
            shape, factor = (halves * lanes, 1, bits, depth), float(lanes)
        else:
            shape, factor = (halves, lanes, bits, depth), 1.0
        read: Events = {f"{use.name}_read": factor}
        write: Events = {f"{use.name}_write": factor}
        return (*self.macros(name, shape, read, write), *chosen)


def joined_depth(depth: int) -> int:
    """Words of an SRAM that holds two halves of `depth`, the second one from a power of two on."""
    return (1 << address_bits(depth)) + depth


@dataclass(frozen=True, kw_only=True)
class PlainBank(_Words):
    """An SRAM whose size the machine says."""

    access: ClassVar[Access] = "bank"


@dataclass(frozen=True, kw_only=True)
class PlainStream(_Sram):
    """A vector a row, as it is."""

    access: ClassVar[Access] = "stream"

    @property
    def stepped(self) -> bool:
        """By addresses."""
        return False

    @property
    def by_value(self) -> bool:
        """A vector takes a row."""
        return False

    @property
    def latency_cycles(self) -> int:
        """From the cycle behind the last write to the one in which vectors can be read."""
        return 0

    def check(self, use: StreamUse) -> None:
        """Vectors of any lanes can be stored."""

    def entries(self, rows: int) -> int:
        """Vectors that a memory of so many rows has room for."""
        return rows

    def content(self, use: StreamUse, lists: Any, pes: int) -> None:
        """Nothing hangs on values."""

    def least_bits(self, use: StreamUse, tensor: AnyIntArray) -> int:
        """Only entries count."""
        return 0

    def why_not(self, use: StreamUse, lists: Any, pes: int) -> str | None:
        """Refused are more vectors in a PE than rows."""
        needed = int(np.diff(lists.starts[:: len(lists) // pes]).max())
        if needed <= use.rows:
            return None
        least = ceil_div(needed * use.vector_bits, 8)
        return (
            f"{use.field} must be at least {least} ({needed} vectors in a PE, for the smallest "
            f"strip of the plane), not {use.given_bytes}"
        )

    def words(self, use: StreamUse) -> tuple[StreamWords, ...]:
        """One, of vectors with their flags."""
        name, shape = use.name, (1, use.kept_bits, use.rows)
        return ((name, shape, {f"{name}_read": 1.0}, {f"{name}_write": 1.0}),)

    def logic(self, use: StreamUse, address_bits: int) -> Components:
        """A choice of two at every pin of both."""
        name, bits, pes = "memories", use.kept_bits, use.pes
        return (
            *selectors(name, bits, 2 * pes, STREAM_READS),
            *selectors(name, address_bits, 2 * pes, STREAM_READS),
            *selectors(name, bits + address_bits, 2 * pes, STREAM_WRITES),
        )

    def state_bits(self, address_bits: int) -> tuple[int, int]:
        """None more."""
        return 0, 0

    def event_bits(self, use: StreamUse) -> tuple[int, ...]:
        """Nothing of its own is counted."""
        return ()

    def stored(self, use: StreamUse, vectors: IntArray) -> Cells:
        """A vector a row."""
        return {WORDS: bits_of(vectors, (use.value_bits,) * use.lanes)}

    def read_back(self, use: StreamUse, cells: Cells, vectors: int) -> IntArray:
        """As they lie there."""
        lanes = use.lanes
        return words_of(cells[WORDS][:vectors], (use.value_bits,) * lanes, (True,) * lanes)

    def as_read(
        self, use: StreamUse, elements: tuple[IntArray, IntArray], rows: IntArray
    ) -> tuple[IntArray, IntArray]:
        """As they were written."""
        return elements

    def may_fail(self, use: Use, rows: IntArray) -> IntArray:
        """None."""
        return np.empty(0, np.int64)

    def read_words(self, use: Use, words: IntArray, rows: IntArray) -> IntArray:
        """As they were written."""
        return words


def keeps_words(memory: Any) -> bool:
    """Whether words lie in its cells as they are, a word a row."""
    own = cast("Any", type(memory))
    stored, read = getattr(own, "stored", None), getattr(own, "read_back", None)
    return stored is _Words.stored and read is _Words.read_back


def kibibytes(count: int) -> Plain:
    """A plain memory of so many KiB."""
    return Plain(capacity_bytes=count * 1024)


__all__ = [
    "STREAM_READS",
    "STREAM_WRITES",
    "WORDS",
    "Plain",
    "PlainBank",
    "PlainStream",
    "joined_depth",
    "keeps_words",
    "kibibytes",
]
