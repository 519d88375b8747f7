"""The mapper `fast`: a tiling within 0.5 % of the best of very many, the lowest bound first.

The sizes that are tried hang on layer and array alone (`archsim.tiled.near_sizes`).  Of all their
tilings that fit, nothing is left out but what is no more than CLOSE better than the one found.
So more memory, which only lets more of them fit, and more bandwidth, which slows none, never make a
layer slower by more than TOLERANCE (docs/adr/0028-near-mapper.md).  Which one is found hangs on
those that fit alone, not on how they were met (docs/adr/0038-lowest-bound-first.md).

Of tilings that are slower by no more than SLACK, or within TOLERANCE of what any memories allow,
the one of the fewest bytes is taken (docs/adr/0048-fewest-bytes-of-what-is-as-fast.md, 0053).
"""

from __future__ import annotations

import numpy as np

from archsim.kernels import inlined, kernel
from archsim.layer import problem as pb
from archsim.numbers import IntArray
from archsim.tiled import machine_vector as mc
from archsim.tiled import near_memo as nm
from archsim.tiled import near_queue as nq
from archsim.tiled.bound import BOUND_COLUMNS, BYTES, CYCLES
from archsim.tiled.bound_paths import bound, count_tiles
from archsim.tiled.cycles import ANY, cycles_of, cycles_within
from archsim.tiled.near_bound import least_bytes
from archsim.tiled.near_layer import (
    LEAST,
    PART_CHANNELS,
    PART_CODE,
    PART_FILTERS,
    PART_OUTER,
    Layer,
    all_parts,
    block_layer,
    fewest_tiles,
    floor_of,
    layer_of,
    part_of,
)
from archsim.tiled.near_meet import (
    SLACK,
    TOLERANCE,
    FloatArray,
    Found,
    counts,
    meet_part,
    most_of_part,
    promises,
)
from archsim.tiled.near_memo import place_of
from archsim.tiled.near_queue import Queue
from archsim.tiled.near_sizes import MOST_SIZES, group_sizes
from archsim.tiled.side_by_side import block_problem
from archsim.tiled.tile_fit import ceil

MOST_SCHEDULED = 1 << 22
"""Tiles that are scheduled for a layer, before the best so far is taken."""

SCHEDULED, TILES, BOUNDED, MET, TRIED, CUT_OFF, EFFORT_COLUMNS = range(7)
"""What a search did: tilings that were scheduled, their tiles, tilings that were held against the
second bound, parts and tilings that were met; tilings of fewer bytes than the fastest that were
scheduled; and whether it was cut off."""

MOST_TRIED = 32
"""Tilings of fewer bytes than the fastest that are scheduled at most."""

PARTS = 2 * MOST_SIZES**2
"""Numbers of parts."""

TWIN = MOST_SIZES**3
"""Between the numbers of a tiling with filters inside, and of the same with filters outside."""


@kernel
def _learn(  # noqa: PLR0913
    layer: Layer, problem: IntArray, found: Found, entry: IntArray, number: int,
    bounds: IntArray, most: float,
) -> tuple[int, int, int]:  # fmt: skip
    """Of a tiling of that number: its bound, its bytes, and its cycles if they are no more than
    `most`, else some number above."""
    memo, at, tiling = found.memo, place_of(found.memo, number), entry[nq.SIZES :]
    if at >= 0 and memo[at, nm.NUMBER] > 0:
        least = memo[at, nm.LEAST]
        if least > most or memo[at, nm.EXACT] == 1:
            return memo[at, nm.BOUND], memo[at, nm.BYTES], least
    bound(bounds, problem, layer.machine, layer.services, tiling)
    least, exact = bounds[CYCLES], 0
    if least <= most:
        limit = int(min(most, ANY))
        least = cycles_within(problem, tiling, layer.machine, bounds, limit)
        exact = int(least <= limit)
    if at >= 0:
        memo[at, nm.NUMBER], memo[at, nm.LEAST] = number + 1, least
        memo[at, nm.BOUND], memo[at, nm.BYTES] = bounds[CYCLES], bounds[BYTES]
        memo[at, nm.EXACT] = exact
    return bounds[CYCLES], bounds[BYTES], least


@kernel
def _schedule(
    layer: Layer, problem: IntArray, found: Found, entry: IntArray, bounds: IntArray, most: float
) -> None:
    """Schedule a tiling whose bound is no more than `most`, and keep it if it is the best."""
    best, tiling = found.best, entry[nq.SIZES :]
    found.effort[BOUNDED] += 1
    pixels, filters, channels = count_tiles(problem, tiling)
    # of one pixel tile the loops are those with filters inside, which came before
    twin = pixels == 1 and tiling[pb.T_FILTERS_OUTER] == 1
    number = entry[nq.CODE] - TWIN if twin else entry[nq.CODE]
    low, moved, cycles = _learn(layer, problem, found, entry, number, bounds, most)
    if low > most:
        return
    found.effort[SCHEDULED] += 1
    found.effort[TILES] += problem[pb.GROUPS] * pixels * filters * channels
    if twin or cycles > most:
        return
    if cycles < best[0] or (cycles == best[0] and moved < best[1]):
        best[0], best[1] = cycles, moved
        for size in range(pb.TILING_COLUMNS):
            found.tiling[size] = tiling[size]


@kernel
def _begin(layer: Layer, queue: Queue, found: Found, groups: int, place: int) -> Queue:
    """Put all parts of blocks of so many groups into the queue."""
    parts, tried = all_parts(layer), np.zeros(pb.TILING_COLUMNS, np.int64)
    for size in range(pb.TILING_COLUMNS):
        tried[size] = 1
    queue, tried[pb.T_GROUPS] = nq.with_room(queue, len(parts)), groups
    for at in range(len(parts)):
        if counts(parts[at, LEAST], found):
            tried[pb.T_FILTERS] = parts[at, PART_FILTERS]
            tried[pb.T_CHANNELS] = parts[at, PART_CHANNELS]
            tried[pb.T_FILTERS_OUTER] = parts[at, PART_OUTER]
            code = place * PARTS + parts[at, PART_CODE]
            nq.push(queue, (parts[at, LEAST], 0), nq.PART, code, tried)
    return queue


@kernel
def _limit(problem: IntArray, machine: IntArray, found: Found, queue: Queue, first: int) -> None:
    """Where nothing is known of any tiling, what the one of the lowest bound takes, with SLACK, of
    the entries from `first` on."""
    if found.limit[0] < np.inf or queue.counts[0] == first:
        return
    lowest, entries = first, queue.entries
    for at in range(first + 1, queue.counts[0]):
        if entries[at, nq.LOW] < entries[lowest, nq.LOW]:
            lowest = at
    found.limit[0] = (1 + SLACK) * cycles_of(problem, entries[lowest, nq.SIZES :], machine)


@kernel
def _look(layer: Layer, found: Found, queue: Queue, bounds: IntArray, most: float) -> None:
    """Take the first entry out: of a part, put its tilings in, for which there is room; schedule a
    tiling whose bound is no more than so many cycles."""
    entry, block, own = queue.entries[queue.heap[0]], layer.problem, layer
    tiling = entry[nq.SIZES :]
    groups = tiling[pb.T_GROUPS]
    nq.drop(queue)
    if groups > 1:
        block = block_problem(block, groups)
    if entry[nq.STAGE] == nq.PART:
        if groups > 1:
            own = block_layer(layer, block)
        first = queue.counts[0]
        meet_part(own, found, queue, entry)
        _limit(block, layer.machine, found, queue, first)
    else:
        _schedule(layer, block, found, entry, bounds, most)


@kernel
def _search(layer: Layer, found: Found, queue: Queue, more: int) -> bool:
    """Go through the queue, while its first entry promises something; whether it came to an end,
    and not to where there is no room for so many entries more."""
    bounds = np.zeros(BOUND_COLUMNS, np.int64)
    while queue.counts[1] > 0 and found.effort[TILES] <= MOST_SCHEDULED:
        if not promises(queue.entries[queue.heap[0], nq.LOW], found):
            break
        if not nq.has_room(queue, more):
            return False
        _look(layer, found, queue, bounds, found.best[0])
    found.effort[MET] = queue.counts[0]
    return True


@kernel
def _begin_again(layer: Layer, found: Found, before: Queue) -> Queue:
    """A queue of the parts in `before` that may have tilings of fewer bytes, the fewest first."""
    queue, own, side = nq.with_room(nq.new_queue(), before.counts[0]), layer, 1
    for at in range(before.counts[0]):
        entry = before.entries[at]
        if entry[nq.STAGE] != nq.PART or not counts(entry[nq.LOW], found):
            continue
        tried = entry[nq.SIZES :]
        if tried[pb.T_GROUPS] != side:
            side = tried[pb.T_GROUPS]
            own = block_layer(layer, block_problem(layer.problem, side))
        words = ceil(layer.least * own.problem[pb.CHANNELS], layer.machine[mc.IFMAP_LANES])
        of_part = part_of(own, tried)
        pixels = fewest_tiles(own, of_part[0], tried[pb.T_CHANNELS]), words
        outer = tried[pb.T_FILTERS_OUTER]
        few = least_bytes(layer.machine, own.ground, of_part, outer, pixels)
        if few <= found.most:
            nq.push(queue, (few, 0), nq.PART, entry[nq.CODE], tried)
    return queue


@inlined
def same_sizes(one: IntArray, other: IntArray) -> bool:
    """Whether two tilings have the same sizes."""
    alike = True
    for size in range(pb.TILING_COLUMNS):
        alike = alike and one[size] == other[size]
    return alike


@kernel
def _look_again(layer: Layer, fastest: Found, found: Found, queue: Queue, more: int) -> bool:
    """Go through the queue until a tiling takes no more than the limit of `found`, which is then
    the best of `fastest`; whether that came to an end (see `_search`)."""
    effort, limit, bounds = fastest.effort, found.limit[0], np.zeros(BOUND_COLUMNS, np.int64)
    while queue.counts[1] > 0:
        if effort[TRIED] == MOST_TRIED or effort[TILES] > MOST_SCHEDULED:
            effort[CUT_OFF] = 1
            break
        if not nq.has_room(queue, more):
            return False
        entry, scheduled = queue.entries[queue.heap[0]], effort[SCHEDULED]
        if entry[nq.STAGE] == nq.TILING and same_sizes(entry[nq.SIZES :], fastest.tiling):
            break
        _look(layer, found, queue, bounds, limit)
        effort[TRIED] += effort[SCHEDULED] - scheduled
        if found.best[0] <= limit:
            fastest.best[0], fastest.best[1] = found.best[0], found.best[1]
            return True
    for size in range(pb.TILING_COLUMNS):
        found.tiling[size] = fastest.tiling[size]
    return True


@kernel
def _fewest_bytes(layer: Layer, fastest: Found, found: Found, before: Queue) -> None:
    """Write the tiling of the fewest bytes of those that take no more than the limit of `found`.

    Of equal bytes that of the least words in the array.
    """
    queue, more = _begin_again(layer, found, before), most_of_part(layer)
    while not _look_again(layer, fastest, found, queue, more):
        queue = nq.with_room(queue, more)


@kernel("i8.1, i8.1, bool, f8.1, i8.2, i8.1, i8.2", answer="none")
def near_tiling(  # noqa: PLR0913
    problem: IntArray, machine: IntArray, share: bool, best: FloatArray, tilings: IntArray,
    effort: IntArray, memo: IntArray,
) -> None:  # fmt: skip
    """Write the tiling of a layer, groups included, and what it takes, into `tilings` and `best`.

    best: its cycles and bytes, as if words of the ifmap were packed across tiles, infinite before;
    they stay so where none fits.  tilings: [2, TILING_COLUMNS], that which is taken, and the
    fastest that was found.  share: groups may lie side by side.  effort: [EFFORT_COLUMNS], zeros:
    what it did.  memo: what is known of the layer's tilings (`archsim.tiled.near_memo`).
    """
    many = np.zeros(MOST_SIZES, np.int64)
    limit, best_of_few = np.empty(1, np.float64), np.empty(2, np.float64)
    limit[0] = best_of_few[0] = best_of_few[1] = np.inf
    found = Found(best, tilings[1], limit, effort, 0, memo)
    layer, queue = layer_of(problem, machine), nq.new_queue()
    floor = floor_of(layer)
    for at in range(group_sizes(many, problem, machine, share)):
        block = layer
        if many[at] > 1:
            block = block_layer(layer, block_problem(problem, many[at]))
            floor = min(floor, floor_of(block))
        queue = _begin(block, queue, found, many[at], at)
    more = most_of_part(layer)
    while not _search(layer, found, queue, more):
        queue = nq.with_room(queue, more)
    effort[CUT_OFF] = int(effort[TILES] > MOST_SCHEDULED)
    if best[0] < np.inf:
        # a little slower than the fastest, or the tolerance above what any takes with any memories
        limit[0] = max(best[0] * (1 + SLACK), floor * (1 + TOLERANCE))
        few = Found(best_of_few, tilings[0], limit, effort, int(best[1]), memo)
        _fewest_bytes(layer, found, few, queue)
