"""The bench's drivers and monitors in plain Python, for the simulators that are stepped from it.

A simulator's loop is, for every cycle: `drive` every port and put what has changed on the wires,
let the wires settle, hand what they say to `sample`, then `advance` over the clock edge.
"""

import numpy as np

from rtl.benches.bench import Bench, Crossing, Outcome, ProtocolError, Stimulus, StreamPort
from rtl.benches.words import pack_words, unpack_words

__all__ = ["BenchRun", "InputDriver", "OutputDriver"]


class _Schedule:
    """When word `k` may be offered or accepted; `start` is None after the last."""

    def __init__(self, stimulus: Stimulus) -> None:
        self._gaps: list[int] = stimulus.gaps.tolist()
        self._earliest: list[int] = stimulus.earliest.tolist()
        self.k = 0
        self.start: int | None = None
        self._arm(-1)

    def crossed(self, cycle: int) -> bool:
        """Note that a word crossed at `cycle`; say whether it was a listed one."""
        listed = self.start is not None
        self.k += listed
        self._arm(cycle)
        return listed

    def _arm(self, previous: int) -> None:
        listed = self.k < len(self._gaps)
        self.start = (
            max(self._earliest[self.k], previous + 1 + self._gaps[self.k]) if listed else None
        )


class InputDriver:
    """Offers an input's words. `valid` and `payload` are what is to be on the wires."""

    def __init__(self, port: StreamPort, stimulus: Stimulus) -> None:
        assert stimulus.words is not None
        self.port = port
        self.valid = 0
        self._mask = (1 << port.bits) - 1
        self._words = unpack_words(stimulus.words)
        self._schedule = _Schedule(stimulus)
        self._cycles: list[int] = []
        self.payload = self._garbage()
        self._stale = True

    def drive(self, cycle: int) -> bool:
        """Set the wires for `cycle`; say whether they differ from the cycle before."""
        start = self._schedule.start
        valid = int(start is not None and cycle >= start)
        if valid == self.valid and not self._stale:
            return False
        self.valid = valid
        self.payload = self._words[self._schedule.k] if valid else self._garbage()
        self._stale = False
        return True

    def sample(self, cycle: int, ready: int) -> bool:
        """Note `ready` as it was in `cycle`; say whether a listed word has crossed."""
        if not (self.valid and ready):
            return False
        self._cycles.append(cycle)
        self._stale = True
        return self._schedule.crossed(cycle)

    def crossing(self) -> Crossing:
        """What has crossed so far."""
        n = len(self._cycles)
        words = pack_words(self._words[:n], self.port.bits)
        return Crossing(cycles=np.array(self._cycles, np.int64), words=words)

    def _garbage(self) -> int:
        k = self._schedule.k
        return self._mask ^ (self._words[k] if k < len(self._words) else 0)


class OutputDriver:
    """Accepts an output's words and watches that each is kept until then."""

    def __init__(self, port: StreamPort, stimulus: Stimulus) -> None:
        self.port = port
        self.ready = 0
        self._schedule = _Schedule(stimulus)
        self._cycles: list[int] = []
        self._words: list[int] = []
        self._waiting: int | None = None

    def drive(self, cycle: int) -> bool:
        """Set `ready` for `cycle`; say whether it differs from the cycle before."""
        start = self._schedule.start
        ready = int(start is None or cycle >= start)
        changed = ready != self.ready
        self.ready = ready
        return changed

    def sample(self, cycle: int, valid: int, payload: int) -> bool:
        """Note the wires as they were in `cycle`; say whether a listed word has crossed.

        Raises `ProtocolError` if a word that waited has gone or changed.
        """
        if self._waiting is not None and not (valid and payload == self._waiting):
            raise ProtocolError(self.port.name, cycle)
        if not valid:
            return False
        if not self.ready:
            self._waiting = payload
            return False
        self._waiting = None
        self._cycles.append(cycle)
        self._words.append(payload)
        return self._schedule.crossed(cycle)

    def crossing(self) -> Crossing:
        """What has crossed so far."""
        words = pack_words(self._words, self.port.bits)
        return Crossing(cycles=np.array(self._cycles, np.int64), words=words)


class BenchRun:
    """The state of one run of a bench: its drivers, in the bench's order, and its end."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.cycle = 0
        self.drivers: list[InputDriver | OutputDriver] = [
            (InputDriver if port.direction == "i" else OutputDriver)(port, bench.stimuli[port.name])
            for port in bench.ports
        ]
        self._pending = bench.listed_words
        self._end = bench.max_cycles
        self._finished_at = bench.max_cycles + 1
        self._settle(-1)

    @property
    def running(self) -> bool:
        """Whether there is a further cycle."""
        return self.cycle < self._end

    def crossed(self) -> None:
        """Note that a listed word crossed in this cycle."""
        self._pending -= 1
        self._settle(self.cycle)

    def advance(self) -> None:
        """Go on to the next cycle."""
        self.cycle += 1

    def outcome(self, probes: dict[str, int]) -> Outcome:
        """The answer, given the values of the probes."""
        return Outcome(
            crossings={driver.port.name: driver.crossing() for driver in self.drivers},
            probes=probes,
            cycles=self.cycle,
            timed_out=self.cycle < self._finished_at,
        )

    def _settle(self, cycle: int) -> None:
        if self._pending == 0:
            self._finished_at = cycle + 1 + self.bench.tail_cycles
            self._end = min(self._finished_at, self.bench.max_cycles)
