"""Integers with one scale a tensor: signed operands, sums that wrap, requantised by the layer.

Of a quantised file's integers, with zero points and a scale a filter, the ofmap is the file's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from archsim.layer import layout
from archsim.layer.intake import IntegerIntake
from archsim.layer.problem import Problem, Tiling, problem_of
from archsim.layer.values import compute, kept_type, requantize, span_sums
from archsim.numbers import AnyIntArray, IntArray, wrap
from archsim.tiled import tile_words
from archsim.tiled.commands import TileCommand
from archsim.tiled.file_numerics import FileOfmap, core_operands, file_ofmap
from archsim.tiled.numerics import Blocks, More, Outputs, OutputsWith, Spans
from workloads.layers import Conv2d, MatMul
from workloads.operands import Operands

Stored = tuple[AnyIntArray, AnyIntArray]
Split = tuple[AnyIntArray, AnyIntArray, IntArray | None]


@dataclass(frozen=True, kw_only=True)
class IntegerNumerics(IntegerIntake):
    """`Numerics` of `workloads.operands.Operands`, as they are.

    Lanes are those of the words of each port.  columns_are_pixels: a row of sums holds pixels of
    one filter, as in an input-stationary array, else filters of one pixel.
    """

    ifmap_lanes: int
    weight_lanes: int
    bias_lanes: int
    columns: int
    columns_are_pixels: bool = False

    @property
    def whole_files(self) -> bool:
        """With the file's rule for the ofmap (`archsim.tiled.file_numerics`)."""
        return True

    @property
    def problem_key(self) -> str:
        """All of them see a layer alike."""
        return "channels"

    def problem(self, layer: Conv2d | MatMul) -> Problem:
        """A lane of the ifmap holds a channel."""
        return problem_of(layer)

    def scaling(self, operands: Operands) -> tuple[int, int]:
        """Multiplier and shift of the layer."""
        return operands.multiplier, operands.shift

    def may_share(self, operands: Operands) -> bool:
        """Integers always."""
        return True

    def stored(self, layer: Conv2d | MatMul, operands: Operands) -> Stored:
        """Ifmap and weights, split as in `layout`."""
        problem = self.problem(layer)
        return (
            layout.split_ifmap(layer, problem, operands.ifmap),
            layout.split_weight(layer, problem, operands.weight),
        )

    def split(
        self, layer: Conv2d | MatMul, operands: Operands, stored: Stored | None = None
    ) -> Split:
        """Ifmap, weights and biases; the first two as they lie, where they were not stored."""
        problem, bias = self.problem(layer), operands.bias
        if bias is not None:
            bias = layout.split_bias(layer, problem, bias.astype(np.int64))
        if stored is not None:
            return (*stored, bias)
        ifmap = layout.ifmap_view(layer, problem, operands.ifmap)
        return ifmap, layout.weight_view(layer, problem, operands.weight), bias

    def outputs(
        self, problem: Problem, tiling: Tiling, split: Split, operands: Operands
    ) -> Outputs:
        """The integers that the core computes; sums wrap, so the tiling does not matter."""
        widths = (self.operand_bits, self.accumulator_bits)
        return (compute(problem, split, self.scaling(operands), widths),)

    @property
    def outputs_with(self) -> OutputsWith:
        """Sums wrap: `compute` with more."""

        def found(problem: Problem, split: Split, operands: Operands, more: More) -> Outputs:
            widths = (self.operand_bits, self.accumulator_bits)
            return (compute(problem, split, self.scaling(operands), widths, more),)

        return found

    def partial_sums(self, problem: Problem, split: Split, spans: Spans) -> list[IntArray]:
        """Of every span; whole numbers below 2^53, for spans are of a tile."""
        return span_sums(problem, split[0], split[1], spans)

    def added(self, held: IntArray, sums: IntArray) -> IntArray:
        """Wrapped around."""
        return wrap(held + sums, self.accumulator_bits)

    def finished(
        self, problem: Problem, sums: IntArray, split: Split, operands: Operands
    ) -> Outputs:
        """Requantised."""
        bias = 0 if split[2] is None else split[2][None, :, None, None, :]
        relu, scaling = bool(problem.relu), self.scaling(operands)
        return (requantize(sums, bias, scaling, relu, self.operand_bits),)

    def joined(self, layer: Conv2d | MatMul, outputs: Outputs) -> npt.NDArray[np.integer[Any]]:
        """The integers, in the narrowest type of their width."""
        values = outputs[0].astype(kept_type(self.operand_bits), copy=False)
        return layout.join_ofmap(layer, self.problem(layer), values)

    def as_file(self, layer: Conv2d | MatMul, operands: Operands) -> FileOfmap | None:
        """What a quantised file's operands make, and where the core's rounding differs."""
        if operands.file is None:
            return None
        return file_ofmap(layer, self.problem(layer), operands, self.operand_bits)

    def in_words(self, layer: Conv2d | MatMul, operands: Operands) -> Operands:
        """Of a quantised file's operands, zero points are in the bias, and the ofmap is what the
        core makes of them.  Raises InputError where it lacks what the file's ofmap needs."""
        return core_operands(layer, operands)

    @property
    def word_lanes(self) -> tile_words.WordLanes:
        """Lanes of the ports."""
        return tile_words.WordLanes(
            ifmap=self.ifmap_lanes,
            weight=self.weight_lanes,
            bias=self.bias_lanes,
            moving=self.columns_are_pixels,
        )

    def blocks(self, split: Split, groups: int) -> Blocks:
        """A lane an element."""
        return blocks_of_lanes(split, groups)

    def split_of(self, blocks: Blocks) -> Split:
        """Without the axis of lanes."""
        return blocks.ifmap[..., 0], blocks.weight[..., 0], blocks.bias[..., 0]

    def output_words(self, tiles: Sequence[TileCommand[int]], outputs: Outputs) -> IntArray:
        """Rows of sums, one behind the other."""
        moving = self.columns_are_pixels
        return rows_in_words(tiles, outputs[0], self.columns, moving=moving)


def blocks_of_lanes(split: Split, groups: int) -> Blocks:
    """Operands split by groups in blocks, a lane of a word an element; biases 0 without any."""
    ifmap, weight, bias = split
    given = np.zeros(weight.shape[:2], np.int64) if bias is None else bias
    return Blocks(
        ifmap=layout.side_by_side(ifmap.astype(np.int64), groups, (1, 4))[..., None],
        weight=layout.block_diagonal(weight.astype(np.int64), groups)[..., None],
        bias=layout.side_by_side(given, groups, (0, 1))[..., None],
    )


def rows_in_words(
    tiles: Sequence[TileCommand[int]], ofmap: IntArray, columns: int, *, moving: bool = False
) -> IntArray:
    """The words of the ofmap, in blocks of groups: [words, columns].

    moving: a row of sums holds pixels of a filter, not filters of a pixel.
    """
    parts = (tile_words.ofmap_part(tile, ofmap) for tile in tiles if tile.last_k)
    streams = [tile_words.as_rows(part.T if moving else part, columns) for part in parts]
    return tile_words.packed(streams, columns)
