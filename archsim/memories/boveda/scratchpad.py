"""A scratchpad that stores values in as many bits as they need: Boveda's layout (ADR 10).

Edo et al., "Boveda: Building an On-Chip Deep Learning Memory Hierarchy Brick by Brick", MLSys
2021, of which only the abstract is public to us; the layout of values is described in
`archsim.codecs.boveda`.  The memory around it, that is units of words, their directory, two banks
of rows and all latencies, is chosen here.  Cycle contract: docs/contracts/compressed-memory.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import archsim.blocks as blocks
from archsim.blocks import Components, Events
from archsim.codecs.boveda_format import CONTAINERS, BovedaFormat
from archsim.errors import require, require_positive, require_whole
from archsim.memories.boveda.store import Store
from archsim.memory import Cells, Use
from archsim.memory.at_once import CellReads, Wrong
from archsim.memory.lane_masks import LaneMasks
from archsim.memory.seam import Access
from archsim.numbers import AnyIntArray, IntArray


@dataclass(frozen=True, kw_only=True)
class Boveda:
    """A double-buffered SRAM whose words are compressed: any of them is read in fixed latency.

    Each half is `rows` rows as wide as a word, rows = capacity_bytes * 8 / (2 * word_bits).  A word
    is groups of G lanes side by side; G columns of containers hold a group of width w in w bits of
    each container, one group behind the other.  Every unit of words begins in a new row, and a
    directory beside the rows has the first row of each unit and the widths in it.

    capacity_bytes: of the rows of both halves.  group: G, lanes that share a width.  unit_words:
    U, a power of two.  expansion: the directory has room for rows * expansion words a half; a half
    holds so many if their values are narrow, and `rows` words whatever they are.

    place_registers: 1 within the place of a word, between the sum of the widths before it and the
    row that it gives, for an FPGA; reads and writes take a cycle more.

    Latency, in cycles: 4 + `place_registers` from an address (directory, place, rows, unpacking),
    2 + `place_registers` from a word to the rows (magnitudes, width; so that no row is written
    before its last read).  Throughput: one read and one write a cycle.  Never stalls.
    """

    capacity_bytes: int
    group: int = 16
    unit_words: int = 16
    expansion: int = 2
    place_registers: int = field(default=0, repr=False, metadata={"implied": True})

    kind: ClassVar[str] = "boveda"
    access: ClassVar[Access] = "scratchpad"

    def __post_init__(self) -> None:
        require_positive(
            capacity_bytes=self.capacity_bytes, group=self.group, unit_words=self.unit_words
        )
        require(
            self.unit_words & (self.unit_words - 1) == 0,
            f"unit_words must be a power of two, not {self.unit_words}",
        )
        require_whole(1, "be at least 1", expansion=self.expansion)
        registers: Any = self.place_registers
        require(
            type(registers) is int and registers in (0, 1),
            f"place_registers must be 0 or 1, not {registers!r}",
        )

    @property
    def exact(self) -> bool:
        """Always."""
        return True

    @property
    def read_latency_cycles(self) -> int:
        """Directory, place of the word, rows, unpacking."""
        return 4 + self.place_registers

    @property
    def write_latency_cycles(self) -> int:
        """Magnitudes, width; the columns are shifted into place in the cycle of the write."""
        return 2 + self.place_registers

    @property
    def joined_halves(self) -> bool:
        """Its columns have an SRAM for each half."""
        return False

    def for_fpga(self) -> Boveda:
        """With the register in the place of a word."""
        return replace(self, place_registers=1)

    def rows(self, word_bits: int) -> int:
        """Rows of `word_bits` in each half."""
        return self.capacity_bytes * 8 // (2 * word_bits)

    def depth(self, word_bits: int) -> int:
        """Words that the directory of each half has room for."""
        return self.rows(word_bits) * self.expansion

    def sure_depth(self, word_bits: int) -> int:
        """Words of the widest values, which take a row each."""
        return self.rows(word_bits)

    def units(self, word_bits: int) -> int:
        """Entries of the directory of each half."""
        return -(-self.depth(word_bits) // self.unit_words)

    def entry_bits(self, word_bits: int, container_bits: int) -> int:
        """Of a directory entry of a group column: the first row, and the widths of a unit."""
        row_bits = max((self.rows(word_bits) - 1).bit_length(), 1)
        return row_bits + self.unit_words * (container_bits.bit_length() - 1)

    def check(self, use: Use) -> None:
        """Raise `InputError` unless lanes are alike, of 4, 8 or 16 bits, and groups fill them."""
        require(not use.must_be_as_is, use.must_be_as_is)
        widths = sorted(set(use.lane_bits))
        require(
            len(widths) == 1 and widths[0] in CONTAINERS,
            f"lanes of a compressed word must all be of 4, 8 or 16 bits, "
            f"not of {', '.join(map(str, widths))}",
        )
        require(
            use.lanes % self.group == 0,
            f"group must divide the {use.lanes} lanes of a word, not be {self.group}",
        )

    def format(self, use: Use) -> BovedaFormat:
        """The layout of values."""
        return BovedaFormat(
            group=self.group, container_bits=use.lane_bits[0], signed=use.lane_signed[0]
        )

    def srams(self, use: Use) -> Mapping[str, tuple[int, int]]:
        """Rows, and directories, of all group columns."""
        from archsim.memories.boveda.cells import DIRECTORY, ROWS

        bits = use.word_bits
        entries = use.lanes // self.group * self.entry_bits(bits, use.lane_bits[0])
        return {ROWS: (self.rows(bits), bits), DIRECTORY: (self.units(bits), entries)}

    def total_bits(self, use: Use) -> int:
        """Rows, and the directory beside them."""
        entries = 2 * self.units(use.word_bits) * (use.lanes // self.group)
        return 8 * self.capacity_bytes + entries * self.entry_bits(use.word_bits, use.lane_bits[0])

    def by_value(self, use: Use) -> Store:
        """Narrow values leave room for more words."""
        return Store(name=use.name, memory=self, lanes=use.lanes, form=self.format(use))

    def components(self, use: Use) -> Components:
        """Rows, directories, and what packs and unpacks."""
        from archsim.memories.boveda.components import compressed_memory

        return compressed_memory(use, self)

    def macros(
        self, name: str, shape: tuple[int, int, int, int], read: Events, write: Events
    ) -> Components:
        """One-read one-write memories of (count, lanes, lane_bits, depth)."""
        return blocks.memory(name, shape, read, write)

    def stored(self, use: Use, words: IntArray) -> Cells:
        """Rows of all group columns, and their directories."""
        from archsim.memories.boveda.cells import stored

        return stored(self, use, words)

    def read_back(self, use: Use, cells: Cells, words: int) -> IntArray:
        """As the hardware unpacks them, whatever is in rows and directories."""
        from archsim.memories.boveda.cells import read_back

        return read_back(self, use, cells, words)

    def masks(self, use: Use, words: int) -> LaneMasks | None:
        """By its rows."""
        return None

    def wrong_through(self, use: Use, tiles: AnyIntArray, reads: CellReads) -> Wrong:
        """As `stored` and `read_back`, of what fails."""
        from archsim.memories.boveda.failing import wrong_through

        return wrong_through(self, use, tiles, reads)
