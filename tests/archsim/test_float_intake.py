"""Operands of cores of floats: each with its own scale."""

from dataclasses import replace

import numpy as np
import pytest

from archsim.arithmetic.formats import BF16, FP16, FP32
from archsim.errors import InputError
from archsim.layer.float_intake import SOURCE_BITS, FloatIntake
from archsim.layer.intake import Drawing
from workloads.layers import MatMul
from workloads.operands import synthetic

LAYER = MatMul(name="m", m=3, n=4, k=5, bias=True)


@pytest.mark.parametrize("form", [FP16, BF16])
def test_patterns_are_of_integer_times_scale(form: object) -> None:
    intake = FloatIntake(operand=form, accumulator=FP32)  # pyright: ignore[reportArgumentType]
    drawn = replace(synthetic(LAYER, bits=8, seed=3), ifmap_scale=0.5, weight_scale=0.125)
    taken = intake.take(LAYER, drawn)
    assert drawn.bias is not None and taken.bias is not None
    for patterns, values, scale, own in (
        (taken.ifmap, drawn.ifmap, 0.5, intake.operand),
        (taken.weight, drawn.weight, 0.125, intake.operand),
        (taken.bias, drawn.bias, 0.0625, FP32),
    ):
        wanted = [own.encode(np.array([float(one) * scale]))[0] for one in values.ravel()]
        assert patterns.ravel().tolist() == wanted
    with pytest.raises(InputError, match="scales must be finite, not inf"):
        intake.take(LAYER, replace(drawn, ifmap_scale=float("inf")))


def test_of_eight_seeds_two_are_extreme() -> None:
    intake = FloatIntake(operand=FP16, accumulator=FP32)
    assert intake.source_bits == SOURCE_BITS == 16
    drawn = [intake.synthetic(LAYER, Drawing(seed=seed)) for seed in range(8)]
    weights = [np.abs(one.weight).max() * one.weight_scale for one in drawn]
    assert max(weights[:6]) <= 1
    assert weights[6] < 2.0**-12 and weights[7] > 2.0**13
    assert all(np.abs(one.weight).max() > 1 << 10 for one in drawn)
