"""What the fast mapper knows of tilings that it has looked at: bounds, and cycles where scheduled.

None of it hangs on the depths of memories.  So searches for a layer on designs that differ in
nothing else share one (`archsim.tiled.families`).  A table by the tilings' numbers: a tiling lies
at the place that its number says, or behind it.
"""

from __future__ import annotations

import numpy as np

from archsim.kernels import inlined, kernel
from archsim.numbers import IntArray

NUMBER, BOUND, BYTES, LEAST, EXACT, MEMO_COLUMNS = range(6)
"""Of a tiling: its number and 1 (0: the place is empty), its bound in cycles and its bytes
(`archsim.tiled.bound_paths`), cycles that it takes at least, and whether it takes just those."""

ROOM, SHARED_ROOM = 1 << 9, 1 << 13
"""Places for a layer on one design, and on a family of designs."""


@kernel
def new_memo(room: int) -> IntArray:
    """Empty; room: a power of two."""
    return np.zeros((room, MEMO_COLUMNS), np.int64)


@inlined
def place_of(memo: IntArray, number: int) -> int:
    """Where a tiling lies, or may be put; -1 where too much lies about."""
    last = len(memo) - 1
    first = number ^ number >> 9 ^ number >> 18 ^ number >> 27 ^ number >> 36
    for behind in range(16):
        at = (first + behind) & last
        if memo[at, NUMBER] == 0 or memo[at, NUMBER] == number + 1:
            return at
    return -1


__all__ = ["BOUND", "BYTES", "EXACT", "LEAST", "NUMBER", "ROOM", "SHARED_ROOM", "new_memo",
           "place_of"]  # fmt: skip
