"""The scan over a group of filters: broadcast, PEs and their banks, compiled by numba.

A vector of operands is given by the addresses of its lanes that are not zero, those of all vectors
one behind the other.  A product has the sum of the addresses of its activation and its weight, at
which a table has its bank, or, where its output is not in the plane, the number of banks: the place
of a bank that takes any number of products at once.  So nothing is multiplied, and no branch
depends on where a product goes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from archsim.kernels import inlined, kernel
from archsim.machines.scnn import channel as ch
from archsim.machines.scnn.channel import land_weights, send_parts, send_weights
from archsim.numbers import IntArray

SmallArray = npt.NDArray[np.int32]
BoolArray = npt.NDArray[np.bool_]

BankArray = npt.NDArray[np.uint16]

Lanes = tuple[IntArray, SmallArray]
"""First lane of each vector [vectors + 1]; address of each lane."""

Lists = tuple[IntArray, Lanes]
"""First vector of each list [lists + 1]; their lanes.  Of activations: those of all PEs of a block,
block by block."""

Plane = tuple[BankArray, int, int]
"""Bank of each address; banks; places of a bank's queue."""

(
    CROSSED,  # cycle of the last vector of weights that was broadcast
    BROADCAST,  # vectors that were
) = range(2)

(BUSY, WAIT, BARRIER, SKIPS, PRODUCTS) = range(5)


class PeCounts(NamedTuple):
    """The figures of PEs [PEs, 5] that a scan adds to, by name and in order: [PEs] each."""

    busy: IntArray
    wait: IntArray
    barrier: IntArray
    skips: IntArray
    products: IntArray


class ScanScalars(NamedTuple):
    """The scalars of a scan, by name and in order."""

    crossed: int
    broadcast: int


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
        free[place] = 0
        place = place + 1 if place + 1 < len(free) else 0
    scalars[BROADCAST] += end - begin


@inlined
def _release(vectors: tuple[int, int, int], ends: IntArray, free: IntArray) -> None:
    """Of a block's vectors, each in its end: the places can be written when all PEs are done."""
    begin, end, place = vectors
    for w in range(end - begin):
        free[place] = max(free[place], ends[w])
        place = place + 1 if place + 1 < len(free) else 0


@inlined
def _pass_over(
    now: int, vectors: tuple[int, int, int], crossings: IntArray, ends: IntArray
) -> tuple[int, int]:
    """A block without activations, after `now`: its end, which is that of all its vectors, and
    cycles of waiting."""
    begin, end, _ = vectors
    start = max(now, crossings[end - 1] + 1)
    ends[: end - begin] = start + 1
    return start + 1, start - now


@inlined
def _send(
    start: int,
    pair: tuple[int, int],
    lanes: tuple[Lanes, Lanes],
    plane: Plane,
    idle: IntArray,
) -> tuple[int, int]:
    """A pair of vectors that enters in cycle `start`: the latest end of a bank, products sent.

    idle [banks + 1]: the cycle after the last in which each bank adds a product; behind them that
    of products that are not sent, which take none.
    """
    (a_first, a_address), (w_first, w_address) = lanes
    bank_at, banks, _ = plane
    latest, products = start, 0
    a_begin, a_end = np.uint64(a_first[pair[0]]), np.uint64(a_first[pair[0] + 1])
    for f in range(np.uint64(w_first[pair[1]]), np.uint64(w_first[pair[1] + 1])):
        to_address = w_address[f]
        for i in range(a_begin, a_end):
            bank = bank_at[np.uint64(a_address[i] + to_address)]
            sent = int(bank < banks)
            end = max(int(idle[bank]), start) + sent
            idle[bank] = end
            latest = max(latest, end)
            products += sent
    return latest, products


@inlined
def _multiply(
    now: int,
    own: tuple[int, int],
    vectors: tuple[int, int, int],
    lanes: tuple[Lanes, Lanes],
    plane: Plane,
    memories: tuple[IntArray, IntArray, IntArray],
) -> tuple[int, int, int]:
    """A block of a PE, after `now`: its end, cycles of waiting, products sent.

    own: activation vectors, the first and the one after the last; vectors: of weights, alike.
    memories: crossings; as answer, the end of each vector of weights; `idle` of the PE's banks.
    """
    begin, end, _ = vectors
    crossings, ends, idle = memories
    waited, sent = 0, 0
    for a in range(own[0], own[1]):
        for w in range(begin, end):
            start = max(now, crossings[w] + 1)
            waited += start - now
            latest, products = _send(start, (a, w), lanes, plane, idle)
            sent += products
            now = max(start, latest - plane[2]) + 1
            ends[w - begin] = now
    return now, waited, sent


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
    "((i8.1, (i8.1, i4.1)), (i8.1, i8.1), i8.1), ((i8.1, (i8.1, i4.1)), b1.2), "
    "((u2.1, int, int), int), (i8.1, i8.2, i8.1, i8.1), (i8.1, i8.1, i8.1), i8.2"
)
def run_group(
    weights: tuple[Lists, tuple[IntArray, IntArray], IntArray],
    activations: tuple[Lists, BoolArray],
    rules: tuple[Plane, int],
    state: tuple[IntArray, IntArray, IntArray, IntArray],
    channel: tuple[IntArray, IntArray, IntArray],
    figures: IntArray,
) -> None:
    """Broadcast and PEs over the blocks of a group, in order (docs/contracts/scnn.md).

    weights: lists; of each vector its service interval, and, as answer where there is a channel,
    the cycle in which it is offered; as answer, the cycle in which it crosses.
    activations: lists, and emptiness of each [blocks, PEs].  rules: the plane;
    blocks between barriers, 0 for none.
    state: end of the last block of each PE; the cycle after the last in which each bank is busy
    [PEs, banks + 1]; the cycle from which each place of the FIFOs can be written; the scalars.
    channel (`archsim.machines.scnn.channel`): memory; landed; as answer, the cycle in which each
    word of the next pass's ifmap has come.
    figures [PEs, 5] are added to.
    """
    (w_starts, w_lanes), offers, crossings = weights
    memory, landed, next_ifmap = channel
    (a_starts, a_lanes), empty = activations
    plane, barrier_blocks = rules
    ends, idle, free, scalars = state
    blocks, pes = empty.shape
    released = np.zeros(len(free), np.int64)
    for block in range(blocks):
        here = w_starts[block], w_starts[block + 1], scalars[BROADCAST] % len(free)
        if memory[ch.SERVED]:
            send_weights(memory, landed, here, offers[1])
        _broadcast(here, offers, crossings, free, scalars)
        if memory[ch.SERVED]:
            land_weights(memory, landed, here, crossings)
            send_parts(memory, next_ifmap)
        for pe in range(pes):
            now = ends[pe]
            if empty[block, pe]:
                now, waited = _pass_over(now, here, crossings, released)
                figures[pe, SKIPS] += 1
            else:
                first = block * pes + pe
                own = int(a_starts[first]), int(a_starts[first + 1])
                memories = (crossings, released, idle[pe])
                now, waited, sent = _multiply(now, own, here, (a_lanes, w_lanes), plane, memories)
                figures[pe, BUSY] += now - ends[pe] - waited
                figures[pe, PRODUCTS] += sent
            _release(here, released, free)
            figures[pe, WAIT] += waited
            ends[pe] = now
        inside = block + 1 < blocks  # the group's own barrier follows its last block
        if inside and barrier_blocks and (block + 1) % barrier_blocks == 0:
            _wait_for_all(ends, figures)
