"""Weights in a memory whose cells fail: a code a word, one behind the other, by a fault map."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from archsim.memories.faulty.fault_map import FaultMap
from archsim.memories.faulty.laws import Independent, Law

Codes = npt.NDArray[np.uint8]

MEMORY = "weights"
"""The name under which a chip's hash draws for this memory."""


@dataclass(frozen=True, kw_only=True)
class Chips:
    """Chips of one kind: they differ by their number alone.

    zero_to_one, one_to_zero: the shares of faulty cells that read so whatever is stored; the others
    flip.  columns: bits of a row of the array, None for one code a row.
    """

    zero_to_one: float = 0.0
    one_to_zero: float = 0.0
    columns: int | None = None
    law: Law = field(default_factory=Independent)

    def fault_map(self, chip: int, words: int, bits: int, rate: float) -> FaultMap:
        """Of one chip at a rate of faulty cells.  Raises InputError for what cannot be."""
        return FaultMap(
            words=words,
            word_bits=bits,
            chip=chip,
            memory=MEMORY,
            rate=rate,
            zero_to_one=self.zero_to_one,
            one_to_zero=self.one_to_zero,
            columns=self.columns,
            law=self.law,
        )

    def read(self, codes: Codes, bits: int, chip: int, rate: float) -> Codes:
        """What is read of codes [n] of `bits` bits that lie there."""
        if_zero, if_one = self.fault_map(chip, len(codes), bits, rate).masks()
        return codes ^ (if_zero[:, 0] & ~codes | if_one[:, 0] & codes)


def chip_flips(chip: int, count: int, bits: int, rate: float) -> Codes:
    """For each of `count` codes, the bits that flip on a chip whose faults are independent."""
    return Chips().fault_map(chip, count, bits, rate).masks()[0][:, 0]


__all__ = ["Chips", "chip_flips"]
