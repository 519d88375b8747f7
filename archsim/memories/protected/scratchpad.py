"""Scratchpads with check bits, around any other: parity, and SECDED.

Check bits take room of the inner one's capacity.  What is detected and not corrected reads as
zeros, of the code word alone.  Coding is combinational: no cycle is added.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from math import gcd
from typing import ClassVar

from archsim.blocks import Components, selectors
from archsim.errors import require, require_positive
from archsim.memories.protected.code import Code, parity, secded
from archsim.memories.protected.layout import (
    Group,
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
        return self.inner.depth(self._coded_bits(word_bits))

    def sure_depth(self, word_bits: int) -> int:
        """Likewise."""
        return self.inner.sure_depth(self._coded_bits(word_bits))

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
        """The inner one's, and gates of two inputs, each priced as a choice of two bits.

        use: as whoever prices counts its lanes, which code words need not respect.
        """
        bits = use.word_bits // use.lanes if use.by_lane else use.word_bits
        times = use.lanes if use.by_lane else 1
        coded = replace(use, lane_bits=(times * self._coded_bits(bits),), lane_signed=(True,))
        name = f"{use.name}.code"
        write, read = ({f"{use.name}_{what}": 1.0} for what in ("write", "read"))
        codes = self._codes(bits)
        encode = times * sum(number * encode_gates(code) for number, code in codes)
        decode = times * sum(number * decode_gates(code) for number, code in codes)
        return (
            *self.inner.components(coded.as_lanes(gcd(use.lanes, coded.word_bits))),
            *selectors(f"{name}.encode", encode, 1, write),
            *selectors(f"{name}.decode", decode, 1, read),
        )

    def _codes(self, bits: int) -> list[tuple[int, Code]]:
        """Those of so many bits, and how many of each."""
        whole, left = divmod(bits, self.data_bits)
        found = [(whole, self.code(self.data_bits))] if whole else []
        return [*found, (1, self.code(left))] if left else found

    def _coded_bits(self, bits: int) -> int:
        """With check bits."""
        return sum(number * code.bits for number, code in self._codes(bits))


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
