"""The off-chip memory of a sparse core as a queue of transfers, from its contract.

The model offers words by a state that the scan over lists carries along
(`archsim.machines.scnn.channel`). Here the order of a layer's transfers is a list that is written
before anything moves, and each begins when what it waits for has crossed. When words cross is
given; it is compared with what the ports do when they are offered words in these cycles
(`rtl.sparse_paths`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from math import ceil

import numpy as np

from archsim.machines.scnn.command import scnn_ports
from archsim.machines.scnn.design import Scnn
from archsim.machines.scnn.words import PassWords
from archsim.numbers import IntArray

INPUTS = ("ifmap", "weight", "bias")
TICKS = 65_536
"""Of a cycle: the finest that a word takes of its channel."""


@dataclass(frozen=True)
class Transfer:
    """Words of a pass's port, from its word `first` on; the channel waits until `before` words of
    the port, of all passes, have crossed."""

    port: str
    number: int
    first: int
    words: int
    before: int = 0


@dataclass(frozen=True, kw_only=True, eq=False)
class Crossed:
    """A pass that ran: cycles, and by port those in which words crossed, from its command on."""

    cycles: int
    ports: Mapping[str, IntArray]


class OfferedWords:
    """When a layer's words are offered, in a program (`spread`), if they cross as they did.

    offers: by port and number of the pass, in cycles from the layer's first command on.
    written: the cycle until which the last ofmap has left, or the last pass runs.
    """

    def __init__(
        self, design: Scnn, passes: Sequence[PassWords], crossed: Sequence[Crossed], *, spread: bool
    ) -> None:
        self._memory = design.off_chip
        self._bits = {port.name: port.bits for port in scnn_ports(design)}
        self._begins = np.cumsum([0, *(one.cycles for one in crossed)]).tolist()
        self._passes, self._places = passes, 2 * design.weight_fifo_vectors
        self._by_pass = [
            {port: (begin + cycles).tolist() for port, cycles in one.ports.items()}
            for begin, one in zip(self._begins, crossed, strict=False)
        ]
        self._crossed = {
            port: list(chain.from_iterable(one[port] for one in self._by_pass)) for port in INPUTS
        }
        self._free: dict[str, Fraction] = {}
        self.offers = {(port, n): list[int]() for port in INPUTS for n in range(len(passes))}
        self.written = int(self._begins[-1])
        for transfer in self._program(spread=spread):
            if transfer.words:
                self._move(transfer)

    def _counts(self, number: int, port: str) -> int:
        """Words of a pass; 0 before the first and behind the last pass."""
        return len(self._passes[number].words[port]) if 0 <= number < len(self._passes) else 0

    def _program(self, *, spread: bool) -> Iterator[Transfer]:
        """All transfers, in order."""
        yield Transfer("ifmap", 0, 0, self._counts(0, "ifmap"))
        words = biases = 0
        for n, one in enumerate(self._passes):
            groups = _lists_of_groups(one)
            lists = [size for group in groups for size in group]
            ahead, taken = 0, 0
            while ahead < len(groups[0]) and taken + lists[ahead] <= self._places:
                taken, ahead = taken + lists[ahead], ahead + 1
            others, at, number, first = len(lists) - ahead, 0, 0, 0
            out, following = self._counts(n - 1, "ofmap"), self._counts(n + 1, "ifmap")
            for group in groups:
                for place, size in enumerate(group):
                    if number == ahead and not spread:
                        yield Transfer("ofmap", n - 1, 0, out)
                    if place == 0 and self._counts(n, "bias"):
                        filters = min(one.strip.mapping.group_size, self._counts(n, "bias") - first)
                        yield Transfer("bias", n, first, filters, before=biases)
                        first, biases = first + filters, biases + filters
                    words += size
                    yield Transfer("weight", n, at, size, before=words - self._places)
                    at += size
                    if spread and number >= ahead:
                        yield from _parts(n, number - ahead, others, (out, following))
                    number += 1
            if not others:
                yield Transfer("ofmap", n - 1, 0, out)
            if not (spread and others):
                yield Transfer("ifmap", n + 1, 0, following)
        last = len(self._passes) - 1
        yield Transfer("ofmap", last, 0, self._counts(last, "ofmap"))

    def _way(self, port: str) -> str:
        """The channel that a port has by itself, or with others."""
        memory = self._memory
        if port == "weight" and memory.weight_bytes_per_cycle is not None:
            return port
        return "all" if memory.shared else port

    def _word_time(self, port: str) -> Fraction:
        """Cycles of its channel that a word takes."""
        memory, rate = self._memory, self._memory.bytes_per_cycle
        if port == "weight" and memory.weight_bytes_per_cycle is not None:
            rate = memory.weight_bytes_per_cycle
        if not rate:
            return Fraction(0)
        taken = Fraction(self._bits[port], 8) / Fraction(round(rate * 1024), 1024)
        return Fraction(ceil(taken * TICKS), TICKS)

    def _move(self, head: Transfer) -> None:
        """The next transfer of its channel: as early as what it waits for has crossed."""
        time, way = self._word_time(head.port), self._way(head.port)
        ready = self._ready(head, time)
        start = max(ready, self._free.get(way, Fraction(0))) if time else ready
        end = start + head.words * time
        if time:
            self._free[way] = end
        if head.port == "ofmap":
            self.written = max(self.written, ceil(end))
            return
        burst = max(1, 8 * self._memory.burst_bytes // self._bits[head.port])
        for word in range(head.words):
            whole = min(head.words, (word // burst + 1) * burst)
            self.offers[head.port, head.number].append(ceil(start + whole * time))

    def _ready(self, head: Transfer, time: Fraction) -> Fraction:
        """Before when a transfer cannot begin."""
        if head.port == "ofmap":
            out = self._by_pass[head.number]["ofmap"][head.first : head.first + head.words]
            return max(cycle + 1 - k * time for k, cycle in enumerate(out))
        ready = self._memory.latency_cycles
        if head.port == "ifmap" and head.number:  # room for two passes' beside the port
            ready = max(ready, self._begins[head.number - 1])
        if head.before > 0:  # the biases before, or words whose places are taken, have crossed
            ready = max(ready, self._crossed[head.port][head.before - 1] + 1)
        return Fraction(ready)


def _lists_of_groups(one: PassWords) -> list[list[int]]:
    """Words of each list of weights, by group of filters: a list ends with its `last`."""
    ends = np.flatnonzero(one.words["weight"][:, -1]) + 1
    behind = np.cumsum(one.weight_vectors)
    sizes = np.diff(ends, prepend=0)
    of = np.searchsorted(behind, ends)
    return [sizes[of == group].tolist() for group in range(len(behind))]


def _parts(n: int, number: int, others: int, words: tuple[int, int]) -> Iterator[Transfer]:
    """What goes behind a list of pass n, of so many that no words go ahead of: even parts of the
    ofmap before and of the next ifmap."""
    for port, of, total in (("ofmap", n - 1, words[0]), ("ifmap", n + 1, words[1])):
        first, end = total * number // others, total * (number + 1) // others
        yield Transfer(port, of, first, end - first)


__all__ = ["Crossed", "OfferedWords"]
