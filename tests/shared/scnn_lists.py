"""Lists and tiles of a sparse core as docs/contracts/scnn.md tells them, value by value."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

Element = tuple[int, int, Any]
"""Value, index, and where it is (None for placeholders and lanes that are left over)."""

Vector = list[Element]


def ceil(numerator: int, denominator: int) -> int:
    return -(-numerator // denominator)


def power(value: int) -> int:
    """The smallest power of two that is at least value."""
    found = 1
    while found < value:
        found *= 2
    return found


def make_list(
    cells: list[tuple[int, int, Any]], lanes: int, bits: int, dense: bool
) -> list[Vector]:
    """Vectors of (position, value, place) in rising positions."""
    elements: list[Element] = []
    zeros, before = 0, -1
    for position, value, place in cells:
        zeros += position - before - 1
        before = position
        if value == 0 and not dense:
            zeros += 1
            continue
        while zeros >= 1 << bits:
            elements.append((0, (1 << bits) - 1, None))
            zeros -= 1 << bits
        elements.append((value, zeros, place))
        zeros = 0
    while not elements or len(elements) % lanes:
        elements.append((0, 0, None))
    return [elements[at : at + lanes] for at in range(0, len(elements), lanes)]


def words(vectors: list[Vector]) -> list[tuple[tuple[int, int], ...]]:
    """Values and indices, as they cross a port."""
    return [tuple((value, index) for value, index, _ in vector) for vector in vectors]


Window = tuple[int, int, int, int]
"""Along an axis of a pooled layer: size, stride, padding before, how many windows."""


@dataclass
class Side:
    """Rows or columns of PEs.  outputs: up to the last in a window."""

    size: int
    outputs: int
    kernel: int
    stride: int
    pad: int
    pes: int
    window: Window | None = None

    def __post_init__(self) -> None:
        self.taps, self.step, self.before, self.windows = self.window or (1, 1, 0, self.outputs)
        self.tile, self.give = ceil(self.size, self.pes), ceil(self.windows, self.pes)
        self.own = self.give * self.step
        self.outputs = 1 + max(p for u in range(self.windows) for p in self.places(u))

    def places(self, u: int) -> list[int]:
        """The outputs in a window."""
        first = u * self.step - self.before
        return [p for p in range(first, first + self.taps) if 0 <= p < self.outputs]

    def given(self, pe: int) -> list[int]:
        """Windows of a PE."""
        return [u for u in range(self.windows) if u // self.give == pe]

    def needed(self, pe: int) -> list[int]:
        return sorted({p for u in self.given(pe) for p in self.places(u)})

    def owner(self, p: int) -> int:
        return min(p // self.own, (self.windows - 1) // self.give)

    def copied(self, pe: int, by: int) -> list[int]:
        """Of what a PE needs, what the PE before (-1) or after (1) owns."""
        return [p for p in self.needed(pe) if self.owner(p) == pe + by]

    def held(self, pe: int) -> list[int]:
        return self.copied(pe, -1) + self.owned(pe) + self.copied(pe, 1)

    def inputs(self, pe: int) -> list[int]:
        return [y for y in range(self.size) if y // self.tile == pe]

    def owned(self, pe: int) -> list[int]:
        return [p for p in range(self.outputs) if self.owner(p) == pe]

    def reached(self, pe: int) -> list[int]:
        inputs = self.inputs(pe)
        if not inputs:
            return []
        low = ceil(inputs[0] + self.pad - (self.kernel - 1), self.stride)
        high = (inputs[-1] + self.pad) // self.stride
        return [p for p in range(self.outputs) if low <= p <= high]

    def region(self, pe: int) -> list[int]:
        both = self.reached(pe) + self.owned(pe) + self.needed(pe)
        return list(range(min(both), max(both) + 1)) if both else []

    def allowed(self) -> bool:
        return all(
            abs(self.owner(p) - pe) <= 1
            for pe in range(self.pes)
            for p in self.reached(pe) + self.needed(pe)
        )

    def used(self) -> int:
        """Without PEs at the end that have nothing."""
        return max(pe + 1 for pe in range(self.pes) if self.inputs(pe) or self.given(pe))

    def longest(self) -> int:
        return max(len(self.region(pe)) for pe in range(self.pes))

    def away(self, pe: int, by: int) -> list[int]:
        """Of the region, what the PE before (-1) or after (1) owns."""
        return [p for p in self.region(pe) if self.owner(p) == pe + by]

    def most_away(self, by: int) -> int:
        return max(len(self.away(pe, by)) for pe in range(self.pes))

    def most_copied(self, by: int) -> int:
        return max(len(self.copied(pe, by)) for pe in range(self.pes))

    def most_owned(self) -> int:
        return max(len(self.owned(pe)) for pe in range(self.pes))

    def most_held(self) -> int:
        return max(len(self.held(pe)) for pe in range(self.pes))


def side_of(
    sizes: tuple[int, int], kernel: int, stride: int, pad: int, grid: int, window: Window | None
) -> Side:
    while not Side(*sizes, kernel, stride, pad, grid, window).allowed():
        grid -= 1
    side = Side(*sizes, kernel, stride, pad, grid, window)
    side.pes = side.used()
    return side


@dataclass
class Pe:
    """A PE's lists by (channel, phase), its FIFO of (vector, cycle of crossing), two halves.

    queues: of each bank, products as (group, where, value).  issued, stages, sending: on the
    way from the issue, where there are registers between: "busy" or "skip", products, whether it is
    the group's last.
    """

    row: int
    column: int
    lists: dict[Any, list[Vector]] = field(default_factory=dict)
    fifo: list[tuple[Vector, int]] = field(default_factory=list)
    sums: tuple[Counter[Any], Counter[Any]] = field(default_factory=lambda: (Counter(), Counter()))
    block: int = 0
    v: int = 0
    j: int = 0
    waiting: list[tuple[Any, int]] | None = None
    stages: list[tuple[str, Any, bool] | None] = field(default_factory=lambda: [None, None])
    issued: list[tuple[str, Any, bool]] = field(default_factory=list)
    sending: tuple[str, Any, bool] | None = None
    held: int = 0
    queues: dict[int, list[tuple[int, Any, int]]] = field(default_factory=dict)
    figures: Counter[str] = field(default_factory=Counter)
    outputs: dict[int, list[int]] = field(default_factory=dict)

    def add_products(self) -> None:
        """Every bank adds the first product of its queue, which may have come in this cycle."""
        for queue in self.queues.values():
            if queue:
                group, where, value = queue.pop(0)
                self.sums[group % 2][where] += value

    def queued(self, group: int) -> int:
        """Products of a group that no bank has added."""
        return sum(one[0] == group for queue in self.queues.values() for one in queue)
