"""Passes of a layer behind one off-chip channel, stepped: a queue of transfers, no closed form.

For `tests/archsim/test_scnn_channel.py`.  The order of the transfers is written as a list before a
cycle has passed; the channel lets the one at its head begin as soon as it can, and each pass is the
stepped oracle's, which takes a word when it has been offered.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil
from typing import Any

from scnn_passes import BiasedOracle

from archsim.machines.scnn.design import Scnn
from archsim.machines.scnn.words import PassWords

INPUTS = ("ifmap", "weight", "bias")


@dataclass(frozen=True)
class Transfer:
    """Words of a pass's port, from its word `first` on, for which the channel waits until `before`
    words of the port, of all passes, have crossed."""

    port: str
    number: int
    first: int
    words: int
    before: int = 0


@dataclass
class Way:
    """A channel: what it has to move, and when it is free."""

    queue: deque[Transfer] = field(default_factory=deque[Transfer])
    free: Fraction = Fraction(0)


class Passes:
    """The passes of a layer, each stepped behind the one before; `spread`: the program."""

    def __init__(self, design: Scnn, passes: list[PassWords], *, spread: bool) -> None:
        self.design, self.begin, self.cycle = design, 0, 0
        self.begins: list[int] = []
        self.oracles = [ServedOracle(design, one, self, n) for n, one in enumerate(passes)]
        self.crossed: dict[str, list[int]] = defaultdict(list)
        self.offers: dict[tuple[str, int], list[int]] = defaultdict(list)
        self.left: dict[int, list[int]] = {}
        one = Way()
        memory = design.off_chip
        self.ways = {
            port: one if memory.shared and memory.bytes_per_cycle else Way()
            for port in (*INPUTS, "ofmap")
        }
        if memory.weight_bytes_per_cycle is not None:
            self.ways["weight"] = Way()
        for transfer in self.program(spread=spread):
            self.ways[transfer.port].queue.append(transfer)
        self.written = 0

    def program(self, *, spread: bool) -> Iterator[Transfer]:
        """All transfers, in order, none of them empty."""
        every = [*self._program(spread=spread)]
        return (one for one in every if one.words)

    def _program(self, *, spread: bool) -> Iterator[Transfer]:
        oracles = self.oracles
        yield Transfer("ifmap", 0, 0, oracles[0].counts["ifmap"])
        words = biases = 0
        for n, oracle in enumerate(oracles):
            out = oracles[n - 1].counts["ofmap"] if n else 0
            following = oracles[n + 1].counts["ifmap"] if n + 1 < len(oracles) else 0
            lists = [len(one) for one in oracle.streams]
            each = len(lists) // len(oracle.groups)
            ahead = 0
            while ahead < each and sum(lists[: ahead + 1]) <= self.places:
                ahead += 1
            others = len(lists) - ahead
            at = 0
            for number, size in enumerate(lists):
                if number == ahead and not spread:
                    yield Transfer("ofmap", n - 1, 0, out)
                if number % each == 0 and oracle.words:
                    group = oracle.groups[number // each]
                    yield Transfer("bias", n, group[0], len(group), before=biases)
                    biases += len(group)
                words += size
                yield Transfer("weight", n, at, size, before=words - self.places)
                at += size
                if spread and number >= ahead:
                    i = number - ahead
                    for port, of, total in (("ofmap", n - 1, out), ("ifmap", n + 1, following)):
                        first, end = total * i // others, total * (i + 1) // others
                        yield Transfer(port, of, first, end - first)
            if not others:
                yield Transfer("ofmap", n - 1, 0, out)
            if not (spread and others):
                yield Transfer("ifmap", n + 1, 0, following)
        yield Transfer("ofmap", len(oracles) - 1, 0, oracles[-1].counts["ofmap"])

    @property
    def places(self) -> int:
        """Words of weights that wait beside their port."""
        return 2 * self.design.weight_fifo_vectors

    def word_time(self, port: str) -> Fraction:
        """Cycles that a word takes of its channel, in 1/65,536, rounded up."""
        memory = self.design.off_chip
        rate = memory.bytes_per_cycle
        if port == "weight" and memory.weight_bytes_per_cycle is not None:
            rate = memory.weight_bytes_per_cycle
        if not rate:
            return Fraction(0)
        taken = Fraction(self.design.word_bits(port), 8) / Fraction(round(rate * 1024), 1024)
        return Fraction(ceil(taken * 65536), 65536)

    def run(self) -> list[dict[str, Any]]:
        """The figures of every pass, in its own cycles; afterwards `written`."""
        found: list[dict[str, Any]] = []
        for number, oracle in enumerate(self.oracles):
            self.begins.append(self.begin)
            self.serve(self.begin)
            found.append(oracle.run())
            out = [self.begin + cycle for cycle in oracle.ofmap_crossed]
            self.left[number] = out
            self.begin += found[-1]["cycles"]
        while any(way.queue for way in self.ways.values()):
            self.serve(self.begin + self.cycle)
            self.cycle += 1
        self.written = max(self.written, self.begin)
        return found

    def serve(self, cycle: int) -> None:
        """Whatever can begin before the end of a cycle does."""
        for way in {id(way): way for way in self.ways.values()}.values():
            while way.queue and self._begin(way, cycle):
                way.queue.popleft()

    def _begin(self, way: Way, cycle: int) -> bool:
        head = way.queue[0]
        time = self.word_time(head.port)
        ready = self._ready(head, time)
        if ready is None:
            return False
        start = max(ready, way.free) if time else ready
        if start >= cycle + 1:
            return False
        end = start + head.words * time
        if time:
            way.free = end
        if head.port == "ofmap":
            self.written = max(self.written, ceil(end))
            return True
        burst = max(1, 8 * self.design.off_chip.burst_bytes // self.design.word_bits(head.port))
        for word in range(head.words):
            whole = min(head.words, (word // burst + 1) * burst)
            self.offers[head.port, head.number].append(ceil(start + whole * time))
        return True

    def _ready(self, head: Transfer, time: Fraction) -> Fraction | None:
        """Before when a transfer cannot begin; None if that is not known yet."""
        if head.port == "ofmap":
            if head.number not in self.left:
                return None
            crossed = self.left[head.number][head.first : head.first + head.words]
            return max(cycle + 1 - k * time for k, cycle in enumerate(crossed))
        ready = Fraction(self.design.off_chip.latency_cycles)
        if head.port == "ifmap" and head.number:  # room for two passes' beside the port
            if len(self.begins) < head.number:
                return None
            ready = max(ready, Fraction(self.begins[head.number - 1]))
        if head.before > 0:  # the biases before, or words whose places are taken, have crossed
            if len(self.crossed[head.port]) < head.before:
                return None
            ready = max(ready, Fraction(self.crossed[head.port][head.before - 1] + 1))
        return ready


class ServedOracle(BiasedOracle):
    """A pass whose words are offered by the channel, and taken as the contract says."""

    def __init__(self, design: Scnn, one: PassWords, passes: Passes, number: int) -> None:
        super().__init__(design, one, {})
        self.passes, self.number = passes, number
        self.counts = {port: len(rows) for port, rows in one.words.items()}
        self.ofmap_crossed: list[int] = []

    def offered(self, port: str, n: int) -> bool:
        """Whether word n has come in the cycle that is stepped."""
        offers = self.passes.offers[port, self.number]
        return n < len(offers) and offers[n] <= self.passes.begin + self.cycle

    def port(self, name: str, number: int, earliest: int) -> Iterator[int]:
        last = -1
        for n in range(number):
            last = max(earliest, last + 1)
            if name == "ifmap":
                last = max(last, self._come(n) - self.passes.begin)
            yield last
            if name == "ofmap":
                self.ofmap_crossed.append(last)

    def _come(self, n: int) -> int:
        """When word n of the ifmap comes: nothing that it waits for is behind its own pass."""
        offers = self.passes.offers["ifmap", self.number]
        cycle = self.passes.begin
        while n >= len(offers):
            cycle += 1
            self.passes.serve(cycle)
        return offers[n]

    def step(self) -> None:
        self.passes.serve(self.passes.begin + self.cycle)
        crossed = len(self.answers["weight_cycles"]), len(self.bias_cycles)
        super().step()
        now = self.passes.begin + self.cycle
        if len(self.answers["weight_cycles"]) > crossed[0]:
            self.passes.crossed["weight"].append(now)
        if len(self.bias_cycles) > crossed[1]:
            self.passes.crossed["bias"].append(now)

    def interval(self, name: str, n: int) -> int:
        """So long that a word that has not come does not cross in this cycle."""
        return 1 if self.offered(name, n) else self.cycle + 2


__all__ = ["Passes"]
