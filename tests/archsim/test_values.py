"""The fast values against the plain reference."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archsim.errors import InputError
from archsim.layer import layout
from archsim.layer.problem import problem_of
from archsim.layer.values import accumulate, exact_terms
from archsim.machines.systolic.design import Systolic
from archsim.tiled.timing import layer_output
from workloads import reference
from workloads.layers import Conv2d, MatMul
from workloads.operands import Operands, synthetic


@st.composite
def layers(draw: st.DrawFn) -> Conv2d | MatMul:
    whole = lambda low, high: draw(st.integers(low, high))  # noqa: E731
    if draw(st.booleans()):
        batch = whole(1, 3)
        return MatMul(
            name="m", m=whole(1, 9), n=whole(1, 9), k=whole(1, 40), batch=batch,
            shared_weight=batch == 1, bias=draw(st.booleans()), relu=draw(st.booleans()),
        )  # fmt: skip
    kernel, dilation = (whole(1, 3), whole(1, 3)), (whole(1, 2), whole(1, 2))
    groups = whole(1, 3)
    channels, filters = (1, 1) if draw(st.booleans()) else (whole(1, 5), whole(1, 5))
    reach = [(kernel[axis] - 1) * dilation[axis] + 1 for axis in (0, 1)]
    return Conv2d(
        name="c", channels=channels * groups, filters=filters * groups,
        ifmap_height=reach[0] + whole(0, 4), ifmap_width=reach[1] + whole(0, 4),
        kernel_height=kernel[0], kernel_width=kernel[1],
        stride_height=whole(1, 3), stride_width=whole(1, 3),
        pad_top=whole(0, 2), pad_left=whole(0, 2), pad_bottom=whole(0, 2), pad_right=whole(0, 2),
        dilation_height=dilation[0], dilation_width=dilation[1], groups=groups,
        batch=whole(1, 2), bias=draw(st.booleans()), relu=draw(st.booleans()),
    )  # fmt: skip


@settings(deadline=None, max_examples=150)
@given(layers(), st.sampled_from([4, 8, 16]), st.integers(0, 10**6))
def test_outputs_equal_the_reference(layer: Conv2d | MatMul, bits: int, seed: int) -> None:
    operands = synthetic(layer, bits=bits, seed=seed)
    ours = layer_output(Systolic(operand_bits=bits, accumulator_bits=40), layer, operands)
    assert (ours == reference.compute(layer, operands, bits=bits)).all()


@pytest.mark.parametrize("bits", [4, 8, 9, 10, 11, 16])
@pytest.mark.parametrize("more", [-1, 0, 1, 1000])
def test_deep_sums_stay_exact(bits: int, more: int) -> None:
    """As many products of the largest size and one sign as a float32 sums exactly, and more: the
    last one is 1, so that a sum that is rounded is another."""
    depth = max(exact_terms(bits, 24) + more, 1)
    depth = min(depth, 20_000)
    low = -(1 << (bits - 1))
    layer = MatMul(name="deep", m=2, n=3, k=depth)
    ifmap, weight = np.full((1, 2, depth), low), np.full((1, depth, 3), low)
    ifmap[:, :, -1] = weight[:, -1] = 1
    problem = problem_of(layer)
    sums = accumulate(
        problem,
        layout.split_ifmap(layer, problem, ifmap),
        layout.split_weight(layer, problem, weight),
        bits,
    )
    assert (sums.astype(np.int64) == (depth - 1) * low * low + 1).all()


@pytest.mark.parametrize(
    ("bits", "mantissa_bits"), [*((n, 24) for n in range(2, 14)), *((n, 53) for n in range(2, 17))]
)
def test_the_bound_of_exact_sums_is_tight(bits: int, mantissa_bits: int) -> None:
    """So many products are at most 2^mantissa; one more could be beyond it."""
    largest, terms = 1 << (2 * bits - 2), exact_terms(bits, mantissa_bits)
    assert terms * largest <= 1 << mantissa_bits < (terms + 1) * largest


def test_narrow_accumulators_wrap() -> None:
    layer = MatMul(name="wrap", m=1, n=1, k=4)
    operands = Operands(
        ifmap=np.full((1, 1, 4), 127, np.int8), weight=np.full((1, 4, 1), 127, np.int8),
        bias=None, multiplier=1, shift=8, scheme="", ifmap_scale=1.0, weight_scale=1.0,
        ofmap_scale=1.0,
    )  # fmt: skip
    narrow = Systolic(operand_bits=8, accumulator_bits=16)
    wrapped = (4 * 127 * 127 + 2**15) % 2**16 - 2**15
    assert layer_output(narrow, layer, operands).item() == (wrapped + 128) >> 8


def test_operands_wider_than_the_design() -> None:
    layer = MatMul(name="wide", m=1, n=1, k=1)
    operands = synthetic(layer, bits=8, seed=1)
    with pytest.raises(InputError, match=r"^wide: ifmap must fit 4 bits, but ranges from "):
        layer_output(Systolic(operand_bits=4), layer, operands)
