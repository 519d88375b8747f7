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
from archsim.memory.lane_masks import LaneMasks
from archsim.memory.plain import WORDS

MOST_BITS = 1 << 20
"""Masks of words of more take the way over the cells: as whole numbers they are eight times as
large."""


def lane_masks(faults: CellFaults, use: Use, words: int) -> LaneMasks | None:
    """Of so many words written from address 0 on, or of some more; None where the way over the
    cells is to be taken: of large memories, and of a measured map, which is a file."""
    rows = 1 << max(words - 1, LEAST_KEPT - 1).bit_length()
    if faults.map is not None or rows * use.word_bits > MOST_BITS:
        return None
    return _masks(faults, use, rows)


@lru_cache(maxsize=32)
def _masks(faults: CellFaults, use: Use, rows: int) -> LaneMasks:
    fault_map = faults.fault_map(use, WORDS, use.word_bits)
    zero, one = wrong_bits(fault_map, use.half << HALF_BIT, rows)
    plain = (False,) * use.lanes
    if_zero = words_of(zero, use.lane_bits, plain)
    kept = None if zero is one else ~words_of(one, use.lane_bits, plain)
    above = np.array([64 - bits for bits in use.lane_bits], np.int64)
    signed = np.array(use.lane_signed)
    unsigned = None
    if not signed.all():
        low = np.int64(-1) ^ (np.int64(-1) << (64 - above))  # a lane of 64 bits has a sign
        unsigned = np.where(signed, np.int64(-1), low)
    return LaneMasks(if_zero=if_zero, kept=kept, above=above, unsigned=unsigned)


__all__ = ["lane_masks"]
