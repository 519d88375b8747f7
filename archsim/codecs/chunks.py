"""Work on a range, cut for the cores: kernels that let other threads run share it."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

FEWEST_VALUES = 1 << 18
"""Below which a thread costs more than it brings."""

CHUNKS = 4
"""For each core, since not all take as long."""


def cores() -> int:
    """NUMBA_NUM_THREADS where it is set, else all."""
    asked = os.environ.get("NUMBA_NUM_THREADS", "")
    return int(asked) if asked.isdigit() and int(asked) else os.cpu_count() or 1


def in_chunks(work: Callable[[int, int], None], count: int, values: int) -> None:
    """Call work(begin, end) so that each of `count` places is in one range.

    values: how many it takes altogether; where few, there is one call and no thread.
    """
    workers = min(cores(), max(values // FEWEST_VALUES, 1), count)
    if workers <= 1:
        work(0, count)
        return
    chunks = min(workers * CHUNKS, count)
    bounds = [count * at // chunks for at in range(chunks + 1)]
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(work, bounds[:-1], bounds[1:]))
