"""Operands as a design takes them: drawn, or given and checked."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt

from archsim.layer.operand_check import check_integers, require_one_scale
from workloads.layers import Conv2d, MatMul
from workloads.operands import Distribution, Operands, synthetic


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """How synthetic operands are drawn (`workloads.operands.synthetic`)."""

    density: float = 1.0
    distribution: Distribution = "uniform"
    seed: int = 0


class Intake(Protocol):
    """Operands as a design takes them."""

    @property
    def source_bits(self) -> int:
        """Width at which workloads quantise the operands that `take` is given."""
        ...

    @property
    def whole_files(self) -> bool:
        """Whether `take` accepts a quantised file's integers with their zero points and scales."""
        ...

    @property
    def weight_bits(self) -> float:
        """Bits that an element of the second operand takes, its share of scales included."""
        ...

    def narrowed(self, bits: int) -> Intake | None:
        """The same, of operands of so many bits; None where operands are made others anyway."""
        ...

    def synthetic(self, layer: Conv2d | MatMul, drawing: Drawing) -> Operands:
        """Operands drawn from a seed that `take` accepts."""
        ...

    def take(self, layer: Conv2d | MatMul, operands: Any) -> Any:
        """Operands as the core computes with them, checked; given such, they are only checked.

        Raises `InputError` for operands that are not of the layer's shapes or the core's widths.
        """
        ...

    def reals(self, operands: Any, ofmap: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        """What the values of an ofmap stand for, bias included; operands: what `take` answered.
        Of each value by itself and its filter: of some images, or of others than were computed.

        Of a machine whose sums leave without their bias, what is made of them outside of it."""
        ...


@dataclass(frozen=True, kw_only=True)
class IntegerIntake:
    """`Intake` of `workloads.operands.Operands`, as they are.

    whole_files: operands may be those of a quantised file, with zero points and a scale a filter.
    """

    operand_bits: int
    accumulator_bits: int
    multiplier_bits: int

    @property
    def whole_files(self) -> bool:
        """Only where `Numerics` makes the file's ofmap of them."""
        return False

    @property
    def source_bits(self) -> int:
        """Operands are taken as they come."""
        return self.operand_bits

    @property
    def weight_bits(self) -> float:
        """Those of any operand."""
        return self.operand_bits

    def narrowed(self, bits: int) -> Self:
        """With operands of `bits`, from 2 to `operand_bits`."""
        return replace(self, operand_bits=bits)

    def synthetic(self, layer: Conv2d | MatMul, drawing: Drawing) -> Operands:
        """Operands of `source_bits` drawn from a seed."""
        return synthetic(
            layer,
            bits=self.source_bits,
            density=drawing.density,
            distribution=drawing.distribution,
            seed=drawing.seed,
        )

    def take(self, layer: Conv2d | MatMul, operands: Operands) -> Operands:
        """The operands, checked (`archsim.layer.operand_check`)."""
        widths = (self.operand_bits, self.accumulator_bits, self.multiplier_bits)
        check_integers(layer, operands, widths)
        if not self.whole_files:
            require_one_scale(layer, operands)
        return operands

    def reals(self, operands: Operands, ofmap: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        """Integers in units of the ofmap's scale."""
        return ofmap.astype(np.float32) * np.float32(operands.ofmap_scale)


@dataclass(frozen=True, kw_only=True)
class IntegerSums(IntegerIntake):
    """`Intake` of a machine of integers whose sums leave as they are, without bias or scale."""

    def reals(self, operands: Operands, ofmap: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        """Sums and bias in units of both operands' scales."""
        unit = operands.ifmap_scale * operands.weight_scale
        return (with_bias(ofmap, operands.bias) * unit).astype(np.float32)


def with_bias(sums: npt.NDArray[Any], bias: npt.NDArray[Any] | None) -> npt.NDArray[np.float64]:
    """Sums [N, K, P, Q] or [batch, M, N] with a bias of each filter or column added."""
    found = sums.astype(np.float64)
    if bias is not None:
        found += bias.reshape(-1, 1, 1) if sums.ndim == 4 else bias
    return found
