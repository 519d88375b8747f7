"""The sparse training machine stepped cycle by cycle, plainly: what its model must equal.

Everything that is said in docs/contracts/sparsetrain.md, one cycle after the other, with lists and
without arrays; it shares with the model the words that are offered, and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import float_sums_plainly
import numpy as np

from archsim.machines.sparsetrain.design import SparseTrain

ASIDE = [(1, 1), (1, -1), (2, 2), (2, -2), (1, 3)]


@dataclass
class Source:
    """A port's words, each offered `gap` cycles behind the cycle after the one before crossed."""

    words: list[list[int]]
    gaps: list[int]
    crossed: list[int] = field(default_factory=list)

    def offered(self, cycle: int) -> bool:
        at = len(self.crossed)
        if at == len(self.words):
            return False
        return cycle >= (self.crossed[-1] + 1 if at else 0) + self.gaps[at]

    def take(self, cycle: int) -> list[int]:
        self.crossed.append(cycle)
        return self.words[len(self.crossed) - 1]


@dataclass
class Loader:
    ring: list[int] = field(default_factory=list)
    left: int = 0
    steps: int = 0
    place: int = 0
    keep: int = 0
    again: int = 0
    scratchpad: dict[int, list[int]] = field(default_factory=dict)
    vectors: list[list[list[int]]] = field(default_factory=list)


@dataclass
class Pe:
    queue: list[list[tuple[int, int]]] = field(default_factory=list)
    pairs: list[list[tuple[int, int] | None]] | None = None
    outputs: list[tuple[int, int]] = field(default_factory=list)
    begins: int = 0
    ended: int = -9
    totals: list[Any] = field(default_factory=list)


@dataclass
class Block:
    command: dict[str, int]
    rows: list[list[list[int]]] = field(default_factory=list)
    columns: list[list[list[int]]] = field(default_factory=list)


class Machine:
    """Runs to its last word.  sources: by port; gaps: of the ofmap's words."""

    def __init__(self, design: SparseTrain, sources: dict[str, Source], gaps: list[int]) -> None:
        self.design, self.sources, self.gaps = design, sources, gaps
        self.loaders = {"row": Loader(), "column": Loader()}
        self.loading: Block | None = None
        self.waiting: Block | None = None
        self.now: Block | None = None
        self.needed_left, self.incoming = 0, list[list[int]]()
        self.tile: dict[tuple[int, int], Any] = {}
        self.leaving: list[list[int]] = []
        self.shown: list[int] | None = None
        self.ofmap: list[list[int]] = []
        self.left: list[int] = []
        self.before, self.behind = 0, 0
        if design.pipelined_pes:
            self.before, self.behind = 3, 1 if design.floating else 2
        self.pes = [Pe() for _ in range(design.pes)]
        self.counts: dict[str, int] = dict.fromkeys(("step", "product", "output", "fetch"), 0)
        for name in ("row", "column"):
            if design.kept_steps(name):
                self.counts |= {f"{name}_keep": 0, f"{name}_again": 0}

    def run(self) -> None:
        cycle = 0
        words = len(self.gaps)
        while len(self.left) < words:
            assert cycle < 100_000
            self.step(cycle)
            cycle += 1

    def step(self, cycle: int) -> None:
        """One cycle: everything is decided by what was before it."""
        busy = [pe.pairs is not None for pe in self.pes]
        idle = not any(
            pe.queue or pe.pairs is not None or cycle - pe.ended <= 1 + self.behind
            for pe in self.pes
        )
        waiting, loading, now = self.waiting, self.loading, self.now
        drains = bool(self.leaving) or self.shown is not None
        done = now is not None and idle and not (now.command["last"] and drains)
        held = sum(one is not None for one in (waiting, loading, now))
        loaded = loading is not None and not self.needed_left
        loaded = loaded and not any(one.left for one in self.loaders.values())
        self._leave(cycle)
        self._load(cycle, waiting is not None)
        for pe, was_busy in zip(self.pes, busy, strict=True):
            self._work(pe, was_busy, cycle)
        if done:
            self._finish(now)
            self.now = None
        if waiting is not None and (now is None or done):
            self._start(waiting, cycle)
            self.waiting = None
        if loaded:
            assert loading is not None
            self._hand_over(loading)
        if loading is None and held < 2 and self.sources["command"].offered(cycle):
            self._accept(self.sources["command"].take(cycle))

    def _accept(self, word: list[int]) -> None:
        names = [one.name for one in self.design.command_fields]
        command = dict(zip(names, word, strict=True))
        self.loading = Block(command)
        for name, loader in self.loaders.items():
            vectors = command[f"{name}s"]
            if name == "column":
                vectors = len({self._vector(column) for column in range(vectors)})
            loader.left = vectors * command["depth"]
            loader.steps, loader.vectors = command["depth"], []
            loader.place, loader.keep, loader.again = (
                command.get(f"{name}_{what}", 0) for what in ("place", "keep", "again")
            )
        asks = command["first"] and command.get("masked", 0)
        self.needed_left = command["rows"] if asks else 0
        if asks:
            self.incoming = []

    def _segments(self) -> int:
        """Outputs that PEs compute at a time, of the block that is loaded."""
        assert self.loading is not None
        return self.design.segments if self.loading.command.get("split", 0) else 1

    def _vector(self, column: int) -> int:
        """In which column vector a column of the tile lies."""
        sets, pe = divmod(column, self.design.pes)
        return sets // self._segments() * self.design.pes + pe

    def _load(self, cycle: int, waiting: bool) -> None:
        for name, loader in self.loaders.items():
            mask, value = self.sources[f"{name}_mask"], self.sources[name]
            if loader.left and loader.again:
                self.counts[f"{name}_again"] += 1
                self._write(name, loader, loader.scratchpad[loader.place])
            elif loader.left and mask.offered(cycle):
                flags = mask.words[len(mask.crossed)]
                if len(loader.ring) >= sum(flags):
                    mask.take(cycle)
                    step = [loader.ring.pop(0) if flag else 0 for flag in flags]
                    if loader.keep:
                        assert loader.place < self.design.kept_steps(name)
                        loader.scratchpad[loader.place] = step
                        self.counts[f"{name}_keep"] += 1
                    self._write(name, loader, step)
            if value.offered(cycle) and len(loader.ring) <= self.design.lanes:
                loader.ring += value.take(cycle)
        if self.needed_left and not waiting and self.sources["needed"].offered(cycle):
            self.incoming.append(self.sources["needed"].take(cycle))
            self.needed_left -= 1

    def _write(self, name: str, loader: Loader, step: list[int]) -> None:
        """A step behind those of its block."""
        if name == "row":
            step = step[: self.design.lanes // self._segments()] * self._segments()
        if not loader.vectors or len(loader.vectors[-1]) == loader.steps:
            loader.vectors.append([])
        loader.vectors[-1].append(step)
        loader.left -= 1
        loader.place += 1

    def _hand_over(self, block: Block) -> None:
        block.rows, block.columns = (self.loaders[name].vectors for name in ("row", "column"))
        self.waiting, self.loading = block, None

    def _start(self, block: Block, cycle: int) -> None:
        command = block.command
        if command["first"]:
            self.tile = {
                (row, column): 0
                for row in range(command["rows"])
                for column in range(command["columns"])
                if not command.get("masked", 0) or self.incoming[row][column]
            }
        self.now = block
        for number, pe in enumerate(self.pes):
            pe.queue, pe.begins = [], cycle + 1 + self.before
            for one in self.tile:
                if one[1] % self.design.pes != number:
                    continue
                last = pe.queue[-1][-1] if pe.queue else (-1, -1)
                if last[0] == one[0] and self._together(last[1], one[1]):
                    pe.queue[-1].append(one)
                else:
                    pe.queue.append([one])

    def _together(self, left: int, right: int) -> bool:
        """Whether two columns of a PE are in one vector."""
        assert self.now is not None
        return left // self._apart() == right // self._apart()

    def _apart(self) -> int:
        assert self.now is not None
        split = self.now.command.get("split", 0)
        return self.design.pes * (self.design.segments if split else 1)

    def _finish(self, block: Block | None) -> None:
        """The words of a tile that is complete."""
        assert block is not None
        if not block.command["last"]:
            return
        pes = self.design.pes
        for row in range(self.design.rows):
            for first in range(0, self.design.columns, pes):
                outputs = [(row, first + pe) for pe in range(pes)]
                if any(one in self.tile for one in outputs):
                    self.leaving.append([self._word(self.tile.get(one, 0)) for one in outputs])

    def _word(self, total: Any) -> int:
        return float_sums_plainly.pattern_of(total) if self.design.floating else total

    def _leave(self, cycle: int) -> None:
        number = len(self.left)
        leaves = False
        if self.shown is not None:
            ready = (self.left[-1] + 1 if number else 0) + self.gaps[number]
            leaves = cycle >= ready
        if leaves:
            assert self.shown is not None
            self.ofmap.append(self.shown)
            self.left.append(cycle)
        if self.leaving and (self.shown is None or leaves):
            self.shown = self.leaving.pop(0)
        elif leaves:
            self.shown = None

    def _work(self, pe: Pe, busy: bool, cycle: int) -> None:
        ends = False
        if busy:
            assert pe.pairs is not None
            ends = self._choose(pe)
            self.counts["step"] += 1
        if ends:
            self._add(pe)
            pe.pairs, pe.ended = None, cycle
        elif busy:
            pe.ended = cycle
        if pe.queue and (not busy or ends) and cycle >= pe.begins:
            pe.outputs = pe.queue.pop(0)
            pe.pairs, pe.totals = self._pairs(pe.outputs), [0] * self.design.segments
            if self.design.floating:
                for one in pe.outputs:
                    pe.totals[self._segment(one)] = self.tile[one]

    def _pairs(self, outputs: list[tuple[int, int]]) -> list[list[tuple[int, int] | None]]:
        """Of each step and lane the two operands, None where one is zero, or of no output."""
        assert self.now is not None
        pes, apart = self.design.pes, self._apart()
        vector = outputs[0][1] // apart * pes + outputs[0][1] % pes
        row, column = self.now.rows[outputs[0][0]], self.now.columns[vector]
        segments = {one[1] % apart // pes for one in outputs}
        lanes = self.design.lanes // (apart // pes)
        return [
            [
                (a, b) if a and b and lane // lanes in segments else None
                for lane, (a, b) in enumerate(zip(*steps, strict=True))
            ]
            for steps in zip(row, column, strict=True)
        ]

    def _choose(self, pe: Pe) -> bool:
        """Every lane takes the first pair that it can; then empty rows leave the window."""
        assert pe.pairs is not None
        lanes, ahead = self.design.lanes, self.design.look_ahead
        places = [(row, 0) for row in range(ahead + 1)]
        places += [one for one in ASIDE[: self.design.look_aside] if one[0] <= ahead]
        free, ring = set(range(lanes)), lanes // (self._apart() // self.design.pes)
        taken: list[list[tuple[int, int]]] = [[] for _ in pe.totals]
        for row, aside in places:
            for lane in sorted(free):
                at = lane // ring * ring + (lane + aside) % ring
                if row < len(pe.pairs) and (pair := pe.pairs[row][at]) is not None:
                    taken[lane // ring].append(pair)
                    pe.pairs[row][at] = None
                    free.remove(lane)
                    self.counts["product"] += 1
        for segment, pairs in enumerate(taken):
            if self.design.floating:
                pe.totals[segment] = float_sums_plainly.added(pe.totals[segment], pairs)
            else:
                pe.totals[segment] += sum(a * b for a, b in pairs)
        window = pe.pairs[: ahead + 1]
        gone = next((n for n, row in enumerate(window) if any(row)), len(window))
        self.counts["fetch"] += gone
        pe.pairs = pe.pairs[gone:]
        return not pe.pairs

    def _add(self, pe: Pe) -> None:
        bits = self.design.accumulator_bits
        for one in pe.outputs:
            self.counts["output"] += 1
            total = pe.totals[self._segment(one)]
            if self.design.floating:
                self.tile[one] = total
                continue
            total += self.tile[one]
            self.tile[one] = (total + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))

    def _segment(self, output: tuple[int, int]) -> int:
        return output[1] % self._apart() // self.design.pes


def stepped(answer: Any) -> Machine:
    """The oracle's run of a model's answer: the words that it is offered, the gaps before them."""
    words = {
        name: Source(payload.tolist(), answer.waits(name).tolist())
        for name, payload in answer.words.items()
    }
    gaps = words.pop("ofmap").gaps
    found = Machine(answer.design, words, gaps)
    found.run()
    return found


def cycles_of(machine: Machine) -> dict[str, Any]:
    """By port, when each word crossed."""
    crossed = {name: np.array(one.crossed, np.int64) for name, one in machine.sources.items()}
    return {**crossed, "ofmap": np.array(machine.left, np.int64)}
