"""Operands of designs that compute in floating point: integers and scales made patterns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from archsim.arithmetic.formats import FloatFormat
from archsim.errors import InputError, require
from archsim.layer.intake import Drawing
from archsim.layer.operand_check import check_needed, require_one_scale
from archsim.numbers import BoolArray, IntArray
from workloads.layers import Conv2d, MatMul
from workloads.operands import Operands, Origin, operand_shapes, synthetic

SOURCE_BITS = 16
SYNTHETIC_BITS = 12
"""Drawn integers that FP16's eleven significant bits hold exactly."""


@dataclass(frozen=True, kw_only=True, eq=False)
class FloatOperands:
    """Patterns, int64, in the layer's shapes (`workloads.operands.Operands`).

    ifmap, weight: of the operand format; bias [filters]: of the accumulator's, or None.
    scheme: how the values came about; weight_origin, ifmap_origin: from where.
    needed: as `Operands.needed`.
    """

    ifmap: IntArray
    weight: IntArray
    bias: IntArray | None
    scheme: str
    weight_origin: Origin = "given"
    ifmap_origin: Origin = "given"
    needed: BoolArray | None = None


@dataclass(frozen=True, kw_only=True)
class FloatIntake:
    """`archsim.layer.intake.Intake` of floats.

    operand: format of ifmap and weights; accumulator: of biases.
    """

    operand: FloatFormat
    accumulator: FloatFormat

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
        return self.operand.bits

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
        unit, form = 2.0 ** (1 - SYNTHETIC_BITS), self.operand
        x = w = unit
        if drawing.seed % 8 == 6:
            w = 2.0 ** (2 - form.bias - form.fraction_bits)
        elif drawing.seed % 8 == 7:
            x, w = 64 * unit, 2.0 ** (form.bias - SYNTHETIC_BITS + 1)
        depth = drawn.weight[0].size if isinstance(layer, Conv2d) else layer.k
        return replace(drawn, ifmap_scale=x, weight_scale=w, ofmap_scale=sqrt(depth) * x * w)

    def take(self, layer: Conv2d | MatMul, operands: Operands | FloatOperands) -> FloatOperands:
        """Patterns of integer · scale, rounded to nearest.

        Raises InputError for other shapes, a mask among them, and for scales that are not finite.
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
        if operands.needed is not None:
            check_needed(layer, operands.needed)
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
            bias = self.accumulator.encode(real)
        return FloatOperands(
            ifmap=_encoded(self.operand, operands.ifmap, scales[0]),
            weight=_encoded(self.operand, operands.weight, scales[1]),
            bias=bias,
            scheme=f"{operands.scheme}; as floats of {self.operand.bits} bits",
            weight_origin=operands.weight_origin,
            ifmap_origin=operands.ifmap_origin,
            needed=operands.needed,
        )

    def reals(self, operands: FloatOperands, ofmap: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        """They are numbers already."""
        return ofmap.astype(np.float32, copy=False)


def _encoded(form: FloatFormat, integers: npt.NDArray[Any], scale: float) -> IntArray:
    """Patterns of integer · scale: one of each integer that occurs, then looked up."""
    low, high = int(integers.min()), int(integers.max())
    table = form.encode(np.arange(low, high + 1, dtype=np.float64) * scale)
    return table[integers.astype(np.int64) - low]


__all__ = ["FloatIntake", "FloatOperands"]
