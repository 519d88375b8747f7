"""A compressed scratchpad together with the words that a core keeps in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from archsim.codecs.boveda_format import BovedaFormat
from archsim.memories.boveda.read_tiles import MISPLACED
from archsim.memory.tile_store import StoredOperand, WalkedOperand
from archsim.numbers import IntArray

if TYPE_CHECKING:
    from archsim.memories.boveda.scratchpad import Boveda
    from archsim.memory import Use
    from archsim.memory.tile_store import FailingCells

ROW_ACTIONS = ("row_read", "row_write", "entry_read", "entry_write")
"""What a compressed scratchpad counts, behind the operand's name:

row_read, row_write     banks of rows read and written: two for each group column of weights, two
                        for each lane of the ifmap; hang on the values
entry_read              banks of directories read; hang on the values, which decide the tiling
entry_write             entries of directories written: one for each group column and unit of words
                        of a loaded tile, whatever the values are
"""


@dataclass(frozen=True, kw_only=True)
class Store:
    """Words of `lanes` values of `form` in a memory, of the operand "ifmap" or "weight".

    cells: what makes its cells fail, the innermost first, and for which use.
    """

    name: str
    memory: Boveda
    lanes: int
    form: BovedaFormat
    cells: tuple[tuple[FailingCells, Use], ...] = ()

    @property
    def columns(self) -> int:
        """Group columns: groups side by side in a word."""
        return self.lanes // self.form.group

    @property
    def word_bits(self) -> int:
        """Of a word, and of a row."""
        return self.lanes * self.form.container_bits

    @cached_property
    def rows(self) -> int:
        """Of each half; so many words fit whatever their values are."""
        return self.memory.rows(self.word_bits)

    @property
    def sure_depth(self) -> int:
        """A row each."""
        return self.rows

    @property
    def depth(self) -> int:
        """Words of each half for which its directory has room."""
        return self.memory.depth(self.word_bits)

    @cached_property
    def entry_bits(self) -> int:
        """Of an entry of the directory of a group column."""
        return self.memory.entry_bits(self.word_bits, self.form.container_bits)

    @cached_property
    def shape(self) -> tuple[int, int]:
        """(log2 U, log2 B), for the kernels."""
        return self.memory.unit_words.bit_length() - 1, self.form.field_bits

    def units(self, words: IntArray) -> IntArray:
        """Entries of a group column that tiles of so many words take."""
        return -(-words // self.memory.unit_words)

    @property
    def counted(self) -> tuple[str, ...]:
        """Banks of rows and of directories."""
        return ROW_ACTIONS

    @property
    def happenings(self) -> Mapping[str, str]:
        """Of directories that read wrong; none where cells do not fail."""
        return MISPLACED if self.cells else {}

    def take(self, walked: WalkedOperand) -> StoredOperand:
        """What the tiles of an operand take."""
        from archsim.memories.boveda.tiles import taken_tiles

        return taken_tiles(self, walked)

    def count_writes(self, words: IntArray) -> dict[str, int]:
        """Entries of loaded tiles of so many words, the last unit of each one short."""
        return {"entry_write": self.columns * int(self.units(words).sum())}

    def through(self, cells: FailingCells, use: Use) -> Store:
        """What is read, and counted, is where failing directories say."""
        return replace(self, cells=(*self.cells, (cells, use)))

    def bounds(self, reads: float, writes: float) -> dict[str, float]:
        """Every read takes two banks in each piece (a group column of weights, a lane of the ifmap)
        and an entry of each bank of directories; every word written takes a row, and an entry of
        each directory (of a tile with one word)."""
        pieces, banks = (self.lanes, 2) if self.name == "ifmap" else (self.columns, 1)
        most = (
            2 * pieces * reads,
            pieces * writes,
            banks * self.columns * reads,
            self.columns * writes,
        )
        return dict(zip(ROW_ACTIONS, most, strict=True))


__all__ = ["ROW_ACTIONS", "Store"]
