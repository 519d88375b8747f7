"""The kernels of the sparse core's timing, compiled by numba.

A vector of operands is given by its lanes that are not zero, packed to the front: their number,
and for each lane row, column and address.  A product's are those of the activation less those of
the weight (rows, columns) or their sum (addresses), so that nothing is multiplied.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit  # pyright: ignore[reportUnknownVariableType]

from archsim.core.kernel import inlined, kernel
from archsim.numbers import IntArray

threaded = njit(cache=True, error_model="numpy", nogil=True)
"""A kernel during which other threads run."""

SmallArray = npt.NDArray[np.int32]

ROW, COLUMN, ADDRESS = range(3)

(
    CROSSED,  # cycle of the last vector of weights that was broadcast
    COUNT,  # vectors that were
) = range(2)

(BUSY, WAIT, BARRIER, SKIPS) = range(4)


@kernel
def pack(values: IntArray, terms: IntArray, counts: SmallArray, lanes: SmallArray) -> None:
    """Lanes [vectors, lanes, 3] of values [vectors, lanes] that are not 0, from terms alike."""
    for vector in range(len(values)):
        filled = 0
        for lane in range(values.shape[1]):
            if values[vector, lane] != 0:
                for term in range(3):
                    lanes[vector, filled, term] = terms[vector, lane, term]
                filled += 1
        counts[vector] = filled


@inlined
def _pair_cost(
    lanes: tuple[SmallArray, SmallArray],
    plane: tuple[int, int],
    banks: SmallArray,
    load: IntArray,
    clear: int,
) -> tuple[int, int]:
    """Cycles of one pair of vectors, given by their lanes [lanes, 3], and products sent.

    load: of every bank; one below `clear` has taken no product of this pair.
    """
    products, top = 0, clear + 1
    for i in range(len(lanes[0])):
        y, x = lanes[0][i, ROW], lanes[0][i, COLUMN]
        address = lanes[0][i, ADDRESS]
        for f in range(len(lanes[1])):
            p, q = y - lanes[1][f, ROW], x - lanes[1][f, COLUMN]
            if 0 <= p < plane[0] and 0 <= q < plane[1]:
                bank = banks[address + lanes[1][f, ADDRESS]]
                taken = max(int(load[bank]), clear) + 1
                load[bank] = taken
                top = max(top, taken)
                products += 1
    return top - clear, products


@threaded
def pair_costs(
    pes: tuple[int, int],
    activations: tuple[IntArray, SmallArray, SmallArray],
    weights: tuple[IntArray, SmallArray, SmallArray],
    plane: tuple[int, int],
    banks: SmallArray,
    answers: tuple[SmallArray, SmallArray, IntArray, IntArray],
) -> None:
    """Cycles of every pair of vectors, for the PEs from pes[0] to before pes[1].

    activations, weights: first vector of each list [lists + 1], counts, lanes (`pack`).
    plane: outputs in each direction.  banks: of each address.
    answers: cost of a block's first and last activation vector with each weight vector
    [PEs, vectors]; the sum over all between them [PEs, blocks]; products sent [PEs].
    """
    a_starts, a_counts, a_lanes = activations
    w_starts, w_counts, w_lanes = weights
    firsts, lasts, middles, sent = answers
    blocks = len(w_starts) - 1
    load = np.zeros(int(banks.max()) + 1, np.int64)
    clear = 0
    for pe in range(pes[0], pes[1]):
        for block in range(blocks):
            begin, end = a_starts[pe * blocks + block], a_starts[pe * blocks + block + 1]
            for a in range(begin, end):
                activation = a_lanes[a, : a_counts[a]]
                for w in range(w_starts[block], w_starts[block + 1]):
                    pair = (activation, w_lanes[w, : w_counts[w]])
                    cost, products = _pair_cost(pair, plane, banks, load, clear)
                    sent[pe] += products
                    clear += cost
                    if a == end - 1:
                        lasts[pe, w] = cost
                    elif a == begin:
                        firsts[pe, w] = cost
                    else:
                        middles[pe, block] += cost


@inlined
def _broadcast(
    range_of: tuple[int, int, int],
    intervals: IntArray,
    crossings: IntArray,
    free: IntArray,
    scalars: IntArray,
) -> None:
    """The cycles in which a block's vectors cross: when their places are free in all PEs."""
    for w in range(range_of[0], range_of[1]):
        place = scalars[COUNT] % len(free)
        cycle = max(scalars[CROSSED] + intervals[w], free[place])
        crossings[w] = cycle
        scalars[CROSSED] = cycle
        scalars[COUNT] += 1
        free[place] = 0


@inlined
def _pass_over(
    now: int, range_of: tuple[int, int, int], crossings: IntArray, free: IntArray
) -> tuple[int, int]:
    """A block without activations, after `now`: its end, and cycles of waiting.

    range_of: first vector of weights, the one after the last, and how many crossed before them.
    """
    begin, end, before = range_of
    start = max(now, crossings[end - 1] + 1)
    for w in range(begin, end):
        place = (before + w - begin) % len(free)
        free[place] = max(free[place], start + 1)
    return start + 1, start - now


@inlined
def _multiply(
    now: int, range_of: tuple[int, int, int], crossings: IntArray, costs: SmallArray
) -> tuple[int, int]:
    """One activation vector with all weights of a block, after `now`: end, cycles of waiting."""
    waited = 0
    for w in range(range_of[0], range_of[1]):
        start = max(now, crossings[w] + 1)
        waited += start - now
        now = start + costs[w]
    return now, waited


@inlined
def _multiply_last(
    now: int,
    range_of: tuple[int, int, int],
    crossings: IntArray,
    costs: SmallArray,
    free: IntArray,
) -> tuple[int, int]:
    """The same for the last activation vector: a place is free at the end of its pair."""
    begin, end, before = range_of
    waited = 0
    for w in range(begin, end):
        start = max(now, crossings[w] + 1)
        waited += start - now
        now = start + costs[w]
        place = (before + w - begin) % len(free)
        free[place] = max(free[place], now)
    return now, waited


@inlined
def _wait_for_all(ends: IntArray, figures: IntArray) -> None:
    """A barrier inside a group."""
    latest = ends.max()
    for pe in range(len(ends)):
        figures[pe, BARRIER] += latest - ends[pe]
        ends[pe] = latest


@kernel
def run_group(
    weights: tuple[IntArray, IntArray, IntArray],
    activations: tuple[IntArray, npt.NDArray[np.bool_], int],
    costs: tuple[SmallArray, SmallArray, IntArray],
    state: tuple[IntArray, IntArray, IntArray],
    figures: IntArray,
) -> None:
    """Broadcast and PEs over the blocks of a group, in order (docs/contracts/scnn.md).

    weights: first vector of each list, service interval of each vector, and, as answer, the cycle
    in which each crosses.  activations: number of vectors and emptiness of each list [PEs, blocks];
    blocks between barriers, 0 for none.  costs: as `pair_costs` answers.  state: end of the last
    block of each PE; the cycle from which each place of the FIFOs can be written; the scalars.
    figures [PEs, 4] are added to.
    """
    starts, intervals, crossings = weights
    vectors, empty, barrier_blocks = activations
    ends, free, scalars = state
    for block in range(len(starts) - 1):
        here = (starts[block], starts[block + 1], scalars[COUNT])
        _broadcast(here, intervals, crossings, free, scalars)
        for pe in range(len(ends)):
            now, waited, first_waited = ends[pe], 0, 0
            if empty[pe, block]:
                now, waited = _pass_over(now, here, crossings, free)
                figures[pe, SKIPS] += 1
            else:
                begun = now
                if vectors[pe, block] > 1:
                    now, first_waited = _multiply(now, here, crossings, costs[0][pe])
                    now += costs[2][pe, block]
                now, waited = _multiply_last(now, here, crossings, costs[1][pe], free)
                figures[pe, BUSY] += now - begun - waited - first_waited
            figures[pe, WAIT] += waited + first_waited
            ends[pe] = now
        inside = block + 2 < len(starts)  # the group's own barrier follows its last block
        if inside and barrier_blocks and (block + 1) % barrier_blocks == 0:
            _wait_for_all(ends, figures)
