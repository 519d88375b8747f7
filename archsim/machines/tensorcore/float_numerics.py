"""Floats: operands as patterns, summed in the order of the tiles, rounded once on the way out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from archsim.arithmetic.dot_product import DotProduct
from archsim.arithmetic.float_sum import FloatOutput, add_floats, adder
from archsim.arithmetic.formats import FloatFormat
from archsim.errors import InputError, require
from archsim.layer import layout
from archsim.layer.intake import Drawing
from archsim.layer.operand_check import require_one_scale
from archsim.layer.problem import Problem, Tiling, problem_of
from archsim.machines.tensorcore.float_values import float_sums
from archsim.numbers import IntArray, bit_ceil
from archsim.tiled.commands import TileCommand
from archsim.tiled.integer_numerics import blocks_of_lanes, rows_in_words
from archsim.tiled.numerics import Blocks, Outputs, Spans
from archsim.tiled.tile_words import WordLanes
from workloads.layers import Conv2d, MatMul
from workloads.operands import Operands, Origin, operand_shapes, synthetic

Split = tuple[IntArray, IntArray, IntArray | None]

SOURCE_BITS = 16
SYNTHETIC_BITS = 12
"""Drawn integers that FP16's eleven significant bits hold exactly."""


@dataclass(frozen=True, kw_only=True, eq=False)
class FloatOperands:
    """Patterns, int64, in the layer's shapes (`workloads.operands.Operands`).

    ifmap, weight: of the operand format; bias [filters]: of the accumulator's, or None.
    scheme: how the values came about; weight_origin, ifmap_origin: from where.
    """

    ifmap: IntArray
    weight: IntArray
    bias: IntArray | None
    scheme: str
    weight_origin: Origin = "given"
    ifmap_origin: Origin = "given"


@dataclass(frozen=True, kw_only=True)
class FloatNumerics:
    """`Numerics` of a core of floats.

    dot: the dot-product unit; output: the output stage's arithmetic; columns: lanes of a row.
    """

    dot: DotProduct
    output: FloatOutput
    columns: int

    @property
    def source_bits(self) -> int:
        """Integers are made floats; at 16 bits FP16 loses more than they do."""
        return SOURCE_BITS

    @property
    def whole_files(self) -> bool:
        """Operands are made others anyway."""
        return False

    @property
    def weight_bits(self) -> float:
        """Those of the format."""
        return self._format.bits

    @property
    def problem_key(self) -> str:
        """Channels are counted one by one, as for integers."""
        return "channels"

    @property
    def _format(self) -> FloatFormat:
        return self.dot.datapath.operand

    def problem(self, layer: Conv2d | MatMul) -> Problem:
        """A lane of the ifmap holds a channel."""
        return problem_of(layer)

    def narrowed(self, bits: int) -> None:
        """Operands are made others anyway."""

    def synthetic(self, layer: Conv2d | MatMul, drawing: Drawing) -> Operands:
        """Numbers of at most 1, sums of some units; of every eight seeds, two are extreme.

        Seeds of remainder 6 draw weights among the subnormals, those of 7 weights so large that
        sums overflow to infinities.
        """
        drawn = synthetic(
            layer,
            bits=SYNTHETIC_BITS,
            density=drawing.density,
            distribution=drawing.distribution,
            seed=drawing.seed,
        )
        unit, form = 2.0 ** (1 - SYNTHETIC_BITS), self._format
        x = w = unit
        if drawing.seed % 8 == 6:
            w = 2.0 ** (2 - form.bias - form.fraction_bits)
        elif drawing.seed % 8 == 7:
            x, w = 64 * unit, 2.0 ** (form.bias - SYNTHETIC_BITS + 1)
        depth = drawn.weight[0].size if isinstance(layer, Conv2d) else layer.k
        return replace(drawn, ifmap_scale=x, weight_scale=w, ofmap_scale=sqrt(depth) * x * w)

    def take(self, layer: Conv2d | MatMul, operands: Operands | FloatOperands) -> FloatOperands:
        """Patterns of integer · scale, rounded to nearest.

        Raises InputError for other shapes, and for scales that are not finite.
        """
        shapes = operand_shapes(layer)
        filters = layer.n if isinstance(layer, MatMul) else layer.filters
        for name, shape in (("ifmap", shapes[0]), ("weight", shapes[1]), ("bias", (filters,))):
            given = getattr(operands, name)
            if given is not None and given.shape != shape:
                raise InputError(
                    f"{layer.name}: {name} must have the shape {shape}, not {given.shape}"
                )
        require(
            operands.bias is None or layer.bias,
            f"{layer.name}: bias must be None, since the layer has none",
        )
        if isinstance(operands, FloatOperands):
            return operands
        require_one_scale(layer, operands)
        scales = operands.ifmap_scale, operands.weight_scale
        require(
            all(np.isfinite(scales)),
            f"{layer.name}: scales must be finite, not {scales[0]:g}, {scales[1]:g}",
        )
        bias = None
        if operands.bias is not None:
            real = operands.bias.astype(np.float64) * (scales[0] * scales[1])
            bias = self.dot.datapath.accumulator.encode(real)
        return FloatOperands(
            ifmap=_encoded(self._format, operands.ifmap, scales[0]),
            weight=_encoded(self._format, operands.weight, scales[1]),
            bias=bias,
            scheme=f"{operands.scheme}; as floats of {self._format.bits} bits",
            weight_origin=operands.weight_origin,
            ifmap_origin=operands.ifmap_origin,
        )

    def reals(self, operands: FloatOperands, ofmap: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        """They are numbers already."""
        return ofmap.astype(np.float32, copy=False)

    def scaling(self, operands: FloatOperands) -> tuple[int, int]:
        """Floats have none."""
        return 1, 0

    def may_share(self, operands: FloatOperands) -> bool:
        """Where the ifmap is finite: 0 times an infinity would be a NaN in every group."""
        return bool(np.isfinite(self._format.decode(np.unique(operands.ifmap))).all())

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


def _encoded(form: FloatFormat, integers: npt.NDArray[Any], scale: float) -> IntArray:
    """Patterns of integer · scale: one of each integer that occurs, then looked up."""
    low, high = int(integers.min()), int(integers.max())
    table = form.encode(np.arange(low, high + 1, dtype=np.float64) * scale)
    return table[integers.astype(np.int64) - low]
