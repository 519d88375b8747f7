"""What searches for mappings share: how a tiling is measured, and those that wait for it.

A tiling whose bound is below the best mapping so far waits; what waits is scheduled, the lowest
bound first, and what is no longer below the best is left out.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from archsim.kernels import inlined, kernel
from archsim.layer import problem as pb
from archsim.numbers import IntArray
from archsim.tiled import machine_vector as mc
from archsim.tiled import plan as pn
from archsim.tiled.bound import BOUND_COLUMNS, BYTES, CYCLES, IFMAP_WRITES
from archsim.tiled.bound_paths import bound, count_tiles
from archsim.tiled.objective import keys_of
from archsim.tiled.summary import count_cycles
from archsim.tiled.traffic import port_bytes, services_of
from archsim.tiled.walk import walk

FloatArray = npt.NDArray[np.float64]

WAITING = 1 << 15
"""Tilings that wait to be scheduled at most, before the search goes on."""

MOST_TILES = 1 << 20
"""Of a layer that is scheduled; a tiling of more is not tried."""

PARTS, TILINGS, SCHEDULED, TILES, STEPS, MOST_STEPS, COUNT, EFFORT_COLUMNS = range(8)
"""What a search did: parts that it went into, tilings that waited, tilings and tiles that were
scheduled, and steps of its loops in all; how many these may be, and how many tilings wait."""

Vectors = tuple[IntArray, IntArray, IntArray]
"""A problem of blocks of groups, a machine, and how its off-chip memory serves the ports."""

Goal = tuple[FloatArray, int, FloatArray, IntArray]
"""Prices and objective (`archsim.tiled.objective.keys_of`), the keys [2] of the best mapping so
far, and its sizes [TILING_COLUMNS]."""

Waiting = tuple[IntArray, FloatArray, IntArray]
"""Tilings that wait, the keys of their bounds, and what the search did [EFFORT_COLUMNS]."""


@inlined
def better(key: tuple[float, float], best: FloatArray) -> bool:
    """Whether a mapping's keys are below the best ones."""
    return key[0] < best[0] or (key[0] == best[0] and key[1] < best[1])


@kernel
def measure(found: IntArray, vectors: Vectors, tiling: IntArray) -> int:
    """Write what a tiling takes, exactly, into `found` [BOUND_COLUMNS]; returns its tiles."""
    problem, machine, services = vectors
    bound(found, problem, machine, services, tiling)
    tiles = walk(problem, tiling, machine)
    moved = port_bytes(tiles, machine)
    found[BYTES] = 0
    for port in range(pn.IFMAP, pn.OFMAP + 1):
        found[BYTES] += moved[port]
    found[IFMAP_WRITES] = moved[pn.IFMAP] // machine[mc.IFMAP_WORD_BYTES]
    found[CYCLES] = count_cycles(tiles, machine)
    return len(tiles)


@kernel
def _lowest_first(keys: FloatArray, count: int) -> IntArray:
    """Numbers of the first `count` rows of keys [rows, 2], in the order of their first key."""
    order = np.arange(count)
    for end in range(2 * count - 1, 0, -1):
        # a heap with the largest on top: it is made, then taken down
        root, size = end - count, count
        if end < count:
            order[0], order[end] = order[end], order[0]
            root, size = 0, end
        while 2 * root + 1 < size:
            child = 2 * root + 1
            if child + 1 < size and keys[order[child], 0] < keys[order[child + 1], 0]:
                child += 1
            if keys[order[root], 0] >= keys[order[child], 0]:
                break
            order[root], order[child] = order[child], order[root]
            root = child
    return order


@kernel
def try_tiling(vectors: Vectors, goal: Goal, tiling: IntArray) -> int:
    """Schedule a tiling, and keep it if it is the best; returns its tiles."""
    found = np.zeros(BOUND_COLUMNS, np.int64)
    tiles = measure(found, vectors, tiling)
    key = keys_of(found, goal[0], goal[1])
    if better(key, goal[2]):
        goal[2][0], goal[2][1] = key
        for size in range(pb.TILING_COLUMNS):
            goal[3][size] = tiling[size]
    return tiles


@kernel
def settle(vectors: Vectors, goal: Goal, waiting: Waiting) -> None:
    """Schedule the tilings that wait, the lowest bound first, and keep the best."""
    sizes, keys, effort = waiting
    for at in _lowest_first(keys, effort[COUNT]):
        if better((keys[at, 0], keys[at, 1]), goal[2]):
            effort[SCHEDULED] += 1
            effort[TILES] += try_tiling(vectors, goal, sizes[at])
    effort[COUNT] = 0


@kernel("i8.1, i8.1, (f8.1, int), i8.1")
def keys_of_tiling(
    problem: IntArray, machine: IntArray, aim: tuple[FloatArray, int], tiling: IntArray
) -> tuple[float, float]:
    """The keys of a tiling of a problem of blocks of groups; infinite for too many tiles."""
    pixels, filters, channels = count_tiles(problem, tiling)
    if float(problem[pb.GROUPS]) * pixels * filters * channels > MOST_TILES:
        return np.inf, np.inf
    found = np.zeros(BOUND_COLUMNS, np.int64)
    measure(found, (problem, machine, services_of(machine)), tiling)
    return keys_of(found, aim[0], aim[1])
