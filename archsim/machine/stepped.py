"""Results of layers whose steps follow each other, of those of the steps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from archsim.result import Actions, LayerResult
from workloads.layers import Conv2d, MatMul
from workloads.limits import check_limit
from workloads.steps import steps_in


def repeated(step: LayerResult, times: int) -> LayerResult:
    """A step whose cycles do not depend on values, so many times."""
    if times == 1:
        return step
    return replace(
        step,
        macs=times * step.macs,
        cycles=times * step.cycles,
        serial_cycles=times * step.serial_cycles,
        tiles=times * step.tiles,
        folds=times * step.folds,
        where=_times(step.where, times),
        bytes_moved=_times(step.bytes_moved, times),
        actions=Actions(_times(step.actions, times)),
    )


def _times(counts: Mapping[str, int], times: int) -> dict[str, int]:
    return {name: times * count for name, count in counts.items()}


def check_steps(layer: Conv2d | MatMul) -> None:
    """Raise WorkloadError for a layer of too many steps to be simulated one by one."""
    check_limit("steps", steps_in(layer), f"{layer.name}: steps whose cycles depend on values")


def joined(name: str, steps: Iterable[LayerResult]) -> LayerResult:
    """The result of steps that were simulated one by one; their ofmaps [1, M, N] as one."""
    total: LayerResult | None = None
    made: list[Any] = []
    for step in steps:
        made.append(step.ofmap)
        total = replace(step, name=name, ofmap=None) if total is None else _added(total, step)
    assert total is not None
    return replace(total, ofmap=None if made[0] is None else np.concatenate(made, axis=1))


def _added(a: LayerResult, b: LayerResult) -> LayerResult:
    products = None if a.products is None or b.products is None else a.products + b.products
    return replace(
        a,
        macs=a.macs + b.macs,
        products=products,
        cycles=a.cycles + b.cycles,
        serial_cycles=a.serial_cycles + b.serial_cycles,
        tiles=a.tiles + b.tiles,
        folds=a.folds + b.folds,
        where=_sum(a.where, b.where),
        bytes_moved=_sum(a.bytes_moved, b.bytes_moved),
        stored=_sum(a.stored, b.stored),
        actions=a.actions + b.actions,
        per_pe={pe: a.per_pe[pe] + cycles for pe, cycles in b.per_pe.items()},
    )


def _sum(a: Mapping[str, int], b: Mapping[str, int]) -> dict[str, int]:
    return dict(Actions(a) + b)


__all__ = ["check_steps", "joined", "repeated"]
