"""The stages in which a core counts how many of many bits are set: the twin's registers.

Performance counters of wide memories add up a bit a bank (docs/contracts/compressed-memory.md).
"""

from __future__ import annotations

SUMMED = 32
"""Registers that a stage adds to one: five levels of adders where they are single bits."""


def count_stages(bits: int) -> tuple[tuple[int, ...], ...]:
    """What each register of each stage holds at most: the bits themselves, then sums of 32.

    So many stages are the latency in cycles; a register of at most n has n.bit_length() bits.
    """
    stages = [(1,) * bits]
    while len(stages[-1]) > 1:
        last = stages[-1]
        stages.append(tuple(sum(last[at : at + SUMMED]) for at in range(0, len(last), SUMMED)))
    return tuple(stages)


__all__ = ["SUMMED", "count_stages"]
