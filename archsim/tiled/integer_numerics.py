"""Integers with one scale a tensor: signed operands, sums that wrap, requantised by the layer.

Of a quantised file's integers, with zero points and a scale a filter, the ofmap is the file's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from archsim.layer import layout
from archsim.layer.intake import IntegerIntake
from archsim.layer.problem import Problem, Tiling, problem_of
from archsim.layer.values import compute
from archsim.numbers import AnyIntArray, IntArray
from archsim.tiled import commands as cmd
from archsim.tiled import tile_words
from archsim.tiled.file_numerics import FileOfmap, core_operands, file_ofmap
from archsim.tiled.numerics import TiledLayer
from workloads.layers import Conv2d, MatMul
from workloads.operands import Operands

Stored = tuple[AnyIntArray, AnyIntArray]
Bias = IntArray | None


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

    def _bias(self, layer: Conv2d | MatMul, problem: Problem, bias: AnyIntArray | None) -> Bias:
        return None if bias is None else layout.split_bias(layer, problem, bias.astype(np.int64))

    def _compute(
        self, problem: Problem, split: tuple[AnyIntArray, AnyIntArray, Bias], operands: Operands
    ) -> IntArray:
        widths = (self.operand_bits, self.accumulator_bits)
        return compute(problem, split, self.scaling(operands), widths)

    def ofmap(
        self,
        layer: Conv2d | MatMul,
        tiling: Tiling,
        operands: Operands,
        stored: Stored | None = None,
    ) -> npt.NDArray[np.integer[Any]]:
        """The integers that the core computes; sums wrap, so the tiling does not matter.

        Of a quantised file's operands those that the file makes (`archsim.tiled.file_numerics`).
        """
        if operands.file is not None:
            return self.as_file(layer, operands).ofmap
        problem = self.problem(layer)
        bias = self._bias(layer, problem, operands.bias)
        split = (*(stored or self.stored(layer, operands)), bias)
        return layout.join_ofmap(layer, problem, self._compute(problem, split, operands))

    def as_file(self, layer: Conv2d | MatMul, operands: Operands) -> FileOfmap:
        """What a quantised file's operands make, and where the core's rounding differs."""
        return file_ofmap(layer, self.problem(layer), operands, self.operand_bits)

    def words(self, tiled: TiledLayer, operands: Operands) -> dict[str, IntArray]:
        """The words of the four ports of data.

        Of a quantised file's operands, zero points are in the bias, and the ofmap is what the core
        makes of them.  Raises InputError where it lacks what the file's ofmap needs.
        """
        operands = core_operands(tiled.layer, operands)
        problem = tiled.problem
        stored, given = (
            self.stored(tiled.layer, operands),
            self._bias(tiled.layer, problem, operands.bias),
        )
        ifmap, weight = stored[0].astype(np.int64), stored[1].astype(np.int64)
        bias = np.zeros((problem.groups, problem.filters), np.int64) if given is None else given
        ofmap = self._compute(problem, (*stored, given), operands)
        whole = layout.side_by_side(ofmap, tiled.tiling.groups, (1, 4))
        lanes = self.ifmap_lanes, self.weight_lanes, self.bias_lanes
        return {
            **operand_words(tiled, (ifmap, weight, bias), lanes, moving=self.columns_are_pixels),
            "ofmap": output_words(tiled.tiles, whole, self.columns, moving=self.columns_are_pixels),
        }


def output_words(
    tiles: IntArray, ofmap: IntArray, columns: int, *, moving: bool = False
) -> IntArray:
    """The words of the ofmap, split as in `layout`: [words, columns].

    moving: a row of sums holds pixels of a filter, not filters of a pixel.
    """
    parts = (tile_words.ofmap_part(row, ofmap) for row in tiles[tiles[:, cmd.LAST_K] == 1])
    streams = [tile_words.as_rows(part.T if moving else part, columns) for part in parts]
    return tile_words.packed(streams, columns)


def operand_words(
    tiled: TiledLayer,
    operands: tuple[IntArray, IntArray, IntArray],
    lanes: tuple[int, int, int],
    *,
    moving: bool = False,
) -> dict[str, IntArray]:
    """The words of ifmap, weight and bias, split as in `layout`, for words of so many lanes each.

    moving: weights enter the rows of the array (`tile_words.weight_words`).
    """
    tiles, groups = tiled.tiles, tiled.tiling.groups
    ifmap = layout.side_by_side(operands[0], groups, (1, 4))
    weight = layout.block_diagonal(operands[1], groups)
    bias = layout.side_by_side(operands[2], groups, (0, 1))
    return {
        "ifmap": stack(
            tiles[tiles[:, cmd.LOAD_IFMAP] == 1],
            lambda row: tile_words.ifmap_words(row, ifmap, lanes[0]),
            lanes[0],
        ),
        "weight": stack(
            tiles[tiles[:, cmd.LOAD_WEIGHT] == 1],
            lambda row: tile_words.weight_words(row, weight, lanes[1], moving=moving),
            lanes[1],
        ),
        "bias": stack(
            tiles[tiles[:, cmd.HAS_BIAS] == 1],
            lambda row: tile_words.bias_words(row, bias, lanes[2]),
            lanes[2],
        ),
    }


def stack(rows: IntArray, words: Callable[[IntArray], IntArray], lanes: int) -> IntArray:
    """The words of the given tiles, one behind the other."""
    parts = [words(row) for row in rows]
    return np.concatenate(parts) if parts else np.zeros((0, lanes), np.int64)
