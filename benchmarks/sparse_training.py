"""How fast the sparse training machine is simulated.

    python benchmarks/sparse_training.py                everything
    python benchmarks/sparse_training.py pairs          only this
    python benchmarks/sparse_training.py --json

Rows as those of `speed.py`; processor time, so that other processes do not count.

step       seconds for a training step of ResNet-18, 224 x 224, batch 4, cycles and values, with the
           zeros of a step of a training (captured here after some steps on Fashion-MNIST: PyTorch)
pairs      pairs of operands decided a second and core, of a layer of 128 channels at density 0.5
verilator  cycles a second of a layer, the model's over those of the emitted core in Verilator
           (equal in every transfer)
densities  seconds for the cycles of a network's step from densities alone, the slowest of three
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rows import measured, parsed, parser_of

NETWORKS = ("vgg16", "resnet34", "resnet50")


def step(repeats: int) -> Any:
    """A step with real zeros."""
    from speed_report import Row

    from archsim.capture_file import read_capture
    from archsim.simulate import simulate
    from training.capture import CaptureRecipe, captured_epochs
    from workloads.labelled import labelled
    from workloads.named import shapes_named
    from workloads.training.captured import CapturedStep, known_step

    recipe = CaptureRecipe(epochs=(1,), pictures=40, batch=4, rate=0.002)
    data = labelled("fashion-mnist", "train")
    forward = shapes_named("resnet18:batch=4")
    (found,) = captured_epochs(forward, recipe, data, lambda *_: None)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "epoch.npz"
        path.write_bytes(found.content)
        capture = read_capture(path)
    training: Any = shapes_named("resnet18:training,batch=4").training
    known = known_step(training.step, capture)
    assert known.activity is not None
    source = CapturedStep(step=known, activity=known.activity, capture=capture)
    start = time.process_time()
    result = simulate("sparsetrain", known.network, operands=source)
    spent = time.process_time() - start
    return Row(
        name="step",
        what="ResNet-18, 224 x 224, batch 4: a step with captured zeros, all threads' time",
        measured=spent,
        unit="s",
        target=30,
        better="lower",
        details={"cycles": result.cycles, "macs": result.macs, "density": found.density},
        note=f"{result.macs / 1e9:.1f} G MACs, {result.cycles / 1e6:.1f} M cycles",
    )


def pairs(repeats: int) -> Any:
    """The kernel alone, one thread."""
    from speed_report import Row

    from archsim.layer.intake import Drawing
    from archsim.machines.sparsetrain.design import SPARSETRAIN
    from workloads.layers import Conv2d
    from workloads.threads import set_threads

    layer = Conv2d(
        name="conv", channels=128, filters=128, ifmap_height=28, ifmap_width=28,
        kernel_height=3, kernel_width=3, pad_top=1, pad_bottom=1, pad_left=1, pad_right=1,
    )  # fmt: skip
    operands = SPARSETRAIN.intake.synthetic(layer, Drawing(density=0.5))
    set_threads(1)
    times: list[float] = []
    for _ in range(repeats + 1):
        work: Any = SPARSETRAIN.machine_model().answer(layer, operands, {})
        _ = work.work.non_zero, work.work.blocks
        start = time.process_time()
        _ = work.work.work
        times.append(time.process_time() - start)
    spent = statistics.median(times[1:])
    return Row(
        name="pairs",
        what="pairs of operands decided a second and core, 128 channels, 3 x 3, 28 x 28",
        measured=layer.macs / spent / 1e6,
        unit="M/s",
        target=300,
        better="higher",
        details={"seconds": times[1:], "macs": layer.macs},
        note="both operands half zeros",
    )


def verilator(repeats: int) -> Any:
    """A layer of ResNet-34 (layer3), half zeros, half of its outputs needed."""
    from dataclasses import replace

    from speed_report import Row, seconds_of

    from archsim.layer.intake import Drawing
    from archsim.machines.sparsetrain.design import SPARSETRAIN
    from rtl.benches.verilated import Verilated
    from rtl.conformance import bench_of, judge
    from rtl.emit import emit
    from rtl.registry import verification_of
    from workloads.layers import Conv2d
    from workloads.threads import set_threads

    layer = Conv2d(
        name="conv", channels=256, filters=256, ifmap_height=14, ifmap_width=14,
        kernel_height=3, kernel_width=3, pad_top=1, pad_bottom=1, pad_left=1, pad_right=1,
    )  # fmt: skip
    drawn = SPARSETRAIN.intake.synthetic(layer, Drawing(density=0.5))
    needed = np.random.default_rng(0).random((1, 256, 14, 14)) < 0.5
    operands = replace(drawn, needed=needed)
    case = verification_of(SPARSETRAIN).layer_case(SPARSETRAIN, layer, operands)
    expected = case.answer()
    bench, core = bench_of(case, expected), Verilated(emit(SPARSETRAIN).verilog, optimised=True)
    verdict = judge(case, expected, core.run(bench))
    assert verdict.equal, "the RTL differs from the model: its speed is of no interest"
    rtl: list[float] = []
    for _ in range(3):
        with core.start(bench) as session:
            start = time.process_time()
            session.step()
            rtl.append(time.process_time() - start)
    set_threads(1)
    model: list[float] = []
    for _ in range(repeats + 1):
        start = time.process_time()
        answer = SPARSETRAIN.machine_model().answer(layer, operands, {})
        assert answer.cycles == expected.cycles
        model.append(time.process_time() - start)
    rates = [verdict.cycles / statistics.median(kept) for kept in (model[1:], rtl)]
    return Row(
        name="verilator",
        what="cycles a second of 256 channels, 3 x 3, 14 x 14, over the core's in Verilator",
        measured=rates[0] / rates[1],
        unit="×",
        target=1000,
        better="higher",
        details={
            "cycles": verdict.cycles,
            "transfers_compared": verdict.transfers,
            "verilator": seconds_of(rtl),
            "archsim": seconds_of(model[1:]),
        },
        note=f"{rates[0] / 1e6:.2f} M over {rates[1] / 1e3:.2f} k cycles a second, a thread each",
    )


def densities(repeats: int) -> Any:
    """The slowest of three networks."""
    from speed_report import Row

    from archsim.machines.sparsetrain.design import SPARSETRAIN
    from archsim.machines.sparsetrain.estimate import Estimate
    from workloads.named import shapes_named

    found: dict[str, float] = {}
    for name in NETWORKS:
        network = shapes_named(f"{name}:training")
        times: list[float] = []
        for _ in range(repeats + 1):
            start = time.process_time()
            Estimate(SPARSETRAIN).cycles(network)
            times.append(time.process_time() - start)
        found[name] = statistics.median(times[1:])
    return Row(
        name="densities",
        what="cycles of a step from densities alone, an estimate; the slowest of three networks",
        measured=max(found.values()),
        unit="s",
        target=0.3,
        better="lower",
        details={"seconds": found},
        note="FP, BP and WG of every layer",
    )


MEASUREMENTS: dict[str, Callable[[int], Any]] = {
    "step": step, "pairs": pairs, "verilator": verilator, "densities": densities,
}  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; 1 if a target is not met."""
    known = tuple(MEASUREMENTS)
    parser = parser_of("Measure the speed of the sparse training machine.", known, repeats=5)
    options = parsed(parser, known, arguments)
    return measured(
        options, {name: partial(call, options.repeats) for name, call in MEASUREMENTS.items()}
    )


if __name__ == "__main__":
    sys.exit(main())
