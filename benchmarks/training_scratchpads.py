"""What scratchpads of `sparsetrain` save of a training step's energy, and what they cost.

    python benchmarks/training_scratchpads.py
    python benchmarks/training_scratchpads.py resnet18

One image, 45 nm.  ResNet-34 and the other networks whose trainings were measured: densities of the
mean of the training; any other network: half of the values zero.  Masks are drawn.
"""

from __future__ import annotations

import sys
from typing import Any

from archsim.errors import require
from archsim.machine.registry import load_design, with_settings
from archsim.papers.sarma_machine import SYSTOLIC
from archsim.papers.sarma_passes import MACHINE, Taken, step_taken
from archsim.papers.sarma_steps import MEAN, step_at
from workloads.builtin import builtin
from workloads.layers import Network
from workloads.training.activity import Activity
from workloads.training.measured import measured_networks
from workloads.training.step import training_network

STEPS = ((0, 0), (2048, 2048), (4096, 4096), (8192, 8192), (16384, 16384))
"""Of rows and of columns."""


def step_of(name: str) -> Network:
    """A network's training step."""
    if name in measured_networks():
        return step_at(name, MEAN)
    forward = builtin(name)
    return training_network(forward, activity=Activity.even(forward, 0.5))


def taken(design: Any, step: Network) -> tuple[Taken, float]:
    """Of the whole step, and mm² of the machine.  Raises `InputError` if it refuses a layer."""
    found = step_taken(step, design)
    require(not found.refused, next(iter(found.refused.values()), ""))
    return found.of(tuple(set(found.passes.values()))), found.area_um2 * 1e-6


def main(name: str) -> None:
    """Print the table of a network."""
    step = step_of(name)
    array, changed = SYSTOLIC
    found, area = taken(with_settings(load_design(array), list(changed)), step)
    systolic = found.energy_pj
    print(f"{name}: a training step; 8 x 16 array: {systolic * 1e-9:.1f} mJ, {area:.2f} mm2")
    print("steps of rows, columns   KiB  Mcycles  DRAM MB  energy mJ  systolic over it  area mm2")
    for rows, columns in STEPS:
        settings = [f"row_scratchpad={rows}", f"column_scratchpad={columns}"]
        design: Any = with_settings(load_design(MACHINE), settings)
        found, area = taken(design, step)
        size = (rows + columns) * design.word_bits("ifmap") // 8192
        print(
            f"{rows:13d}, {columns:6d}  {size:6d}  {found.cycles / 1e6:7.2f}  "
            f"{found.bytes_moved / 1e6:7.1f}  {found.energy_pj * 1e-9:9.1f}  "
            f"{systolic / found.energy_pj:16.2f}  {area:8.2f}"
        )


if __name__ == "__main__":
    main(*(sys.argv[1:2] or ["resnet34"]))
