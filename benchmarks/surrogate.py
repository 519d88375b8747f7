"""How many simulations a learned order of candidates saves, on sparse machines with their values.

    python benchmarks/surrogate.py               some minutes: every design is simulated once
    python benchmarks/surrogate.py --json

Every design of a small space of SCNN around `scnn-4pe`, on a convolution with drawn operands, is
simulated once, which says what the front is.  Then each method searches the same space, told those
figures, seed after seed:

rank      Spearman's correlation of the surrogate's order with the simulated one, on designs that it
          was not fitted to: the mean over objectives, fitted to an eighth of the space
saved     simulations that random search takes to cover 99 % of the hypervolume that the whole front
          covers, over those that the surrogate takes: the mean over seeds

TPE's simulations stand beside.  What a front covers is measured in logarithms between the best and
the worst of every objective.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")}
os.environ.update({**ONE_THREAD, "ARCHSIM_THREADS": "1"})

import time  # noqa: E402

import numpy as np  # noqa: E402
from rows import measured, parsed, parser_of  # noqa: E402
from speed_report import Row  # noqa: E402

from archsim.layer.intake import Drawing  # noqa: E402
from archsim.machines.scnn.design import SCNN_4PE  # noqa: E402
from archsim.sweeps import MachineSpace, Search, Space, front_of  # noqa: E402
from archsim.sweeps.evaluation import Evaluator  # noqa: E402
from archsim.sweeps.points import Grid  # noqa: E402
from archsim.sweeps.samplers import sampler_of  # noqa: E402
from archsim.sweeps.samplers.genes import Genes  # noqa: E402
from archsim.sweeps.surrogate import Surrogate, rank_correlation  # noqa: E402
from workloads.layers import Conv2d, Network  # noqa: E402

MEASUREMENTS = ("rank", "saved")

COVERED = 0.99

ROUND = 20
"""Designs that are asked for at once, by every method."""

CONV = Conv2d(
    name="conv", channels=32, filters=48, ifmap_height=14, ifmap_width=14, kernel_height=3,
    kernel_width=3, pad_top=1, pad_left=1, pad_bottom=1, pad_right=1,
)  # fmt: skip

FIELDS = {
    "grid_rows": [1, 2, 4, 8],
    "grid_columns": [2, 4, 8],
    "weight_lanes": [2, 4, 8],
    "ifmap_lanes": [2, 4],
    "banks": [8, 16, 32, 64],
    "filter_group": [4, 8, 16],
    "bank_queue": [1, 4],
}

Values = np.ndarray


def space() -> Space:
    """SCNN of 1,728 sizes; cycles, energy and area."""
    sparse = MachineSpace(design=SCNN_4PE, fields=FIELDS, drawing=Drawing(density=0.4, seed=1))
    network = Network(name="conv", layers=(CONV,), source="a layer of 32 channels, 48 filters")
    return Space(machines=(sparse,), networks=(network,), objectives=("cycles", "energy", "area"))


class Truth:
    """What every design gives, simulated once."""

    def __init__(self) -> None:
        self.grid = Grid(space())
        numbers = np.arange(self.grid.space.design_count, dtype=np.int64)
        began = time.process_time()
        found = Evaluator(self.grid.space).outcome(numbers, 0)
        self.seconds = (time.process_time() - began) / len(numbers)
        self.values: Values = np.stack(list(found.values.values()), axis=1)
        self.good = ~np.isnan(self.values).any(axis=1)
        logs = np.log(self.values)
        low, high = np.nanmin(logs, axis=0), np.nanmax(logs, axis=0)
        self.scaled: Values = (logs - low) / (high - low)
        self.whole = self.covered(numbers)

    def covered(self, numbers: Values) -> float:
        """The hypervolume of three objectives that designs cover, below the worst of each."""
        points = self.scaled[numbers]
        points = points[front_of(points)]
        points = points[np.argsort(points[:, 2])]
        edges = np.append(points[1:, 2], 1.0)
        thick = edges - points[:, 2]
        total = 0.0
        for at in np.flatnonzero(thick > 0).tolist():
            total += thick[at] * _area(points[: at + 1, :2])
        return total


def _area(points: Values) -> float:
    """Of two objectives."""
    points = points[front_of(points)]
    points = np.unique(points, axis=0)
    edges = np.append(points[1:, 0], 1.0)
    return float(((edges - points[:, 0]) * (1.0 - points[:, 1])).sum())


def simulations(truth: Truth, method: str, seed: int) -> int:
    """Until enough of the front is covered."""
    count = truth.grid.space.design_count
    search = Search(method=method, designs=count, population=ROUND, seed=seed)
    sampler = sampler_of(truth.grid, search)
    seen = np.empty(0, np.int64)
    while len(numbers := sampler.ask(ROUND)):
        sampler.tell(numbers, truth.values[numbers])
        seen = np.concatenate([seen, numbers])
        if truth.covered(seen) >= COVERED * truth.whole:
            break
    return len(seen)


def rank(truth: Truth, seeds: int) -> Row:
    """On designs that are held out."""
    genes = Genes(truth.grid)
    numbers = np.flatnonzero(truth.good)
    found: list[list[float]] = []
    for seed in range(seeds):
        order = np.random.default_rng(seed).permutation(numbers)
        fitted, held = order[: len(order) // 8], order[len(order) // 8 :]
        model = Surrogate(genes.genes(fitted), truth.values[fitted], seed)
        told = model.values(genes.genes(held))
        found.append([rank_correlation(told[:, at], truth.values[held, at]) for at in range(3)])
    means = np.mean(found, axis=0)
    return Row(
        name="rank",
        what="rank correlation on held-out designs, fitted to an eighth of the space",
        measured=float(means.mean()),
        unit="",
        target=0.9,
        better="higher",
        details=dict(zip(truth.grid.space.objectives, means.tolist(), strict=True)),
    )


def saved(truth: Truth, seeds: int) -> Row:
    """Against chance."""
    taken: dict[str, Any] = {
        method: [simulations(truth, method, seed) for seed in range(seeds)]
        for method in ("random", "tpe", "surrogate")
    }
    means = {name: float(np.mean(one)) for name, one in taken.items()}
    return Row(
        name="saved",
        what=f"simulations to cover {COVERED:.0%} of the front: random over surrogate",
        measured=means["random"] / means["surrogate"],
        unit="×",
        target=2,
        better="higher",
        details={
            **{f"simulations_{name}": f"{means[name]:.0f} {one}" for name, one in taken.items()},
            "designs": truth.grid.space.design_count,
            "refused": int((~truth.good).sum()),
            "on_the_front": len(front_of(truth.values)),
            "simulation_ms": truth.seconds * 1e3,
        },
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; 1 if a target is not met."""
    parser = parser_of("Measure the learned surrogate.", MEASUREMENTS, repeats=5)
    options = parsed(parser, MEASUREMENTS, arguments)
    options.what = options.what or list(MEASUREMENTS)
    truth = Truth()
    calls = {
        "rank": lambda: rank(truth, options.repeats),
        "saved": lambda: saved(truth, options.repeats),
    }
    return measured(options, calls)


if __name__ == "__main__":
    sys.exit(main())
