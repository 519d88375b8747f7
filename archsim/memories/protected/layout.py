"""Where check bits lie: behind the lanes that they are of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from archsim.errors import require
from archsim.memories.protected.code import Code
from archsim.memory import Use
from archsim.memory.bits import bits_of, words_of
from archsim.numbers import IntArray

MakeCode = Callable[[int], Code]


@dataclass(frozen=True, kw_only=True)
class Group:
    """Lanes that share a code word.

    lanes: the first, and the one behind the last; bit: the first of the word; coded_bit: where
    that lies in the word with check bits.
    """

    lanes: tuple[int, int]
    bit: int
    coded_bit: int
    code: Code


def groups_of(use: Use, data_bits: int, make: MakeCode) -> tuple[Group, ...]:
    """Neighbouring lanes of `data_bits` in all, the last ones of what is left.

    Raises `InputError` where that cuts a lane, or lanes that are read at rows of their own share a
    code word.
    """
    wide = max(use.lane_bits)
    require(
        not use.by_lane or data_bits <= wide,
        f"data_bits must be at most the {wide} bits of a lane, which is read at a row of its own, "
        f"not {data_bits}",
    )
    require(
        not use.as_banks or data_bits <= wide,
        f"data_bits must be at most the {wide} bits of a sum, for columns behind a tile's last "
        f"filter hold what nobody reads, not {data_bits}",
    )
    found: list[Group] = []
    begin = bit = coded = size = 0
    for lane, bits in enumerate(use.lane_bits):
        size += bits
        require(
            size <= data_bits,
            f"data_bits must be those of whole lanes, of {bits} bits each, not {data_bits}",
        )
        if size == data_bits or lane == use.lanes - 1:
            code = make(size)
            found.append(Group(lanes=(begin, lane + 1), bit=bit, coded_bit=coded, code=code))
            begin, bit, coded, size = lane + 1, bit + size, coded + code.bits, 0
    return tuple(found)


def coded_use(use: Use, groups: tuple[Group, ...]) -> Use:
    """The same words with a lane of check bits behind each group's."""
    bits: list[int] = []
    signed: list[bool] = []
    for group in groups:
        begin, end = group.lanes
        bits += [*use.lane_bits[begin:end], group.code.check_bits]
        signed += [*use.lane_signed[begin:end], False]
    return replace(use, lane_bits=tuple(bits), lane_signed=tuple(signed))


def encoded(use: Use, groups: tuple[Group, ...], words: IntArray) -> IntArray:
    """Words [words, lanes] with their check bits."""
    bits, lanes = bits_of(words, use.lane_bits), list[IntArray]()
    for group in groups:
        checks = group.code.checks(bits[:, group.bit : group.bit + group.code.data_bits])
        weights = np.int64(1) << np.arange(group.code.check_bits)
        lanes += [words[:, slice(*group.lanes)], (checks.astype(np.int64) @ weights)[:, None]]
    return np.concatenate(lanes, axis=1)


def decoded(use: Use, groups: tuple[Group, ...], coded: IntArray) -> IntArray:
    """The words that words with check bits are taken to be."""
    bits = bits_of(coded, coded_use(use, groups).lane_bits)
    found = np.empty((len(coded), use.word_bits), np.uint8)
    for group in groups:
        size, begin = group.code.data_bits, group.coded_bit
        data, checks = (
            bits[:, begin : begin + size],
            bits[:, begin + size : begin + group.code.bits],
        )
        found[:, group.bit : group.bit + size], _ = group.code.decoded(data, checks)
    return words_of(found, use.lane_bits, use.lane_signed)


__all__ = ["Group", "coded_use", "decoded", "encoded", "groups_of"]
