"""Bins that every kind of design has: how long each port waits, and resets."""

from collections.abc import Callable, Iterator

import numpy as np

from archsim.ports import Port
from rtl.conformance import Case
from rtl.coverage.bins import Bin, Seen

LONG_STALL = 10_000
MANY = 10
STALLS = "long stalls"
"""The aim that has every port wait `LONG_STALL` cycles."""
RESETS = ("early", "midway", "late")
"""Aims that reset a case in the first, second and last third of its run: `reset_aim`."""
BLOCKED = "reset behind results that wait"
"""The bin, and the aim, of a reset when all is done that can be before the first result leaves."""
STEADY = "no port waits"
CHANNEL = "a slow off-chip memory"
"""The aim that has the design's own off-chip memory serve the ports (`rtl.slow_memory`)."""


def channel_bin(served: Callable[[Seen], bool]) -> Bin:
    """Of words that come and go as an off-chip memory has them.  served: whether a case's do."""
    return Bin(
        name=CHANNEL,
        why="words are offered in bursts, behind a latency, port after port, in cycles that no gap"
        " that is drawn has",
        hit=served,
        aim=CHANNEL,
    )


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
    for when in RESETS:
        yield Bin(
            name=f"reset in mid-run, {when}",
            why="state that a reset does not clear changes the answer to the next command",
            hit=lambda seen, when=when: _third(seen.case) == when,
            aim=reset_aim(when),
        )
    yield Bin(
        name=BLOCKED,
        why="counts of what waits in queues, which a reset empties, must be set back with them",
        hit=lambda seen: is_blocked(seen.case),
        aim=BLOCKED,
    )


def reset_aim(when: str) -> str:
    """The name of the aim of one of `RESETS`."""
    return f"reset, {when}"


def last_cycle(case: Case) -> int:
    """Of the model's last transfer."""
    return max(int(t.cycle[-1]) for t in case.answer().transfers.values() if len(t))


def thirds(case: Case) -> dict[str, range]:
    """Of `RESETS`, the cycles of a case that they are; a run of a cycle or two has not all."""
    last = max(1, last_cycle(case))
    ends = [1 + last * number // len(RESETS) for number in range(len(RESETS) + 1)]
    return {when: range(*ends[number : number + 2]) for number, when in enumerate(RESETS)}


def _third(case: Case) -> str | None:
    """In which of `RESETS` the run before a case ended."""
    if case.before is None:
        return None
    interrupted, cycles = case.before
    return next((when for when, own in thirds(interrupted).items() if cycles in own), None)


def results_of(case: Case) -> list[str]:
    """The ports at which words leave."""
    return [port.name for port in case.ports if port.direction == "o"]


def is_blocked(case: Case) -> bool:
    """Whether the run before was cut when its results had waited for as long as it may take."""
    if case.before is None:
        return False
    interrupted, cycles = case.before
    answer = interrupted.answer()
    waits = interrupted.waits(answer)
    firsts = [(answer.transfers[name].cycle, waits[name]) for name in results_of(interrupted)]
    return all(len(cycle) > 1 and cycle[0] >= cycles > len(cycle) and gaps[0] > cycles // 2
               for cycle, gaps in firsts)  # fmt: skip


def _has(seen: Seen, port: str, least: int, most: int) -> bool:
    gaps = seen.gaps[port]
    return bool(np.any((gaps >= least) & (gaps <= most)))


__all__ = [
    "BLOCKED",
    "LONG_STALL",
    "RESETS",
    "STALLS",
    "STEADY",
    "channel_bin",
    "is_blocked",
    "last_cycle",
    "port_bins",
    "reset_aim",
    "results_of",
    "thirds",
]
