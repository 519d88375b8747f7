"""Bins that every kind of design has: how long each port waits, and resets."""

from collections.abc import Iterator

import numpy as np

from archsim.ports import Port
from rtl.coverage.bins import Bin, Seen

LONG_STALL = 10_000
MANY = 10
STALLS = "long stalls"
"""The aim that has every port wait `LONG_STALL` cycles."""
RESET = "reset"
"""The aim that resets a case in mid-run."""
STEADY = "no port waits"


def port_bins(ports: tuple[Port, ...]) -> Iterator[Bin]:
    """How long the memory side of each port waits: 0, 1, many and 10⁴ cycles."""
    for port in ports:
        name = port.name
        if name != "command":
            yield Bin(
                name=f"{name} waits 0 cycles and more",
                why="words that follow without a gap, and with one: every handshake of the port",
                hit=lambda seen, name=name: _has(seen, name, 0, 0) and _has(seen, name, 1, MANY),
            )
            yield Bin(
                name=f"{name} waits {MANY} cycles and more",
                why="queues behind the port run empty, or full",
                hit=lambda seen, name=name: _has(seen, name, MANY, LONG_STALL - 1),
            )
        yield Bin(
            name=f"{name} waits {LONG_STALL:,} cycles",
            why="counters of waiting units run past their narrower powers of two",
            hit=lambda seen, name=name: _has(seen, name, LONG_STALL, 1 << 62),
            aim=STALLS,
        )
    yield Bin(
        name="no port waits",
        why="the core's own speed decides every cycle",
        hit=lambda seen: not any(gaps.any() for gaps in seen.gaps.values()),
        aim=STEADY,
    )
    yield Bin(
        name="every port waits",
        why="stalls of several ports meet",
        hit=lambda seen: all(gaps.any() for gaps in seen.gaps.values() if len(gaps)),
    )
    yield Bin(
        name="reset in mid-run",
        why="state that a reset does not clear changes the answer to the next command",
        hit=lambda seen: seen.case.before is not None,
        aim=RESET,
    )


def _has(seen: Seen, port: str, least: int, most: int) -> bool:
    gaps = seen.gaps[port]
    return bool(np.any((gaps >= least) & (gaps <= most)))


__all__ = ["LONG_STALL", "RESET", "STALLS", "STEADY", "port_bins"]
