"""Faults of words that lie in their cells as they are, as masks of whole lanes.

A bit is read wrong by one mask where 0 is stored and by another where 1 is: a lane's value passes
both as a whole number, and no cell is made.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from archsim.memories.faulty.cell_faults import HALF_BIT, LEAST_KEPT, CellFaults, wrong_bits
from archsim.memory import Use
from archsim.memory.bits import words_of
from archsim.memory.plain import WORDS
from archsim.numbers import IntArray

MOST_BITS = 1 << 20
"""Masks of words of more take the way over the cells: as whole numbers they are eight times as
large."""


def seen_words(faults: CellFaults, use: Use, words: IntArray) -> IntArray | None:
    """What is read of words [words, lanes] written from address 0 on; None where the way over the
    cells is to be taken: of large memories, and of a measured map, which is a file."""
    rows = 1 << max(len(words) - 1, LEAST_KEPT - 1).bit_length()
    if faults.map is not None or rows * use.word_bits > MOST_BITS:
        return None
    if_zero, kept, above, unsigned = _masks(faults, use, rows)
    count = len(words)
    if kept is None:
        found = words ^ if_zero[:count]
    else:
        found = (words & kept[:count]) | (~words & if_zero[:count])
    found <<= above
    found >>= above
    return found if unsigned is None else found & unsigned


_Masks = tuple[IntArray, IntArray | None, IntArray, IntArray | None]


@lru_cache(maxsize=32)
def _masks(faults: CellFaults, use: Use, rows: int) -> _Masks:
    """[rows, lanes]: bits that are wrong if 0, and those that are right if 1, None where the same
    are wrong in both; [lanes]: bits above a lane's, and its mask
    where it has no sign, -1 of others, None without any such."""
    fault_map = faults.fault_map(use, WORDS, use.word_bits)
    zero, one = wrong_bits(fault_map, use.half << HALF_BIT, rows)
    plain = (False,) * use.lanes
    if_zero = words_of(zero, use.lane_bits, plain)
    kept = None if zero is one else ~words_of(one, use.lane_bits, plain)
    above = np.array([64 - bits for bits in use.lane_bits], np.int64)
    signed = np.array(use.lane_signed)
    if signed.all():
        return if_zero, kept, above, None
    low = np.int64(-1) ^ (np.int64(-1) << (64 - above))  # a lane of 64 bits has a sign
    return if_zero, kept, above, np.where(signed, np.int64(-1), low)


__all__ = ["seen_words"]
