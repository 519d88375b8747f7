"""When words cross the toys, by recurrences over plain integers: no clock, no simulator."""

from dataclasses import dataclass

import numpy as np

from rtl.benches.bench import Bench, Crossing, Outcome, Stimulus
from rtl.benches.words import pack_lanes, pack_words, unpack_lanes, unpack_words


class Clock:
    """The cycles at which a port's words cross, while they are being told."""

    def __init__(self, stimulus: Stimulus) -> None:
        self.stimulus = stimulus
        self.x: list[int] = []

    def start(self) -> int:
        """The first cycle at which the bench does its part for the next word."""
        k, last = len(self.x), self.x[-1] if self.x else -1
        if k >= len(self.stimulus):
            return last + 1
        return max(int(self.stimulus.earliest[k]), last + 1 + int(self.stimulus.gaps[k]))


@dataclass(frozen=True)
class Told:
    """An oracle's answer: cycles by port, and the words of the output."""

    cycles: dict[str, list[int]]
    words: np.ndarray
    probes: dict[str, int]


def wire(bench: Bench) -> Told:
    """Both sides cross together."""
    i, o = (Clock(bench.stimuli[name]) for name in ("i", "o"))
    for _ in range(len(i.stimulus)):
        cycle = max(i.start(), o.start())
        i.x.append(cycle)
        o.x.append(cycle)
    return Told({"i": i.x, "o": o.x}, _words(bench, "i"), {})


def pipe_stage(bench: Bench) -> Told:
    """In when the word before leaves; out one cycle later at the earliest."""
    i, o = (Clock(bench.stimuli[name]) for name in ("i", "o"))
    for k in range(len(i.stimulus)):
        i.x.append(max(i.start(), o.x[k - 1] if k else 0))
        o.x.append(max(o.start(), i.x[k] + 1))
    return Told({"i": i.x, "o": o.x}, _words(bench, "i"), {})


def skid_buffer(bench: Bench) -> Told:
    """In the cycle after the word before has left; out in the same cycle at the earliest."""
    i, o = (Clock(bench.stimuli[name]) for name in ("i", "o"))
    for k in range(len(i.stimulus)):
        i.x.append(max(i.start(), o.x[k - 1] + 1 if k else 0))
        o.x.append(max(o.start(), i.x[k]))
    return Told({"i": i.x, "o": o.x}, _words(bench, "i"), {})


def lane_sum(bench: Bench, lanes: int, bits: int, group: int) -> Told:
    """A group in, its sums out, and only then the next group."""
    i, o = (Clock(bench.stimuli[name]) for name in ("i", "o"))
    n = len(i.stimulus)
    for k in range(n):
        i.x.append(max(i.start(), o.x[-1] + 1 if o.x else 0))
        if k % group == group - 1:
            o.x.append(max(o.start(), i.x[k] + 1))
    values = unpack_lanes(_words(bench, "i"), lanes, bits, signed=True)
    whole = values[: n - n % group].reshape(-1, group, lanes).sum(axis=1)
    return Told({"i": i.x, "o": o.x}, pack_lanes(whole, bits), {"words": n})


def join(bench: Bench, a_bits: int, b_bits: int) -> Told:
    """All three cross together; a stall is a cycle in which only `o` is late."""
    a, b, o = (Clock(bench.stimuli[name]) for name in ("a", "b", "o"))
    stalls = 0
    for _ in range(len(a.stimulus)):
        offered, accepted = max(a.start(), b.start()), o.start()
        stalls += max(0, accepted - offered)
        for clock in (a, b, o):
            clock.x.append(max(offered, accepted))
    pairs = zip(unpack_words(_words(bench, "a")), unpack_words(_words(bench, "b")), strict=True)
    words = pack_words([low | high << a_bits for low, high in pairs], a_bits + b_bits)
    probes = {"joined": len(a.stimulus), "stalls": stalls % 128}
    return Told({"a": a.x, "b": b.x, "o": o.x}, words, probes)


def outcome(bench: Bench, told: Told) -> Outcome:
    """The whole outcome which `told` implies, if the run is given the time it needs."""
    last = max([cycle for cycles in told.cycles.values() for cycle in cycles], default=-1)
    crossings = {}
    for port in bench.ports:
        words = told.words if port.direction == "o" else _words(bench, port.name)
        cycles = np.array(told.cycles[port.name], np.int64)
        crossings[port.name] = Crossing(cycles=cycles, words=words)
    cycles = last + 1 + bench.tail_cycles
    return Outcome(crossings=crossings, probes=told.probes, cycles=cycles, timed_out=False)


def _words(bench: Bench, name: str) -> np.ndarray:
    words = bench.stimuli[name].words
    assert words is not None
    return words
