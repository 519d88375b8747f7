"""Layers that follow one another, whose ofmaps stay in the PEs where they can.

The memory that holds a layer's ofmap becomes the one of the next layer's ifmap: IARAM and OARAM
change places, as in Parashar et al., ISCA 2017, and no vector crosses a port.  Whether an ofmap can
stay is asked for every two layers.  Contract: `docs/contracts/scnn.md`.

timings = chain_timing(SCNN_ISCA17, layers, operands)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from archsim.errors import InputError, require
from archsim.machines.scnn.axis import Axis
from archsim.machines.scnn.design import Scnn
from archsim.machines.scnn.layer import Layer, LayerPlan, plan_layer, planned_timing
from archsim.machines.scnn.mapping import Mapping
from archsim.machines.scnn.strips import Strip
from archsim.machines.scnn.timed_layer import ScnnTiming
from archsim.machines.scnn.timing import Services
from workloads.operands import Operands
from workloads.pooling import MaxPool

Step = tuple[Layer, Operands, MaxPool | None]
"""A layer with its operands and the pooling behind it."""


def chain_timing(
    design: Scnn,
    layers: Sequence[Layer],
    operands: Sequence[Operands],
    services: Services | None = None,
    pools: Sequence[MaxPool | None] | None = None,
) -> tuple[ScnnTiming, ...]:
    """The timing of each layer, the ofmap of every one that can stay not leaving; cycles add up.

    operands: of each layer; the ifmap of layer i + 1 must be the ofmap of layer i.  pools: behind
    each layer; none by default.
    services: of the ports, for every pass anew.  Raises InputError as
    `archsim.machines.scnn.layer.plan_layer`, for another number of operands or pools than layers,
    for no layer, and for an ifmap that is not the ofmap before.
    """
    require(
        0 < len(layers) == len(operands),
        f"operands must be of each of {len(layers)} layers (at least one), not of {len(operands)}",
    )
    behind = [None] * len(layers) if pools is None else pools
    require(
        len(behind) == len(layers),
        f"pools must be of each of {len(layers)} layers, not of {len(behind)}",
    )
    found: list[LayerPlan] = []
    for plan in _linked(design, [*zip(layers, operands, behind, strict=True)]):
        if found:
            require_follows(found[-1], plan.layer, operands[len(found)])
        found.append(plan)
    return tuple(planned_timing(design, plan, services) for plan in found)


def resident_timing(design: Scnn, steps: Sequence[Step]) -> tuple[ScnnTiming, ...]:
    """As `chain_timing`, where operands were not made one from the other.

    Where an ofmap stays, the ifmap that is given for the next layer stands for it: cycles, actions
    and bytes are those of a machine in which it were the ofmap.  What a drain takes depends on no
    value.  Raises InputError as `archsim.machines.scnn.layer.plan_layer`.
    """
    return tuple(planned_timing(design, plan) for plan in _linked(design, steps))


def _linked(design: Scnn, steps: Sequence[Step]) -> list[LayerPlan]:
    """Plans of layers of which each feeds the next, linked where an ofmap can stay."""
    here, found = design, list[LayerPlan]()
    for step in steps:
        kept = _kept_plan(here, found[-1], step) if found else None
        here = exchanged(here) if kept else design
        plan = kept or plan_layer(design, *step)
        if kept:
            found[-1], plan = link(found[-1], kept)
        found.append(plan)
    return found


def _kept_plan(here: Scnn, before: LayerPlan, step: Step) -> LayerPlan | None:
    """The layer with IARAM and OARAM in each other's place, if the ofmap before can stay: not where
    cells fail, since the next ifmap would be what is read of it."""
    if not here.values_as_meant:
        return None
    try:
        plan = plan_layer(exchanged(here), *step)
    except InputError:
        return None
    return None if plans_can_stay(before, plan) else plan


def exchanged(design: Scnn) -> Scnn:
    """The design with IARAM and OARAM in each other's place."""
    return replace(design, iaram_bytes=design.oaram_bytes, oaram_bytes=design.iaram_bytes)


def can_stay(mapping: Mapping, next_mapping: Mapping) -> str | None:
    """Why the ofmap of a pass cannot stay as the ifmap of the next one; None if it can.

    It can if the next pass has no stride, and in each PE the inputs that are its (pooled) outputs.
    """
    if next_mapping.channels != mapping.filters:
        return f"channels of the next pass must be {mapping.filters}, not {next_mapping.channels}"
    return _axis_can_stay("rows", mapping.rows, next_mapping.rows) or _axis_can_stay(
        "columns", mapping.columns, next_mapping.columns
    )


def _axis_can_stay(name: str, axis: Axis, next_axis: Axis) -> str | None:
    pairs = (
        (f"stride along {name} of the next pass", next_axis.stride, 1),
        (f"{name} of the next pass", next_axis.size, axis.window.outputs),
        (f"{name} of PEs of the next pass", next_axis.pes, axis.pes),
        (f"{name} of a PE's tile in the next pass", next_axis.tile, axis.give),
    )
    for what, found, wanted in pairs:
        if found != wanted:
            return f"{what} must be {wanted}, not {found}"
    if axis.givers != axis.pes:
        return (
            f"{name} of PEs with outputs must be {axis.pes}, all that are used, not {axis.givers}"
        )
    return None


def plans_can_stay(plan: LayerPlan, next_plan: LayerPlan) -> str | None:
    """Why a layer's ofmap cannot stay for the next one; None if it can.

    next_plan: with IARAM and OARAM in the places that they then have, so that its lists fit.
    """
    for name, one in (("passes", plan), ("passes of the next layer", next_plan)):
        number = sum(map(len, one.passes))
        if number != 1:
            return f"{name} must be 1 (an image, a conv group and a strip), not {number}"
    return can_stay(_only(plan).mapping, _only(next_plan).mapping)


def require_follows(plan: LayerPlan, next_layer: Layer, operands: Operands) -> None:
    """Raise InputError unless the next layer's ifmap is the ofmap of a plan."""
    require(
        np.array_equal(plan.ofmap, operands.ifmap),
        f"ifmap of {next_layer.name} must be the ofmap of {plan.layer.name}, of shape "
        f"{plan.ofmap.shape}, and is another of shape {operands.ifmap.shape}",
    )


def link(plan: LayerPlan, next_plan: LayerPlan) -> tuple[LayerPlan, LayerPlan]:
    """Both plans, with the ofmap of the first staying as the ifmap of the next.

    The lists are the same ones, with the positions of an ifmap.  Raises InputError where it cannot
    stay.
    """
    reason = plans_can_stay(plan, next_plan)
    require(
        reason is None,
        f"the ofmap of {plan.layer.name} cannot stay for {next_plan.layer.name}: {reason}",
    )
    one, other = _only(plan), _only(next_plan)
    operands = replace(one.operands, ofmap=other.operands.ifmap)
    one = replace(one, mapping=replace(one.mapping, keep_ofmap=True), operands=operands)
    other = replace(other, mapping=replace(other.mapping, ifmap_kept=True))
    return replace(plan, passes=((one,),)), replace(next_plan, passes=((other,),))


def _only(plan: LayerPlan) -> Strip:
    return plan.passes[0][0]


__all__ = [
    "Step",
    "can_stay",
    "chain_timing",
    "exchanged",
    "link",
    "plans_can_stay",
    "require_follows",
    "resident_timing",
]
