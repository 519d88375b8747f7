"""Scratchpads with check bits, around any other: parity, and SECDED.

Check bits take room of the inner one's capacity.  What is detected and not corrected reads as
zeros, of the code word alone.  Coding is combinational: no cycle is added.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from archsim.blocks import Components, selectors
from archsim.errors import require, require_positive
from archsim.memories.protected.code import Code, parity, secded
from archsim.memories.protected.layout import (
    Group,
    coded_bits,
    coded_use,
    decoded,
    encoded,
    groups_of,
)
from archsim.memory import Cells, Use
from archsim.memory.around import Around
from archsim.numbers import IntArray


@dataclass(frozen=True, kw_only=True)
class Protected(Around):
    """inner: what keeps words and check bits; data_bits: of a code word, of whole lanes."""

    data_bits: int = 8

    def __post_init__(self) -> None:
        require_positive(data_bits=self.data_bits)

    @abstractmethod
    def code(self, data_bits: int) -> Code:
        """Of so many bits."""

    @property
    def exact(self) -> bool:
        """Where the inner one is."""
        return self.inner.exact

    def groups(self, use: Use) -> tuple[Group, ...]:
        """The code words of a word."""
        return groups_of(use, self.data_bits, self.code)

    def coded(self, use: Use) -> Use:
        """What the inner one keeps."""
        return coded_use(use, self.groups(use))

    def depth(self, word_bits: int) -> int:
        """Words with their check bits."""
        return self.inner.depth(coded_bits(word_bits, self.data_bits, self.code))

    def sure_depth(self, word_bits: int) -> int:
        """Likewise."""
        return self.inner.sure_depth(coded_bits(word_bits, self.data_bits, self.code))

    def check(self, use: Use) -> None:
        """Raise `InputError` for lanes that code words would cut, and where there is room for
        rows alone; else as the inner one."""
        require(not use.as_banks, "its rows are added to where they lie: no check bits lie beside")
        self.inner.check(self.coded(use))

    def total_bits(self, use: Use) -> int:
        """With check bits."""
        return self.inner.total_bits(self.coded(use))

    def by_value(self, use: Use) -> None:
        """A word takes what it takes."""

    def stored(self, use: Use, words: IntArray) -> Cells:
        """The inner one's cells of words with check bits."""
        groups = self.groups(use)
        return self.inner.stored(coded_use(use, groups), encoded(use, groups, words))

    def read_back(self, use: Use, cells: Cells, words: int) -> IntArray:
        """Corrected where that can be, zeros where it cannot."""
        groups = self.groups(use)
        return decoded(use, groups, self.inner.read_back(coded_use(use, groups), cells, words))

    def components(self, use: Use) -> Components:
        """The inner one's, and gates of two inputs, each priced as a choice of two bits."""
        words = use.whole or use
        groups = self.groups(words)
        merged = coded_use(words, groups).as_lanes(use.lanes)
        name = f"{use.name}.code"
        write, read = ({f"{use.name}_{what}": 1.0} for what in ("write", "read"))
        encode = sum(encode_gates(one.code) for one in groups)
        decode = sum(decode_gates(one.code) for one in groups)
        return (
            *self.inner.components(merged),
            *selectors(f"{name}.encode", encode, 1, write),
            *selectors(f"{name}.decode", decode, 1, read),
        )


@dataclass(frozen=True, kw_only=True)
class Parity(Protected):
    """A check bit for every `data_bits`: an odd number of errors makes these zeros."""

    kind: ClassVar[str] = "parity"

    def code(self, data_bits: int) -> Code:
        return parity(data_bits)


@dataclass(frozen=True, kw_only=True)
class Secded(Protected):
    """Of every code word one error is corrected; two make it zeros."""

    kind: ClassVar[str] = "secded"

    def code(self, data_bits: int) -> Code:
        return secded(data_bits)


def encode_gates(code: Code) -> int:
    """Exclusive ors of two inputs."""
    return sum(len(code.covered(check)) - 1 for check in range(code.check_bits))


def decode_gates(code: Code) -> int:
    """Of the syndrome; of its comparison with every column; of corrections, and of zeros."""
    syndrome = encode_gates(code) + code.check_bits
    compared = code.bits * (code.check_bits - 1) if code.corrects else 0
    return syndrome + compared + code.data_bits * (2 if code.corrects else 1)


__all__ = ["Parity", "Protected", "Secded"]
