"""Energy of SCNN, DCNN and DCNN-opt on the same tensors, each from its own hardware and counts.

All are priced in 16 nm, as the paper's are.  Activations cross the off-chip memory only where
they do not fit the PEs' memories (a layer of SCNN's that is cut into strips, more than 1 MB of a
dense tensor), and the network's input in any case; weights cross once for each layer, SCNN's for
each strip.  Cycles are those by which the speed-ups are made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from archsim.energy_account import GROUPS
from archsim.layer.problem import Problem
from archsim.machines.scnn.dense import DCNN, Dcnn
from archsim.machines.scnn.dense_actions import RUN_BITS, Zeros, dcnn_actions
from archsim.machines.scnn.design import Scnn
from archsim.machines.scnn.timed_layer import counted
from archsim.machines.scnn.timing import PassTiming
from energy_models.component import Component
from energy_models.pricing import FloatArray, PriceList, price
from energy_models.technology import load_technology

TECHNOLOGY = "16nm"

SUPPOSED = "DCNN-opt, weights compressed"
MACHINES = ("DCNN", "DCNN-opt", SUPPOSED, "SCNN")
PARTS = ("DRAM", "memories", "arithmetic", "registers", "multiplexers", "control", "held clocks")
"""Groups of components; and, of these, what registers cost in cycles in which they keep their data,
which gated clocks would save."""

NOTHING: FloatArray = np.zeros((len(MACHINES), len(PARTS)))


@cache
def _prices(design: Scnn | Dcnn, *, gated: bool) -> PriceList:
    components = design.components
    return price(load_technology(TECHNOLOGY), map(_gated, components) if gated else components)


def _gated(component: Component) -> Component:
    """A register that is clocked when it is written, only."""
    if component.kind != "register":
        return component
    return replace(
        component, actions={name: e for name, e in component.actions.items() if name != "clock"}
    )


def _parts(design: Scnn | Dcnn, counts: Mapping[str, float]) -> FloatArray:
    """pJ by `PARTS` of what was counted."""
    whole, gated = (_prices(design, gated=gated) for gated in (False, True))
    dynamic = whole.energy([counts])[0]
    groups = [GROUPS[one.kind] for one in whole.components]
    found = [
        sum(value for value, group in zip(dynamic, groups, strict=True) if group == part)
        for part in PARTS[:-1]
    ]
    return np.array([*found, dynamic.sum() - gated.energy([counts])[0].sum()])


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """One image and conv group of a layer: tensors as in `Zeros.of`, and SCNN's passes over them.

    arrives: its ifmap is the network's input.
    """

    problem: Problem
    zeros: Zeros
    passes: Sequence[PassTiming]
    arrives: bool


def spent(design: Scnn, run: Run) -> FloatArray:
    """pJ of the machines [`MACHINES`, `PARTS`]."""
    problem, zeros = run.problem, run.zeros
    dense, better = (
        dcnn_actions(DCNN, problem, zeros, optimised=optimised, arrives=run.arrives)
        for optimised in (False, True)
    )
    compressed = zeros.weight * (DCNN.operand_bits + RUN_BITS) / 8
    supposed = {**better, "weight_bytes": min(compressed, better["weight_bytes"])}
    counts = (dense, better, supposed)
    return np.array([*(_parts(DCNN, one) for one in counts), _parts(design, _sparse(design, run))])


def _sparse(design: Scnn, run: Run) -> dict[str, float]:
    """SCNN's counts."""
    cut = len(run.passes) > 1
    bits = {
        "ifmap": (cut or run.arrives) * sum(one.ifmap_bits for one in run.passes),
        "weight": sum(one.weight_bits for one in run.passes),
        "bias": 0,
        "ofmap": cut * sum(one.ofmap_bits for one in run.passes),
    }
    return {
        **{name: float(count) for name, count in counted(design, run.passes).items()},
        **{f"{name}_bytes": count / 8 for name, count in bits.items()},
        "cycle": float(sum(one.compute_cycles for one in run.passes)),
    }


def areas_um2(design: Scnn | Dcnn) -> dict[str, float]:
    """Of every component that is on the chip, by name."""
    prices, found = _prices(design, gated=False), dict[str, float]()
    for one, area in zip(prices.components, prices.area_um2.tolist(), strict=True):
        found[one.name] = found.get(one.name, 0.0) + area
    return found


def relative(energy: FloatArray, machine: str, *, without: tuple[str, ...] = ()) -> float:
    """A machine's energy over DCNN's, some of `PARTS` left out in both."""
    signs = np.array([1.0] * (len(PARTS) - 1) + [0.0])
    for part in without:
        signs[PARTS.index(part)] -= 1.0
    found = energy @ signs
    return float(found[MACHINES.index(machine)] / found[0])


def listed(energy: FloatArray, machine: str) -> str:
    """Where a machine's energy went, in per cent of its own."""
    one = energy[MACHINES.index(machine)]
    shares = 100 * one / one[:-1].sum()
    found = sorted(zip(PARTS[:-1], shares[:-1], strict=True), key=lambda entry: -entry[1])
    return ", ".join(f"{name} {share:.0f}" for name, share in found if share >= 1)


__all__ = [
    "MACHINES",
    "NOTHING",
    "PARTS",
    "SUPPOSED",
    "Run",
    "areas_um2",
    "listed",
    "relative",
    "spent",
]
