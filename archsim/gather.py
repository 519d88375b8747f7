"""The gather unit: of rows of words, the lanes that a list says, packed into words again.

It stands before an operand port and gives a core the kept units of case 3 of dropout
(`workloads.training.dropout`) as it gives them the next units of a dense row.  The list is the same
for all rows of a batch: it is loaded once, as a flag for each unit, and read again for each row.

Contract: `docs/contracts/gather.md`.  Hardware: `rtl/core/gather.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from archsim.blocks import Components, adders, held_registers, memory, selectors
from archsim.errors import InputError, require, require_positive
from archsim.machine.components import control

Flags = NDArray[np.bool_]
Values = NDArray[np.int64]

ROW_BITS = 16
"""Of the number of rows in a command."""

MOST_LANES = 1024


@dataclass(frozen=True, kw_only=True)
class GatherList:
    """What one command asks for.  flags [units]: which are kept; rows: so many have this list."""

    flags: Flags
    rows: int


@dataclass(frozen=True, kw_only=True)
class GatherTimes:
    """Cycles in which words are taken and leave, each port in its order."""

    commands: tuple[int, ...]
    flags: tuple[int, ...]
    values: tuple[int, ...]
    gathered: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class GatherUnit:
    """lanes of lane_bits each; depth: words of the longest row.

    Raises InputError for sizes that are not positive, and for more lanes than `MOST_LANES`.
    """

    lanes: int
    lane_bits: int
    depth: int

    def __post_init__(self) -> None:
        require_positive(lanes=self.lanes, lane_bits=self.lane_bits, depth=self.depth)
        require(self.lanes <= MOST_LANES, f"lanes must be at most {MOST_LANES}, not {self.lanes}")

    def words(self, units: int) -> int:
        """Of a row of so many units."""
        return -(-units // self.lanes)

    def check(self, one: GatherList) -> None:
        """Raise InputError for a list that the unit cannot hold, or that keeps nothing."""
        units, words = len(one.flags), self.words(len(one.flags))
        if not 1 <= words <= self.depth:
            raise InputError(f"a list must be of 1 to {self.depth * self.lanes} units, not {units}")
        require(bool(one.flags.any()), f"a list of {units} units must keep one of them at least")
        if not 1 <= one.rows < 1 << ROW_BITS:
            raise InputError(f"rows must be from 1 to {(1 << ROW_BITS) - 1}, not {one.rows}")

    def spills(self, flags: Flags) -> bool:
        """Whether a row ends with more than a word: its last takes a cycle of its own."""
        last = (self.words(len(flags)) - 1) * self.lanes
        before, behind = int(flags[:last].sum()), int(flags[last:].sum())
        return before % self.lanes + behind > self.lanes

    def cycles(self, one: GatherList) -> int:
        """From the cycle that takes a command to the one that can take the next, if nothing waits:
        a cycle, a cycle a word of the list, and of each row a cycle a word and its spill."""
        words = self.words(len(one.flags))
        return 1 + words + one.rows * (words + self.spills(one.flags))

    def gathered(self, one: GatherList, rows: Values) -> Values:
        """Words [rows, words, lanes] of rows [rows, units]; lanes behind the last unit are 0."""
        kept = rows[:, one.flags]
        words = self.words(kept.shape[1])
        found = np.zeros((len(kept), words * self.lanes), kept.dtype)
        found[:, : kept.shape[1]] = kept
        return found.reshape(len(kept), words, self.lanes)

    def times(
        self,
        lists: Sequence[GatherList],
        gaps: Callable[[str, int], int] = lambda _port, _word: 0,
        ready: Callable[[int], bool] = lambda _cycle: True,
    ) -> GatherTimes:
        """When every word is taken, and leaves.

        gaps: of a port ("command", "flags", "values") and a word's number, cycles for which it is
        not offered after the one before was taken (the first: after cycle 0).  ready: whether what
        follows takes a word in a cycle.
        """
        return _Walk(self, gaps, ready).all(lists)

    def components(self, name: str = "gather") -> Components:
        """Its hardware.  Events: `gather_flags`, a word of a list that is loaded; `gather_word`, a
        word of a row."""
        stages = max((self.lanes - 1).bit_length(), 1)
        word, lists = {"gather_word": 1.0}, {"gather_flags": 1.0}
        lanes, bits = self.lanes, self.lane_bits
        moves = {"gather_word": float(lanes * stages)}
        address = max((self.depth - 1).bit_length(), 1)
        return (
            *memory(f"{name}.list", (1, 1, lanes, self.depth), word, lists),
            *adders(f"{name}.places", stages + 1, lanes, {"gather_word": float(lanes)}),
            *selectors(f"{name}.compact", bits + stages, lanes * stages, moves),
            *selectors(f"{name}.append", bits, 2 * lanes * stages, {"gather_word": 2.0 * lanes}),
            *held_registers(f"{name}.held", lanes * bits, 2, {"gather_word": 2.0}),
            control(2 * address + 2 * ROW_BITS + stages + 5),
        )


class _Walk:
    """Words through the unit, one after the other."""

    def __init__(
        self, unit: GatherUnit, gaps: Callable[[str, int], int], ready: Callable[[int], bool]
    ) -> None:
        self.unit, self.gaps, self.ready = unit, gaps, ready
        self.taken: dict[str, list[int]] = {"command": [], "flags": [], "values": []}
        self.left: list[int] = []

    def all(self, lists: Sequence[GatherList]) -> GatherTimes:
        free = 0
        for one in lists:
            self.unit.check(one)
            free = self._list(one, free)
        return GatherTimes(
            commands=tuple(self.taken["command"]), flags=tuple(self.taken["flags"]),
            values=tuple(self.taken["values"]), gathered=tuple(self.left),
        )  # fmt: skip

    def _list(self, one: GatherList, free: int) -> int:
        """One command, from the cycle in which it may be taken; to the next such cycle."""
        lanes, words = self.unit.lanes, self.unit.words(len(one.flags))
        counts = [int(one.flags[n * lanes : (n + 1) * lanes].sum()) for n in range(words)]
        free = self._take("command", free) + 1
        for _ in counts:
            free = self._take("flags", free) + 1
        for _ in range(one.rows):
            held = 0
            for number, count in enumerate(counts):
                free = self._take("values", self._slot(free)) + 1
                held += count
                last = number + 1 == words
                if held >= lanes or (last and held):
                    self._leave(free)
                    held = max(held - lanes, 0)
            if held:
                free = self._slot(free) + 1
                self._leave(free)
        return free

    def _take(self, port: str, free: int) -> int:
        """The cycle in which a port's next word is taken, of those from `free` on; of a value the
        register behind must be free, which a word that comes later does not change."""
        done = self.taken[port]
        offered = (done[-1] + 1 if done else 0) + self.gaps(port, len(done))
        done.append(max(offered, free))
        return done[-1]

    def _slot(self, free: int) -> int:
        """The first cycle from `free` on in which the register behind is empty or is emptied."""
        return max(free, self.left[-1]) if self.left else free

    def _leave(self, cycle: int) -> None:
        """A word that is there from a cycle on leaves in the first in which it is taken."""
        while not self.ready(cycle):
            cycle += 1
        self.left.append(cycle)


__all__ = ["GatherList", "GatherTimes", "GatherUnit"]
