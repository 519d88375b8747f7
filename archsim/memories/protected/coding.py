"""What check bits do to words, whatever way of access keeps them."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from math import gcd
from typing import TYPE_CHECKING, Any

import numpy as np

from archsim.blocks import Components, Events, selectors
from archsim.errors import require_positive
from archsim.memories.protected.code import Code, parity, secded
from archsim.memories.protected.layout import Group, coded_use, decoded, encoded, groups_of
from archsim.memory import Cells, Use
from archsim.memory.at_once import (
    BoolArray,
    CodedWords,
    Reader,
    bit_by_bit,
    reader,
    words_that_fail,
    wrong_bits,
)
from archsim.memory.bits import bits_of
from archsim.numbers import IntArray

MOST_CODED_BITS = 62
"""Of a word with check bits, as one number."""


@dataclass(frozen=True, kw_only=True)
class CodeWords:
    """data_bits: of a code word, of whole lanes."""

    data_bits: int = 8

    def __post_init__(self) -> None:
        require_positive(data_bits=self.data_bits)

    @abstractmethod
    def code(self, data_bits: int) -> Code:
        """Of so many bits."""

    def groups(self, use: Use) -> tuple[Group, ...]:
        """The code words of a word."""
        return groups_of(use, self.data_bits, self.code)

    def coded(self, use: Use) -> Use:
        """What the inner one keeps."""
        return coded_use(use, self.groups(use))

    def coders(
        self, name: str, shape: tuple[int, int], read: Events, write: Events, *, times: int = 1
    ) -> Components:
        """Gates of two inputs, each priced as a choice of two bits.

        shape: how many coders, and the bits of a word; times: words that are coded together.
        """
        count, bits = shape
        codes = self._codes(bits)
        encode = times * sum(number * encode_gates(code) for number, code in codes)
        decode = times * sum(number * decode_gates(code) for number, code in codes)
        return (
            *selectors(f"{name}.encode", encode, count, write),
            *selectors(f"{name}.decode", decode, count, read),
        )

    def coded_bits(self, bits: int) -> int:
        """With check bits."""
        return sum(number * code.bits for number, code in self._codes(bits))

    def _codes(self, bits: int) -> list[tuple[int, Code]]:
        """Those of so many bits, and how many of each."""
        whole, left = divmod(bits, self.data_bits)
        found = [(whole, self.code(self.data_bits))] if whole else []
        return [*found, (1, self.code(left))] if left else found


@dataclass(frozen=True, kw_only=True)
class Coding(CodeWords):
    """`inner` keeps words and check bits, as words of other lanes."""

    if TYPE_CHECKING:
        inner: Any = None  # of the way of access

    @property
    def exact(self) -> bool:
        """Where the inner one is."""
        return self.inner.exact

    def check(self, use: Use) -> None:
        """Raise `InputError` for lanes that code words would cut; else as the inner one."""
        self.inner.check(self.coded(use))

    def stored(self, use: Use, words: IntArray) -> Cells:
        """The inner one's cells of words with check bits."""
        groups = self.groups(use)
        return self.inner.stored(coded_use(use, groups), encoded(use, groups, words))

    def read_back(self, use: Use, cells: Cells, words: int) -> IntArray:
        """Corrected where that can be, zeros where it cannot."""
        groups = self.groups(use)
        return decoded(use, groups, self.inner.read_back(coded_use(use, groups), cells, words))

    def failing_words(self, use: Use, words: int) -> BoolArray:
        """Those of the inner one, but for code words with one failing cell, which is corrected."""
        coded = self.coded(use)
        both = bit_by_bit(self.inner, coded, words)
        if both is None:
            return words_that_fail(self.inner, coded, words)
        wrong, found = bits_of(wrong_bits(coded, both), coded.lane_bits), np.zeros(words, np.bool_)
        for group in self.groups(use):
            cells = wrong[:, group.coded_bit : group.coded_bit + group.code.bits]
            found |= cells.sum(axis=1) > int(group.code.corrects)
        return found

    def coded_words(self, use: Use, words: int) -> CodedWords | None:
        """Of words of one lane, where bits of the inner one's fare by themselves."""
        (group, *others), coded = self.groups(use), self.coded(use)
        both = bit_by_bit(self.inner, coded, words)
        if both is None or use.lanes > 1 or others or coded.word_bits > MOST_CODED_BITS:
            return None
        code, low = group.code, (1 << group.code.data_bits) - 1
        zero, one = (half[:, 0] & low | half[:, 1] << code.data_bits for half in both)
        covers = [sum(1 << bit for bit in code.covered(at)) for at in range(code.check_bits)]
        return CodedWords(zero, one, code.data_bits, np.array(covers), code.corrections)

    def reader(self, use: Use, words: int) -> Reader:
        """By way of the inner one's."""
        groups = self.groups(use)
        coded = coded_use(use, groups)
        inner = reader(self.inner, coded, words)

        def read(at: IntArray, values: IntArray) -> IntArray:
            return decoded(use, groups, inner(at, encoded(use, groups, values)))

        return read

    def macros(
        self, name: str, shape: tuple[int, int, int, int], read: Events, write: Events
    ) -> Components:
        """The inner one's with check bits, and the coders of each."""
        count, lanes, lane_bits, depth = shape
        coded = self.coded_bits(lanes * lane_bits)
        lanes = gcd(lanes, coded)
        return (
            *self.inner.macros(name, (count, lanes, coded // lanes, depth), read, write),
            *self.coders(f"{name}.code", (count, shape[1] * lane_bits), read, write),
        )


class ParityCode:
    """A check bit for every `data_bits`: an odd number of errors makes these zeros."""

    def code(self, data_bits: int) -> Code:
        """Of so many bits."""
        return parity(data_bits)


class SecdedCode:
    """Of every code word one error is corrected; two make it zeros."""

    def code(self, data_bits: int) -> Code:
        """Of so many bits."""
        return secded(data_bits)


def encode_gates(code: Code) -> int:
    """Exclusive ors of two inputs."""
    return sum(len(code.covered(check)) - 1 for check in range(code.check_bits))


def decode_gates(code: Code) -> int:
    """Of the syndrome; of its comparison with every column; of corrections, and of zeros."""
    syndrome = encode_gates(code) + code.check_bits
    compared = code.bits * (code.check_bits - 1) if code.corrects else 0
    return syndrome + compared + code.data_bits * (2 if code.corrects else 1)


__all__ = ["CodeWords", "Coding", "ParityCode", "SecdedCode", "decode_gates", "encode_gates"]
