"""The scan over a group of filters: broadcast, PEs and their banks, compiled by numba.

A vector of operands is given by its lanes that are not zero, those of all vectors one behind the
other: a place, which is row and column in one word, and an address.  A product has the place of
its activation less that of its weight, and the sum of their addresses, so nothing is multiplied.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit  # pyright: ignore[reportUnknownVariableType]

from archsim.core.kernel import inlined
from archsim.numbers import IntArray

threaded = njit(cache=True, error_model="numpy", nogil=True)
"""A kernel during which other threads run."""

SmallArray = npt.NDArray[np.int32]
BoolArray = npt.NDArray[np.bool_]

Lanes = tuple[IntArray, IntArray, SmallArray]
"""First lane of each vector [vectors + 1]; place and address of each lane."""

Lists = tuple[IntArray, Lanes]
"""First vector of each list [lists + 1]; their lanes."""

Plane = tuple[int, SmallArray, int]
"""Place of the last output; bank of each address; places of a bank's queue."""

ROW = 1 << 32
"""place = row · ROW + column; both are below 2^31, and may be negative in a difference."""

OUTSIDE = np.int64(-(1 << 63) | (1 << 31))
"""Set in a place, or in the last one less it, where a row or a column is not in the plane."""

(
    CROSSED,  # cycle of the last vector of weights that was broadcast
    COUNT,  # vectors that were
) = range(2)

(BUSY, WAIT, BARRIER, SKIPS, PRODUCTS) = range(5)


@inlined
def _broadcast(
    vectors: tuple[int, int, int],
    intervals: IntArray,
    crossings: IntArray,
    free: IntArray,
    scalars: IntArray,
) -> None:
    """The cycles in which a block's vectors cross: when their places are free in all PEs.

    No list is longer than the FIFO, so these are places that blocks before have left.
    """
    for w in range(vectors[0], vectors[1]):
        place = scalars[COUNT] % len(free)
        cycle = max(scalars[CROSSED] + intervals[w], free[place])
        crossings[w] = cycle
        scalars[CROSSED] = cycle
        scalars[COUNT] += 1
        free[place] = 0


@inlined
def _pass_over(
    now: int, vectors: tuple[int, int, int], crossings: IntArray, free: IntArray
) -> tuple[int, int]:
    """A block without activations, after `now`: its end, and cycles of waiting.

    vectors: of weights, the first, the one after the last, and how many crossed earlier.
    """
    begin, end, before = vectors
    start = max(now, crossings[end - 1] + 1)
    for w in range(begin, end):
        place = (before + w - begin) % len(free)
        free[place] = max(free[place], start + 1)
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

    idle [banks]: the cycle after the last in which each bank adds a product.
    """
    (a_first, a_place, a_address), (w_first, w_place, w_address) = lanes
    last, banks, _ = plane
    latest, products = start, 0
    w_begin, w_end = w_first[pair[1]], w_first[pair[1] + 1]
    for i in range(a_first[pair[0]], a_first[pair[0] + 1]):
        from_place, from_address = a_place[i], a_address[i]
        for f in range(w_begin, w_end):
            place = from_place - w_place[f]
            if (place | (last - place)) & OUTSIDE == 0:
                bank = banks[from_address + w_address[f]]
                end = max(int(idle[bank]), start) + 1
                idle[bank] = end
                latest = max(latest, end)
                products += 1
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

    own: activation vectors, the first and the one after the last; vectors: of weights, alike, and
    how many crossed earlier.  memories: crossings, places of the FIFO, `idle` of the PE's banks.
    """
    begin, end, before = vectors
    crossings, free, idle = memories
    waited, sent = 0, 0
    for a in range(own[0], own[1]):
        for w in range(begin, end):
            start = max(now, crossings[w] + 1)
            waited += start - now
            latest, products = _send(start, (a, w), lanes, plane, idle)
            sent += products
            now = max(start, latest - plane[2]) + 1
            if a == own[1] - 1:
                place = (before + w - begin) % len(free)
                free[place] = max(free[place], now)
    return now, waited, sent


@inlined
def _wait_for_all(ends: IntArray, figures: IntArray) -> None:
    """A barrier inside a group."""
    latest = ends.max()
    for pe in range(len(ends)):
        figures[pe, BARRIER] += latest - ends[pe]
        ends[pe] = latest


@threaded
def run_group(
    weights: tuple[Lists, IntArray, IntArray],
    activations: tuple[Lists, BoolArray],
    rules: tuple[Plane, int],
    state: tuple[IntArray, IntArray, IntArray, IntArray],
    figures: IntArray,
) -> None:
    """Broadcast and PEs over the blocks of a group, in order (docs/contracts/scnn.md).

    weights: lists; service interval of each vector; as answer, the cycle in which each crosses.
    activations: lists, and emptiness of each [PEs, blocks].  rules: the plane;
    blocks between barriers, 0 for none.
    state: end of the last block of each PE; the cycle after the last in which each bank is busy
    [PEs, banks]; the cycle from which each place of the FIFOs can be written; the scalars.
    figures [PEs, 5] are added to.
    """
    (w_starts, w_lanes), intervals, crossings = weights
    (a_starts, a_lanes), empty = activations
    plane, barrier_blocks = rules
    ends, idle, free, scalars = state
    blocks = len(w_starts) - 1
    for block in range(blocks):
        here = w_starts[block], w_starts[block + 1], scalars[COUNT]
        _broadcast(here, intervals, crossings, free, scalars)
        for pe in range(len(ends)):
            now = ends[pe]
            if empty[pe, block]:
                now, waited = _pass_over(now, here, crossings, free)
                figures[pe, SKIPS] += 1
            else:
                own = a_starts[pe * blocks + block], a_starts[pe * blocks + block + 1]
                memories = (crossings, free, idle[pe])
                now, waited, sent = _multiply(now, own, here, (a_lanes, w_lanes), plane, memories)
                figures[pe, BUSY] += now - ends[pe] - waited
                figures[pe, PRODUCTS] += sent
            figures[pe, WAIT] += waited
            ends[pe] = now
        inside = block + 1 < blocks  # the group's own barrier follows its last block
        if inside and barrier_blocks and (block + 1) % barrier_blocks == 0:
            _wait_for_all(ends, figures)
