"""The gather unit: of rows that cross the ifmap's port, kept units alone go to its scratchpad.

It gives a core the kept units of case 3 of dropout (`workloads.training.dropout`) as if a row had
no others.  Which are kept comes before the rows of each load, a flag a unit.

Contract: `docs/contracts/gather.md`.  Hardware: `rtl/core/gathering_loader.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from archsim.errors import require, require_positive

if TYPE_CHECKING:
    from archsim.blocks import Components

Flags = NDArray[np.bool_]
Values = NDArray[np.int64]

MOST_LANES = 1024
MOST_WORDS = (1 << 16) - 1
"""Of a row: as many as a layer's command can say."""

EVENTS = {"flags": "gather_flags", "word": "gather_word", "write": "ifmap_write"}
"""Actions of the core that make it work: a word of flags, a word of a row, a word it writes."""


@dataclass(frozen=True, kw_only=True)
class GatherUnit:
    """lanes of lane_bits each, as the ifmap's port has them; units: of the longest row.

    Raises InputError for sizes that are not positive, more lanes than `MOST_LANES`, rows of more
    words than `MOST_WORDS`, and lanes of bits that are no power of two.
    """

    lanes: int
    lane_bits: int
    units: int

    latency_cycles = 2
    """Cycles by which a load can be read later: a register, and a word that may be left over."""

    def __post_init__(self) -> None:
        require_positive(lanes=self.lanes, lane_bits=self.lane_bits, units=self.units)
        require(self.lanes <= MOST_LANES, f"lanes must be at most {MOST_LANES}, not {self.lanes}")
        require(
            self.lane_bits & (self.lane_bits - 1) == 0,
            f"a gather unit needs lanes of a power of two of bits, not {self.lane_bits}",
        )
        most = MOST_WORDS * self.lanes
        require(
            self.units <= most,
            f"gather_units must be at most {most} with {self.lanes} lanes, not {self.units}",
        )

    @property
    def depth(self) -> int:
        """Words of the longest row."""
        return self.row_words(self.units)

    @property
    def list_words(self) -> int:
        """Words of flags of the longest row."""
        return self.flag_words(self.units)

    def row_words(self, units: int) -> int:
        """Words of a row of so many units."""
        return -(-units // self.lanes)

    def flag_words(self, units: int) -> int:
        """Words of its flags: one for as many words of the row as a lane has bits."""
        return -(-self.row_words(units) // self.lane_bits)

    def load(self, mask: Flags, rows: Values) -> Values:
        """Words [words, lanes] that cross for a load: flags, then each row from a word of its own.

        mask [units]: which are kept.  rows [rows, units], of signed lanes or of patterns; lanes
        behind the last unit are 0.
        """
        units = len(mask)
        words = self.row_words(units)
        bits = np.zeros(self.flag_words(units) * self.lanes * self.lane_bits, np.int64)
        bits[:units] = mask
        flags = bits.reshape(-1, self.lanes, self.lane_bits) << np.arange(self.lane_bits)
        dense = np.zeros((len(rows), words * self.lanes), np.int64)
        dense[:, :units] = rows
        return np.concatenate([flags.sum(axis=2), dense.reshape(-1, self.lanes)])

    def components(self, name: str = "gather") -> Components:
        """Its hardware, by the core's actions `EVENTS`; every flip-flop of it, a loader's apart."""
        from archsim.blocks import (
            adders,
            address_bits,
            held_registers,
            registers,
            selector_tree,
            selectors,
            times,
        )

        lanes, bits, stages = self.lanes, self.lane_bits, address_bits(self.lanes)
        flags, word, write = ({EVENTS[what]: 1.0} for what in ("flags", "word", "write"))
        each = times(word, lanes)
        control = 2 * address_bits(self.list_words) + self.list_words.bit_length()
        control += address_bits(self.depth) + self.depth.bit_length() + 4
        control += (lanes - 1).bit_length()
        return (
            *held_registers(f"{name}.list", lanes * bits, self.list_words, flags),
            *selector_tree(f"{name}.list", (lanes * bits, self.list_words), 1, word),
            *selector_tree(f"{name}.list", (lanes, bits), 1, word),
            *adders(f"{name}.places", stages + 1, 2 * lanes, times(each, 2)),
            *selectors(f"{name}.compact", bits + stages, lanes * stages, times(each, stages)),
            *selectors(f"{name}.append", bits, 2 * lanes * stages, times(each, 2 * stages)),
            *held_registers(f"{name}.held", lanes * bits, 1, word),
            *held_registers(f"{name}.write", lanes * bits, 1, write),
            *registers(f"{name}.control", control, 1, word),
        )


__all__ = ["EVENTS", "GatherUnit"]
