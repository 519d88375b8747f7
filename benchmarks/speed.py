"""How fast archsim is, beside what it is compared with; every ratio is measured in one run.

    python benchmarks/speed.py                         everything but SCALE-Sim's own run
    python benchmarks/speed.py values designs          only these
    python benchmarks/speed.py scalesim --peer         with SCALE-Sim, some minutes and 11 GB
    python benchmarks/speed.py --json > speed.json

Each figure is the median of repeated measurements; where two things are compared, their
measurements take turns.  Everything runs on one core: BLAS and its kin get one thread.  Exit code 1
if a target is not met, 2 if a tool is missing.  What is measured, and why so:
`benchmarks/README.md`.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import platformdirs
from rows import measured, parsed, parser_of

ONE_THREAD: dict[str, str] = dict.fromkeys(
    (
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
        "BLIS_NUM_THREADS",
        "VECLIB_MAXIMUM_THREADS",
        "NUMEXPR_NUM_THREADS",
        "NUMBA_NUM_THREADS",
        "ARCHSIM_THREADS",
    ),
    "1",
)
"""Read by the libraries when NumPy and numba are imported, so it must be set before."""

MEASUREMENTS = (
    "scalesim",
    "scalesim-mapped",
    "scalesim-result",
    "values",
    "values-tensorcore",
    "values-vsq",
    "core-timing",
    "verilator",
    "designs",
    "energy",
    "help",
    "list",
    "run",
    "cold",
)


def options_of(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = parser_of("Measure the speed of archsim.", MEASUREMENTS, repeats=11)
    venv = platformdirs.user_cache_path("archsim") / "scalesim-3.0.0"
    say = parser.add_argument
    say("--peer", action="store_true", help="run SCALE-Sim too, instead of its recorded time")
    say("--venv", type=Path, default=venv, help=f"SCALE-Sim's environment, default {venv}")
    return parsed(parser, MEASUREMENTS, arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; 1 if a target is not met."""
    options = options_of(arguments)
    os.environ.update(ONE_THREAD)
    import speed_measurements as measure  # only now: it imports NumPy

    peer = options.repeats, options.peer, options.venv
    calls = {
        **{name: partial(measure.scalesim, name, *peer) for name in measure.SCALESIM},
        "values": lambda: measure.values(options.repeats),
        "values-tensorcore": lambda: measure.core_values(
            options.repeats, measure.INTEGER_VOLTA, "volta (INT8)", 0.7
        ),
        "values-vsq": lambda: measure.core_values(options.repeats, measure.VSQ_5NM, "vsq-5nm", 2),
        "core-timing": lambda: measure.core_timing(options.repeats),
        "verilator": lambda: measure.verilator(options.repeats),
        "designs": lambda: measure.designs(options.repeats),
        "energy": lambda: measure.energy(options.repeats),
        "help": lambda: measure.typed("help", options.repeats),
        "list": lambda: measure.typed("list", options.repeats),
        "run": lambda: measure.typed("run", options.repeats),
        "cold": lambda: measure.cold(options.repeats),
    }
    return measured(options, calls)


if __name__ == "__main__":
    sys.exit(main())
