"""Operands are integers of the ports' widths, both ends included and nothing beyond."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from archsim.errors import InputError
from archsim.layer.operand_check import check_integers, check_values
from workloads.layers import MatMul
from workloads.operands import synthetic


@pytest.mark.parametrize("bits", [2, 4, 7, 8, 9, 16, 24, 32])
@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int32, np.int64])
def test_both_ends_of_a_width_and_one_beyond(bits: int, dtype: Any) -> None:
    kind = np.iinfo(dtype)
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    for value in (low - 1, low, high, high + 1):
        if not kind.min <= value <= kind.max:
            continue
        values = np.array([0, value], dtype)
        if low <= value <= high:
            check_values("x", values, (2,), bits)
            continue
        least, most = min(0, value), max(0, value)
        with pytest.raises(
            InputError, match=f"^x must fit {bits} bits, but ranges from {least} to {most}$"
        ):
            check_values("x", values, (2,), bits)


def test_shapes_and_what_is_no_integer() -> None:
    with pytest.raises(InputError, match=r"^x must have the shape \(2,\), not \(3,\)$"):
        check_values("x", np.zeros(3, np.int8), (2,), 8)
    with pytest.raises(InputError, match=r"^x must hold integers, not float32$"):
        check_values("x", np.zeros(2, np.float32), (2,), 8)


def test_a_scaling_at_its_ends() -> None:
    layer = MatMul(name="m", m=2, n=3, k=4, bias=True)
    drawn = replace(synthetic(layer, bits=8), multiplier=1)
    for multiplier in (1, 255, np.int64(255)):
        check_integers(layer, replace(drawn, multiplier=multiplier), (8, 32, 8))
    for multiplier in (0, 256, True, 1.0):
        with pytest.raises(InputError, match=r"^m: multiplier must be "):
            check_integers(layer, replace(drawn, multiplier=multiplier), (8, 32, 8))
    without = replace(layer, bias=False)
    with pytest.raises(InputError, match=r"^m: bias must be None, since the layer has none$"):
        check_integers(without, drawn, (8, 32, 8))
    check_integers(layer, replace(drawn, bias=None), (8, 32, 8))
