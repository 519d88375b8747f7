"""Work on a range, cut for threads: kernels that let other threads run share it."""

from __future__ import annotations

from collections.abc import Callable

from workloads.threads import in_threads, threads

FEWEST_VALUES = 1 << 18
"""Below which a thread costs more than it brings."""

CHUNKS = 4
"""For each thread, since not all take as long."""


def in_chunks(work: Callable[[int, int], None], count: int, values: int) -> None:
    """Call work(begin, end) so that each of `count` places is in one range.

    values: how many it takes altogether; where few, there is one call and no thread.
    """
    workers = min(threads(), max(values // FEWEST_VALUES, 1), count)
    if workers <= 1:
        work(0, count)
        return
    chunks = min(workers * CHUNKS, count)
    bounds = [count * at // chunks for at in range(chunks + 1)]
    in_threads(lambda at: work(bounds[at], bounds[at + 1]), range(chunks), most=workers)
