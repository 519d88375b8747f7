"""What happens in DCNN and in DCNN-opt while a layer runs: counts by which they are priced.

Both run the loops of SCNN (PT-IS-DP-dense): for group of filters: for `vector` channels: for input
of the PE's tile, which stays: for weight of the group: a dot product, added to its output's sum.
DCNN-opt differs in two ways, as the paper says: activations cross the off-chip memory compressed
(16 bits and a 4-bit run of zeros for each that is not zero; placeholders of long runs are not
counted); and of an activation that is zero the weights are not read, nor is anything multiplied if
either operand is zero.  A read of some lanes of a vector is taken as that share of a whole one.

actions = dcnn_actions(DCNN, problem, Zeros.of(problem, tensors), optimised=True)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from archsim.layer.problem import Problem
from archsim.machines.scnn.dense import Dcnn
from archsim.numbers import AnyIntArray, ceil_div

RUN_BITS = 4
"""Of the run of zeros before a value that crosses compressed."""


@dataclass(frozen=True, kw_only=True)
class Zeros:
    """What is not zero in one image and conv group.

    products: multiplications of two values that are not zero.  met: multiplications of which the
    activation is not.  ifmap, weight, ofmap: values.
    """

    products: int
    met: int
    ifmap: int
    weight: int
    ofmap: int

    @staticmethod
    def of(problem: Problem, tensors: tuple[AnyIntArray, AnyIntArray, AnyIntArray]) -> Zeros:
        """Of ifmap [H, W, C], weight [K, R, S, C], ofmap [P, Q, K]; padding makes no products."""
        ifmap, weight, ofmap = tensors
        values, taps = ifmap != 0, np.count_nonzero(weight, axis=0)
        products, met, filters = 0, 0, len(weight)
        for row in range(problem.kernel_height):
            rows = _seen(
                (problem.height, problem.out_height),
                problem.stride_height,
                row * problem.dilation_height - problem.pad_top,
            )
            for column in range(problem.kernel_width):
                columns = _seen(
                    (problem.width, problem.out_width),
                    problem.stride_width,
                    column * problem.dilation_width - problem.pad_left,
                )
                seen = np.count_nonzero(values[rows, columns], axis=(0, 1))
                products += int(seen @ taps[row, column])
                met += filters * int(seen.sum())
        return Zeros(
            products=products,
            met=met,
            ifmap=int(np.count_nonzero(values)),
            weight=int(taps.sum()),
            ofmap=int(np.count_nonzero(ofmap)),
        )


def _seen(plane: tuple[int, int], stride: int, offset: int) -> slice:
    """The inputs, of (inputs, outputs), that a tap at this offset from each output's first sees."""
    size, outputs = plane
    first = max(0, ceil_div(-offset, stride))
    last = min(outputs - 1, (size - 1 - offset) // stride)
    if last < first:
        return slice(0)
    return slice(first * stride + offset, last * stride + offset + 1, stride)


def dcnn_actions(
    design: Dcnn,
    problem: Problem,
    zeros: Zeros,
    *,
    optimised: bool = False,
    arrives: bool = False,
) -> dict[str, float]:
    """Counts of one image and conv group, over all PEs.

    step: dot products.  multiply: multiplications.  weight_read, fifo_write: vectors out of and
    into FIFOs.  activation_read, activation_write, output_write: vectors of activation memories.
    output: sums given out.  ifmap_bytes, weight_bytes, bias_bytes, ofmap_bytes: across the off-chip
    memory; those of activations are 0 where the activation memories hold them.  cycle.
    optimised: of DCNN-opt.  arrives: the ifmap is the network's input, which crosses in any case.
    """
    outputs = problem.out_height * problem.out_width * problem.filters
    taps = problem.kernel_height * problem.kernel_width
    depth = ceil_div(problem.channels, design.vector)
    inputs = problem.height * problem.width
    seen = min(inputs, problem.out_height * problem.out_width * taps)
    crosses = arrives or _too_large(design, inputs * problem.channels * problem.groups)
    leaves = _too_large(design, outputs * problem.groups)
    values = (zeros.ifmap, zeros.ofmap) if optimised else (None, None)
    return {
        "cycle": design.tile(problem) * problem.filters * taps * depth,
        "step": outputs * taps * depth,
        "weight_read": zeros.met / design.vector if optimised else outputs * taps * depth,
        "multiply": zeros.products if optimised else outputs * taps * problem.channels,
        "activation_read": seen * depth * ceil_div(problem.filters, group_size(design, problem)),
        "activation_write": inputs * depth * crosses,
        "fifo_write": problem.filters * taps * depth * used_pes(design, problem),
        "output": outputs,
        "output_write": outputs / design.vector,
        "ifmap_bytes": crosses * _bytes(design, inputs * problem.channels, values[0]),
        "weight_bytes": _bytes(design, problem.filters * taps * problem.channels),
        "bias_bytes": 0,
        "ofmap_bytes": leaves * _bytes(design, outputs, values[1]),
    }


def group_size(design: Dcnn, problem: Problem) -> int:
    """Filters whose sums are in a PE's accumulators at a time."""
    fitting = max(design.accumulators // design.tile(problem), 1)
    return min(design.filter_group, problem.filters, fitting)


def used_pes(design: Dcnn, problem: Problem) -> int:
    """PEs that own outputs."""
    rows = ceil_div(problem.out_height, ceil_div(problem.out_height, design.grid_rows))
    columns = ceil_div(problem.out_width, ceil_div(problem.out_width, design.grid_columns))
    return rows * columns


def _too_large(design: Dcnn, values: int) -> bool:
    """Whether an ifmap or ofmap does not fit the PEs' memories, and crosses the off-chip one."""
    return values * design.operand_bits > 8 * design.pes * design.activation_bytes


def _bytes(design: Dcnn, values: int, not_zero: int | None = None) -> float:
    """Of dense values, or of those that are not zero with their runs."""
    if not_zero is None:
        return values * design.operand_bits / 8
    return not_zero * (design.operand_bits + RUN_BITS) / 8


__all__ = ["RUN_BITS", "Zeros", "dcnn_actions", "group_size", "used_pes"]
