"""What a machine of floats takes, and what it computes, bit for bit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from archsim.arithmetic.float_kernels import unit_of
from archsim.errors import require
from archsim.layer.float_intake import FloatIntake, FloatOperands
from archsim.layer.intake import with_bias
from archsim.machines.sparsetrain.float_kernels import block_sums, patterns
from archsim.machines.sparsetrain.kernels import window_of
from archsim.machines.sparsetrain.tiling import TILE
from archsim.machines.sparsetrain.vectors import in_steps
from archsim.numbers import IntArray
from workloads.layers import Conv2d, MatMul
from workloads.operands import Operands
from workloads.threads import in_threads

if TYPE_CHECKING:
    from archsim.machines.sparsetrain.work import LayerWork

_SHARES = 16
"""Of a layer's tiles, for threads."""


@dataclass(frozen=True, kw_only=True)
class UnsignedZeros(FloatIntake):
    """Patterns, of which a zero has no sign: it is what does not cross, and is not multiplied."""

    def take(self, layer: Conv2d | MatMul, operands: Operands | FloatOperands) -> FloatOperands:
        """As `FloatIntake.take`; -0 becomes +0.

        Raises `InputError` also for what is not a pattern.
        """
        found = super().take(layer, operands)
        for name in ("ifmap", "weight"):
            given = getattr(found, name)
            require(
                given.dtype.kind in "iu",
                f"{layer.name}: {name} must hold patterns, not {given.dtype}",
            )
            low, high = int(given.min()), int(given.max())
            require(
                low >= 0 and high >> self.operand.bits == 0,
                f"{layer.name}: {name} must hold patterns of {self.operand.bits} bits, "
                f"0 to {(1 << self.operand.bits) - 1}, not {low if low < 0 else high}",
            )
        return replace(
            found, ifmap=self._unsigned(found.ifmap), weight=self._unsigned(found.weight)
        )

    def reals(self, operands: FloatOperands, ofmap: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        """Sums, which leave without their bias, and it."""
        bias = None if operands.bias is None else self.accumulator.decode(operands.bias)
        return with_bias(ofmap, bias).astype(np.float32)

    def _unsigned(self, given: IntArray) -> IntArray:
        zeros = given == self.operand.sign_mask
        return np.where(zeros, 0, given) if zeros.any() else given


def float_sums(work: LayerWork) -> IntArray:
    """Patterns of the sums [groups, rows, columns], +0 where nothing is computed.

    The products that lanes take in a cycle are added to their sum together, by the rules of
    `SparseTrain.dot`; block after block.
    """
    design, cut = work.design, work.cut
    unit, window = unit_of(design.dot.datapath), window_of(design, cut.segments)
    every: Any = design.dot.datapath.operand.decode(np.arange(1 << design.operand_bits))
    rows, columns = (_flat(every.astype(np.float32)[one], work.step_lanes) for one in work.vectors)
    operands = (*work.lane_words, rows, columns)
    sums = np.zeros((cut.groups, cut.rows, cut.columns))

    def share(own: IntArray) -> None:
        block_sums(operands, work.outputs, own, window, (design.pes, unit), sums)

    in_threads(share, _tiles(work.blocks))
    found = np.empty(sums.size, np.int64)
    patterns(sums.reshape(-1), unit, found)
    return found.reshape(sums.shape)


def _flat(values: Any, lanes: int) -> Any:
    """[groups, vectors, depth] filled up to whole steps."""
    filled = in_steps(values, lanes)
    return np.ascontiguousarray(filled).reshape(*values.shape[:-1], -1)


def _tiles(blocks: IntArray) -> list[IntArray]:
    """Shares of blocks, each of whole tiles."""
    if not len(blocks):
        return []
    size = max(-(-len(blocks) // _SHARES), 1)
    ends = np.flatnonzero(np.diff(blocks[:, TILE])) + 1
    cuts = sorted({int(ends[ends >= at][0]) for at in range(size, len(blocks), size)
                   if (ends >= at).any()})  # fmt: skip
    return np.split(blocks, cuts)


__all__ = ["UnsignedZeros", "float_sums"]
