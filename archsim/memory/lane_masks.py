"""What becomes of lanes whose every bit fares by itself, whatever else is stored."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from archsim.numbers import IntArray


@dataclass(frozen=True, kw_only=True, eq=False)
class LaneMasks:
    """Of words from address 0 on, lanes as whole numbers.

    if_zero [words, lanes]: bits that read 1 where 0 is stored.  kept [words, lanes]: those that
    read 1 where 1 is; None where a bit that is wrong in one way is in the other.  above [lanes]:
    bits of 64 that a lane lacks.  unsigned [lanes]: its mask of a lane without a sign, -1 of
    others; None without any such.
    """

    if_zero: IntArray
    kept: IntArray | None
    above: IntArray
    unsigned: IntArray | None

    def read(self, words: IntArray) -> IntArray:
        """What is read of words [words, lanes], as many as there are masks at most."""
        count = len(words)
        kept = None if self.kept is None else self.kept[:count]
        return _read(words, (self.if_zero[:count], kept, self.above, self.unsigned))

    def read_at(self, at: tuple[IntArray, IntArray], values: IntArray) -> IntArray:
        """What is read of values [..., n] in words and lanes `at`, [n] each."""
        kept = None if self.kept is None else self.kept[at]
        unsigned = None if self.unsigned is None else self.unsigned[at[1]]
        return _read(values, (self.if_zero[at], kept, self.above[at[1]], unsigned))

    @cached_property
    def if_one(self) -> IntArray:
        """[words, lanes]: bits that read 1 where 1 is stored, and all above."""
        return ~self.if_zero if self.kept is None else self.kept

    @cached_property
    def failing(self) -> tuple[IntArray, IntArray]:
        """Words and lanes, [n] each in order, of which a bit may be read wrong."""
        wrong = self.if_zero if self.kept is None else self.if_zero | ~self.kept
        rows, lanes = np.nonzero(wrong)
        return rows, lanes

    @cached_property
    def lanes(self) -> IntArray:
        """[lanes, 2]: `above`, and `unsigned` of each."""
        masks = np.full_like(self.above, -1) if self.unsigned is None else self.unsigned
        return np.stack([self.above, masks], axis=1)

    @cached_property
    def _cells(self) -> IntArray:
        return np.stack([*self.failing, self.if_zero[self.failing], self.if_one[self.failing]], 1)

    def cells(self, words: int) -> IntArray:
        """Of the lanes of so many words of which a bit may be read wrong, in order: word, lane,
        `if_zero` and `if_one` [n, 4]."""
        return self._cells[: len(self.failing_in(words)[0])]

    def failing_in(self, words: int) -> tuple[IntArray, IntArray]:
        """`failing` of so many words."""
        rows, lanes = self.failing
        count = int(np.searchsorted(rows, np.int64(words)))
        return rows[:count], lanes[:count]


_Masks = tuple[IntArray, IntArray | None, IntArray, IntArray | None]


def _read(values: IntArray, masks: _Masks) -> IntArray:
    if_zero, kept, above, unsigned = masks
    found = values ^ if_zero if kept is None else (values & kept) | (~values & if_zero)
    found <<= above
    found >>= above
    return found if unsigned is None else found & unsigned


__all__ = ["LaneMasks"]
