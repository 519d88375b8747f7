"""Training steps of recurrent networks with case 3 of dropout, timed: cycles by pass and layer."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from math import ceil

from archsim.machine.design import Design
from archsim.machine.registry import load_design, with_settings
from archsim.simulate import simulate_many
from workloads.builtin import builtin, published_dropout
from workloads.layers import MatMul, Network, VectorWork
from workloads.training.compacted import CompactedForward
from workloads.training.dropout import Dropout
from workloads.training.step import TrainingStep, training_step

NETWORKS = {
    "lstm-zaremba-medium": "language, medium", "lstm-zaremba-large": "language, large",
    "lstm-awd": "language, AWD-LSTM", "lstm-translation": "translation",
    "lstm-tagging": "tagging",
}  # fmt: skip
VARIANTS = {"NR": "NR", "RH": "NR and RH"}
PASSES: tuple[str, ...] = ("FP", "BP", "WG")

MACHINE = "cloud-128"
SIZES = (16, 32, 64, 128, 256)
"""Rows and columns of its array."""

DENSE = "dense"
"""Nothing dropped, all steps' inputs in one product; 0: nothing dropped, step by step."""


GATHER_UNITS = 2048
"""Of the gather unit, where the machine has one: above the longest row of all networks."""


@cache
def machine(rows: int, *, far: bool = False, gathers: bool = False) -> Design:
    """The systolic machine with so many rows and columns; far: off-chip memory is never waited
    for; gathers: with a gather unit."""
    settings = [f"rows={rows}", f"columns={rows}"]
    settings += [f"gather_units={GATHER_UNITS}"] if gathers else []
    if far:
        settings += ["off_chip.bytes_per_cycle=1000000", "off_chip.latency_cycles=0"]
    return with_settings(load_design(MACHINE), settings)


@cache
def step_of(network: str, variant: str, *, dropped: bool = True) -> TrainingStep:
    """variant: NR, RH, or DENSE.  dropped: at the published rate, else nothing, step by step."""
    forward = builtin(network)
    if variant == DENSE:
        return training_step(forward)
    percent = published_dropout(network) if dropped else 0
    assert percent is not None
    return training_step(
        forward, dropout=Dropout(case=3, percent=percent, recurrent=variant == "RH")
    )


@cache
def network_of(network: str, variant: str, *, dropped: bool = True) -> Network:
    """The whole step."""
    return step_of(network, variant, dropped=dropped).network


@cache
def layer_cycles(
    network: str,
    variant: str,
    rows: int,
    *,
    dropped: bool = True,
    far: bool = False,
    gathers: bool = False,
) -> Mapping[str, int]:
    """Of each matrix layer of a step.  Vector work is not timed."""
    step = network_of(network, variant, dropped=dropped)
    cycles, names = simulate_many([machine(rows, far=far, gathers=gathers)], step)
    return {name: int(one) for name, one in zip(names, cycles[0], strict=True)}


def cycles(
    network: str, variant: str, rows: int, *, dropped: bool = True, far: bool = False
) -> dict[str, int]:
    """Of each pass."""
    training = network_of(network, variant, dropped=dropped).training
    assert training is not None
    found = dict.fromkeys(PASSES, 0)
    for name, one in layer_cycles(network, variant, rows, dropped=dropped, far=far).items():
        found[training.passes[name]] += one
    return found


def speedup(
    network: str, variant: str, rows: int, part: str = "all", *, far: bool = False
) -> float:
    """Case 3 over dense, both step by step; part: a pass, or all."""
    dense = cycles(network, variant, rows, dropped=False, far=far)
    return _ratio(dense, cycles(network, variant, rows, far=far), part)


def speedup_over_batched(network: str, variant: str, rows: int) -> float:
    """Case 3 over dense with the inputs of all steps in one product."""
    return _ratio(cycles(network, DENSE, rows), cycles(network, variant, rows), "all")


def speedup_of_the_better(network: str, variant: str, rows: int) -> float:
    """Over the same dense step, where each pass of each layer is of case 3 or dense and batched,
    whichever takes less."""
    dense, ours = by_pass(network, DENSE, rows), by_pass(network, variant, rows)
    return sum(dense.values()) / sum(min(one, ours[key]) for key, one in dense.items())


def by_pass(network: str, variant: str, rows: int) -> dict[tuple[str, str], int]:
    """Cycles by forward layer and pass."""
    step, found = step_of(network, variant), dict[tuple[str, str], int]()
    timed = layer_cycles(network, variant, rows)
    for one in step.passes:
        key = one.of.name, one.kind
        found[key] = found.get(key, 0) + timed[one.layer.name]
    return found


def _ratio(dense: Mapping[str, int], ours: Mapping[str, int], part: str) -> float:
    if part == "all":
        return sum(dense.values()) / sum(ours.values())
    return dense[part] / ours[part]


def macs_ratio(network: str, variant: str, *, layers: str = "") -> float:
    """Dense MACs over those of case 3; of forward layers whose name begins so."""
    dense, ours = (
        sum(one.layer.macs for one in step_of(network, variant, dropped=dropped).passes
            if one.of.name.startswith(layers))
        for dropped in (False, True)
    )  # fmt: skip
    return dense / ours


def folds_ratio(network: str, variant: str, rows: int) -> float:
    """The same of folds: each product's ⌈K / rows⌉ · ⌈N / columns⌉, times its rows."""

    def folded(dropped: bool) -> int:
        found = 0
        for one in step_of(network, variant, dropped=dropped).passes:
            layer = one.layer
            assert isinstance(layer, MatMul)
            found += layer.m * ceil(layer.k / rows) * ceil(layer.n / rows) * layer.batch
        return found

    return folded(False) / folded(True)


def with_vector_work(network: str, variant: str, rows: int) -> float:
    """The speedup where vector work takes a cycle for as many operations as the array has columns,
    and nothing else meanwhile."""
    found: list[float] = []
    for dropped in (False, True):
        step = network_of(network, variant, dropped=dropped)
        work = sum(one.operations for one in step.layers if isinstance(one, VectorWork))
        found.append(sum(cycles(network, variant, rows, dropped=dropped).values()) + work / rows)
    return found[0] / found[1]


def gather_share(network: str, variant: str, rows: int) -> float:
    """Cycles of a step on the machine that gathers the rows of FP itself, over those on the one
    that finds them compacted in memory."""
    alone = layer_cycles(network, variant, rows)
    return sum(layer_cycles(network, variant, rows, gathers=True).values()) / sum(alone.values())


def with_gathering(network: str, variant: str, rows: int) -> float:
    """The speedup where the core gathers the rows of FP; of BP and WG as in `speedup`."""
    return speedup(network, variant, rows) / gather_share(network, variant, rows)


def gathered_bytes(network: str, variant: str, rows: int) -> float:
    """Bytes of the ifmaps of FP that cross the port where the core gathers, over those that cross
    where they are compacted."""
    layers = [one.layer for one in step_of(network, variant).passes
              if isinstance(one, CompactedForward)]  # fmt: skip
    moved: list[int] = []
    for gathers in (True, False):
        design = machine(rows, gathers=gathers)
        run = design.machine_model().run(network_of(network, variant), lambda _: None, {})
        moved.append(sum(run.result(one).bytes_moved["ifmap"] for one in layers))
    return moved[0] / moved[1]


__all__ = [
    "DENSE", "MACHINE", "NETWORKS", "PASSES", "SIZES", "VARIANTS", "by_pass", "cycles",
    "folds_ratio", "gather_share", "gathered_bytes", "layer_cycles", "machine", "macs_ratio",
    "network_of",
    "speedup", "speedup_of_the_better", "speedup_over_batched", "step_of", "with_gathering",
    "with_vector_work",
]  # fmt: skip
