"""The plain NumPy layers against ONNX's own reference, in float64 where integers are exact."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper
from onnx.reference import ReferenceEvaluator

from workloads.errors import WorkloadError
from workloads.layers import Conv2d, MatMul
from workloads.operands import Operands, operand_shapes, synthetic
from workloads.reference import accumulate, compute


@st.composite
def convolutions(draw):
    def few(low, high):
        return draw(st.integers(low, high))

    groups = few(1, 3)
    return Conv2d(
        name="conv",
        channels=groups * few(1, 3),
        filters=groups * few(1, 3),
        ifmap_height=few(5, 9),
        ifmap_width=few(5, 9),
        kernel_height=few(1, 3),
        kernel_width=few(1, 3),
        stride_height=few(1, 3),
        stride_width=few(1, 3),
        pad_top=few(0, 2),
        pad_left=few(0, 2),
        pad_bottom=few(0, 2),
        pad_right=few(0, 2),
        dilation_height=few(1, 2),
        dilation_width=few(1, 2),
        groups=groups,
        batch=few(1, 2),
    )


def draw_integers(shape, seed):
    return np.random.default_rng(seed).integers(-128, 128, shape, np.int64)


@settings(max_examples=60)
@given(layer=convolutions(), seed=st.integers(0, 99))
def test_convolution_equals_onnx_reference(layer, seed):
    x, w = (draw_integers(s, seed + i) for i, s in enumerate(operand_shapes(layer)))
    node = helper.make_node(
        "Conv",
        ["x", "w"],
        ["y"],
        strides=[layer.stride_height, layer.stride_width],
        pads=[layer.pad_top, layer.pad_left, layer.pad_bottom, layer.pad_right],
        dilations=[layer.dilation_height, layer.dilation_width],
        group=layer.groups,
    )
    feeds = {"x": x.astype(np.float64), "w": w.astype(np.float64)}
    (expected,) = ReferenceEvaluator(node).run(None, feeds)
    got = accumulate(layer, x, w)
    assert got.dtype == np.int64
    assert got.shape == (layer.batch, layer.filters, layer.ofmap_height, layer.ofmap_width)
    assert np.array_equal(got, expected)


@given(sizes=st.tuples(*[st.integers(1, 6)] * 4), shared=st.booleans(), seed=st.integers(0, 99))
def test_matrix_product_equals_numpy(sizes, shared, seed):
    m, n, k, batch = sizes
    layer = MatMul(name="fc", m=m, n=n, k=k, batch=1 if shared else batch, shared_weight=shared)
    x, w = (draw_integers(s, seed + i) for i, s in enumerate(operand_shapes(layer)))
    assert np.array_equal(accumulate(layer, x, w), x @ w)


def test_accumulators_do_not_wrap_at_sixteen_bits():
    layer = MatMul(name="fc", m=1, n=1, k=4)
    x = np.full((1, 1, 4), -32768, np.int16)
    w = np.full((1, 4, 1), -32768, np.int16)
    assert accumulate(layer, x, w).item() == 4 * 2**30


def test_compute_adds_bias_scales_and_cuts():
    layer = MatMul(name="fc", m=1, n=3, k=1, bias=True, relu=True)
    operands = Operands(
        ifmap=np.array([[[3]]], np.int8),
        weight=np.array([[[10, -10, 100]]], np.int8),
        bias=np.array([5, 5, 5], np.int32),
        multiplier=3,
        shift=1,
        scheme="by hand",
        ifmap_scale=1.0,
        weight_scale=1.0,
        ofmap_scale=1.0,
    )
    assert compute(layer, operands).tolist() == [[[53, 0, 127]]]


def test_operands_of_another_shape_are_refused():
    layer = MatMul(name="fc", m=2, n=3, k=4)
    operands = synthetic(layer)
    with pytest.raises(
        WorkloadError, match=r"^fc: ifmap must have shape \(1, 2, 4\), not \(2, 4\)$"
    ):
        accumulate(layer, operands.ifmap[0], operands.weight)
    conv = Conv2d(
        name="c", channels=2, filters=2, ifmap_height=3, ifmap_width=3, kernel_height=1,
        kernel_width=1, groups=2,
    )  # fmt: skip
    with pytest.raises(WorkloadError, match=r"^c: weight must have shape \(2, 1, 1, 1\), not"):
        accumulate(conv, np.ones((1, 2, 3, 3), np.int8), np.ones((2, 2, 1, 1), np.int8))
