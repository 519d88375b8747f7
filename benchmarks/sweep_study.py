"""What a study costs beside the bare evaluation of its designs, and how far it goes.

    python benchmarks/sweep_study.py                   every row but `scale`: some minutes
    python benchmarks/sweep_study.py stored shares     only these
    python benchmarks/sweep_study.py scale             10,000,000 points: minutes, and 2 GB of disk

stored   CPU of a study of a grid over that of `simulate_many` on the same designs
priced   random designs with cycles, energy and area, one core
workers  two processes over one, points whose cycles depend on values; wall time, so that it says
         something on an idle machine only
dask     processor time of points on a Dask worker over a local one, batches of 0.1 s, and what
         Dask takes for tasks of nothing but work
rows     points a second that are made rows and written, a thousand and more a transaction
scale    memory of the driver at 10^7 points over that at a tenth; opening, and a front
shares   CPU in sampler, simulator and writer of a study of a grid

Arrays are mapped roughly (`mapper = "rough"`), as one screens millions of designs; the default
mapper takes 15 to 40 times as long (`sweep.py`).  Times are of the processor, one thread, the
least of several, but where wall time is said.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rows import measured, parsed, parser_of

if TYPE_CHECKING:
    from speed_report import Row

MEASUREMENTS = ("stored", "priced", "workers", "dask", "rows", "shares", "scale")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; 1 if a target is not met."""
    parser = parser_of("Measure studies of design spaces.", MEASUREMENTS, repeats=3)
    parser.add_argument("--points", type=int, default=10_000_000, help="of `scale`")
    parser.add_argument(
        "--designs", type=int, default=10_000, help="of `stored`, `dask` and `shares`"
    )
    options = parsed(parser, MEASUREMENTS, arguments)
    options.what = options.what or [name for name in MEASUREMENTS if name != "scale"]
    os.environ["ARCHSIM_THREADS"] = "1"
    import sweep_measurements as measure  # only now: it imports NumPy

    def dask() -> Row:
        import sweep_dask  # with the extra `cluster`

        return sweep_dask.dask(options.designs, options.repeats)

    calls = {
        "stored": lambda: measure.stored(options.designs, options.repeats),
        "priced": lambda: measure.priced(options.repeats),
        "workers": lambda: measure.workers(options.repeats),
        "dask": dask,
        "rows": lambda: measure.rows(options.repeats),
        "shares": lambda: measure.shares(options.designs),
        "scale": lambda: measure.scale(options.points),
    }
    return measured(options, calls)


if __name__ == "__main__":
    sys.exit(main())
