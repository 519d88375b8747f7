"""Memories of vectors that are read as they were written, from the first to the last, again and
again: those of a sparse core's activations (ADR 11).

A design names the kind by one field (`activation_memory = BovedaStream()`).  `PlainStream` is an
SRAM; `BovedaStream` stores values in as many bits as they need, in the layout of
`archsim.codecs.boveda`.  No directory is needed, as no vector is looked up.  Cycle contract:
docs/contracts/compressed-stream.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from archsim.codecs.boveda_format import CONTAINERS, BovedaFormat
from archsim.errors import require, require_positive, require_whole


@dataclass(frozen=True, kw_only=True)
class PlainStream:
    """A vector a row, as it is."""

    @property
    def latency_cycles(self) -> int:
        """From the cycle behind the last write to the one in which vectors can be read."""
        return 0

    def entries(self, rows: int) -> int:
        """Vectors that a memory of so many rows has room for."""
        return rows

    def check_vector(self, lanes: int, operand_bits: int) -> None:
        """Vectors of any lanes can be stored."""


@dataclass(frozen=True, kw_only=True)
class BovedaStream:
    """Values in groups of G lanes, each as wide as its largest magnitude; a group of zeros takes
    no bits.

    A memory has V rows of I · B bits for values (V: vectors that a plain memory of the same bytes
    holds), and beside them V · expansion entries, one a vector: indices, the flag `last`, and
    log2 B bits of width a group.  The groups of a column lie one behind the other, each column with
    a row of its own; only the end of a memory's whole content is aligned.  So a content fits if
    every column takes at most V rows, and its vectors at most V · expansion entries.

    group: G, lanes that share a width; expansion: entries for each row.

    Latency: 4 cycles from the cycle behind the last write to the first vector (width, columns, the
    last rows, unpacking).  Throughput: a vector written and a vector read a cycle.  Never stalls.
    Raises `InputError` for sizes that are not positive.
    """

    group: int = 4
    expansion: int = 2

    def __post_init__(self) -> None:
        require_positive(group=self.group)
        require_whole(1, "be at least 1", expansion=self.expansion)

    @property
    def latency_cycles(self) -> int:
        """Magnitudes are in a register; then codes; rows; the rows begun are written; unpacking."""
        return 4

    def entries(self, rows: int) -> int:
        """Vectors that there are entries for beside so many rows."""
        return rows * self.expansion

    def format(self, operand_bits: int) -> BovedaFormat:
        """The layout of values: signed, with groups that take no bits."""
        return BovedaFormat(group=self.group, container_bits=operand_bits, zero_width=True)

    def width_bits(self, lanes: int, operand_bits: int) -> int:
        """Of an entry: the widths of a vector's groups."""
        return lanes // self.group * (operand_bits.bit_length() - 1)

    def check_vector(self, lanes: int, operand_bits: int) -> None:
        """Raise `InputError` unless lanes are of 4, 8 or 16 bits, and groups fill them."""
        require(
            operand_bits in CONTAINERS,
            f"operand_bits must be 4, 8 or 16 for compressed activations, not {operand_bits}",
        )
        require(
            lanes % self.group == 0,
            f"group must divide ifmap_lanes, {lanes}, not be {self.group}",
        )


StreamMemory = PlainStream | BovedaStream
"""The kinds that may stand in a design."""
