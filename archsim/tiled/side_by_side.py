"""How many groups of a layer lie side by side on the array: which numbers are tried, and how.

g groups side by side are one block of g · C channels and g · K filters (`Problem.side_by_side`).
The block is a problem like any other; what differs is how many blocks there are, what they weigh,
and how full they leave the array.  Some g are tried, each with the best of its tilings, and the
exact schedule decides: the least cycles · bytes; bytes are those that cross the ports, zeros too.
"""

from __future__ import annotations

import numpy as np

from archsim.kernels import kernel
from archsim.layer import problem as pb
from archsim.numbers import IntArray
from archsim.tiled import commands as cmd
from archsim.tiled import machine_vector as mc
from archsim.tiled.folds import fold_span, moving_words
from archsim.tiled.summary import count_cycles
from archsim.tiled.tile_fit import ceil, weights_fit
from archsim.tiled.tiling import (
    BYTES,
    FOUND_COLUMNS,
    MAX_CANDIDATES,
    fewest_bytes,
    offer_images,
)
from archsim.tiled.traffic import port_bytes
from archsim.tiled.walk import run_shape, tile_counts, walk

BLOCK_CYCLES, BLOCK_BYTES, MOST_CYCLES, MOST_BYTES, COST_COLUMNS = range(5)
"""What the best blocks so far cost, and the most that they may."""

UNKNOWN = 1 << 62
"""A cost that anything is below."""

MOST_TILES = 1 << 20
"""Of all blocks; a tiling of more is not tried."""

STEPS = 4
"""How many times over a block may fill the columns: where filters leave some empty, that pays."""

MOST_COUNTS = 80
"""Room for the numbers of groups that are tried; they are about the logarithm of the groups."""


@kernel
def block_problem(problem: IntArray, groups: int) -> IntArray:
    """`Problem.side_by_side` for the kernels."""
    block = problem.copy()
    block[pb.GROUPS] = ceil(problem[pb.GROUPS], groups)
    block[pb.CHANNELS] *= groups
    block[pb.FILTERS] *= groups
    return block


@kernel
def may_share(problem: IntArray, machine: IntArray) -> bool:
    """Whether groups may lie side by side: no output's scale is shared across groups."""
    return problem[pb.GROUPS] > 1 and problem[pb.FILTERS] % machine[mc.OUTPUT_VECTOR] == 0


@kernel
def _add_count(counts: IntArray, count: int, groups: int) -> int:
    """Put a number into the falling list `counts`, unless it is there."""
    at = 0
    while at < count and counts[at] > groups:
        at += 1
    if (at < count and counts[at] == groups) or count == MOST_COUNTS:
        return count
    for place in range(count, at, -1):
        counts[place] = counts[place - 1]
    counts[at] = groups
    return count + 1


@kernel
def _offer(counts: IntArray, count: int, groups: int, size: int) -> int:
    """Add the least number that makes as many blocks of `groups` groups as `size` does."""
    if size < 2:
        return count
    return _add_count(counts, count, ceil(groups, ceil(groups, size)))


@kernel
def group_counts(problem: IntArray, machine: IntArray, counts: IntArray) -> int:
    """Write the numbers of groups to try into `counts` [MOST_COUNTS], falling; how many they are.

    As many as fill the columns up to STEPS times over, with filters or, of an input-stationary
    array, also the rows with a run's elements; the halves of those that fill them once; fewer,
    whose runs fill whole chunks; all groups, if these are not many more.  Each is made the least
    that makes as many blocks, so that the last one has the fewest empty groups.  The last one is 1.
    """
    groups, count = problem[pb.GROUPS], _add_count(counts, 0, 1)
    if not may_share(problem, machine):
        return count
    length, chunk = run_shape(problem, problem[pb.CHANNELS])[1], machine[mc.CHUNK]
    lines, size = machine[mc.COLUMNS], problem[pb.FILTERS]
    if machine[mc.DATAFLOW] == mc.INPUT_STATIONARY and chunk * size > lines * length:
        lines, size = chunk, length
    most = min(max(STEPS * lines // size, STEPS), groups)
    if groups <= 2 * most:
        count = _offer(counts, count, groups, groups)
    for step in range(1, STEPS + 1):
        count = _offer(counts, count, groups, step * machine[mc.COLUMNS] // problem[pb.FILTERS])
        count = _offer(counts, count, groups, step * lines // size)
        count = _offer(counts, count, groups, step)
    half = lines // size
    while half > 1:
        count = _offer(counts, count, groups, half)
        half //= 2
    filled = chunk
    while filled < most * length:
        count = _offer(counts, count, groups, filled // length)
        filled *= 2
    return count


@kernel
def _total_bytes(tiles: IntArray, machine: IntArray) -> int:
    """Bytes that cross all ports."""
    total = 0
    for moved in port_bytes(tiles, machine):
        total += moved
    return total


@kernel
def _many(block: IntArray, tiling: IntArray) -> bool:
    """Whether a tiling makes more tiles than are tried."""
    count = block[pb.GROUPS]
    for along in tile_counts(block, tiling):
        count *= along
    return count > MOST_TILES


@kernel
def block_bounds(block: IntArray, tiling: IntArray, machine: IntArray) -> tuple[int, int]:
    """Cycles that all blocks take at least, and their bytes, short of a word a block.

    The cycles are what the busiest unit needs for its own share of one block, for every block.
    """
    one = block.copy()
    one[pb.GROUPS] = 1
    tiles = walk(one, tiling, machine)
    array = outputs = loads = 0
    for at in range(len(tiles)):
        row = tiles[at]
        array += moving_words(fold_span(row, machine), machine)
        outputs += row[cmd.OUTPUT_ROWS] * row[cmd.LAST_K]
        loads += row[cmd.IFMAP_WORDS] * row[cmd.LOAD_IFMAP]
    least = max(max(array, outputs), max(loads, len(tiles) * machine[mc.TILE_INTERVAL]))
    moved = _total_bytes(tiles, machine) - machine[mc.OFMAP_WORD_BYTES]
    return block[pb.GROUPS] * least, block[pb.GROUPS] * moved


@kernel
def try_tiling(block: IntArray, machine: IntArray, tiling: IntArray, cost: IntArray) -> bool:
    """Whether a tiling's cycles · bytes are below those of `cost`, and neither above its most.

    If so, they are written there.
    """
    best = float(cost[BLOCK_CYCLES]) * cost[BLOCK_BYTES]
    least, moved = block_bounds(block, tiling, machine)
    if least > cost[MOST_CYCLES] or float(least) * moved >= best:
        return False
    tiles = walk(block, tiling, machine)
    moved = _total_bytes(tiles, machine)
    if moved > cost[MOST_BYTES]:
        return False
    cycles = count_cycles(tiles, machine)
    if cycles > cost[MOST_CYCLES] or float(cycles) * moved >= best:
        return False
    cost[BLOCK_CYCLES], cost[BLOCK_BYTES] = cycles, moved
    return True


@kernel
def _try_block(
    block: IntArray, machine: IntArray, found: IntArray, best: IntArray, cost: IntArray
) -> bool:
    """Write a block's best tiling into `best` where `try_tiling` says so; whether one was.

    A tile has all of the block's channels and filters.  Of the tilings near the fewest bytes the
    exact schedule decides.
    """
    tiling = np.ones(pb.TILING_COLUMNS, np.int64)
    tiling[pb.T_FILTERS], tiling[pb.T_CHANNELS] = block[pb.FILTERS], block[pb.CHANNELS]
    if not weights_fit(block, machine, block[pb.FILTERS], block[pb.CHANNELS]):
        return False
    row, better = np.zeros(cmd.WALK_COLUMNS, np.int64), False
    count = offer_images(found, 0, block, machine, tiling, row)
    for at in range(count):
        for size in range(pb.TILING_COLUMNS):
            tiling[size] = found[at, size]
        close = 16 * found[at, BYTES] <= 17 * fewest_bytes(found, 0, count)
        if close and not _many(block, tiling) and try_tiling(block, machine, tiling, cost):
            better = True
            for size in range(pb.TILING_COLUMNS):
                best[size] = tiling[size]
    return better


@kernel
def try_blocks(problem: IntArray, machine: IntArray, best: IntArray, cost: IntArray) -> None:
    """Write the best tiling of groups side by side into `best`, and what it costs into `cost`.

    Nothing is written where none is as good as `cost`.
    """
    counts = np.zeros(MOST_COUNTS, np.int64)
    found = np.zeros((MAX_CANDIDATES, FOUND_COLUMNS), np.int64)
    for at in range(group_counts(problem, machine, counts) - 1):
        block = block_problem(problem, counts[at])
        if _try_block(block, machine, found, best, cost):
            best[pb.T_GROUPS] = counts[at]
