"""Operands must be what a core can take: the layer's shapes, and the widths of the ports."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from archsim.errors import InputError, require
from workloads.layers import Conv2d, MatMul
from workloads.operands import Operands, ofmap_shape, operand_shapes
from workloads.quantize import MAX_SHIFT


def check_integers(
    layer: Conv2d | MatMul, operands: Operands, widths: tuple[int, int, int]
) -> None:
    """Raise `InputError` for operands that are not of the layer's shapes or the given widths.

    widths: bits of operands, accumulators and the multiplier.  A layer with a bias may go without:
    it is then zero.
    """
    operand_bits, accumulator_bits, multiplier_bits = widths
    ifmap, weight = operand_shapes(layer)
    check_values(f"{layer.name}: ifmap", operands.ifmap, ifmap, operand_bits)
    check_values(f"{layer.name}: weight", operands.weight, weight, operand_bits)
    if operands.bias is not None:
        require(layer.bias, f"{layer.name}: bias must be None, since the layer has none")
        filters = layer.n if isinstance(layer, MatMul) else layer.filters
        check_values(f"{layer.name}: bias", operands.bias, (filters,), accumulator_bits)
    if operands.needed is not None:
        check_needed(layer, operands.needed)
    largest = (1 << multiplier_bits) - 1
    _check_scaling(layer.name, "multiplier", operands.multiplier, 1, largest)
    _check_scaling(layer.name, "shift", operands.shift, 0, MAX_SHIFT)


def check_needed(layer: Conv2d | MatMul, needed: NDArray[Any]) -> None:
    """Raise `InputError` unless `needed` says of every output yes or no."""
    where, shape = f"{layer.name}: needed", ofmap_shape(layer)
    given: Any = needed
    if not isinstance(given, np.ndarray):
        kind = type(given).__name__
        raise InputError(f"{where} must be an array of yes or no (bool), not {kind}")
    if needed.shape != shape:
        raise InputError(f"{where} must have the ofmap's shape {shape}, not {needed.shape}")
    if needed.dtype != np.bool_:
        raise InputError(f"{where} must hold yes or no (bool), not {needed.dtype}")


def require_one_scale(layer: Conv2d | MatMul, operands: Operands) -> None:
    """Raise `InputError` for a quantised file's operands, with zero points and a scale a filter."""
    require(
        operands.file is None,
        f"{layer.name}: operands must be quantised per tensor (from_onnx: as_file=False), not be "
        "those of a quantised file",
    )


def check_values(where: str, values: NDArray[Any], shape: tuple[int, ...], bits: int) -> None:
    """Raise `InputError` unless `values` are integers of that shape within signed `bits`."""
    if values.shape != shape:
        raise InputError(f"{where} must have the shape {shape}, not {values.shape}")
    if values.dtype.kind not in "iu":
        raise InputError(f"{where} must hold integers, not {values.dtype}")
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    kind = np.iinfo(values.dtype)
    if low <= kind.min and kind.max <= high:
        return
    least, most = int(values.min()), int(values.max())
    if least < low or most > high:
        raise InputError(f"{where} must fit {bits} bits, but ranges from {least} to {most}")


def _check_scaling(where: str, name: str, value: object, low: int, high: int) -> None:
    if isinstance(value, np.integer):
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, int):
        raise InputError(f"{where}: {name} must be a whole number, not {value!r}")
    require(low <= value <= high, f"{where}: {name} must be from {low} to {high}, not {value}")
