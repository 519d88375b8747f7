"""What a quantised file's layer makes of its integers, beside what a core's output stage would.

A core of integers takes a file's operands as they are (`workloads.file_scaling`).  Its array has
the same sums wherever padding is zero and weights have no zero points; its output stage rounds
otherwise, and has one multiplier a layer.  So the ofmap is computed by the file's rule, and by the
core's as it would be with what it lacks, to count where they differ.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from archsim.errors import InputError
from archsim.layer import layout
from archsim.layer.problem import Problem
from archsim.layer.values import accumulate
from archsim.numbers import IntArray
from workloads.layers import Conv2d, MatMul
from workloads.operands import Operands


@dataclass(frozen=True, kw_only=True, eq=False)
class FileOfmap:
    """A layer's ofmap by the rule of its file, in the layer's shape and the file's type.

    differing: how many of its values the core's rule makes otherwise; None where it makes
    none, since the sums are the result.  unlike: how many ONNX Runtime made otherwise, which sums
    in floats where it has no kernel of integers; None without a run.  lacks: what the core needs
    beside its rule.
    """

    ofmap: npt.NDArray[np.integer[Any]]
    differing: int | None
    unlike: int | None
    lacks: tuple[str, ...]


def file_ofmap(
    layer: Conv2d | MatMul, problem: Problem, operands: Operands, operand_bits: int
) -> FileOfmap:
    """The ofmap of a file's operands, of at most `operand_bits` signed."""
    scaling = operands.file
    assert scaling is not None
    sums = layout.join_ofmap(layer, problem, file_sums(layer, problem, operands, operand_bits))
    axis = 2 if isinstance(layer, MatMul) else 1
    sums = np.moveaxis(sums, axis, -1)
    if operands.bias is not None:
        sums = sums + operands.bias.astype(np.int64)
    found = scaling.ofmap(sums)
    by_core = scaling.by_core(sums)
    ofmap = np.ascontiguousarray(np.moveaxis(found, -1, axis))
    made = scaling.made
    return FileOfmap(
        ofmap=ofmap,
        unlike=None if made is None else int(np.count_nonzero(made.reshape(ofmap.shape) != ofmap)),
        differing=None if by_core is None else int(np.count_nonzero(by_core != found)),
        lacks=scaling.lacks,
    )


def file_sums(
    layer: Conv2d | MatMul, problem: Problem, operands: Operands, operand_bits: int
) -> IntArray:
    """Exact sums [images, groups, P, Q, K] of integers less their zero points, without a bias."""
    scaling = operands.file
    assert scaling is not None
    ifmap, weight = operands.ifmap, operands.weight
    bits = operand_bits
    if scaling.ifmap_zero or scaling.weight_zero.any():
        bits += 1
        ifmap = ifmap.astype(np.int32) - scaling.ifmap_zero
        zero = scaling.weight_zero
        shape = (1, 1, -1) if isinstance(layer, MatMul) else (-1, 1, 1, 1)
        weight = weight.astype(np.int32) - zero.reshape(shape)
    split = (
        layout.split_ifmap(layer, problem, ifmap),
        layout.split_weight(layer, problem, weight),
    )
    return accumulate(problem, *split, bits).astype(np.int64)


def core_operands(layer: Conv2d | MatMul, operands: Operands) -> Operands:
    """A file's operands as words that a core takes, zero points in the bias.

    Raises InputError for those of a layer whose ofmap the core lacks something to make.
    """
    scaling = operands.file
    if scaling is None:
        return operands
    if scaling.lacks:
        raise InputError(
            f"{layer.name}: no words make the file's ofmap on this core, which lacks "
            f"{', '.join(scaling.lacks)}; have the operands quantised per tensor"
        )
    axes = (0, 1) if isinstance(layer, MatMul) else (1, 2, 3)
    folded = scaling.fold - scaling.ifmap_zero * operands.weight.sum(axis=axes, dtype=np.int64)
    if not layer.bias:
        return replace(operands, file=None)
    bias = folded if operands.bias is None else operands.bias + folded
    return replace(operands, bias=bias, file=None)


__all__ = ["FileOfmap", "core_operands", "file_ofmap", "file_sums"]
