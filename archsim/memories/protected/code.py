"""Linear codes over a few bits: parity, and single-error correction with double-error detection.

SECDED codes are Hsiao's ("A Class of Optimal Minimum Odd-weight-column SEC-DED Codes", IBM Journal
of Research and Development, 1970): the columns of the check matrix are different and of odd weight,
the lightest first, so that two errors never look like one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations, islice

import numpy as np
import numpy.typing as npt

from archsim.numbers import IntArray

Bits = npt.NDArray[np.uint8]


@dataclass(frozen=True, kw_only=True)
class Code:
    """columns: of each data bit, in which check bits it counts; corrects: single errors."""

    columns: tuple[int, ...]
    check_bits: int
    corrects: bool

    @property
    def data_bits(self) -> int:
        return len(self.columns)

    @property
    def bits(self) -> int:
        """Of data and check bits."""
        return self.data_bits + self.check_bits

    def covered(self, check: int) -> tuple[int, ...]:
        """The data bits that count in a check bit."""
        return tuple(bit for bit, column in enumerate(self.columns) if column >> check & 1)

    @cached_property
    def corrections(self) -> IntArray:
        """By syndrome: the data bits that are turned, none without an error and for one in a check
        bit; -1 where an error is detected and not corrected."""
        found = np.full(1 << self.check_bits, -1, np.int64)
        found[0] = 0
        if self.corrects:
            found[1 << np.arange(self.check_bits)] = 0
            found[list(self.columns)] = np.int64(1) << np.arange(self.data_bits)
        return found

    @cached_property
    def _matrix(self) -> npt.NDArray[np.uint8]:
        columns = np.array(self.columns, np.int64)
        return (columns[:, None] >> np.arange(self.check_bits) & 1).astype(np.uint8)

    def checks(self, data: Bits) -> Bits:
        """[words, check_bits] of data [words, data_bits]."""
        return (data @ self._matrix & 1).astype(np.uint8)

    def decoded(self, data: Bits, checks: Bits) -> tuple[Bits, npt.NDArray[np.bool_]]:
        """The data as they are taken to be, zeros where an error is detected and not corrected,
        and in which words that is."""
        weights = np.int64(1) << np.arange(self.check_bits)
        syndrome = (self.checks(data) ^ checks).astype(np.int64) @ weights
        known = np.zeros(1 << self.check_bits, np.bool_)
        known[0] = True
        found = data
        if self.corrects:
            known[[*self.columns, *weights]] = True
            found = data ^ (syndrome[:, None] == np.array(self.columns))
        detected = ~known[syndrome]
        return np.where(detected[:, None], 0, found).astype(np.uint8), detected


def parity(data_bits: int) -> Code:
    """One check bit: any odd number of errors is detected, none corrected."""
    return Code(columns=(1,) * data_bits, check_bits=1, corrects=False)


@lru_cache(maxsize=64)
def secded(data_bits: int) -> Code:
    """The shortest one: (72, 64), (39, 32), (22, 16), (13, 8), and between."""
    checks = 4
    while (1 << (checks - 1)) - checks < data_bits:
        checks += 1
    columns = tuple(islice(_odd_columns(checks), data_bits))
    return Code(columns=columns, check_bits=checks, corrects=True)


def _odd_columns(checks: int) -> Iterator[int]:
    """Columns of odd weight above one, the lightest first."""
    for weight in range(3, checks + 1, 2):
        for bits in combinations(range(checks), weight):
            yield sum(1 << bit for bit in bits)


__all__ = ["Code", "parity", "secded"]
