"""When words cross a port: service intervals, and the queue identity.

A memory side is described by the service interval S[k] ≥ 1 of every word: word k crosses no
earlier than S[k] cycles after word k − 1 (word 0: cycle S[0] − 1), and no earlier than the core
and a latency allow.  With G = cumsum(S), words that are ready at a[k] cross at

    cycle[k] = G[k] + max over j ≤ k of (a[j] − G[j])          (a finish time of a queue)

which is exact and needs no clock.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from archsim.errors import require
from archsim.numbers import IntArray

NO_GAPS: IntArray = np.zeros(0, np.int64)


@dataclass(frozen=True, kw_only=True)
class Service:
    """The service intervals of one port.

    Regular: bursts of `burst_words` back to back, one burst every numerator / denominator cycles
    (rounded up in the sum); burst_words = 0 is a word a cycle.
    Explicit: `gaps[k]` idle cycles before word k; as many as there are words.
    latency_cycles: from the request for a tile to its first word.
    """

    burst_words: int = 0
    numerator: int = 0
    denominator: int = 1
    latency_cycles: int = 0
    gaps: IntArray = field(default_factory=lambda: NO_GAPS)

    def __post_init__(self) -> None:
        require(bool((self.gaps >= 0).all()), "gaps must not be negative")

    @property
    def cumulative(self) -> IntArray:
        """G of explicit gaps; empty when the service is regular."""
        return np.cumsum(self.gaps + 1) if len(self.gaps) else NO_GAPS

    def finish_times(self, words: int) -> IntArray:
        """G[0 … words − 1]; regular services start with G[0] = 1."""
        if len(self.gaps):
            require(len(self.gaps) >= words, f"{len(self.gaps)} gaps are too few for {words} words")
            return self.cumulative[:words]
        index = np.arange(words, dtype=np.int64)
        if self.burst_words == 0:
            return index + 1
        burst, offset = np.divmod(index, self.burst_words)
        return -(-burst * self.numerator // self.denominator) + offset + 1


def crossings(ready: IntArray, finish: IntArray) -> IntArray:
    """Cycles at which words cross: `ready[k]` the earliest, `finish` = G; all [n]."""
    if len(ready) == 0:
        return ready
    # word -1 crossed in cycle -1, so word 0 crosses in cycle S[0] - 1 = G[0] - 1 at the earliest
    return finish + np.maximum(np.maximum.accumulate(ready - finish), -1)
