"""A good tiling of a layer, fast: of some that fit, those of the lowest bounds are scheduled."""

from __future__ import annotations

import numpy as np

from archsim.kernels import kernel
from archsim.layer import problem as pb
from archsim.numbers import IntArray
from archsim.tiled.bound import BOUND_COLUMNS
from archsim.tiled.bound_paths import bound, count_tiles
from archsim.tiled.measured import MOST_TILES, Goal, better, try_tiling
from archsim.tiled.objective import keys_of
from archsim.tiled.tiling import candidates
from archsim.tiled.traffic import services_of

ATTEMPTS = 6
"""How many tilings are scheduled."""


@kernel("i8.1, i8.1, (f8.1, int, f8.1, i8.1)")
def best_of_few(problem: IntArray, machine: IntArray, goal: Goal) -> int:
    """Write the best of some tilings of a problem of blocks of groups, and its keys, into `goal`.

    They stay as they are where none is better.  Returns how many fit.
    """
    tried, vectors = candidates(problem, machine), (problem, machine, services_of(machine))
    keys, found = np.full((len(tried), 2), np.inf), np.zeros(BOUND_COLUMNS, np.int64)
    for at in range(len(tried)):
        pixels, filters, channels = count_tiles(problem, tried[at])
        if float(problem[pb.GROUPS]) * pixels * filters * channels <= MOST_TILES:
            bound(found, problem, machine, vectors[2], tried[at])
            keys[at, 0], keys[at, 1] = keys_of(found, goal[0], goal[1])
    for _ in range(min(ATTEMPTS, len(tried))):
        lowest = 0
        for at in range(len(tried)):
            if better((keys[at, 0], keys[at, 1]), keys[lowest]):
                lowest = at
        if not better((keys[lowest, 0], keys[lowest, 1]), goal[2]):
            break
        keys[lowest] = np.inf
        try_tiling(vectors, goal, tried[lowest])
    return len(tried)
