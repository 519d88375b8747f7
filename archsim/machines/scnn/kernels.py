"""The scan over a group of filters: broadcast, PEs and their banks, compiled by numba.

A vector of operands is given by the addresses of its lanes that are not zero.  A product has the
sum of the addresses of its activation and its weight, at which a table has its bank, or, where its
output is not in the plane, the number of banks.  So nothing is multiplied, and no branch depends on
where a product goes.

What a PE's banks have still to add is a field of bits for each bank, several fields in a word of 64
bits: a cycle takes one from every field that is not 0, a pair adds its products, and one comparison
tells whether a queue is full (`archsim.machines.scnn.backlog`).  Where that takes many words, each
bank has the cycle after the last in which it adds a product, and products are handled one by one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from archsim.kernels import inlined, kernel
from archsim.machines.scnn import channel as ch
from archsim.machines.scnn.backlog import PLACES, Lanes, Plane, WordArray, send_pair
from archsim.machines.scnn.channel import land_weights, send_parts, send_weights
from archsim.numbers import IntArray

BoolArray = npt.NDArray[np.bool_]

Lists = tuple[IntArray, Lanes]
"""First vector of each list [lists + 1]; their lanes.  Of activations: those of all PEs of a block,
block by block."""

(
    CROSSED,  # cycle of the last vector of weights that was broadcast
    BROADCAST,  # vectors that were
) = range(2)

(BUSY, WAIT, BARRIER, SKIPS) = range(4)


(
    ISSUED,  # cycle in which the PE's last pair was issued, or its last block passed over
    LAST,  # in which that began to be sent, and the three before it, the first of which
    SECOND,
    THIRD,
    FOURTH,  # gives a place up that the next pair needs
) = range(5)

(
    FETCH,  # cycles from a group's start to its first activations
    DECODE,  # from a crossing to the FIFO
    ISSUE,  # from an issue to the first cycle in which it can be sent; 0: they are one
) = range(3)


class PeCounts(NamedTuple):
    """The figures of PEs [PEs, 4] that a scan adds to, by name and in order: [PEs] each."""

    busy: IntArray
    wait: IntArray
    barrier: IntArray
    skips: IntArray


class ScanScalars(NamedTuple):
    """The scalars of a scan, by name and in order."""

    crossed: int
    broadcast: int


class Issues(NamedTuple):
    """What PEs have issued and sent [PEs, 5], by name and in order: [PEs] each."""

    issued: IntArray
    last: IntArray
    second: IntArray
    third: IntArray
    fourth: IntArray


class Stages(NamedTuple):
    """Cycles of registers, by name and in order; 0 where there are none."""

    fetch: int = 0
    decode: int = 0
    issue: int = 0


@inlined
def _broadcast(
    vectors: tuple[int, int, int],
    offers: tuple[IntArray, IntArray],
    crossings: IntArray,
    free: IntArray,
    scalars: IntArray,
) -> None:
    """The cycles in which a block's vectors cross: when they have come, and their places are free
    in all PEs.

    No list is longer than the FIFO, so these are places that blocks before have left.
    """
    begin, end, place = vectors
    intervals, earliest = offers
    for w in range(begin, end):
        cycle = max(scalars[CROSSED] + intervals[w], free[place])
        cycle = max(cycle, earliest[w])
        crossings[w] = cycle
        scalars[CROSSED] = cycle
        place = place + 1 if place + 1 < len(free) else 0
    scalars[BROADCAST] += end - begin


@inlined
def _release(vectors: tuple[int, int, int], ends: IntArray, skipped: int, free: IntArray) -> None:
    """Of a block's vectors: their places can be written when all PEs are done, each vector in the
    latest of its ends, and where a PE passes over the block."""
    begin, end, place = vectors
    for w in range(end - begin):
        free[place] = max(ends[w], skipped)
        place = place + 1 if place + 1 < len(free) else 0


@inlined
def _issue(crossing: int, before: tuple[int, int], stages: IntArray) -> int:
    """The cycle in which what waits for that vector of weights is issued.

    before: that of what was issued before; the start of the fourth one before, which gives a place
    up.
    """
    return max(max(before[0] + 1, before[1]), crossing + 1 + stages[DECODE])


@inlined
def _pass_over(
    now: int,
    vectors: tuple[int, int, int],
    crossings: IntArray,
    issued: IntArray,
    stages: IntArray,
) -> tuple[int, int, int]:
    """A block without activations, after `now`: its end, cycles of waiting, and when the places of
    its vectors can be written."""
    issue = _issue(crossings[vectors[1] - 1], (issued[ISSUED], issued[FOURTH]), stages)
    start = max(now, issue + stages[ISSUE])
    issued[FOURTH], issued[THIRD], issued[SECOND] = issued[THIRD], issued[SECOND], issued[LAST]
    issued[ISSUED], issued[LAST] = issue, start
    return start + 1, start - now, issue + 2 if stages[ISSUE] else start + 1


@inlined
def _send(
    start: int,
    pair: tuple[int, int],
    lanes: tuple[Lanes, Lanes],
    plane: Plane,
    idle: IntArray,
) -> int:
    """A pair of vectors that enters in cycle `start`: the cycles that it takes.

    idle [banks + 1]: the cycle after the last in which each bank adds a product; behind them that
    of products that are not sent, which take none.
    """
    (a_count, a_address), (w_count, w_address) = lanes
    bank_at, banks = plane[0], len(idle) - 1
    latest, a, w = start, np.uint64(pair[0]), np.uint64(pair[1])
    for f in range(np.uint64(w_count[w])):
        to_address = w_address[w, f]
        for i in range(np.uint64(a_count[a])):
            bank = bank_at[np.uint64(a_address[a, i] + to_address)]
            sent = int(bank < banks)
            end = max(int(idle[bank]), start) + sent
            idle[bank] = end
            latest = max(latest, end)
    return max(1, latest - start - int(np.int64(plane[2][PLACES])) + 1)


@inlined
def _multiply(
    now: int,
    own: tuple[int, int, int],
    vectors: tuple[int, int, int],
    lanes: tuple[Lanes, Lanes],
    plane: Plane,
    memories: tuple[IntArray, IntArray, IntArray, IntArray, IntArray],
) -> tuple[int, int]:
    """A block of a PE, after `now`: its end, cycles of waiting.

    own: activation vectors, the first and the one after the last, and how far the lanes of the PE's
    weights lie behind those of the first PE; vectors: of weights, alike.
    memories: crossings; as answer, from when each vector's place can be written; `idle` of the
    PE's banks; its issues; what registers take.
    """
    begin, end, _ = vectors
    crossings, ends, idle, issued, stages = memories
    waited, late = 0, stages[ISSUE]
    issue, one, two = issued[ISSUED], issued[LAST], issued[SECOND]
    three, four = issued[THIRD], issued[FOURTH]
    for a in range(own[0], own[1]):
        last = a + 1 == own[1]
        for w in range(begin, end):
            issue = _issue(crossings[w], (issue, four), stages)
            start = max(now, issue + late)
            waited += start - now
            cycles = _send(start, (a, w + own[2]), lanes, plane, idle)
            now, four, three, two, one = start + cycles, three, two, one, start
            if last:
                ends[w - begin] = max(ends[w - begin], issue + 2 if late else now)
    issued[ISSUED], issued[LAST], issued[SECOND] = issue, one, two
    issued[THIRD], issued[FOURTH] = three, four
    return now, waited


@inlined
def _multiply_packed(
    now: int,
    own: tuple[int, int, int],
    vectors: tuple[int, int, int],
    lanes: tuple[Lanes, Lanes],
    plane: Plane,
    memories: tuple[IntArray, IntArray, WordArray, IntArray, IntArray, IntArray],
) -> tuple[int, int]:
    """The same, with the backlog of the PE's banks as its last pair has entered, and the cycle [1]
    of that."""
    begin, end, _ = vectors
    crossings, ends, backlog, entered, issued, stages = memories
    waited, before, late = 0, entered[0], stages[ISSUE]
    words = backlog[0], backlog[1], backlog[2], backlog[3]
    issue, one, two = issued[ISSUED], issued[LAST], issued[SECOND]
    three, four = issued[THIRD], issued[FOURTH]
    for a in range(own[0], own[1]):
        last = a + 1 == own[1]
        for w in range(begin, end):
            issue = _issue(crossings[np.uint64(w)], (issue, four), stages)
            start = max(now, issue + late)
            waited += start - now
            cycles, words = send_pair(start - before, (a, w + own[2]), lanes, plane, words)
            now, before = start + cycles, start
            four, three, two, one = three, two, one, start
            if last:
                at = np.uint64(w - begin)
                ends[at] = max(ends[at], issue + 2 if late else now)
    issued[ISSUED], issued[LAST], issued[SECOND] = issue, one, two
    issued[THIRD], issued[FOURTH] = three, four
    backlog[0], backlog[1], backlog[2], backlog[3] = words
    entered[0] = before
    return now, waited


@inlined
def _wait_for_all(ends: IntArray, figures: IntArray) -> None:
    """A barrier inside a group."""
    latest = ends[0]
    for pe in range(len(ends)):
        latest = max(latest, ends[pe])
    for pe in range(len(ends)):
        figures[pe, BARRIER] += latest - ends[pe]
        ends[pe] = latest


@kernel(
    "((i8.1, (i8.1, i4.2)), (i8.1, i8.1), i8.1), ((i8.1, (i8.1, i4.2)), b1.2), "
    "((u2.1, u8.1, u8.1), int, i8.1), (i8.1, (u8.2, i8.2), i8.2, (i8.1, i8.1), i8.1, i8.2), "
    "(i8.1, i8.1, i8.1), i8.2",
    short_loops=True,
)
def run_group(
    weights: tuple[Lists, tuple[IntArray, IntArray], IntArray],
    activations: tuple[Lists, BoolArray],
    rules: tuple[Plane, int, IntArray],
    state: tuple[
        IntArray,
        tuple[WordArray, IntArray],
        IntArray,
        tuple[IntArray, IntArray],
        IntArray,
        IntArray,
    ],
    channel: tuple[IntArray, IntArray, IntArray],
    figures: IntArray,
) -> None:
    """Broadcast and PEs over the blocks of a group, in order (docs/contracts/scnn.md).

    weights: lists, with lanes of all vectors, or, where PEs read them otherwise, those of every PE
    one behind the other; of each vector its service interval, and, as answer where there is a
    channel, the cycle in which it is offered; as answer, the cycle in which it crosses.
    activations: lists, and emptiness of each [blocks, PEs].  rules: the plane;
    blocks between barriers, 0 for none; cycles of registers.
    state: end of the last block of each PE; what its banks have still to add [PEs, words] as its
    last pair has entered, and the cycle of that [PEs, 1]; if there are no such words, the cycle
    after the last in which each bank is busy [PEs, banks + 1]; the cycle from which each place of
    the FIFOs can be written, and as many to work with; the scalars; issues and starts [PEs, 5].
    channel (`archsim.machines.scnn.channel`): memory; landed; as answer, the cycle in which each
    word of the next pass's ifmap has come.
    figures [PEs, 4] are added to.
    """
    (w_starts, w_lanes), offers, crossings = weights
    memory, landed, next_ifmap = channel
    (a_starts, a_lanes), empty = activations
    plane, barrier_blocks, stages = rules
    ends, (backlog, entered), idle, (free, released), scalars, issued = state
    packed = backlog.shape[1] > 0
    blocks, pes = empty.shape
    for block in range(blocks):
        here = w_starts[block], w_starts[block + 1], scalars[BROADCAST] % len(free)
        if memory[ch.SERVED]:
            send_weights(memory, landed, here, offers[1])
        _broadcast(here, offers, crossings, free, scalars)
        if memory[ch.SERVED]:
            land_weights(memory, landed, here, crossings)
            send_parts(memory, next_ifmap)
        released[: here[1] - here[0]], skipped = 0, 0
        for pe in range(pes):
            now = ends[pe]
            if empty[block, pe]:
                now, waited, given = _pass_over(now, here, crossings, issued[pe], stages)
                skipped = max(skipped, given)
                figures[pe, SKIPS] += 1
            else:
                first = block * pes + pe
                seen = pe * len(crossings) if len(w_lanes[0]) > len(crossings) else 0
                own = int(a_starts[first]), int(a_starts[first + 1]), seen
                lanes = a_lanes, w_lanes
                if packed:
                    memories = (crossings, released, backlog[pe], entered[pe], issued[pe], stages)
                    now, waited = _multiply_packed(now, own, here, lanes, plane, memories)
                else:
                    each = (crossings, released, idle[pe], issued[pe], stages)
                    now, waited = _multiply(now, own, here, lanes, plane, each)
                figures[pe, BUSY] += now - ends[pe] - waited
            figures[pe, WAIT] += waited
            ends[pe] = now
        _release(here, released, skipped, free)
        inside = block + 1 < blocks  # the group's own barrier follows its last block
        if inside and barrier_blocks and (block + 1) % barrier_blocks == 0:
            _wait_for_all(ends, figures)
