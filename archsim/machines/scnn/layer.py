"""A layer on a sparse core: its passes, what it computes, and how it is timed.

timing = layer_timing(SCNN_ISCA17, layer, operands)
ofmap = layer_values(SCNN_ISCA17, layer, operands)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from archsim.errors import InputError, require
from archsim.layer import layout
from archsim.layer.operand_check import check_integers, require_one_scale
from archsim.layer.problem import problem_of
from archsim.layer.values import compute, compute_with_sums
from archsim.machines.scnn.choice import Choice
from archsim.machines.scnn.design import Scnn
from archsim.machines.scnn.dnnsim import dnnsim_passes
from archsim.machines.scnn.failing import SeenByLayer, Sound, seen_strip
from archsim.machines.scnn.fold import Part, folded, may_move_less, moved_bits
from archsim.machines.scnn.passes import behind_the_channel
from archsim.machines.scnn.pooling import check_pool, join_pooled, pooled_values, windows_of
from archsim.machines.scnn.strips import Strip, strips_of, sums_of_strip
from archsim.machines.scnn.timed_layer import ScnnTiming
from archsim.machines.scnn.timing import PassTiming, Services, pass_timing
from archsim.numbers import AnyIntArray, IntArray
from workloads.layers import Conv2d, MatMul
from workloads.operands import Operands
from workloads.pooling import MaxPool
from workloads.threads import in_threads

Layer = Conv2d | MatMul
Tensors = tuple[AnyIntArray, AnyIntArray, IntArray]
"""ifmap [images, groups, H, W, C], weight [groups, K, R, S, C], ofmap [images, groups, P, Q, K] or,
pooled, [images, groups, U, V, K]."""


@dataclass(frozen=True, kw_only=True, eq=False)
class LayerPlan:
    """A layer's passes before they are timed: the strips of each image and conv group; the ofmap in
    the layer's own shape, pooled where it is, `layer_values`."""

    layer: Layer
    passes: tuple[tuple[Strip, ...], ...]
    ofmap: IntArray


def layer_values(
    design: Scnn, layer: Layer, operands: Operands, pool: MaxPool | None = None
) -> IntArray:
    """The ofmap in the layer's own shape, [N, K, U, V] if it is pooled: exact, sums wrap at
    `accumulator_bits`; as it is read where cells fail.

    Raises InputError for operands of other shapes or widths than the layer's and the design's, and
    for a pooling that the layer cannot have; where cells fail as `plan_layer`.
    """
    if not design.values_as_meant:
        return plan_layer(design, layer, operands, pool).ofmap
    problem = problem_of(layer)
    ofmap = layer_tensors(design, layer, operands, pool)[2]
    return join_pooled(layer, problem, ofmap, pool)


def layer_passes(
    design: Scnn, layer: Layer, operands: Operands, pool: MaxPool | None = None
) -> list[tuple[Strip, ...]]:
    """The strips of each image and conv group, with their mappings and lists.

    Raises InputError as `layer_timing`.
    """
    return _passes(design, layer, operands, layer_tensors(design, layer, operands, pool), pool)


def _as_run(layer: Layer, operands: Operands) -> Layer:
    """The layer with biases if there are some."""
    return replace(layer, bias=operands.bias is not None)


def _passes(
    design: Scnn,
    layer: Layer,
    operands: Operands,
    tensors: Tensors,
    pool: MaxPool | None = None,
    sums: IntArray | None = None,
) -> list[tuple[Strip, ...]]:
    """sums: of cells that do not fail [images, groups, P, Q, K], where they are known."""
    ifmap, weight, ofmap = tensors
    problem = problem_of(_as_run(layer, operands))
    try:
        found = [
            strips_of(
                design,
                problem,
                (ifmap[image, group], weight[group], ofmap[image, group]),
                pool,
                given_later=not design.values_as_meant,
            )
            for image in range(problem.images)
            for group in range(problem.groups)
        ]
    except InputError as error:
        raise InputError(f"{layer.name}: {error}") from None
    if design.values_as_meant:
        return found
    biases = None
    if operands.bias is not None:
        biases = layout.split_bias(layer, problem, operands.bias.astype(np.int64))
    relu, by_layer = bool(problem.relu), SeenByLayer(design)
    planes = ofmap.reshape(-1, *ofmap.shape[2:])
    before = None if sums is None else sums.reshape(-1, *sums.shape[2:])
    windows = windows_of(pool, (problem.out_height, problem.out_width))

    def seen(number: int) -> tuple[Strip, ...]:
        bias = None if biases is None else biases[number % problem.groups]
        return tuple(
            seen_strip(by_layer, strip, operands, bias, sound(number, strip), relu=relu)
            for strip in found[number]
        )

    def sound(number: int, strip: Strip) -> Sound:
        own = None if before is None else sums_of_strip(before[number], strip, windows)
        return Sound(_cut(planes[number], strip), own)

    return in_threads(seen, range(len(found)))


def _cut(plane: IntArray, strip: Strip) -> IntArray:
    """Of a plane of outputs those of a strip."""
    rows, columns = strip.rows, strip.columns
    return plane[rows.start : rows.stop, columns.start : columns.stop]


def layer_timing(
    design: Scnn,
    layer: Layer,
    operands: Operands,
    services: Services | None = None,
    pool: MaxPool | None = None,
) -> ScnnTiming:
    """Cycles, actions and stored bits of a layer.

    services: of the ports, for every pass anew; of the design's off-chip memory by default.
    pool: behind it.
    Of a design that `counts_as_dnnsim` that simulator's count, a pass of each image.
    Raises InputError as `plan_layer`; of such a design as
    `archsim.machines.scnn.dnnsim.dnnsim_passes`, and for services and a pool, which it has not.
    """
    if design.counts_as_dnnsim:
        require(services is None, "ports have no services where cycles are counted as DNNsim does")
        require(pool is None, "layers have no pool where cycles are counted as DNNsim does")
        return _as_dnnsim(design, layer, operands)
    return planned_timing(design, plan_layer(design, layer, operands, pool), services)


def _as_dnnsim(design: Scnn, layer: Layer, operands: Operands) -> ScnnTiming:
    ofmap = layer_values(design, layer, operands)
    try:
        passes = dnnsim_passes(design, layer, operands)
    except InputError as error:
        raise InputError(f"{layer.name}: {error}") from None
    return ScnnTiming(design=design, passes=tuple(passes), strips=1, ofmap=ofmap)


def plan_layer(
    design: Scnn,
    layer: Layer,
    operands: Operands,
    pool: MaxPool | None = None,
    *,
    whole: bool = False,
    choice: Choice | None = None,
) -> LayerPlan:
    """The passes of a layer, which the core pools if there is a `pool`.  A fully connected layer
    that does not fit is folded (`archsim.machines.scnn.fold`), and one that does if it then moves
    fewer bits (weights, ifmaps, ofmaps); whole: only the former.  choice: how it is cut instead.

    Raises InputError for operands that do not match, for a dilated kernel, for a pooling that the
    layer cannot have (a fully connected one none), and where the smallest strip of the layer's
    plane does not fit the PEs' memories.
    """
    problem = problem_of(layer)
    tensors, sums = _tensors(design, layer, operands, pool)
    if choice:
        return chosen_plan(design, layer, operands, tensors, choice)
    parts: tuple[Part, ...] = ()
    if isinstance(layer, MatMul) and layer.shared_weight:
        passes, parts = _product(design, layer, operands, tensors, whole=whole)
    else:
        passes = _passes(design, layer, operands, tensors, pool, sums)
    ofmap = join_pooled(layer, problem, _given_out(passes, tensors[2], parts), pool)
    return LayerPlan(layer=layer, passes=tuple(passes), ofmap=ofmap)


def _given_out(
    passes: Sequence[tuple[Strip, ...]], meant: IntArray, parts: Sequence[Part] = ()
) -> IntArray:
    """The ofmap of all passes, in the shape of the one that is meant: that, or what strips give out
    where cells fail.  parts: of a folded layer, whose strips are theirs, row by row."""
    if any(strip.values is None for strips in passes for strip in strips):
        return meant
    found = np.empty_like(meant)
    if parts:
        product, (strips,), first = found.reshape(-1, meant.shape[-1]), passes, 0
        for number in range(len(parts)):
            own = strips[number * len(product) : (number + 1) * len(product)]
            rows = np.stack([strip.given.reshape(-1) for strip in own])
            product[:, first : first + rows.shape[1]] = rows
            first += rows.shape[1]
        return found
    planes = found.reshape(-1, *meant.shape[2:])
    for plane, strips in zip(planes, passes, strict=True):
        for strip in strips:
            _cut(plane, strip)[:] = strip.given
    return found


def chosen_plan(
    design: Scnn, layer: Layer, operands: Operands, tensors: Tensors, choice: Choice
) -> LayerPlan:
    """The passes of a layer without a pool, cut as it was chosen.  tensors: `layer_tensors`.

    Raises InputError where what was chosen does not fit.
    """
    passes, parts = _chosen(choice.planned(design), layer, operands, tensors, choice)
    ofmap = join_pooled(layer, problem_of(layer), _given_out(passes, tensors[2], parts), None)
    return LayerPlan(layer=layer, passes=tuple(passes), ofmap=ofmap)


def planned_timing(design: Scnn, plan: LayerPlan, services: Services | None = None) -> ScnnTiming:
    """The timing of planned passes.  services: of the ports, for every pass anew; None: those of
    the design's off-chip memory."""
    strips = [strip for some in plan.passes for strip in some]
    free = _side_by_side(design, strips, services)
    served = behind_the_channel(design, strips) if services is None else None
    return ScnnTiming(
        design=design,
        passes=served.passes if served else free,
        strips=max(len(some) for some in plan.passes),
        ofmap=plan.ofmap,
        behind_cycles=served.behind_cycles if served else 0,
        free=free if served else None,
    )


def _side_by_side(
    design: Scnn, strips: Sequence[Strip], services: Services | None
) -> tuple[PassTiming, ...]:
    """Passes that do not know of each other, side by side in threads."""

    def timed(strip: Strip) -> PassTiming:
        return pass_timing(design, strip.mapping, strip.operands, services)

    return tuple(in_threads(timed, strips))


def parts_of(
    design: Scnn, layer: Layer, operands: Operands, choice: Choice | None = None
) -> tuple[Part, ...]:
    """The parts in which a fully connected layer is run; none of a layer that is not folded.

    choice: by which it is cut.  Raises InputError as `plan_layer`.
    """
    if not (isinstance(layer, MatMul) and layer.shared_weight) or (choice and not choice.plane):
        return ()
    tensors = layer_tensors(design, layer, operands)
    if choice:
        return _chosen(choice.planned(design), layer, operands, tensors, choice)[1]
    return _product(design, layer, operands, tensors)[1]


def _chosen(
    cut: Scnn, layer: Layer, operands: Operands, tensors: Tensors, choice: Choice
) -> tuple[list[tuple[Strip, ...]], tuple[Part, ...]]:
    """Passes as they were chosen, and the parts of a layer that is folded; cut: the design with the
    choice's sizes."""
    if choice.plane is None:
        return _passes(cut, layer, operands, tensors), ()
    require(
        isinstance(layer, MatMul) and layer.shared_weight,
        f"{layer.name}: only a fully connected layer is folded into a plane of inputs",
    )
    assert isinstance(layer, MatMul)
    return _folded(cut, layer, operands, tensors, (choice.plane,))


def _product(
    design: Scnn, layer: MatMul, operands: Operands, tensors: Tensors, *, whole: bool = False
) -> tuple[list[tuple[Strip, ...]], tuple[Part, ...]]:
    """Passes of a product with one weight, and its parts if it is folded: `plan_layer`."""
    try:
        passes = _passes(design, layer, operands, tensors)
    except InputError:
        return _folded(design, layer, operands, tensors)
    if whole or not may_move_less(design, layer, operands, passes[0]):
        return passes, ()
    try:
        strips, parts = _folded(design, layer, operands, tensors)
    except InputError:
        return passes, ()
    if moved_bits(design, strips[0]) < moved_bits(design, passes[0]):
        return strips, parts
    return passes, ()


def _folded(
    design: Scnn,
    layer: MatMul,
    operands: Operands,
    tensors: Tensors,
    planes: tuple[tuple[int, int], ...] | None = None,
) -> tuple[list[tuple[Strip, ...]], tuple[Part, ...]]:
    try:
        parts = folded(design, layer, operands, tensors[2].reshape(layer.m, layer.n), planes)
    except InputError as error:
        raise InputError(f"{layer.name}: {error}") from None
    return [_passes_of_parts(design, parts)], parts


def _passes_of_parts(design: Scnn, parts: Sequence[Part]) -> tuple[Strip, ...]:
    found: list[tuple[Strip, ...]] = []
    for part in parts:
        problem = problem_of(part.layer)
        ifmap = layout.split_ifmap(part.layer, problem, part.operands.ifmap)
        weight = layout.split_weight(part.layer, problem, part.operands.weight)
        own = part.ofmap[:, None, None, None]
        found += _passes(design, part.layer, part.operands, (ifmap, weight, own))
    return tuple(strip for strips in found for strip in strips)


def layer_tensors(
    design: Scnn, layer: Layer, operands: Operands, pool: MaxPool | None = None
) -> Tensors:
    """A layer's operands and what it computes.  Raises InputError as `plan_layer`."""
    return _tensors(design, layer, operands, pool)[0]


def _tensors(
    design: Scnn, layer: Layer, operands: Operands, pool: MaxPool | None = None
) -> tuple[Tensors, IntArray | None]:
    """The same, and the sums before that, where they are asked for."""
    check_pool(layer, pool)
    require(
        pool is None or design.group_rule != "dnnsim",
        f"{layer.name}: a pooled layer's groups are as its accumulators hold them: group_rule must "
        f"be accumulators, not dnnsim",
    )
    problem = problem_of(layer)
    widths = (design.operand_bits, design.accumulator_bits)
    check_integers(layer, operands, (*widths, design.multiplier_bits))
    require_one_scale(layer, operands)
    bias = None
    if operands.bias is not None:
        bias = layout.split_bias(layer, problem, operands.bias.astype(np.int64))
    ifmap = layout.split_ifmap(layer, problem, operands.ifmap)
    weight = layout.split_weight(layer, problem, operands.weight)
    scaling = operands.multiplier, operands.shift
    as_they_lie = (
        layout.ifmap_view(layer, problem, operands.ifmap),
        layout.weight_view(layer, problem, operands.weight),
    )
    given, sums = (*as_they_lie, bias), None
    sums_alone = design.activation_memory.exact and design.weight_memory.exact
    if design.values_as_meant or (sums_alone and pool is None):
        ofmap = compute(problem, given, scaling, widths)
    else:
        ofmap, sums = compute_with_sums(problem, given, scaling, widths)
    return (ifmap, weight, pooled_values(np.ascontiguousarray(ofmap, np.int64), pool)), sums


__all__ = [
    "Layer",
    "LayerPlan",
    "Tensors",
    "chosen_plan",
    "layer_passes",
    "layer_tensors",
    "layer_timing",
    "layer_values",
    "parts_of",
    "plan_layer",
    "planned_timing",
]
