"""The fewest cycles and bytes that a layer's passes can take, before they are timed.

Each term follows from a row of the contract (docs/contracts/scnn.md) with what delays it left out:
conflicts of banks, gaps and latencies of ports, biases, placeholders in lists of weights
(docs/mapping.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from archsim.layer.problem import problem_of
from archsim.machines.scnn.choice import Choice
from archsim.machines.scnn.design import Scnn
from archsim.machines.scnn.lists import stored_of_groups
from archsim.machines.scnn.strips import Strip
from archsim.machines.scnn.timing import drain_cycles
from archsim.numbers import IntArray, ceil_div
from workloads.layers import Conv2d, MatMul
from workloads.operands import Operands


@dataclass(frozen=True, kw_only=True)
class Least:
    """Of cycles, and of bits across the ports in both directions but those of biases."""

    cycles: int
    weight_bits: int
    other_bits: int

    @property
    def bytes_moved(self) -> int:
        return (self.weight_bits + self.other_bits) // 8


def least_of_shape(
    design: Scnn, layer: Conv2d | MatMul, operands: Operands, shape: Choice
) -> Least:
    """Of strips or a plane, from the values of the weights alone: every pass broadcasts, a vector a
    cycle, all of its conv group's that are stored."""
    problem = problem_of(layer)
    if shape.plane:
        passes = problem.images * problem.out_height * problem.out_width
    else:
        outputs = problem.out_width if problem.out_height == 1 else problem.out_height
        passes = problem.images * ceil_div(outputs, shape.strip_rows)
    stored = operands.weight.size
    if design.sparsity != "activations":
        stored = int(np.count_nonzero(operands.weight))
    vectors = passes * ceil_div(stored, design.weight_lanes)
    bits = vectors * design.word_bits("weight")
    return Least(cycles=vectors, weight_bits=bits, other_bits=0)


def least_of_strips(design: Scnn, strips: Sequence[Strip], before: Sequence[IntArray]) -> Least:
    """Of passes one behind the other; before: of each, `stored_before` of its weights."""
    found = [_least_of_pass(design, *one) for one in zip(strips, before, strict=True)]
    weights, others = (
        sum(one.weight_bits for one in found),
        sum(one.other_bits for one in found),
    )
    cycles = max(sum(one.cycles for one in found), _channel_cycles(design, weights, others))
    return Least(cycles=cycles, weight_bits=weights, other_bits=others)


def _channel_cycles(design: Scnn, weight_bits: int, other_bits: int) -> int:
    """What the off-chip channel takes for so many bits, at the rate that it is kept in."""
    memory = design.off_chip
    apart, together = memory.weight_bytes_per_cycle, other_bits
    if apart is None and memory.shared:
        together += weight_bits
    each = [(weight_bits, apart if apart is not None else memory.bytes_per_cycle)]
    if memory.shared:
        each.append((together, memory.bytes_per_cycle))
    return max((bits * 128 // round(rate * 1024) for bits, rate in each if rate), default=0)


def _least_of_pass(design: Scnn, strip: Strip, before: IntArray) -> Least:
    """The recurrence of `archsim.machines.scnn.timing.pass_timing` with pairs of a cycle each."""
    mapping, ifmap, ofmap = strip.mapping, strip.operands.ifmap, strip.operands.ofmap
    shape = mapping.used_pes, mapping.lists
    vectors = np.where(ifmap.empty, 0, ifmap.lengths).reshape(shape)
    lists = np.maximum(-(-stored_of_groups(before, mapping) // design.weight_lanes), 1)
    works = (vectors @ lists.T + (vectors == 0).sum(axis=1)[:, None]).max(axis=0).tolist()
    broadcast = np.cumsum(lists.sum(axis=1)).tolist()
    start, free = ifmap.vectors + 1, 0
    for group, (work, vectors_sent) in enumerate(zip(works, broadcast, strict=True)):
        end = max(start + work, vectors_sent + 2)
        start = max(end, free) + 1
        free = max(end + design.pipeline_latency_cycles, free) + drain_cycles(mapping, group)
    return Least(
        cycles=free + design.ofmap_latency_cycles + ofmap.vectors,
        weight_bits=broadcast[-1] * design.word_bits("weight"),
        other_bits=(ifmap.vectors + ofmap.vectors) * design.word_bits("ifmap"),
    )


__all__ = ["Least", "least_of_shape", "least_of_strips"]
