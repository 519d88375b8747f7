"""Bias words of a pass: when they cross, and when a drain finds them (docs/contracts/scnn.md).

The queue holds D = 2 · `filter_group` words, or 2 · Kc where `group_rule` makes a group larger, so
that those of two groups are there.  Word n is given back when the list of filter n is ended:
DS(g) + HALO(g) + COPY(g) + (k + 1) · the cycles of a list (`Mapping.list_cycles`) for the k-th
filter of group g.  Those that group g waits for are of groups before g − 1, so their times are
known when it is drained.
"""

from __future__ import annotations

import numpy as np

from archsim.machines.scnn.design import Scnn
from archsim.machines.scnn.mapping import Mapping
from archsim.machines.scnn.served import LayerChannel
from archsim.numbers import IntArray
from archsim.timing import Service

TAKEN_CYCLES = 2
"""From the crossing of a group's last word to the first cycle in which its drain may start."""


class BiasPort:
    """The words of a pass, group by group: `ready`, then `release`, of each.

    cycles [words]: in which they have crossed.  Word n crosses at

        max(1 + latency, crossing before + S[n], word n − D given back)

    and no earlier than a channel offers it, through which a group's words are sent (`send`).
    """

    def __init__(
        self,
        design: Scnn,
        mapping: Mapping,
        service: Service,
        words: int,
        channel: LayerChannel | None = None,
    ) -> None:
        self._channel = channel
        self._offered = [0] * words
        self._mapping = mapping
        self._depth = 2 * max(design.filter_group, mapping.group_size)
        self._intervals = np.diff(service.finish_times(words), prepend=0)
        self._first = 1 + service.latency_cycles
        self._given_back: list[int] = []
        self._crossed: list[int] = []

    @property
    def cycles(self) -> IntArray:
        return np.array(self._crossed, np.int64)

    @property
    def offered(self) -> IntArray:
        """When each word has come from the channel, [words]."""
        return np.array(self._offered, np.int64)

    def send(self, group: int) -> None:
        """The words of a group, ahead of its weights; those of the group before have crossed."""
        if self._channel and self._offered:
            first = group * self._mapping.group_size
            after = first + self._mapping.group_filters(group)
            crossed = self._crossed[-1] if self._crossed else None
            offers = self._channel.biases(after - first, crossed)
            self._offered[first:after] = offers.tolist()

    def ready(self, group: int) -> int:
        """The first cycle in which a group may be drained; 0 without biases."""
        after = group * self._mapping.group_size + self._mapping.group_filters(group)
        for n in range(len(self._crossed), min(after, len(self._intervals))):
            before = self._crossed[-1] if n else -1
            room = self._given_back[n - self._depth] if n >= self._depth else 0
            earliest = max(self._first, self._offered[n], room)
            self._crossed.append(max(earliest, before + int(self._intervals[n])))
        return self._crossed[-1] + TAKEN_CYCLES if self._crossed else 0

    def release(self, group: int, drain_start: int) -> None:
        """The words of a group, which is drained from a cycle on."""
        mapping = self._mapping
        begin = drain_start + mapping.move_cycles(group)
        self._given_back += [
            begin + (k + 1) * mapping.list_cycles for k in range(mapping.group_filters(group))
        ]


__all__ = ["TAKEN_CYCLES", "BiasPort"]
