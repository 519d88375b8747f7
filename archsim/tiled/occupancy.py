"""How busy every PE of a core that is walked by tiles is: the MACs that it does, exactly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from archsim.layer.problem import Tiling, problem_of
from archsim.machine.pe_occupancy import Lines, Occupancy
from archsim.numbers import ceil_div
from archsim.result import LayerResult
from archsim.tiled.activity import layer_activity
from archsim.tiled.design import CoreDesign
from archsim.tiled.layer_products import LayerProducts
from workloads.layers import Conv2d, MatMul
from workloads.steps import one_step, steps_in


def layer_products(
    design: CoreDesign, layer: Conv2d | MatMul, tiling: Tiling | None = None
) -> LayerProducts:
    """The products of a layer by PE, in the tiling given or the automatic one.

    Raises `InputError` as `archsim.tiled.activity.layer_activity`.
    """
    activity = layer_activity(design, layer, tiling)
    groups, together = activity.blocks
    return LayerProducts(
        machine=design.machine,
        pes=design.pes,
        tiles=activity.tiles,
        plan=activity.plan,
        groups=groups,
        together=together,
        channels=problem_of(layer).channels,
    )


def tile_occupancy(
    name: str, design: CoreDesign, layers: Sequence[LayerResult], bins: int
) -> Occupancy:
    """Useful MACs of every PE in layers of a result, in their tilings, one behind the other.

    bins: spans of time at most, equal but for the last.
    """
    cycles = sum(one.cycles for one in layers)
    edges = np.append(np.arange(0, cycles, ceil_div(cycles, bins)), cycles)
    rows = np.zeros((len(edges), design.pes.rows), np.int64)
    columns = np.zeros((len(edges), design.pes.columns), np.int64)
    total, start = np.zeros((design.pes.rows, design.pes.columns), np.int64), 0
    for one, products in _products(design, layers):
        assert isinstance(one.work, (Conv2d, MatMul))
        inside = (edges >= start) & (edges < start + one.cycles)
        steps = steps_in(one.work)
        for at in np.flatnonzero(inside).tolist():
            step, cycle = divmod(int(edges[at]) - start, max(1, one.cycles // steps))
            before = total + step * products.total + products.until(cycle)
            rows[at], columns[at] = before.sum(axis=1), before.sum(axis=0)
        total += steps * products.total
        start += one.cycles
    rows[-1], columns[-1] = total.sum(axis=1), total.sum(axis=0)
    return Occupancy(
        what="useful MACs",
        name=name,
        cycles=cycles,
        counts=total,
        row=design.pes.row,
        column=design.pes.column,
        edges_cycles=edges,
        lines=(
            Lines(name=design.pes.row, each=design.pes.columns, counts=np.diff(rows, axis=0)),
            Lines(name=design.pes.column, each=design.pes.rows, counts=np.diff(columns, axis=0)),
        ),
    )


def _products(
    design: CoreDesign, layers: Sequence[LayerResult]
) -> Iterator[tuple[LayerResult, LayerProducts]]:
    """Of every layer, or of one of its steps, which are alike; layers that the array sees alike
    are planned once while they follow."""
    seen: tuple[object, LayerProducts] | None = None
    for one in layers:
        assert isinstance(one.work, (Conv2d, MatMul))
        step = one_step(one.work)
        key = design.numerics.problem(step), problem_of(step).channels, one.tiling
        if seen is None or seen[0] != key:
            seen = key, layer_products(design, step, one.tiling)
        yield one, seen[1]
