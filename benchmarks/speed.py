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
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import platformdirs

ONE_THREAD: dict[str, str] = dict.fromkeys(
    (
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
        "BLIS_NUM_THREADS",
        "VECLIB_MAXIMUM_THREADS",
        "NUMEXPR_NUM_THREADS",
        "NUMBA_NUM_THREADS",
    ),
    "1",
)
"""Read by the libraries when NumPy and numba are imported, so it must be set before."""

MEASUREMENTS = (
    "scalesim",
    "values",
    "cores",
    "core-timing",
    "verilator",
    "designs",
    "energy",
    "process",
)


def options_of(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Measure the speed of archsim.")
    venv = platformdirs.user_cache_path("archsim") / "scalesim-3.0.0"
    say = parser.add_argument
    say("what", nargs="*", metavar="WHAT", help=f"{', '.join(MEASUREMENTS)}; all if none is given")
    say("--repeats", type=int, default=11, help="measurements of which the median is taken")
    say("--peer", action="store_true", help="run SCALE-Sim too, instead of its recorded time")
    say("--venv", type=Path, default=venv, help=f"SCALE-Sim's environment, default {venv}")
    shape = parser.add_mutually_exclusive_group()
    shape.add_argument("--json", action="store_true", help="figures as JSON on standard output")
    shape.add_argument("--markdown", action="store_true", help="the table of benchmarks/README.md")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.what if name not in MEASUREMENTS]
    if unknown:
        parser.error(f"WHAT must be of {', '.join(MEASUREMENTS)}, not {unknown[0]!r}")
    if options.repeats < 1:
        parser.error(f"--repeats must be positive, not {options.repeats}")
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; 1 if a target is not met."""
    options = options_of(arguments)
    os.environ.update(ONE_THREAD)
    import speed_measurements as measure  # only now: it imports NumPy
    from speed_report import environment, print_markdown, print_report

    calls = {
        "scalesim": lambda: measure.scalesim(options.repeats, options.peer, options.venv),
        "values": lambda: measure.values(options.repeats),
        "cores": lambda: measure.cores(options.repeats),
        "core-timing": lambda: measure.core_timing(options.repeats),
        "verilator": lambda: measure.verilator(options.repeats),
        "designs": lambda: measure.designs(options.repeats),
        "energy": lambda: measure.energy(options.repeats),
        "process": lambda: measure.process(options.repeats),
    }
    rows = []
    for name in options.what or MEASUREMENTS:
        print(f"measuring {name} …", file=sys.stderr, flush=True)
        try:
            rows.append(calls[name]())
        except (ImportError, RuntimeError) as error:  # a package or a tool is missing
            print(f"{name}: {error}", file=sys.stderr)
            return 2
    about = environment()
    if options.json:
        print(json.dumps({"environment": about, "rows": [row.record() for row in rows]}, indent=2))
    elif options.markdown:
        print_markdown(about, rows)
    else:
        print_report(about, rows)
    return 0 if all(row.met for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
