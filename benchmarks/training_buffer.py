"""By how much a buffer before DRAM would lower the energy of `sparsetrain`: a count, no machine.

    python benchmarks/training_buffer.py

A training step of ResNet-34, one image, densities of the mean of its training, 45 nm.  An operand
of a layer whose values that are not zero and masks fit into the buffer crosses from DRAM once, is
written once, and is read from the buffer as often as it crosses the core's ports today; any other
crosses from DRAM as often as today.  Ofmaps stay as they are.  What is not in it: control, wires,
what of a larger operand could stay, outputs of a layer that the next finds in the buffer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from archsim.blocks import memory
from archsim.energy import action_counts, price_design, technology_of
from archsim.machine.registry import load_design
from archsim.papers.sarma_machine import SYSTOLIC
from archsim.papers.sarma_passes import MACHINE, TECHNOLOGY, drawn_of, step_on
from archsim.papers.sarma_steps import COLUMNS, MEAN, step_at
from archsim.result import LayerResult
from energy_models.pricing import price

NETWORK = "resnet34"
KIBIBYTES = (0, 128, 256, 512, 1024, 2048, 4096)
SIDES = ("ifmap", "weight")


@dataclass(frozen=True)
class Run:
    """A layer's result, and the bytes of each operand once, with its masks."""

    result: LayerResult
    once: Mapping[str, int]


def runs(design: Any) -> list[Run]:
    """Of every layer of the step."""
    step = step_at(NETWORK, MEAN)
    source = drawn_of(step, design.intake.source_bits)
    model, found = design.machine_model(), list[Run]()
    for layer in step.matrix_layers:
        operands: Any = source(layer)
        once = {}
        for side in SIDES:
            tensor = getattr(operands, side)
            values = np.count_nonzero(tensor) * design.operand_bits
            once[side] = int(-(-(values + tensor.size) // 8))
        found.append(Run(model.answer(layer, operands, {}).result, once))
    return found


def energy(design: Any, step: list[Run], capacity: int) -> tuple[float, float, float]:
    """With a buffer of so many bytes: pJ in all, MB from and to DRAM, mm² of the buffer."""
    prices = price_design(design, TECHNOLOGY)
    word = design.lanes * (design.operand_bits + 1)
    buffer = price(
        technology_of(TECHNOLOGY),
        memory("buffer", (1, 1, word, max(capacity * 8 // word, 2)), {"read": 1.0}, {"write": 1.0}),
    )
    total = moved = 0.0
    for run in step:
        result, bytes_moved = run.result, dict(run.result.bytes_moved)
        reads = writes = 0.0
        for side in SIDES:
            if run.once[side] <= min(capacity, bytes_moved[side]):
                reads += bytes_moved[side] * 8 / word
                writes += run.once[side] * 8 / word
                bytes_moved[side] = run.once[side]
        seconds = [result.cycles / design.clock_hz]
        counts = action_counts(replace(result, bytes_moved=bytes_moved), design)
        total += float(prices.energy([counts]).sum() + prices.static_pj(seconds).sum())
        if capacity:
            own = {"read": reads, "write": writes}
            total += float(buffer.energy([own]).sum() + buffer.static_pj(seconds).sum())
        moved += sum(bytes_moved.values())
    return total, moved / 1e6, float(np.nansum(buffer.area_um2)) * 1e-6 if capacity else 0.0


def main() -> None:
    """Print the table."""
    design = load_design(MACHINE)
    step = runs(design)
    whole = tuple(COLUMNS["all"][0])
    systolic = step_on(NETWORK, MEAN, *SYSTOLIC).of(whole).energy_pj
    print(f"{NETWORK}, {MACHINE}: a training step; 8 x 16 systolic array: {systolic * 1e-9:.1f} mJ")
    print("buffer KiB  DRAM MB  energy mJ  systolic over it  buffer mm2")
    for size in KIBIBYTES:
        spent, moved, area = energy(design, step, size * 1024)
        ratio = systolic / spent
        print(f"{size:10d}  {moved:7.1f}  {spent * 1e-9:9.1f}  {ratio:16.2f}  {area:10.2f}")


if __name__ == "__main__":
    main()
