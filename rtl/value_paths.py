"""Other ways to the values of a layer in a tiling: operands one by one, sums by loops.

What the host makes of operands crosses the ports, and the RTL computes with it: that it is made
rightly, no comparison of both could tell.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from archsim.codecs.vector_dot import scale_product
from archsim.codecs.vector_operands import VectorOperands
from archsim.codecs.vsquant import VectorFormat
from archsim.layer.float_intake import FloatIntake, FloatOperands
from archsim.layer.problem import Tiling
from archsim.machines.vsq import vector_kernels as vk
from archsim.machines.vsq.vector_numerics import VectorNumerics
from archsim.machines.vsq.vector_values import VectorSummation, VectorTensors, sums_of
from archsim.numbers import AnyIntArray
from archsim.tiled.design import CoreDesign
from rtl.apart import Pair, first_apart
from workloads.layers import Conv2d, MatMul
from workloads.operands import Operands


def values_apart(
    design: CoreDesign, layer: Conv2d | MatMul, tiling: Tiling, operands: Any
) -> Mapping[str, Pair]:
    """Values that two ways of the model give, by name, where they are not the same.

    Of vectors with scales: the sums that matrix products make, and those of loops; bounds on them,
    and the sums that they are of; values, and what is nearest to the integers that they stand for.
    Of floats: patterns from a table, and each by itself.
    """
    form, pairs = design.numerics, dict[str, Pair]()
    if isinstance(form, VectorNumerics):
        pairs = dict(_of_vectors(form, layer, tiling, operands))
    elif isinstance(form, FloatIntake) and isinstance(operands, Operands):
        taken: FloatOperands = form.take(layer, operands)
        for name in ("ifmap", "weight"):
            real = getattr(operands, name) * np.float64(getattr(operands, f"{name}_scale"))
            pairs[f"{name} patterns by table and one by one"] = first_apart(
                getattr(taken, name), form.operand.encode(real)
            )
    return {name: two for name, two in pairs.items() if two[0] != two[1]}


def _of_vectors(
    form: VectorNumerics, layer: Conv2d | MatMul, tiling: Tiling, operands: Any
) -> Iterator[tuple[str, Pair]]:
    taken, problem = form.take(layer, operands), form.problem(layer)
    summation = VectorSummation(
        mac=form.mac,
        channel_tile=min(tiling.channels, problem.channels),
        sum_bits=form.sum_bits,
        length=form.length,
    )
    tensors = form.split(layer, taken).tensors(problem).in_order()
    by_loops = _sums_by_loops(tensors, summation)
    yield "sums by products and loops", first_apart(sums_of(tensors, summation), by_loops)
    largest = _largest(tensors.ifmap[0]), _largest(tensors.ifmap[1])
    said = vk.bounds(tensors.weight, summation.rules(clipped=True), largest)
    for name, one, other in zip(("a tile", "a sum"), said, _bounds(tensors, summation, largest),
                                strict=True):  # fmt: skip
        yield f"bound of {name} by loops and arrays", (int(one), other)
    if isinstance(operands, Operands):
        for name, own in (("ifmap", form.mac.activation), ("weight", form.mac.weight)):
            wrong = _not_nearest(layer, name, (operands, taken), own)
            yield f"{name} values that are not the nearest", (wrong, 0)


def _sums_by_loops(tensors: VectorTensors, summation: VectorSummation) -> AnyIntArray:
    sums = tensors.zeros()
    ifmap, weight = (
        (pair[0].astype(np.int64), pair[1].astype(np.int64))
        for pair in (tensors.ifmap, tensors.weight)
    )
    rules = summation.rules(clipped=True)
    vk.add_directly(tensors.problem.vector(), rules, ifmap, weight, sums)
    return sums


def _largest(values: AnyIntArray) -> int:
    return int(np.abs(values.astype(np.int64)).max())


def _bounds(
    tensors: VectorTensors, summation: VectorSummation, largest: tuple[int, int]
) -> tuple[int, int]:
    """`vector_kernels.bounds`, of all filters at once."""
    values, scales = (one.astype(np.int64) for one in tensors.weight)
    norms = np.add.reduceat(np.abs(values), np.arange(0, values.shape[-1], summation.vector), -1)
    terms = (
        norms * largest[0] * scale_product(summation.mac, scales, np.full_like(scales, largest[1]))
    )
    taps = terms.sum(axis=(2, 3))
    tiles = np.add.reduceat(taps, np.arange(0, taps.shape[-1], summation.channel_tile), -1)
    return int(tiles.max()), int(tiles.sum(axis=-1).max())


def _not_nearest(
    layer: Conv2d | MatMul, name: str, of: tuple[Operands, VectorOperands], form: VectorFormat
) -> int:
    """How many values are farther from what they stand for than half of their vector's scale."""
    given, values = (np.asarray(getattr(one, name), np.float64) for one in of)
    channel = 1 if name == "weight" else 2
    if isinstance(layer, Conv2d) and name == "ifmap":
        split = (layer.batch, layer.groups, -1, *given.shape[2:])
        given, values = given.reshape(split), values.reshape(split)
    given, values = (np.moveaxis(one, channel, -1) for one in (given, values))
    depth = given.shape[-1]
    length = min(form.vector or depth, depth)
    if form.vector is None:  # one scale for all, or for a filter
        return 0
    top = np.maximum.reduceat(np.abs(given), np.arange(0, depth, length), -1)
    top = np.repeat(top, length, -1)[..., :depth]
    apart = np.abs(given * form.largest - values * top)
    return int((apart > top / 2 * (1 + 1e-9)).sum())


__all__ = ["values_apart"]
