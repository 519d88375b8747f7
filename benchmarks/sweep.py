"""Designs a second: a grid, random designs, and these with energy and area; ResNet-50, one core.

    python benchmarks/sweep.py                 # the three rows
    python benchmarks/sweep.py --json          # with key `designs_per_second`, of the grid
    python benchmarks/sweep.py --mapper rough  # a guess: halves and even parts, the fewest bytes

Processor time of one thread, the least of several measurements; the designs are made before, and
what making them takes stands beside.  Ten points of each row are checked against `simulate`, and
`archsim.energy.account`.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")}
os.environ.update(ONE_THREAD)

import numpy as np  # noqa: E402

from archsim import CLOUD_128, EDGE_16, Plain, Systolic, evaluate_many, simulate_many  # noqa: E402
from archsim.energy import account  # noqa: E402
from archsim.simulate import simulate  # noqa: E402
from workloads.builtin import builtin  # noqa: E402
from workloads.layers import Network  # noqa: E402

SIDES = (8, 12, 16, 24, 32, 48, 64, 96, 128)
KIBIBYTES = {"edge-16": (16, 32, 64, 128, 256), "cloud-128": (512, 1024, 2048, 4096, 8192)}
BASES = {"edge-16": EDGE_16, "cloud-128": CLOUD_128}
TARGETS = {"grid": 20_000, "random": 4_000, "costs": 1_000}
WHAT = {
    "grid": "rows × columns × three scratchpads around edge-16 and cloud-128",
    "random": "8 to 256 rows and columns, scratchpads of 16 KiB to 2 MiB, all drawn",
    "costs": "the same with energy and area",
}


def grid() -> list[Systolic]:
    """Rows × columns × sizes of the three scratchpads around both designs."""
    found: list[Systolic] = []
    for name, base in BASES.items():
        memories = [Plain(capacity_bytes=1024 * size) for size in KIBIBYTES[name]]
        for rows, columns, *three in product(SIDES, SIDES, memories, memories, memories):
            found.append(_design(base, rows, columns, three))
    return found


def drawn(count: int, seed: int = 1) -> list[Systolic]:
    """Random designs of the ranges in `WHAT`; sizes are drawn by their logarithm."""
    chance, found = random.Random(seed), list[Systolic]()
    for _ in range(count):
        sizes = [int(2 ** chance.uniform(14, 21)) for _ in range(3)]
        rows, columns = chance.randint(8, 256), chance.randint(8, 256)
        base = chance.choice(list(BASES.values()))
        found.append(_design(base, rows, columns, [Plain(capacity_bytes=one) for one in sizes]))
    return found


def _design(base: Systolic, rows: int, columns: int, memories: Sequence[Plain]) -> Systolic:
    ifmap, weight, sums = memories
    return replace(
        base,
        rows=rows,
        columns=columns,
        ifmap_memory=ifmap,
        weight_memory=weight,
        accumulator_memory=sums,
    )


def least(repeats: int, call: Callable[[], Any]) -> tuple[float, Any]:
    """Processor seconds of a call, the least of some, and its answer."""
    times, answer = list[float](), None
    for _ in range(repeats):
        begin = time.process_time()
        answer = call()
        times.append(time.process_time() - begin)
    return min(times), answer


def check(
    designs: Sequence[Systolic], network: Network, answer: Any, *, costs: bool, mapper: str
) -> None:
    """Ten of the points are what each is by itself."""
    for at in np.linspace(0, len(designs) - 1, 10).astype(int).tolist():
        cycles = answer.cycles[at] if costs else answer[0][at]
        if (cycles < 0).any():
            continue
        result = simulate(designs[at], network, mapper=mapper)
        assert int(cycles.sum()) == result.cycles
        if costs:
            alone = account(result)
            assert np.isclose(answer.energy[at], alone.total, rtol=1e-9)
            assert alone.area_um2 is not None
            assert np.isclose(answer.area_um2[at], alone.area_um2, rtol=1e-9)


def measure(
    name: str, make: Callable[[int], list[Systolic]], repeats: int, mapper: str
) -> dict[str, Any]:
    """One row.  make: the designs of a repeat; where they are drawn, others each time, of whose
    memories no price is known from the repeat before."""
    network = builtin("resnet50")
    costs = name == "costs"
    call = partial(evaluate_many if costs else simulate_many, mapper=mapper)
    call([EDGE_16, CLOUD_128], network)  # kernels are compiled, tables are read
    spent = list[tuple[float, float]]()
    for repeat in range(repeats):
        making, designs = least(1, partial(make, repeat))
        seconds, answer = least(1, partial(call, designs, network))
        spent.append((seconds, making))
        if repeat == 0:
            check(designs, network, answer, costs=costs, mapper=mapper)
    (seconds, making), designs = min(spent), make(0)
    rate = len(designs) / seconds
    return {
        "name": name,
        "what": WHAT[name],
        "mapper": mapper,
        "designs": len(designs),
        "designs_per_second": rate,
        "designs_per_second_with_their_making": len(designs) / (seconds + making),
        "target": TARGETS[name],
        "met": rate >= TARGETS[name],
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; 1 if a target is not met."""
    parser = argparse.ArgumentParser(description="Designs a second on ResNet-50, one core.")
    parser.add_argument("rows", nargs="*", help=f"of {', '.join(TARGETS)}; all if none is named")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--repeats", type=int, default=3, help="measurements of each, default 3")
    parser.add_argument("--drawn", type=int, default=1000, help="random designs, default 1000")
    parser.add_argument("--mapper", choices=("fast", "rough"), default="fast")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.rows if name not in TARGETS]
    if unknown:
        parser.error(f"no row {unknown[0]!r}; there are: {', '.join(TARGETS)}")

    def make(name: str, repeat: int) -> list[Systolic]:
        return grid() if name == "grid" else drawn(options.drawn, seed=1 + repeat)

    rows = [
        measure(name, partial(make, name), options.repeats, options.mapper)
        for name in options.rows or TARGETS
    ]
    if options.json:
        about = {"load": os.getloadavg()[0], "rows": rows}
        print(json.dumps({"designs_per_second": rows[0]["designs_per_second"], **about}, indent=2))
    else:
        for row in rows:
            print(
                f"{row['name']}: {row['designs_per_second']:,.0f} designs/s of {row['designs']:,} "
                f"({row['what']}), target {row['target']:,}; with their making "
                f"{row['designs_per_second_with_their_making']:,.0f}"
            )
    return 0 if all(row["met"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
