"""Random steps of a vector lane, aimed at its corners: for tests of model and hardware."""

from __future__ import annotations

import numpy as np

from archsim.codecs.vsquant import VectorFormat
from archsim.machines.vsq.vector_lane import LaneSteps, VectorLaneDesign
from archsim.numbers import IntArray

__all__ = ["random_steps"]


def random_steps(lane: VectorLaneDesign, count: int, seed: int) -> LaneSteps:
    """`count` steps, back to back, of which half are given out.

    Values are random, or extreme in all elements at once, so that sums saturate; scales are
    random, 0, 1 or the largest.  An entry is often that of the step before, or of the one before
    that, and begins anew where it must and now and then besides.
    """
    rng = np.random.default_rng(seed)
    address = rng.integers(0, lane.depth, count)
    for step in range(1, count):
        back = int(rng.integers(0, 5))
        if 1 <= back <= min(2, step):
            address[step] = address[step - back]
    first = (rng.random(count) < 0.1).astype(np.int64)
    first[np.unique(address, return_index=True)[1]] = 1
    weight, activation = lane.mac.weight, lane.mac.activation
    return LaneSteps(
        start_cycles=np.arange(count),
        weight=_values(weight, count, lane.length, rng),
        activation=_values(activation, count, lane.length, rng),
        weight_scale=_scales(weight, count, rng),
        activation_scale=_scales(activation, count, rng),
        address=address,
        first=first,
        last=rng.integers(0, 2, count),
    )


def _values(form: VectorFormat, count: int, length: int, rng: np.random.Generator) -> IntArray:
    least = -form.largest - 1 if form.signed else 0
    values = rng.integers(least, form.largest + 1, (count, length))
    extreme = rng.choice([least, form.largest], (count, 1))
    return np.where(rng.random((count, 1)) < 0.4, extreme, values)


def _scales(form: VectorFormat, count: int, rng: np.random.Generator) -> IntArray:
    if form.scale_bits is None:
        return np.ones(count, np.int64)
    top = form.largest_scale
    values = rng.integers(0, top + 1, count)
    return np.where(rng.random(count) < 0.4, rng.choice([0, 1, top, top], count), values)
