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
"""Of a tiling: its number and 1, with the turn in which it was put there (0: the place is empty),
its bound in cycles and its bytes (`archsim.tiled.bound_paths`), cycles that it takes at least, and
whether it takes just those.  The last row has the turn."""

ROOM, SHARED_ROOM = 1 << 9, 1 << 13
"""Places for a layer on one design, and on a family of designs."""

_TURN_BITS, _NUMBER_BITS = 10, 52
"""Numbers of tilings are below 2^52."""


@kernel
def new_memo(room: int) -> IntArray:
    """Empty; room: a power of two."""
    memo = np.zeros((room + 1, MEMO_COLUMNS), np.int64)
    memo[room, NUMBER] = 1
    return memo


@inlined
def forget(memo: IntArray) -> None:
    """Empty it: what was put there in turns before is no longer known."""
    last = len(memo) - 1
    turn = memo[last, NUMBER] + 1
    if turn >> _TURN_BITS > 0:
        memo[:] = 0
        turn = 1
    memo[last, NUMBER] = turn


@inlined
def key_of(memo: IntArray, number: int) -> int:
    """Of a tiling that is put there in this turn."""
    return (memo[len(memo) - 1, NUMBER] << _NUMBER_BITS) + number + 1


@inlined
def place_of(memo: IntArray, number: int) -> int:
    """Where a tiling lies, or may be put; -1 where too much lies about."""
    last, key = len(memo) - 2, key_of(memo, number)
    first = number ^ number >> 9 ^ number >> 18 ^ number >> 27 ^ number >> 36
    for behind in range(16):
        at = (first + behind) & last
        if memo[at, NUMBER] == key or memo[at, NUMBER] >> _NUMBER_BITS != key >> _NUMBER_BITS:
            return at
    return -1


__all__ = ["BOUND", "BYTES", "EXACT", "LEAST", "NUMBER", "ROOM", "SHARED_ROOM", "forget", "key_of",
           "new_memo", "place_of"]  # fmt: skip
