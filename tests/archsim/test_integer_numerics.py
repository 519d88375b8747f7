"""Operands that a core cannot take are refused, by `simulate` and by the traced answer alike."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from archsim import simulate
from archsim.errors import InputError
from archsim.machines.systolic.design import Systolic
from archsim.tiled.timing import layer_output, plan_tiling
from archsim.tiled.trace import PORTS, answer
from archsim.timing import Service
from workloads.layers import Conv2d, MatMul, Network
from workloads.operands import Operands, synthetic

DESIGN = Systolic(rows=4, columns=4)
CONV = Conv2d(
    name="conv",
    channels=3,
    filters=5,
    ifmap_height=6,
    ifmap_width=7,
    kernel_height=3,
    kernel_width=2,
    bias=True,
)
PRODUCT = MatMul(name="product", m=3, n=4, k=5, batch=2, bias=True, shared_weight=False)


def good(layer: Conv2d | MatMul = CONV) -> Operands:
    return synthetic(layer, bits=8)


def refusal(layer: Conv2d | MatMul, operands: Operands) -> str:
    with pytest.raises(InputError) as error:
        DESIGN.numerics.take(layer, operands)
    return str(error.value)


def bias_of(least: int, most: int) -> np.ndarray:
    return np.array([least, 0, 0, 0, most], np.int64)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"ifmap": np.full((1, 3, 6, 7), 128, np.int16)},
            "conv: ifmap must fit 8 bits, but ranges from 128 to 128",
        ),
        (
            {"weight": np.linspace(-129, 5, 90).astype(np.int16).reshape(5, 3, 3, 2)},
            "conv: weight must fit 8 bits, but ranges from -129 to 5",
        ),
        (
            {"bias": bias_of(-(2**31) - 1, 7)},
            "conv: bias must fit 32 bits, but ranges from -2147483649 to 7",
        ),
        (
            {"bias": bias_of(0, 2**31)},
            "conv: bias must fit 32 bits, but ranges from 0 to 2147483648",
        ),
        ({"multiplier": 0}, "conv: multiplier must be from 1 to 65535, not 0"),
        ({"multiplier": 65536}, "conv: multiplier must be from 1 to 65535, not 65536"),
        ({"multiplier": 1.5}, "conv: multiplier must be a whole number, not 1.5"),
        ({"multiplier": True}, "conv: multiplier must be a whole number, not True"),
        ({"shift": -1}, "conv: shift must be from 0 to 47, not -1"),
        ({"shift": 48}, "conv: shift must be from 0 to 47, not 48"),
        (
            {"ifmap": np.zeros((1, 3, 7, 6), np.int8)},
            "conv: ifmap must have the shape (1, 3, 6, 7), not (1, 3, 7, 6)",
        ),
        (
            {"weight": np.zeros((5, 3, 2, 3), np.int8)},
            "conv: weight must have the shape (5, 3, 3, 2), not (5, 3, 2, 3)",
        ),
        ({"bias": np.zeros(4, np.int32)}, "conv: bias must have the shape (5,), not (4,)"),
        ({"ifmap": np.zeros((1, 3, 6, 7))}, "conv: ifmap must hold integers, not float64"),
    ],
)
def test_what_is_refused(changes: dict[str, Any], message: str) -> None:
    operands = replace(good(), **changes)
    assert refusal(CONV, operands) == message
    tiling = plan_tiling(DESIGN, CONV, None)
    with pytest.raises(InputError, match="conv: "):
        layer_output(DESIGN, CONV, operands)
    with pytest.raises(InputError, match="conv: "):
        answer(DESIGN, CONV, tiling, operands, tuple(Service() for _ in PORTS))


def test_matrix_products() -> None:
    DESIGN.numerics.take(PRODUCT, good(PRODUCT))
    swapped = replace(good(PRODUCT), ifmap=np.zeros((2, 5, 3), np.int8))
    assert refusal(PRODUCT, swapped) == (
        "product: ifmap must have the shape (2, 3, 5), not (2, 5, 3)"
    )
    short = replace(good(PRODUCT), bias=np.zeros(3, np.int32))
    assert refusal(PRODUCT, short) == "product: bias must have the shape (4,), not (3,)"


def test_a_bias_needs_a_layer_with_one() -> None:
    assert refusal(replace(CONV, bias=False), good()) == (
        "conv: bias must be None, since the layer has none"
    )
    without = replace(good(), bias=None)
    zero = replace(good(), bias=np.zeros(5, np.int32))
    DESIGN.numerics.take(CONV, without)
    np.testing.assert_array_equal(
        layer_output(DESIGN, CONV, without), layer_output(DESIGN, CONV, zero)
    )


def test_the_limits_themselves_are_taken() -> None:
    DESIGN.numerics.take(
        CONV,
        replace(
            good(),
            ifmap=np.full((1, 3, 6, 7), -128, np.int64),
            weight=np.full((5, 3, 3, 2), 127, np.uint8),
            bias=bias_of(-(2**31), 2**31 - 1),
            multiplier=np.int64(65535),
            shift=47,
        ),
    )
    DESIGN.numerics.take(CONV, replace(good(), multiplier=1, shift=0))


@pytest.mark.parametrize("bits", [4, 16])
def test_the_width_is_the_designs(bits: int) -> None:
    design = Systolic(rows=4, columns=4, operand_bits=bits)
    limit = 1 << (bits - 1)
    design.numerics.take(CONV, replace(good(), ifmap=np.full((1, 3, 6, 7), -limit, np.int32),
                                         weight=np.zeros((5, 3, 3, 2), np.int8)))  # fmt: skip
    wide = replace(good(), ifmap=np.full((1, 3, 6, 7), limit, np.int32))
    with pytest.raises(InputError, match=f"conv: ifmap must fit {bits} bits"):
        design.numerics.take(CONV, wide)


def test_simulate_names_the_layer() -> None:
    network = Network(name="one", layers=(CONV,), source="this test")
    with pytest.raises(InputError, match=r"^conv: shift must be from 0 to 47, not 60$"):
        simulate(DESIGN, network, operands={"conv": replace(good(), shift=60)})
    with pytest.raises(InputError, match="no operands for layer conv; there are: other"):
        simulate(DESIGN, network, operands={"other": good()})
