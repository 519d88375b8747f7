"""Floats: operands as patterns, summed in the order of the tiles, rounded once on the way out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from archsim.arithmetic.dot_product import DotProduct
from archsim.arithmetic.float_sum import FloatOutput, add_floats, adder
from archsim.errors import require
from archsim.layer import layout
from archsim.layer.float_intake import FloatIntake, FloatOperands
from archsim.layer.problem import Problem, Tiling, problem_of
from archsim.machines.tensorcore.float_values import float_sums
from archsim.numbers import IntArray, bit_ceil
from archsim.tiled.commands import TileCommand
from archsim.tiled.integer_numerics import blocks_of_lanes, rows_in_words
from archsim.tiled.numerics import Blocks, Outputs, Spans
from archsim.tiled.tile_words import WordLanes
from workloads.layers import Conv2d, MatMul

Split = tuple[IntArray, IntArray, IntArray | None]


@dataclass(frozen=True, kw_only=True)
class FloatNumerics(FloatIntake):
    """`Numerics` of a core of floats.

    dot: the dot-product unit; output: the output stage's arithmetic; columns: lanes of a row.
    """

    dot: DotProduct
    output: FloatOutput
    columns: int

    @property
    def problem_key(self) -> str:
        """Channels are counted one by one, as for integers."""
        return "channels"

    def problem(self, layer: Conv2d | MatMul) -> Problem:
        """A lane of the ifmap holds a channel."""
        return problem_of(layer)

    def scaling(self, operands: FloatOperands) -> tuple[int, int]:
        """Floats have none."""
        return 1, 0

    def may_share(self, operands: FloatOperands) -> bool:
        """Where the ifmap is finite: 0 times an infinity would be a NaN in every group."""
        return bool(np.isfinite(self.operand.decode(np.unique(operands.ifmap))).all())

    def stored(self, layer: Conv2d | MatMul, operands: FloatOperands) -> tuple[IntArray, IntArray]:
        """Patterns of ifmap and weights, split as in `layout`."""
        problem = self.problem(layer)
        return (
            layout.split_ifmap(layer, problem, operands.ifmap),
            layout.split_weight(layer, problem, operands.weight),
        )

    def as_file(self, layer: Conv2d | MatMul, operands: FloatOperands) -> None:
        """Operands are made others."""

    def in_words(self, layer: Conv2d | MatMul, operands: FloatOperands) -> FloatOperands:
        """As they are."""
        return operands

    def split(
        self,
        layer: Conv2d | MatMul,
        operands: FloatOperands,
        stored: tuple[IntArray, IntArray] | None = None,
    ) -> Split:
        """Patterns of ifmap, weights and biases."""
        bias = operands.bias
        if bias is not None:
            bias = layout.split_bias(layer, self.problem(layer), bias)
        return (*(stored or self.stored(layer, operands)), bias)

    def outputs(
        self, problem: Problem, tiling: Tiling, split: Split, operands: FloatOperands
    ) -> Outputs:
        """Patterns of the ofmap; sums follow the tiling.

        Raises `InputError` for groups side by side where the ifmap is not finite.
        """
        ifmap, weight, bias = split
        if tiling.groups > 1:
            require(
                self.may_share(operands),
                f"groups must be 1, not {tiling.groups}: the ifmap has infinities or NaNs, which "
                f"zeros of other groups would make NaNs of",
            )
        sums = float_sums(problem, ifmap, weight, self.dot, tiling.channels, tiling.groups)
        added = 0 if bias is None else bias[None, :, None, None, :]
        return (self.output.compute(sums, added, bool(problem.relu)),)

    @property
    def outputs_with(self) -> None:
        """Floats round."""

    def partial_sums(self, problem: Problem, split: Split, spans: Spans) -> list[IntArray]:
        """One, of the whole tile: the units hold sums until its end."""
        sums = float_sums(problem, split[0], split[1], self.dot, problem.channels)
        return [sums[:, 0]]

    def added(self, held: IntArray, sums: IntArray) -> IntArray:
        """By the accumulators' adder."""
        rules = self.dot.rules
        assert rules is not None  # of floats
        return add_floats(adder(self.output.accumulator, rules), held, sums)

    def finished(
        self, problem: Problem, sums: IntArray, split: Split, operands: FloatOperands
    ) -> Outputs:
        """With the bias, rounded."""
        bias = 0 if split[2] is None else split[2][None, :, None, None, :]
        return (self.output.compute(sums, bias, bool(problem.relu)),)

    def joined(self, layer: Conv2d | MatMul, outputs: Outputs) -> npt.NDArray[np.float32]:
        """As numbers."""
        joined = layout.join_ofmap(layer, self.problem(layer), outputs[0])
        return self.output.ofmap.decode(joined).astype(np.float32)

    @property
    def word_lanes(self) -> WordLanes:
        """Lanes of the ports."""
        lanes = bit_ceil(self.dot.length)
        return WordLanes(ifmap=lanes, weight=self.columns, bias=self.columns)

    def blocks(self, split: Split, groups: int) -> Blocks:
        """A lane an element."""
        return blocks_of_lanes(split, groups)

    def split_of(self, blocks: Blocks) -> Split:
        """Without the axis of lanes."""
        return blocks.ifmap[..., 0], blocks.weight[..., 0], blocks.bias[..., 0]

    def output_words(self, tiles: Sequence[TileCommand[int]], outputs: Outputs) -> IntArray:
        """Rows of sums, one behind the other."""
        return rows_in_words(tiles, outputs[0], self.columns)
