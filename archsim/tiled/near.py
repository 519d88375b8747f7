"""The mapper `fast`: a tiling within 0.5 % of the best of very many, the lowest bound first.

The sizes that are tried hang on layer and array alone (`archsim.tiled.near_sizes`).  Of all their
tilings that fit, nothing is left out but what is of no lower tier of cycles than the one found
(`archsim.tiled.near_tiers`).  So more memory, which only lets more of them fit, and more bandwidth,
which slows none, never make a layer slower by more than TOLERANCE (docs/adr/0028-near-mapper.md).
Of those of the lowest tier the one of the fewest bytes is taken.  Which one that is hangs on those
that fit alone, not on how they were met (docs/adr/0063-tiers-of-cycles.md).
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
from archsim.tiled.bound_paths import bound_within, count_tiles
from archsim.tiled.cycles import ANY, cycles_within
from archsim.tiled.near_bound import least_bytes
from archsim.tiled.near_layer import (
    FLOOR,
    LEAST,
    PART_CHANNELS,
    PART_CODE,
    PART_FILTERS,
    PART_OUTER,
    Layer,
    all_parts,
    fewest_tiles,
    floor_of,
    layer_in,
    part_of,
    side_by_side,
)
from archsim.tiled.near_meet import (
    FloatArray,
    Found,
    in_order,
    meet_part,
    most_of_part,
)
from archsim.tiled.near_memo import key_of, place_of
from archsim.tiled.near_queue import Queue
from archsim.tiled.near_sizes import MOST_SIZES, group_sizes
from archsim.tiled.near_tiers import most_of_tier, tier_of
from archsim.tiled.tile_fit import ceil

MOST_SCHEDULED = 1 << 22
"""Tiles that are scheduled for a layer, before the best so far is taken."""

SCHEDULED, TILES, BOUNDED, MET, TRIED, CUT_OFF, EFFORT_COLUMNS = range(7)
"""What a search did: tilings that were scheduled, their tiles, tilings that were held against the
second bound, parts and tilings that were met; tilings of fewer bytes than the fastest that were
scheduled; and whether it was cut off: 1 where there may be fewer bytes, else NOT_ALL."""

NOT_ALL = 2
"""Of a search that was cut off before the lowest tier was sure."""

MOST_TRIED = 32
"""Tilings of fewer bytes than the fastest that are scheduled at most."""

PARTS = 2 * MOST_SIZES**2
"""Numbers of parts."""


@kernel
def _learn(
    layer: Layer, found: Found, entry: IntArray, bounds: IntArray, scheduled: bool
) -> tuple[int, int, int]:
    """Of a tiling: its bound, its bytes, and what it takes at least, or, where it is `scheduled`,
    its cycles; of one that is of no use some number above the limit."""
    memo, tiling, most = found.memo, entry[nq.SIZES :], found.limit[0]
    at, key = place_of(memo, entry[nq.CODE]), key_of(memo, entry[nq.CODE])
    if at >= 0 and memo[at, nm.NUMBER] == key:
        least = memo[at, nm.LEAST]
        if least > most or memo[at, nm.EXACT] == 1 or not scheduled:
            return memo[at, nm.BOUND], memo[at, nm.BYTES], least
    found.effort[BOUNDED] += 1
    bound_within(bounds, layer.problem, layer.machine, layer.services, tiling, most)
    least, exact = bounds[CYCLES], 0
    if scheduled and least <= most:
        least = cycles_within(layer.problem, tiling, layer.machine, bounds, most)
        exact = int(least <= most)
    if at >= 0:
        memo[at, nm.NUMBER], memo[at, nm.LEAST] = key, least
        memo[at, nm.BOUND], memo[at, nm.BYTES] = bounds[CYCLES], bounds[BYTES]
        memo[at, nm.EXACT] = exact
    return bounds[CYCLES], bounds[BYTES], least


@kernel
def _schedule(layer: Layer, found: Found, entry: IntArray, bounds: IntArray) -> None:
    """Schedule a tiling whose bound is low enough, and keep it if so are its cycles."""
    best, tiling, most = found.best, entry[nq.SIZES :], found.limit[0]
    low, moved, cycles = _learn(layer, found, entry, bounds, True)
    if low > most:
        return
    problem = layer.problem
    pixels, filters, channels = count_tiles(problem, tiling)
    found.effort[SCHEDULED] += 1
    found.effort[TILES] += problem[pb.GROUPS] * pixels * filters * channels
    if cycles > most:
        return
    best[0], best[1] = cycles, moved
    for size in range(pb.TILING_COLUMNS):
        found.tiling[size] = tiling[size]


@inlined
def _raise_bar(found: Found) -> None:
    """Of use is now what is of a lower tier than the best, and later what is of no higher one."""
    tier = tier_of(found.floor, int(found.best[0]))
    found.limit[0], found.limit[1] = (
        most_of_tier(found.floor, tier - 1),
        most_of_tier(found.floor, tier),
    )


@kernel
def _put(layer: Layer, queue: Queue, found: Found, part: IntArray, place: int) -> None:
    """Put a part into the queue, which has room for it."""
    tried = layer.tried
    for size in range(pb.TILING_COLUMNS):
        tried[size] = 1
    tried[pb.T_GROUPS], tried[pb.T_FILTERS] = layer.side, part[PART_FILTERS]
    tried[pb.T_CHANNELS], tried[pb.T_FILTERS_OUTER] = part[PART_CHANNELS], part[PART_OUTER]
    low, code = part[LEAST], place * PARTS + part[PART_CODE]
    nq.push(queue, in_order(found, low, nq.PART), low, nq.PART, code, tried)


@kernel
def _look(layer: Layer, found: Found, queue: Queue, bounds: IntArray) -> None:
    """Take the first entry, which is of the layer, out: of a part, put its tilings in, for which
    there is room; of a tiling find the bound, and put it in again if others come before it now,
    else schedule it."""
    entry = queue.entries[queue.heap[0]]
    nq.drop(queue)
    if entry[nq.LOW] > found.limit[0]:
        return
    if entry[nq.STAGE] == nq.PART:
        meet_part(layer, found, queue, entry)
        return
    if entry[nq.STAGE] == nq.TILING and found.most == 0:
        low = _learn(layer, found, entry, bounds, False)[2]
        if low > found.limit[0]:
            return
        order = in_order(found, low, nq.BOUNDED)
        if queue.counts[1] > 0 and order > nq.first_of(queue):
            nq.push(queue, order, low, nq.BOUNDED, entry[nq.CODE], entry[nq.SIZES :])
            return
    _schedule(layer, found, entry, bounds)


@kernel
def _guess(layer: Layer, queue: Queue, found: Found, parts: IntArray, place: int) -> None:
    """Schedule a tiling of a low bound of the lowest part that has any; where nothing fits, no part
    is left."""
    bounds = np.zeros(BOUND_COLUMNS, np.int64)
    for _ in range(len(parts)):
        at = 0
        for other in range(1, len(parts)):
            if parts[other, LEAST] < parts[at, LEAST]:
                at = other
        _put(layer, queue, found, parts[at], place)
        while queue.counts[1] > 0 and found.best[0] == np.inf:
            _look(layer, found, queue, bounds)
            found.limit[0] = ANY
        nq.clear(queue)
        if found.best[0] < np.inf:
            _raise_bar(found)
            return
        parts[at, LEAST] = ANY + 1


@kernel
def _begin(layer: Layer, queue: Queue, found: Found, place: int) -> Queue:
    """Put all parts into the queue; place: of the layer, among those of groups side by side."""
    parts = all_parts(layer)
    queue = nq.with_room(queue, len(parts) + most_of_part(layer))
    if found.limit[1] == ANY:
        _guess(layer, queue, found, parts, place)
    for at in range(len(parts)):
        if parts[at, LEAST] <= found.limit[1]:
            _put(layer, queue, found, parts[at], place)
    return queue


@kernel
def _search(layer: Layer, found: Found, queue: Queue, more: int, least: int) -> bool:
    """Go through the queue, while there may be something of a lower tier; whether it came to an
    end, and not to where there is no room for so many entries more.

    least: none takes fewer cycles."""
    bounds, own = np.zeros(BOUND_COLUMNS, np.int64), layer
    while queue.counts[1] > 0 and found.effort[TILES] <= MOST_SCHEDULED:
        if found.limit[0] < least or nq.first_of(queue) > in_order(found, found.limit[0], nq.PART):
            break
        if not nq.has_room(queue, more):
            return False
        before, groups = found.best[0], queue.entries[queue.heap[0], nq.SIZES + pb.T_GROUPS]
        if groups != own.side:
            own = side_by_side(layer, groups)
        _look(own, found, queue, bounds)
        if found.best[0] < before:
            _raise_bar(found)
    found.effort[MET] = queue.counts[0]
    return True


@kernel
def _begin_again(layer: Layer, found: Found, before: Queue) -> Queue:
    """A queue of the parts in `before` that may have tilings of fewer bytes, the fewest first."""
    queue, own = nq.with_room(nq.new_queue(), before.counts[0]), layer
    for at in range(before.counts[0]):
        entry = before.entries[at]
        if entry[nq.STAGE] != nq.PART or entry[nq.LOW] > found.limit[0]:
            continue
        tried = entry[nq.SIZES :]
        if tried[pb.T_GROUPS] != own.side:
            own = side_by_side(layer, tried[pb.T_GROUPS])
        words = ceil(layer.least * own.problem[pb.CHANNELS], layer.machine[mc.IFMAP_LANES])
        of_part = part_of(own, tried)
        pixels = fewest_tiles(own, of_part[0], tried[pb.T_CHANNELS]), words
        outer = tried[pb.T_FILTERS_OUTER]
        few = least_bytes(layer.machine, own.ground, of_part, outer, pixels)
        if few <= found.most:
            nq.push(queue, (few, 0), entry[nq.LOW], nq.PART, entry[nq.CODE], tried)
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
    effort, bounds, own = fastest.effort, np.zeros(BOUND_COLUMNS, np.int64), layer
    while queue.counts[1] > 0:
        if effort[TRIED] == MOST_TRIED or effort[TILES] > MOST_SCHEDULED:
            effort[CUT_OFF] = max(effort[CUT_OFF], 1)
            break
        if not nq.has_room(queue, more):
            return False
        entry, scheduled = queue.entries[queue.heap[0]], effort[SCHEDULED]
        if entry[nq.STAGE] == nq.TILING and same_sizes(entry[nq.SIZES :], fastest.tiling):
            break
        if entry[nq.SIZES + pb.T_GROUPS] != own.side:
            own = side_by_side(layer, entry[nq.SIZES + pb.T_GROUPS])
        _look(own, found, queue, bounds)
        effort[TRIED] += effort[SCHEDULED] - scheduled
        if found.best[0] < np.inf:
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


@kernel
def _lowest_tier(layer: Layer, groups: IntArray) -> int:
    """Where the lowest tier of cycles begins; groups: numbers of them side by side."""
    if layer.many[FLOOR] == 0:
        floor = floor_of(layer)
        for at in range(len(groups)):
            floor = min(floor, floor_of(side_by_side(layer, groups[at])))
        layer.many[FLOOR] = max(floor, 1)
    return layer.many[FLOOR]


@kernel("i8.1, i8.1, bool, f8.1, i8.2, i8.1, i8.2, i8.3, int", answer="none")
def near_tiling(  # noqa: PLR0913
    problem: IntArray, machine: IntArray, share: bool, best: FloatArray, tilings: IntArray,
    effort: IntArray, memo: IntArray, lists: IntArray, tier: int,
) -> None:  # fmt: skip
    """Write the tiling of a layer, groups included, and what it takes, into `tilings` and `best`.

    best: its cycles and bytes, as if words of the ifmap were packed across tiles; before those of
    the tiling in tilings[1], which fits, or infinite, and they stay so where none fits.  tilings:
    [2, TILING_COLUMNS], that which is taken, and the fastest that was found.  share: groups may lie
    side by side.  effort: [EFFORT_COLUMNS], zeros: what it did.  memo, lists: what is known of the
    layer's tilings (`archsim.tiled.near_memo`) and sizes (`archsim.tiled.near_layer`).  tier:
    cycles of the tier below which no tiling is that fits, or 0.
    """
    many = np.zeros(MOST_SIZES, np.int64)
    limit, best_of_few = np.full(2, ANY), np.full(2, np.inf)
    layer, queue = layer_in(lists, problem, machine), nq.new_queue()
    count = group_sizes(many, problem, machine, share)
    floor = _lowest_tier(layer, many[:count])
    found = Found(best, tilings[1], limit, floor, effort, 0, memo)
    least = floor if tier <= floor else most_of_tier(floor, tier_of(floor, tier) - 1) + 1
    if best[0] < np.inf:
        _raise_bar(found)
    more = most_of_part(layer)
    if best[0] == np.inf and tier > 0:
        # perhaps there is one in the tier that none is below
        limit[0] = limit[1] = most_of_tier(floor, tier_of(floor, tier))
    for attempt in range(2):
        nq.clear(queue)
        for at in range(count):
            queue = _begin(side_by_side(layer, many[at]), queue, found, at)
        while limit[0] >= least and not _search(layer, found, queue, more, least):
            queue = nq.with_room(queue, more)
        if best[0] < np.inf or limit[1] == ANY or attempt == 1:
            break
        limit[0] = limit[1] = ANY
    effort[CUT_OFF] = NOT_ALL * int(effort[TILES] > MOST_SCHEDULED)
    if best[0] < np.inf:
        limit[0] = limit[1]
        few = Found(best_of_few, tilings[0], limit, found.floor, effort, int(best[1]), memo)
        _fewest_bytes(layer, found, few, queue)
