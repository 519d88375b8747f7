"""What control logic costs for each flip-flop, measured on the control modules of a real core."""

from __future__ import annotations

from pathlib import Path

from archsim.machines.systolic.design import Systolic
from archsim.memory import Plain
from energy_models.measured import Point
from rtl.layer_case import layer_case
from rtl.synthesis.power import PowerMeter, Progress
from workloads.layers import MatMul
from workloads.operands import synthetic

__all__ = ["CORE", "LAYER", "MODULES", "measure_control"]

CORE = Systolic(
    rows=4,
    columns=4,
    ifmap_memory=Plain(capacity_bytes=4096),
    weight_memory=Plain(capacity_bytes=4096),
    accumulator_memory=Plain(capacity_bytes=4096),
    bias_words=16,
)
"""A small core: its control is that of a large one but for a few bits of addresses."""

LAYER = MatMul(name="product", m=32, n=16, k=16)

MODULES = (
    "tile_walker",
    "dispatcher",
    "stream_sequencer",
    "load_sequencer",
    "ifmap_loader",
    "weight_loader",
    "window",
)
"""Instances in the core that are counters, state machines and queues of commands."""


def measure_control(
    library: Path, progress: Progress = lambda phase, done, total: None
) -> tuple[Point, ...]:
    """One point a module: its flip-flops, area, leakage, and mean energy of a cycle of `LAYER`.

    Raises as `PowerMeter.of` does.
    """
    meter = PowerMeter.of(CORE, library, progress=progress)
    report = meter.run(layer_case(CORE, LAYER, synthetic(LAYER, bits=CORE.operand_bits)))
    assert report.verdict is not None and report.verdict.equal, report.verdict
    points: list[Point] = []
    for name in MODULES:
        within = report.below(name)
        points.append(
            Point(
                kind="control",
                module=name,
                sizes={"state_bits": sum(one.registers for one in within)},
                cells=sum(one.cells for one in within),
                area_um2=sum(one.area_um2 for one in within),
                leakage_mw=sum(one.leakage_mw for one in within),
                energy_pj={"clock": report.energy_per_cycle_pj(name)},
            )
        )
    return tuple(points)
