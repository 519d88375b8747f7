"""A scratchpad of flip-flops: for a few words beside an array, where an SRAM would be too small.

It answers every question of a scratchpad (`archsim.memory.seam.Scratchpad`) as a plain one does but
for what it is made of: flip-flops behind a choice of old or new data, and trees of choices to read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from archsim.blocks import Components, Events, held_registers, registers, selector_tree, selectors
from archsim.errors import require
from archsim.memory import Plain

MOST_BYTES = 8192


@dataclass(frozen=True, kw_only=True)
class Registers(Plain):
    """Two halves of flip-flops, each with one read and one write port, of up to 8 KiB in all."""

    kind: ClassVar[str] = "registers"

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            self.capacity_bytes <= MOST_BYTES,
            f"capacity_bytes must be at most {MOST_BYTES} of registers, not {self.capacity_bytes}",
        )

    def macros(
        self, name: str, shape: tuple[int, int, int, int], read: Events, write: Events
    ) -> Components:
        """Of (count, lanes, lane_bits, depth): a write is seen by all words, and kept by one."""
        count, lanes, lane_bits, depth = shape
        bits, words = lanes * lane_bits, count * depth
        seen = {action: events * depth for action, events in write.items()}
        return (
            *registers(f"{name}.words", bits, words, write),
            *selectors(f"{name}.words", bits, words, seen),
            *selector_tree(f"{name}.read", (bits, depth), count, read),
            *held_registers(f"{name}.read", bits, count, read),
        )
