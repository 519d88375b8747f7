"""A study that is written until somebody ends it: python sweep_child.py FOLDER [POINTS_A_WRITE].

Prints a line after every transaction, the number of points that are kept by then; made-up cycles
come as fast as the store takes them.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np

from archsim import EDGE_16
from archsim.sweeps import MachineSpace, Search, Space, Study, live, running, workers
from archsim.sweeps.evaluation import Evaluator, Outcome
from archsim.sweeps.running import Progress
from archsim.sweeps.workers import Here, Task

SPACE = Space(
    machines=(
        MachineSpace(
            design=EDGE_16,
            fields={"rows": {"from": 1, "to": 64}, "columns": {"from": 1, "to": 64}},
        ),
    ),
    networks=("alexnet",),
    layers=True,
)


class MadeUp(Evaluator):
    """Cycles that are told from a design's number."""

    def outcome(self, numbers: np.ndarray, network: int) -> Outcome:
        layers = np.repeat(cycles_of(numbers)[:, None] // 8, 8, axis=1)
        values = {"cycles": cycles_of(numbers).astype(float)}
        return Outcome(numbers=numbers, network=network, values=values, layers=layers)


def cycles_of(numbers: np.ndarray) -> np.ndarray:
    return (numbers * 7919 % 1009 + 1) * 8


DEADLY = 1
"""Number of the design that ends the process which computes it."""


def _compute_or_die(task: Task) -> Outcome:
    if DEADLY in task.numbers:
        os._exit(9)
    return workers._compute(task)  # pyright: ignore[reportPrivateUsage]


class Dying(workers.Processes):
    """One process, which a design ends."""

    def __init__(self, space: Space) -> None:
        super().__init__(space, 1, compute=_compute_or_die)


def told(progress: Progress) -> None:
    print(progress.kept, flush=True)


def main(folder: Path, rows: int) -> None:
    running.WRITE_ROWS = rows
    running.FIRST_BATCH = rows
    live.EVERY_SECONDS = 0.0
    with Study.begin(folder, SPACE) as study:
        study.run(Search(), workers=Here(MadeUp(SPACE)), progress=told)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
