"""A stream of vectors whose values take as many bits as they need: Boveda's layout (ADR 11).

The values lie in the layout of `archsim.codecs.boveda`.  No directory is needed, as no vector is
looked up.  Cycle contract: docs/contracts/compressed-stream.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import archsim.blocks as blocks
from archsim.blocks import Components, Events
from archsim.codecs.boveda_format import CONTAINERS, BovedaFormat
from archsim.errors import require, require_positive, require_whole
from archsim.memory import Cells, StreamUse
from archsim.memory.seam import Access, ListsRead, StreamCells, StreamContent, StreamWords
from archsim.numbers import AnyIntArray, IntArray

ROWS, DIRECTORY = "rows", "directory"
"""SRAMs whose cells may fail."""


@dataclass(frozen=True, kw_only=True)
class BovedaStream:
    """Values in groups of G lanes, each as wide as its largest magnitude; a group of zeros takes
    no bits.

    A memory has V rows of I · B bits for values (V: vectors that a plain memory of the same bytes
    holds), and beside them V · expansion entries, one a vector: indices, the flag `last`, and
    log2 B bits of width a group.  The groups of a column lie one behind the other, each column with
    a row of its own; only the end of a memory's whole content is aligned.  So a content fits if
    every column takes at most V rows, and its vectors at most V · expansion entries.

    group: G, lanes that share a width; expansion: entries for each row.

    Latency: 4 cycles from the cycle behind the last write to the first vector (width, columns, the
    last rows, unpacking).  Throughput: a vector written and a vector read a cycle.  Never stalls.
    Raises `InputError` for sizes that are not positive.
    """

    group: int = 4
    expansion: int = 2

    kind: ClassVar[str] = "boveda"
    access: ClassVar[Access] = "stream"

    def __post_init__(self) -> None:
        require_positive(group=self.group)
        require_whole(1, "be at least 1", expansion=self.expansion)

    @property
    def stepped(self) -> bool:
        """A vector is found behind the one before it."""
        return True

    @property
    def by_value(self) -> bool:
        """What fits hangs on values."""
        return True

    @property
    def exact(self) -> bool:
        """Always, of lists that it has room for."""
        return True

    @property
    def latency_cycles(self) -> int:
        """Magnitudes are in a register; then codes; rows; the rows begun are written; unpacking."""
        return 4

    def entries(self, rows: int) -> int:
        """Vectors that there are entries for beside so many rows."""
        return rows * self.expansion

    def format(self, operand_bits: int) -> BovedaFormat:
        """The layout of values: signed, with groups that take no bits."""
        return BovedaFormat(group=self.group, container_bits=operand_bits, zero_width=True)

    def width_bits(self, lanes: int, operand_bits: int) -> int:
        """Of an entry: the widths of a vector's groups."""
        return lanes // self.group * (operand_bits.bit_length() - 1)

    def check(self, use: StreamUse) -> None:
        """Raise `InputError` unless lanes are of 4, 8 or 16 bits, and groups fill them."""
        require(
            use.value_bits in CONTAINERS,
            f"operand_bits must be 4, 8 or 16 for compressed activations, not {use.value_bits}",
        )
        require(
            use.lanes % self.group == 0,
            f"group must divide ifmap_lanes, {use.lanes}, not be {self.group}",
        )

    def content(self, use: StreamUse, lists: Any, pes: int) -> StreamContent:
        """Rows and vectors of lists, PE by PE, that a memory has room for."""
        from archsim.memories.boveda_stream.lists import held_lists

        return held_lists(use, self, lists, pes)

    def least_bits(self, use: StreamUse, tensor: AnyIntArray) -> int:
        """Those of groups of one value each."""
        from archsim.memories.boveda_stream.lists import value_bits

        return value_bits(use, tensor)

    def why_not(self, use: StreamUse, lists: Any, pes: int) -> str | None:
        """Refused are more rows in a column than there are, or more vectors than entries."""
        from archsim.memories.boveda_stream.lists import why_not

        return why_not(use, self, lists, pes)

    def macros(
        self, name: str, shape: tuple[int, int, int, int], read: Events, write: Events
    ) -> Components:
        """One-read one-write memories of (count, lanes, lane_bits, depth)."""
        return blocks.memory(name, shape, read, write)

    def words(self, use: StreamUse) -> tuple[StreamWords, ...]:
        """Rows of values in an even and an odd bank, and entries."""
        from archsim.memories.boveda_stream.components import stream_words

        return stream_words(use, self)

    def logic(self, use: StreamUse, address_bits: int) -> Components:
        """What packs, unpacks, and chooses between the memories."""
        from archsim.memories.boveda_stream.components import stream_logic

        return stream_logic(use, self, address_bits)

    def state_bits(self, address_bits: int) -> tuple[int, int]:
        """Of what is under way in a PE; of what settles, and of counters."""
        from archsim.memories.boveda_stream.components import CORE_STATE_BITS, stream_state_bits

        return stream_state_bits(address_bits), CORE_STATE_BITS

    def event_bits(self, use: StreamUse) -> tuple[int, ...]:
        """Rows written and used up, of both memories: up to two in each group column."""
        columns = use.lanes // self.group
        return ((2 * columns).bit_length(),) * 4

    def srams(self, use: StreamUse) -> Mapping[str, tuple[int, int]]:
        """Rows of all group columns; directories: widths, and indices above them."""
        entry = self.width_bits(use.lanes, use.value_bits) + use.lanes * use.index_bits
        return {
            ROWS: (use.rows, use.lanes * use.value_bits),
            DIRECTORY: (self.entries(use.rows), entry),
        }

    def lists_read(
        self, use: StreamUse, lists: Any, places: IntArray, cells: StreamCells | None = None
    ) -> ListsRead:
        """As the hardware unpacks them, whatever is in rows and directories."""
        from archsim.memories.boveda_stream.lists_read import lists_read

        return lists_read(self, use, lists, places, cells)

    def stored(self, use: StreamUse, vectors: IntArray) -> Cells:
        """Rows of all group columns, and widths."""
        from archsim.memories.boveda_stream.cells import stored

        return stored(self, use, vectors)

    def read_back(self, use: StreamUse, cells: Cells, vectors: int) -> IntArray:
        """As the hardware unpacks them, whatever is in rows and widths."""
        from archsim.memories.boveda_stream.cells import read_back

        return read_back(self, use, cells, vectors)

    def as_read(
        self, use: StreamUse, elements: tuple[IntArray, IntArray], rows: IntArray
    ) -> tuple[IntArray, IntArray]:
        """As they were written."""
        return elements
