"""A good tiling of a layer, soon: from some that fit, downhill by their bounds; the lowest are
scheduled.

The bounds are near what the schedule gives (`docs/mapping.md`), so that going downhill by them ends
near the best tiling, at a fraction of what schedules would take.
"""

from __future__ import annotations

import numpy as np

from archsim.kernels import inlined, kernel
from archsim.layer import problem as pb
from archsim.numbers import IntArray
from archsim.tiled import machine_vector as mc
from archsim.tiled.bound import BOUND_COLUMNS
from archsim.tiled.bound_paths import bound, count_tiles
from archsim.tiled.measured import MOST_TILES, FloatArray, Goal, Vectors, better, try_tiling
from archsim.tiled.objective import keys_of
from archsim.tiled.tile_fit import ceil, pixels_fit, weights_fit
from archsim.tiled.tiling import candidates, filter_unit
from archsim.tiled.traffic import services_of

KEPT = 12
"""Tilings of the lowest bounds that are kept, and scheduled at most."""

STARTS = 4
"""Tilings from which the search goes downhill."""

ROUNDS = 12
"""Steps downhill at most, from each."""

COUNTS = (2, 3, 4, 5, 6, 8, 10, 13, 16, 20, 26, 32, 48, 64)
"""Tiles along an axis that are tried wherever the search is."""

MOVES = 14 + len(COUNTS)
"""Sizes that are tried along an axis."""

Kept = tuple[IntArray, FloatArray]
"""Tilings [KEPT, TILING_COLUMNS] of the lowest bounds, and these [KEPT, 2], the lowest first."""


@inlined
def _size_of_axis(problem: IntArray, axis: int) -> int:
    """All there is along an axis of a tile."""
    if axis == pb.T_ROWS:
        return problem[pb.OUT_HEIGHT]
    if axis == pb.T_COLUMNS:
        return problem[pb.OUT_WIDTH]
    if axis == pb.T_FILTERS:
        return problem[pb.FILTERS]
    return problem[pb.CHANNELS] if axis == pb.T_CHANNELS else problem[pb.IMAGES]


@kernel
def _legal(problem: IntArray, machine: IntArray, tiling: IntArray) -> bool:
    """Whether a tiling fits, and there are not too many tiles."""
    filters = tiling[pb.T_FILTERS]
    if filters < problem[pb.FILTERS] and filters % machine[mc.OUTPUT_VECTOR] > 0:
        return False
    pixels, n_filters, channels = count_tiles(problem, tiling)
    many = float(problem[pb.GROUPS]) * pixels * n_filters * channels > MOST_TILES
    fits = weights_fit(problem, machine, filters, tiling[pb.T_CHANNELS])
    return fits and not many and pixels_fit(problem, machine, tiling)


@kernel
def _keep(kept: Kept, key: tuple[float, float], tiling: IntArray) -> None:
    """Put a tiling among those of the lowest bounds, if it is of them and not there yet."""
    sizes, keys = kept
    if not better(key, keys[KEPT - 1]):
        return
    for at in range(KEPT):
        same = keys[at, 0] == key[0] and keys[at, 1] == key[1]
        for size in range(pb.TILING_COLUMNS):
            same = same and sizes[at, size] == tiling[size]
        if same:
            return
    at = KEPT - 1
    while at > 0 and better(key, keys[at - 1]):
        keys[at] = keys[at - 1]
        sizes[at] = sizes[at - 1]
        at -= 1
    keys[at, 0], keys[at, 1] = key
    for size in range(pb.TILING_COLUMNS):
        sizes[at, size] = tiling[size]


@kernel
def _bounded(vectors: Vectors, goal: Goal, kept: Kept, tiling: IntArray) -> tuple[float, float]:
    """The keys of a tiling's bound, infinite of one that is not legal; keeps it if they are low."""
    problem, machine, services = vectors
    if not _legal(problem, machine, tiling):
        return np.inf, np.inf
    found = np.zeros(BOUND_COLUMNS, np.int64)
    bound(found, problem, machine, services, tiling)
    key = keys_of(found, goal[0], goal[1])
    _keep(kept, key, tiling)
    return key


@kernel
def _moved(problem: IntArray, machine: IntArray, size: int, axis: int, move: int) -> int:
    """Another size along an axis, 0 for none: of a few more or fewer tiles that are alike, of
    twice or half as many, the next whole block, one less or more."""
    whole = _size_of_axis(problem, axis)
    count, unit = ceil(whole, size), 1
    if axis == pb.T_FILTERS:
        unit = filter_unit(machine)
    elif axis == pb.T_CHANNELS:
        unit = machine[mc.CHUNK]
    if move < 4:
        count += (-2, -1, 1, 2)[move]
    elif move < 8:
        count = (2 * count, 3 * count, count // 2, count // 3)[move - 4]
    elif move < 10:
        return min(whole, max(0, (size // unit + (1 if move == 8 else -1)) * unit))
    elif move < 12:
        return min(whole, size + (1 if move == 10 else -1))
    elif move < 14:
        return whole if move == 12 else min(whole, unit)
    else:
        return ceil(whole, COUNTS[move - 14])
    if count < 1:
        return 0
    even = ceil(whole, count)
    return min(whole, ceil(even, unit) * unit)


@kernel
def _downhill(vectors: Vectors, goal: Goal, kept: Kept, tiling: IntArray) -> None:
    """From a tiling to the neighbour of the lowest bound, until none is lower."""
    problem, machine, _ = vectors
    best = _bounded(vectors, goal, kept, tiling)
    tried = tiling.copy()
    for _ in range(ROUNDS):
        before = best
        for axis in (pb.T_CHANNELS, pb.T_FILTERS, pb.T_COLUMNS, pb.T_ROWS, pb.T_IMAGES):
            now, chosen, order = tiling[axis], tiling[axis], tiling[pb.T_FILTERS_OUTER]
            if _size_of_axis(problem, axis) == 1:
                continue
            for move in range(MOVES):
                tried[axis] = _moved(problem, machine, now, axis, move)
                if tried[axis] < 1 or tried[axis] == now:
                    continue
                for outer in range(2):
                    tried[pb.T_FILTERS_OUTER] = outer
                    key = _bounded(vectors, goal, kept, tried)
                    if key[0] < best[0] or (key[0] == best[0] and key[1] < best[1]):
                        best, chosen, order = key, tried[axis], outer
            tiling[axis] = tried[axis] = chosen
            tiling[pb.T_FILTERS_OUTER] = tried[pb.T_FILTERS_OUTER] = order
        if best == before:
            break


@kernel("i8.1, i8.1, (f8.1, int, f8.1, i8.1)")
def best_of_few(problem: IntArray, machine: IntArray, goal: Goal) -> int:
    """Write the best of some tilings of a problem of blocks of groups, and its keys, into `goal`.

    They stay as they are where none is better.  Returns how many were there to begin with.
    """
    tried, vectors = candidates(problem, machine), (problem, machine, services_of(machine))
    kept = np.zeros((KEPT, pb.TILING_COLUMNS), np.int64), np.full((KEPT, 2), np.inf)
    for at in range(len(tried)):
        _bounded(vectors, goal, kept, tried[at, : pb.TILING_COLUMNS].copy())
    starts = kept[0][:STARTS].copy()
    for at in range(STARTS):
        if starts[at, 0] > 0:
            _downhill(vectors, goal, kept, starts[at])
    for at in range(KEPT):
        if better((kept[1][at, 0], kept[1][at, 1]), goal[2]):
            try_tiling(vectors, goal, kept[0][at])
    return len(tried)
