"""What scratchpads of `sparsetrain` save of a training step's energy, and what they cost.

    python benchmarks/training_scratchpads.py
    python benchmarks/training_scratchpads.py resnet18

One image, 45 nm.  ResNet-34 and the other networks whose trainings were measured: densities of the
mean of the training; any other network: half of the values zero.  Masks are drawn.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from archsim.energy import action_counts, price_design
from archsim.machine.registry import load_design, with_settings
from archsim.papers.sarma_machine import SYSTOLIC
from archsim.papers.sarma_passes import MACHINE, TECHNOLOGY, drawn_of
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


def taken(design: Any, step: Network) -> tuple[int, float, float, float]:
    """Cycles, MB from and to DRAM, pJ, and mm² of the machine."""
    prices, model = price_design(design, TECHNOLOGY), design.machine_model()
    source = drawn_of(step, design.intake.source_bits)
    cycles, moved, energy = 0, 0, 0.0
    for layer in step.matrix_layers:
        operands = source(layer) if model.timed_by_values else None
        result = model.run(step, lambda _, one=operands: one, {}).result(layer)
        cycles, moved = cycles + result.cycles, moved + result.total_bytes
        energy += float(prices.energy([action_counts(result, design)]).sum())
        energy += float(prices.static_pj([result.cycles / design.clock_hz]).sum())
    on_chip = np.array([one.kind != "dram" for one in prices.components])
    return cycles, moved / 1e6, energy, float(np.nansum(prices.area_um2[on_chip])) * 1e-6


def main(name: str) -> None:
    """Print the table of a network."""
    step = step_of(name)
    array, changed = SYSTOLIC
    *_, systolic, area = taken(with_settings(load_design(array), list(changed)), step)
    print(f"{name}: a training step; 8 x 16 array: {systolic * 1e-9:.1f} mJ, {area:.2f} mm2")
    print("steps of rows, columns   KiB  Mcycles  DRAM MB  energy mJ  systolic over it  area mm2")
    for rows, columns in STEPS:
        settings = [f"row_scratchpad={rows}", f"column_scratchpad={columns}"]
        design: Any = with_settings(load_design(MACHINE), settings)
        cycles, moved, energy, area = taken(design, step)
        size = (rows + columns) * design.word_bits("ifmap") // 8192
        print(
            f"{rows:13d}, {columns:6d}  {size:6d}  {cycles / 1e6:7.2f}  {moved:7.1f}  "
            f"{energy * 1e-9:9.1f}  {systolic / energy:16.2f}  {area:8.2f}"
        )


if __name__ == "__main__":
    main(*(sys.argv[1:2] or ["resnet34"]))
