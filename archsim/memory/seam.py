"""The seam of memories: what a machine says of one, and what every kind of memory answers.

A machine has memories of three ways of access.  A *scratchpad* has two halves: a tile is written
into one from its first word to its last, and read at any address while the other is filled.  A
*stream* is written and read from its first vector to its last, again and again.  A *bank* takes a
word at any address a cycle, and gives one in the next.  A kind is a frozen dataclass that answers
for one way of access; nobody asks for its class.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from archsim.blocks import Components, Events
from archsim.memory.lane_masks import LaneMasks
from archsim.memory.tile_store import TileStore
from archsim.numbers import AnyIntArray, IntArray

Access = Literal["scratchpad", "stream", "bank"]

Cells = Mapping[str, npt.NDArray[np.uint8]]
"""What SRAMs hold, by the SRAM's name: a bit a place, the last axis that of a word's bits, its
lowest first.  Under `FLIP_FLOPS` is what stands in registers beside them."""

FLIP_FLOPS = "flip-flops"
"""The name in `Cells` of bits that are no SRAM's: no cell of them fails."""


@dataclass(frozen=True, kw_only=True)
class Use:
    """What a machine keeps in a scratchpad or a bank, and how it is read.

    name: of the memory, "ifmap"; its actions and components begin with it.  field: of the design
    that says its kind.  lane_bits, lane_signed: of the lanes of a word.  by_lane: every lane is
    read at a row of its own.  as_is: why words must lie there as they are, "" where a kind may
    store them in another form; machine: with it, of whom that is said.  half: of a scratchpad,
    in which of the two the words lie.  as_banks: its halves are banks of rows that are added to
    where they lie, lane by lane, placed and priced by `macros` and hardware of banks alone.
    words: of a bank without halves, with those of all banks alike; 0 of two halves.  depth: of a
    bank with halves the words of each, with those of all banks alike; 0 where not known.
    """

    name: str
    field: str
    lane_bits: tuple[int, ...]
    lane_signed: tuple[bool, ...]
    by_lane: bool = False
    as_is: str = ""
    machine: str = ""
    half: int = 0
    as_banks: bool = False
    words: int = 0
    depth: int = 0

    @property
    def lanes(self) -> int:
        """Of a word."""
        return len(self.lane_bits)

    @property
    def word_bits(self) -> int:
        """Of all lanes."""
        return sum(self.lane_bits)

    @property
    def must_be_as_is(self) -> str:
        """The refusal of a kind that would store words in another form; "" where it may."""
        return (
            f"{self.field}{self.machine} must store words as they are: {self.as_is}"
            if self.as_is
            else ""
        )

    def in_half(self, half: int) -> Use:
        """The same words in that half."""
        return replace(self, half=half)

    def as_lanes(self, lanes: int) -> Use:
        """The same words as so many lanes of one width, the last one with what is left."""
        bits, left = divmod(self.word_bits, lanes)
        signed = (self.lane_signed[0],) * lanes
        lane_bits = (bits,) * (lanes - 1) + (bits + left,)
        return replace(self, lane_bits=lane_bits, lane_signed=signed)


@dataclass(frozen=True, kw_only=True)
class StreamUse:
    """What a sparse machine keeps in a stream, in each of `pes` memories alike.

    name: "iaram"; field: of the design that says its size, given_bytes: that.  A vector is `lanes`
    values of value_bits, each with an index of index_bits, and a flag that lies beside the bytes.
    most_rows: of the largest memory that shares its logic.  half: 0 of the memory that a pass's
    ifmap is loaded into, 1 of the one that its ofmap is written to.  kept: the bits of the lanes
    that are kept in the elements' place, where a kind with check bits asks the one inside it.
    most_entries: vectors of the largest memory, of narrow values; 0 where not said.
    """

    name: str
    field: str
    given_bytes: int
    lanes: int
    value_bits: int
    index_bits: int
    pes: int
    most_rows: int = 0
    half: int = 0
    kept: tuple[int, ...] = ()
    most_entries: int = 0

    @property
    def element_bits(self) -> int:
        """Of a value, and its index above it."""
        return self.value_bits + self.index_bits

    @property
    def row_bits(self) -> int:
        """Of the address of a vector in a memory; a PE's number stands above it."""
        return max((max(self.most_rows, self.most_entries) - 1).bit_length(), 1)

    @property
    def vector_bits(self) -> int:
        """Of a vector, but for its flag."""
        return self.lanes * self.element_bits

    @property
    def words(self) -> Use:
        """What is kept of vectors, without their flags, as words at the addresses of all PEs."""
        lane_bits = self.kept or (self.element_bits,) * self.lanes
        return Use(
            name="activation",
            field="activation_memory",
            lane_bits=lane_bits,
            lane_signed=(False,) * len(lane_bits),
            half=self.half,
        )

    @property
    def every_row(self) -> int:
        """Addresses of the memories of all PEs, used or not."""
        return self.pes << self.row_bits

    @property
    def kept_bits(self) -> int:
        """Of a vector as it is kept, and its flag."""
        return self.words.word_bits + 1

    @property
    def rows(self) -> int:
        """Vectors that a memory of the same bytes holds as they are."""
        return 8 * self.given_bytes // self.vector_bits

    def packed(self, values: IntArray, indices: IntArray) -> IntArray:
        """Elements of values and indices, of one shape, as `words` has their lanes."""
        return values & ((1 << self.value_bits) - 1) | indices << self.value_bits

    def unpacked(self, words: IntArray) -> tuple[IntArray, IntArray]:
        """Values and indices of elements."""
        low, sign = (1 << self.value_bits) - 1, np.int64(1) << (self.value_bits - 1)
        return ((words & low) ^ sign) - sign, words >> self.value_bits


class Memory(Protocol):
    """What every kind answers, whatever the way of access.

    kind: its name in files.  access: for which way of access it answers.
    """

    kind: ClassVar[str]
    access: ClassVar[Access]

    @property
    def exact(self) -> bool:
        """Whether `read_back` of what `stored` answers, of a stream `as_read`, is always what was
        stored: then no user asks for any of them."""
        ...

    def macros(
        self, name: str, shape: tuple[int, int, int, int], read: Events, write: Events
    ) -> Components:
        """Its SRAMs, of (count, lanes, lane_bits, depth), as components."""
        ...


class Bank(Memory, Protocol):
    """Words of which one is written and one read a cycle, the latter in the next cycle."""

    def check(self, use: Use) -> None:
        """Raise `InputError` unless such words can be kept, with the reason."""
        ...

    def stored(self, use: Use, words: IntArray) -> Cells:
        """The cells of words [words, lanes], written from address 0 on."""
        ...

    def read_back(self, use: Use, cells: Cells, words: int) -> IntArray:
        """The words [words, lanes] that are read from such cells, whatever is in them."""
        ...

    def masks(self, use: Use, words: int) -> LaneMasks | None:
        """What becomes of so many words written from address 0 on, by a way that is shorter than
        `stored` and `read_back`; None where a bit that is read hangs on more than itself."""
        ...


class Scratchpad(Bank, Protocol):
    """Two halves; what the timing of a core reads of them."""

    @property
    def capacity_bytes(self) -> int:
        """Both halves together."""
        ...

    @property
    def read_latency_cycles(self) -> int:
        """From the cycle in which an address is presented to the one in which data are out."""
        ...

    @property
    def write_latency_cycles(self) -> int:
        """A word written in cycle t can be read with an address of cycle t + 1 + this."""
        ...

    @property
    def joined_halves(self) -> bool:
        """Whether both halves lie in one SRAM, one of them being written while one is read."""
        ...

    def for_fpga(self) -> Scratchpad:
        """The same memory as an FPGA wants it; itself where there is nothing to choose."""
        ...

    def depth(self, word_bits: int) -> int:
        """Words of `word_bits` that can be addressed in each of the two halves."""
        ...

    def sure_depth(self, word_bits: int) -> int:
        """Words of `word_bits` that each half holds, whatever their values."""
        ...

    def srams(self, use: Use) -> Mapping[str, tuple[int, int]]:
        """Of each SRAM (`Cells`) the words of a half, and their bits."""
        ...

    def total_bits(self, use: Use) -> int:
        """Of all SRAMs, both halves, with what lies beside the words."""
        ...

    def by_value(self, use: Use) -> TileStore | None:
        """What says how many words fit, where that hangs on values; else None."""
        ...

    def components(self, use: Use) -> Components:
        """All its hardware.  Events: `<name>_read`, `<name>_write`, and what it counts itself."""
        ...


class StreamMemory(Memory, Protocol):
    """Vectors from the first to the last.

    stepped: a reader steps from vector to vector, and behind a content's last vector is a settling
    of `latency_cycles`; else it gives addresses.  by_value: whether what fits hangs on values.
    """

    @property
    def stepped(self) -> bool: ...

    @property
    def by_value(self) -> bool: ...

    @property
    def latency_cycles(self) -> int:
        """From the cycle behind the last write to the one in which vectors can be read."""
        ...

    def check(self, use: StreamUse) -> None:
        """Raise `InputError` unless such vectors can be kept, with the reason."""
        ...

    def entries(self, rows: int) -> int:
        """The most vectors in a memory that holds so many as they are."""
        ...

    def content(self, use: StreamUse, lists: Any, pes: int) -> StreamContent | None:
        """What lists (`archsim.codecs.zero_run.Lists`), PE by PE, take where that is counted."""
        ...

    def least_bits(self, use: StreamUse, tensor: AnyIntArray) -> int:
        """Bits of rows of values that a tensor takes at least, 0 where only entries count."""
        ...

    def why_not(self, use: StreamUse, lists: Any, pes: int) -> str | None:
        """The size that would hold the lists of so many PEs, as a refusal; None if they fit."""
        ...

    def words(self, use: StreamUse) -> tuple[StreamWords, ...]:
        """The SRAMs of one memory."""
        ...

    def logic(self, use: StreamUse, address_bits: int) -> Components:
        """All hardware of two memories that change places, but for their SRAMs."""
        ...

    def state_bits(self, address_bits: int) -> tuple[int, int]:
        """Flip-flops of control, beside those of every such machine: in a PE, and outside."""
        ...

    def event_bits(self, use: StreamUse) -> tuple[int, ...]:
        """Of what a PE's memories count in a cycle, each."""
        ...

    def stored(self, use: StreamUse, vectors: IntArray) -> Cells:
        """The cells of the values of vectors [vectors, lanes], written from the first one on."""
        ...

    def read_back(self, use: StreamUse, cells: Cells, vectors: int) -> IntArray:
        """The values [vectors, lanes] that are read from such cells, whatever is in them."""
        ...

    def as_read(
        self, use: StreamUse, elements: tuple[IntArray, IntArray], rows: IntArray
    ) -> tuple[IntArray, IntArray]:
        """What is read of values and indices [vectors, lanes], written to addresses [vectors] with
        the number of a PE above (`StreamUse.row_bits`)."""
        ...


ListsRead = tuple[IntArray, IntArray, IntArray]
"""Values and indices [vectors, lanes] as they are read of lists, and the rows of values that one
walk over each memory uses up [PEs]."""


class StreamCells(Protocol):
    """Cells of a stream that are read otherwise than they were written."""

    def table(
        self, use: StreamUse, sram: str, lane_bits: tuple[int, ...]
    ) -> tuple[npt.NDArray[np.uint8], IntArray, IntArray]:
        """Of the words of an SRAM at all addresses, with the number of a PE above: whether one has
        a cell that fails [words], and what is read of the bits of such lanes [words, lanes] where 0
        is stored, and where 1 is."""
        ...


@runtime_checkable
class KeepsLists(Protocol):
    """A stream that stores values in another form, and of which what is read may be another content
    than was written: where cells fail, or lists are larger than a memory."""

    def srams(self, use: StreamUse) -> Mapping[str, tuple[int, int]]:
        """Of each SRAM (`Cells`) words of one memory, and their bits; flags are in none."""
        ...

    def lists_read(
        self, use: StreamUse, lists: Any, places: IntArray, cells: StreamCells | None = None
    ) -> ListsRead:
        """What is read of lists (`archsim.codecs.zero_run.Lists`), PE by PE, in the memories of the
        PEs of such numbers [PEs], through other cells where some are given.  Vectors for which a
        memory has no entry are as they were."""
        ...


@runtime_checkable
class KeepsWords(Protocol):
    """A stream that keeps vectors as words (`StreamUse.words`), one an address: then a kind with
    check bits may stand around it.  Addresses [n] have the number of a PE above."""

    def may_fail(self, use: Use, rows: IntArray) -> IntArray:
        """Which of words at addresses [n] may be read otherwise than they were written, by their
        places among these."""
        ...

    def read_words(self, use: Use, words: IntArray, rows: IntArray) -> IntArray:
        """What is read of words [n, lanes], written to addresses [n]."""
        ...


class StreamContent(Protocol):
    """What the contents of one memory take in every PE."""

    @property
    def all_rows(self) -> int:
        """Rows of values, of all columns and PEs."""
        ...

    @property
    def walked(self) -> int:
        """Rows that a walk over all vectors uses up."""
        ...

    def walked_in(self, rows: int) -> StreamContent:
        """The same content, of which a walk uses up so many rows."""
        ...

    @property
    def stored_bits(self) -> int:
        """Of rows and entries."""
        ...

    @property
    def plain_bits(self) -> int:
        """What a plain memory would take."""
        ...


StreamWords = tuple[str, tuple[int, int, int], Events, Events]
"""SRAMs of a stream: name, (number in a PE, bits, depth), events that read and write one."""

PROTOCOLS: dict[Access, type] = {
    "scratchpad": Scratchpad,
    "stream": StreamMemory,
    "bank": Bank,
}

__all__ = [
    "FLIP_FLOPS",
    "PROTOCOLS",
    "Access",
    "Bank",
    "Cells",
    "KeepsLists",
    "KeepsWords",
    "ListsRead",
    "Memory",
    "Scratchpad",
    "StreamCells",
    "StreamContent",
    "StreamMemory",
    "StreamUse",
    "StreamWords",
    "Use",
]
