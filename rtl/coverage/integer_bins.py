"""Bins of cores that sum integers and requantise the sums: ends of widths, ties, saturation."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from archsim.layer import layout
from archsim.layer.problem import problem_of
from archsim.layer.values import accumulate
from archsim.numbers import IntArray, rescale, wrap
from rtl.coverage.bins import Bin, Seen
from workloads.layers import Conv2d, MatMul
from workloads.operands import Operands
from workloads.quantize import MAX_SHIFT

EDGES = "edge values"
"""The aim that draws operands at the ends of their widths."""
MULTIPLIER_BITS = 16


@dataclass(frozen=True, kw_only=True, eq=False)
class IntegerLayer:
    """What a layer computes on its way to its ofmap, [images, groups, P, Q, K] each."""

    layer: Conv2d | MatMul
    operands: Operands
    operand_bits: int
    accumulator_bits: int

    @cached_property
    def exact(self) -> IntArray:
        """Sums of products, before they wrap."""
        problem = problem_of(self.layer)
        ifmap = layout.split_ifmap(self.layer, problem, self.operands.ifmap)
        weight = layout.split_weight(self.layer, problem, self.operands.weight)
        return accumulate(problem, ifmap, weight, self.operand_bits).astype(np.int64)

    @cached_property
    def total(self) -> IntArray:
        """Sums and biases."""
        sums, bias = wrap(self.exact, self.accumulator_bits), self.operands.bias
        if bias is None:
            return sums
        split = layout.split_bias(self.layer, problem_of(self.layer), bias.astype(np.int64))
        return sums + split[None, :, None, None, :]

    @cached_property
    def rounded(self) -> IntArray:
        """Multiplied, rounded and shifted, before ReLU and saturation."""
        return rescale(self.total, self.operands.multiplier, self.operands.shift)

    @cached_property
    def ties(self) -> IntArray:
        """Outputs whose exact value lies in the middle between two integers, as 0 and 1."""
        shift = self.operands.shift
        if shift == 0:
            return np.zeros_like(self.total)
        below = (self.total * self.operands.multiplier) & ((1 << shift) - 1)
        return (below == 1 << (shift - 1)).astype(np.int64)

    @property
    def ends(self) -> tuple[int, int]:
        """Lowest and highest value of an operand, and of an output."""
        return -(1 << (self.operand_bits - 1)), (1 << (self.operand_bits - 1)) - 1

    @property
    def accumulator_ends(self) -> tuple[int, int]:
        """The same of a sum."""
        return -(1 << (self.accumulator_bits - 1)), (1 << (self.accumulator_bits - 1)) - 1


Layers = Callable[[Seen], tuple[IntegerLayer, ...]]
_Says = Callable[[IntegerLayer], bool]

_BINS: tuple[tuple[str, str, _Says], ...] = (
    (
        "lowest ifmap by lowest weight",
        "the largest product needs the multiplier's last bit",
        lambda one: (
            bool((one.operands.ifmap == one.ends[0]).any())
            and bool((one.operands.weight == one.ends[0]).any())
        ),
    ),
    (
        "highest ifmap by lowest weight",
        "the lowest product",
        lambda one: (
            bool((one.operands.ifmap == one.ends[1]).any())
            and bool((one.operands.weight == one.ends[0]).any())
        ),
    ),
    ("shift of 0", "nothing is rounded", lambda one: one.operands.shift == 0),
    (
        f"shift of {MAX_SHIFT}",
        "the largest shift needs all bits of the product",
        lambda one: one.operands.shift == MAX_SHIFT,
    ),
    ("multiplier of 1", "an exact output", lambda one: one.operands.multiplier == 1),
    (
        "highest multiplier",
        "it is unsigned: its top bit is no sign",
        lambda one: one.operands.multiplier == (1 << MULTIPLIER_BITS) - 1,
    ),
    ("positive tie", "rounds up", lambda one: bool((one.ties * (one.total > 0)).any())),
    (
        "negative tie",
        "rounds up, towards zero",
        lambda one: bool((one.ties * (one.total < 0)).any()),
    ),
    (
        "output saturates high",
        "the first bit above an output",
        lambda one: bool((one.rounded > one.ends[1]).any()),
    ),
    (
        "output saturates low",
        "the same below zero, without ReLU",
        lambda one: not one.layer.relu and bool((one.rounded < one.ends[0]).any()),
    ),
    (
        "highest output, just not saturated",
        "the comparison at its end",
        lambda one: bool((one.rounded == one.ends[1]).any()),
    ),
    (
        "one above the highest output",
        "the comparison just over its end",
        lambda one: bool((one.rounded == one.ends[1] + 1).any()),
    ),
    (
        "lowest output, just not saturated",
        "the comparison at its end",
        lambda one: not one.layer.relu and bool((one.rounded == one.ends[0]).any()),
    ),
    (
        "one below the lowest output",
        "the comparison just over its end",
        lambda one: not one.layer.relu and bool((one.rounded == one.ends[0] - 1).any()),
    ),
    (
        "negative through ReLU, just and far",
        "-1 and what would saturate low become 0",
        lambda one: (
            one.layer.relu
            and bool((one.rounded == -1).any())
            and bool((one.rounded < one.ends[0]).any())
        ),
    ),
    (
        "zero through ReLU",
        "stays zero",
        lambda one: one.layer.relu and bool((one.rounded == 0).any()),
    ),
    (
        "lowest bias",
        "the bias port's and memory's last bit",
        lambda one: (
            one.operands.bias is not None
            and bool((one.operands.bias == one.accumulator_ends[0]).any())
        ),
    ),
    (
        "highest bias",
        "the same, of the other sign",
        lambda one: (
            one.operands.bias is not None
            and bool((one.operands.bias == one.accumulator_ends[1]).any())
        ),
    ),
    (
        "sum and bias above an accumulator",
        "they are added in a bit more",
        lambda one: bool((one.total > one.accumulator_ends[1]).any()),
    ),
    (
        "sum and bias below an accumulator",
        "the same below zero",
        lambda one: bool((one.total < one.accumulator_ends[0]).any()),
    ),
    (
        "the same by the highest multiplier, not shifted",
        "a product of all its bits is saturated",
        lambda one: (
            one.operands.shift == 0
            and one.operands.multiplier == (1 << MULTIPLIER_BITS) - 1
            and bool(
                (
                    (one.total < one.accumulator_ends[0]) | (one.total > one.accumulator_ends[1])
                ).any()
            )
        ),
    ),
)

_WRAP = "sums that wrap"
MOST_PRODUCTS = 1_000
"""Of a sum in a case: an accumulator that needs more to wrap does not in any."""


def integer_bins(layers: Layers, operand_bits: int, accumulator_bits: int) -> Iterator[Bin]:
    """Bins of values.  layers: of a case, each with the design's widths."""
    for name, why, says in _BINS:
        yield Bin(
            name=name,
            why=why,
            hit=lambda seen, says=says: any(says(one) for one in layers(seen)),
            aim=EDGES,
        )
    if wraps_within_reach(operand_bits, accumulator_bits):
        yield Bin(
            name=_WRAP,
            why="two's complement of a narrow accumulator",
            hit=lambda seen: any(_wraps(one) for one in layers(seen)),
            aim=EDGES,
        )


def wraps_within_reach(operand_bits: int, accumulator_bits: int) -> bool:
    """Whether a sum of `MOST_PRODUCTS` can wrap."""
    return MOST_PRODUCTS << (2 * operand_bits - 2) > 1 << (accumulator_bits - 1)


def _wraps(one: IntegerLayer) -> bool:
    return bool((wrap(one.exact, one.accumulator_bits) != one.exact).any())


__all__ = ["EDGES", "MOST_PRODUCTS", "IntegerLayer", "Layers", "integer_bins", "wraps_within_reach"]
