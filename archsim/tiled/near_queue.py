"""What the fast mapper has found and not yet looked at: a heap of parts and of tilings."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from archsim.kernels import inlined, kernel
from archsim.layer import problem as pb
from archsim.numbers import IntArray

FIRST, SECOND, STAGE, CODE, LOW, SIZES = range(6)
"""Of an entry: what decides when it comes, what decides of equal ones, what it is, its number among
all of the layer, the cycles that it takes at least, and from here on its sizes."""

COLUMNS = SIZES + pb.TILING_COLUMNS

BOUNDED, TILING, PART, STAGES = range(4)
"""Stages: a tiling whose bound is known, one that has been met, and a part."""

ROOM = 1024
"""Entries to begin with."""


class Queue(NamedTuple):
    """entries: [room, COLUMNS], in the order in which they came; heap: [room], of their places;
    counts: [2] entries, and those in the heap."""

    entries: IntArray
    heap: IntArray
    counts: IntArray


@kernel
def new_queue() -> Queue:
    """Empty."""
    return Queue(
        np.empty((ROOM, COLUMNS), np.int64), np.empty(ROOM, np.int64), np.zeros(2, np.int64)
    )


@inlined
def clear(queue: Queue) -> None:
    """Take all entries out."""
    queue.counts[0] = queue.counts[1] = 0


@inlined
def has_room(queue: Queue, more: int) -> bool:
    """Whether so many entries more have room."""
    return queue.counts[0] + more <= len(queue.heap)


@kernel
def with_room(queue: Queue, more: int) -> Queue:
    """A queue of the same entries, with room for so many more."""
    if has_room(queue, more):
        return queue
    count = queue.counts[0]
    room = 2 * (count + more)
    entries, heap = np.empty((room, COLUMNS), np.int64), np.empty(room, np.int64)
    for at in range(count):
        for column in range(COLUMNS):
            entries[at, column] = queue.entries[at, column]
    for at in range(queue.counts[1]):
        heap[at] = queue.heap[at]
    return Queue(entries, heap, queue.counts)


@inlined
def _before(entries: IntArray, one: int, other: int) -> bool:
    """Whether an entry comes first."""
    for column in range(LOW):
        if entries[one, column] != entries[other, column]:
            return entries[one, column] < entries[other, column]
    return False


@kernel
def _rise(queue: Queue, at: int) -> None:
    """Bring what lies at a place of the heap up to where it belongs."""
    heap, entries, entry = queue.heap, queue.entries, queue.heap[at]
    while at > 0:
        above = (at - 1) // 2
        if not _before(entries, entry, heap[above]):
            break
        heap[at] = heap[above]
        at = above
    heap[at] = entry


@kernel
def _sink(queue: Queue) -> None:
    """Bring what lies at the top of the heap down to where it belongs."""
    heap, entries, entry = queue.heap, queue.entries, queue.heap[0]
    at, count = 0, queue.counts[1]
    while 2 * at + 1 < count:
        below = 2 * at + 1
        if below + 1 < count and _before(entries, heap[below + 1], heap[below]):
            below += 1
        if not _before(entries, heap[below], entry):
            break
        heap[at] = heap[below]
        at = below
    heap[at] = entry


@kernel
def push(
    queue: Queue, order: tuple[int, int], low: int, stage: int, code: int, tiling: IntArray
) -> None:
    """Add an entry, for which there is room."""
    entries, at = queue.entries, queue.counts[0]
    entries[at, FIRST], entries[at, SECOND] = order
    entries[at, LOW] = low
    entries[at, STAGE], entries[at, CODE] = stage, code
    for size in range(pb.TILING_COLUMNS):
        entries[at, SIZES + size] = tiling[size]
    queue.counts[0] += 1
    queue.heap[queue.counts[1]] = at
    queue.counts[1] += 1
    _rise(queue, queue.counts[1] - 1)


@inlined
def first_of(queue: Queue) -> tuple[int, int]:
    """What decides when the first entry comes."""
    entries, at = queue.entries, queue.heap[0]
    return entries[at, FIRST], entries[at, SECOND]


@kernel
def drop(queue: Queue) -> None:
    """Take the first entry out."""
    queue.counts[1] -= 1
    queue.heap[0] = queue.heap[queue.counts[1]]
    _sink(queue)
