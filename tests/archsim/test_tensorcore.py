"""The tensor core's core: what it refuses, VOLTA, and floating values near the real ones."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from archsim import simulate
from archsim.errors import InputError
from archsim.layer.intake import Drawing
from archsim.machine.registry import design_from_record, design_record
from archsim.machines.tensorcore.design import VOLTA, TensorCore
from archsim.tiled.timing import layer_output, plan_tiling
from workloads.layers import MatMul, Network
from workloads.operands import synthetic

PRODUCT = MatMul(name="product", m=9, n=21, k=70, bias=True, relu=True)
INTEGERS = replace(VOLTA, operand="int8", accumulator="int32")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"octets": 0}, "octets must be positive, not 0"),
        ({"length": 0}, "length must be positive, not 0"),
        ({"rows": 7}, "rows must be even, not 7"),
        ({"operand": "fp8"}, "operand must be one of fp16, bf16, int8, int4, not 'fp8'"),
        (
            {"operand": "int8"},
            "accumulator of int8 operands must be one of int32, not 'fp32'",
        ),
        (
            {"rows": 2, "length": 16},
            "dot.length must be at most 12, the cycles of a set, not 16",
        ),
    ],
)
def test_what_a_design_refuses(values: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as error:
        TensorCore(**values)
    assert str(error.value) == message


@pytest.mark.parametrize("design", [VOLTA, INTEGERS])
def test_records_are_complete(design: TensorCore) -> None:
    assert design_from_record(design_record(design), "here") == design


def test_a_single_warp_leaves_passes_empty() -> None:
    """Its chain of ten cycles is longer than the eight passes of a set; two warps fill them."""
    one, two = replace(VOLTA, rows=8), VOLTA
    layer = MatMul(name="large", m=512, n=512, k=512)
    network = Network(name="n", source="here", layers=(layer,))
    single, double = (simulate(design, network).layers[0] for design in (one, two))
    assert single.where["computing"] == 512 * 512 * 512 // 64 * 10 // 8
    assert double.where["computing"] == 512 * 512 * 512 // 64


@pytest.mark.parametrize(("accumulator", "error"), [("fp32", 1e-3), ("fp16", 2e-2)])
def test_floats_are_near_the_real_ones(accumulator: Any, error: float) -> None:
    design = replace(VOLTA, accumulator=accumulator)
    operands = design.numerics.synthetic(PRODUCT, Drawing(distribution="normal", seed=3))
    x = operands.ifmap * operands.ifmap_scale
    w = operands.weight * operands.weight_scale
    assert operands.bias is not None
    bias = operands.bias * (operands.ifmap_scale * operands.weight_scale)
    real = np.maximum(x @ w + bias, 0)
    ofmap = layer_output(design, PRODUCT, operands)
    assert ofmap.shape == real.shape
    assert 0 < np.abs(ofmap - real).max() / real.max() < error


def test_sums_follow_the_tiling() -> None:
    """Floating sums of other channel tiles round elsewhere."""
    operands = VOLTA.numerics.synthetic(PRODUCT, Drawing(seed=3))
    whole = plan_tiling(VOLTA, PRODUCT, None)
    narrow = replace(VOLTA, accumulator="fp16")
    one = layer_output(narrow, PRODUCT, operands, replace(whole, channels=PRODUCT.k))
    other = layer_output(narrow, PRODUCT, operands, replace(whole, channels=8))
    assert not np.array_equal(one, other)


def test_integers_are_those_of_every_other_core() -> None:
    from archsim.machines.systolic.design import Systolic

    operands = synthetic(PRODUCT, bits=8)
    ours = layer_output(INTEGERS, PRODUCT, operands)
    assert np.array_equal(ours, layer_output(Systolic(), PRODUCT, operands))


def test_operands_of_other_shapes() -> None:
    operands = replace(synthetic(PRODUCT), bias=np.zeros(5, np.int32))
    with pytest.raises(InputError, match=r"product: bias must have the shape \(21,\), not \(5,\)"):
        layer_output(VOLTA, PRODUCT, operands)


def test_scales_that_are_not_finite() -> None:
    operands = replace(synthetic(PRODUCT), weight_scale=float("nan"))
    with pytest.raises(InputError, match="product: scales must be finite, not 1, nan"):
        layer_output(VOLTA, PRODUCT, operands)
