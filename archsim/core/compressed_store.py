"""A compressed scratchpad together with the words that a core keeps in it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from archsim.codecs.boveda_format import BovedaFormat
from archsim.compressed_memory import Boveda
from archsim.numbers import IntArray


@dataclass(frozen=True, kw_only=True)
class Store:
    """Words of `lanes` values of `form` in a memory, of the operand "ifmap" or "weight"."""

    name: str
    memory: Boveda
    lanes: int
    form: BovedaFormat

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

    @cached_property
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


__all__ = ["Store"]
