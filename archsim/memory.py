"""On-chip scratchpads and the off-chip memory that fills them.

A design names the memory of each operand by one field (`ifmap_memory = Plain(...)`).  Whatever
stands there answers the same questions: how many words of a given width one half holds, how many
cycles pass between a read's address and its data, and between a write and the first such address.
`archsim.compressed_memory` has the kind that stores values in as many bits as they need.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from archsim.errors import LARGEST, require, require_positive, require_whole


class Scratchpad(Protocol):
    """The seam: what a core asks of a scratchpad, whatever fills it."""

    @property
    def capacity_bytes(self) -> int:
        """Both halves together."""
        ...

    @property
    def read_latency_cycles(self) -> int:
        """From the cycle in which an address is presented to the one in which data are out."""
        ...

    @property
    def write_latency_cycles(self) -> int:
        """A word written in cycle t can be read with an address of cycle t + 1 + this."""
        ...

    def depth(self, word_bits: int) -> int:
        """Words of `word_bits` that can be addressed in each of the two halves."""
        ...

    def sure_depth(self, word_bits: int) -> int:
        """Words of `word_bits` that each half holds, whatever their values."""
        ...

    def check_word(self, lane_bits: tuple[int, ...]) -> None:
        """Raise `InputError` unless words of such lanes can be stored."""
        ...


@dataclass(frozen=True, kw_only=True)
class Plain:
    """A plain double-buffered SRAM: two halves, each with one read and one write port.

    A word written in cycle t can be read with an address presented in cycle t + 1.
    """

    capacity_bytes: int
    read_latency_cycles: int = 1

    def __post_init__(self) -> None:
        require_positive(capacity_bytes=self.capacity_bytes)
        require(
            self.read_latency_cycles == 1,
            f"read_latency_cycles must be 1 for a plain memory, not {self.read_latency_cycles}",
        )

    @property
    def write_latency_cycles(self) -> int:
        return 0

    def depth(self, word_bits: int) -> int:
        """Words of `word_bits` in each half."""
        return self.capacity_bytes * 8 // (2 * word_bits)

    def sure_depth(self, word_bits: int) -> int:
        """All of them."""
        return self.depth(word_bits)

    def check_word(self, lane_bits: tuple[int, ...]) -> None:
        """Words of any lanes can be stored."""


@dataclass(frozen=True, kw_only=True)
class OffChip:
    """Off-chip memory: it decides in which cycles words are offered and accepted.

    bytes_per_cycle: bandwidth at the core's clock, shared by the ports; 0 means that every
        port moves a word a cycle.  Each port gets the share that its bytes have in the layer's
        traffic, so that a layer bound by bandwidth ends when all ports end.
    latency_cycles: from the request for a tile (its half is free) to its first word.
    burst_bytes: a burst crosses a port back to back; then the port waits for its share.
    shared: False gives the whole bandwidth to each port on its own.
    weight_bytes_per_cycle: a channel for weights alone, as the TPU's DDR3; None shares the above.
    """

    bytes_per_cycle: float = 0.0
    weight_bytes_per_cycle: float | None = None
    latency_cycles: int = 0
    burst_bytes: int = 64
    shared: bool = True

    def __post_init__(self) -> None:
        if self.bytes_per_cycle != 0:
            _require_rate("bytes_per_cycle", self.bytes_per_cycle)
        if self.weight_bytes_per_cycle is not None:
            _require_rate("weight_bytes_per_cycle", self.weight_bytes_per_cycle)
        require_whole(0, "not be negative", latency_cycles=self.latency_cycles)
        require_positive(burst_bytes=self.burst_bytes)


def _require_rate(name: str, rate: float) -> None:
    """Rates are kept in 1/1024 of a byte per cycle (`archsim.timing`)."""
    require(rate > 0, f"{name} must be positive, not {rate}")
    require(rate * 1024 >= 1, f"{name} must be at least 1/1024, not {rate}")
    require(rate <= LARGEST, f"{name} must be at most {LARGEST}, not {rate}")
