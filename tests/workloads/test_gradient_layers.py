"""Each pass of a layer, computed as the layers that machines are given, against autograd."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workloads.layers import Conv2d, MatMul
from workloads.operands import ofmap_shape, operand_shapes
from workloads.reference import accumulate
from workloads.training.input_gradient import input_gradient
from workloads.training.pass_layer import Tensors
from workloads.training.weight_gradient import weight_gradient

torch = pytest.importorskip("torch", reason="gradients are compared with PyTorch's: archsim[train]")
functional = torch.nn.functional

side = st.integers(1, 9)
small = st.integers(1, 3)


@st.composite
def convolutions(draw):
    groups = draw(small)
    kernel, dilation = (draw(small), draw(st.integers(1, 4))), (draw(small), draw(small))
    pads = draw(st.integers(0, 4)), draw(st.integers(0, 3))
    least = [
        max((k - 1) * d + 1 - 2 * p, 1) for k, d, p in zip(kernel, dilation, pads, strict=True)
    ]
    height, width = (low + draw(st.integers(0, 6)) for low in least)
    return Conv2d(
        name="conv", channels=groups * draw(small), filters=groups * draw(small),
        ifmap_height=height, ifmap_width=width, kernel_height=kernel[0], kernel_width=kernel[1],
        stride_height=draw(st.integers(1, 4)), stride_width=draw(small),
        dilation_height=dilation[0], dilation_width=dilation[1], groups=groups, batch=draw(small),
        pad_top=pads[0], pad_bottom=pads[0], pad_left=pads[1], pad_right=pads[1],
    )  # fmt: skip


def _tensors(layer):
    random = np.random.default_rng(5)
    ifmap, weight = operand_shapes(layer)
    x, w, dy = (random.integers(-9, 10, shape) for shape in (ifmap, weight, ofmap_shape(layer)))
    return Tensors(x=x, w=w, dy=dy)


def _computed(parts, tensors, shape):
    """The gradient, of what the layers compute; every place at most once."""
    found, times = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    for part in parts:
        ofmap = accumulate(part.layer, part.ifmap(tensors), part.weight(tensors))
        part.put(ofmap, found)
        assert np.array_equal(part.part(found), ofmap)
        part.put(part.part(times) + 1, times)
    assert times.max() <= 1
    return found, times


def _autograd(layer, tensors):
    x, w = (
        torch.tensor(t, dtype=torch.float64, requires_grad=True) for t in (tensors.x, tensors.w)
    )
    if isinstance(layer, MatMul):
        y = x @ w
    else:
        y = functional.conv2d(
            x, w, stride=(layer.stride_height, layer.stride_width),
            padding=(layer.pad_top, layer.pad_left),
            dilation=(layer.dilation_height, layer.dilation_width), groups=layer.groups,
        )  # fmt: skip
    y.backward(torch.tensor(tensors.dy, dtype=torch.float64))
    return x.grad.numpy(), w.grad.numpy()


@given(convolutions())
@settings(max_examples=20)
def test_convolutions_against_autograd(layer):
    tensors = _tensors(layer)
    dx, dw = _autograd(layer, tensors)
    parts: Any = input_gradient(layer)
    found, _ = _computed(parts, tensors, dx.shape)
    assert np.array_equal(found, dx)
    for form in ("product", "convolution"):
        part = weight_gradient(layer, form)
        found, times = _computed([part], tensors, dw.shape)
        assert np.array_equal(found, dw) and times.all()
        assert part.layer.macs == layer.macs
    unstrided = layer.ifmap_elements * layer.filters // layer.groups
    taps = layer.kernel_height * layer.kernel_width
    assert sum(part.layer.macs for part in parts) <= unstrided * taps
    if layer.stride_height * layer.stride_width > 1 and layer.dilation_height == 1:
        assert all(part.layer.stride_height == 1 for part in parts)


def test_a_stride_costs_what_the_layer_does():
    """No multiplication by inserted zeros: MACs of BP are the layer's, but for its margins."""
    layer = Conv2d(
        name="conv1", channels=64, filters=128, ifmap_height=56, ifmap_width=56, kernel_height=3,
        kernel_width=3, stride_height=2, stride_width=2, pad_top=1, pad_left=1, pad_bottom=1,
        pad_right=1,
    )  # fmt: skip
    parts: Any = input_gradient(layer)
    assert [part.layer.name for part in parts] == [
        f"conv1/BP{a}.{b}" for a in (0, 1) for b in (0, 1)
    ]
    shapes = [(part.layer.kernel_height, part.layer.kernel_width) for part in parts]
    assert shapes == [(1, 1), (1, 2), (2, 1), (2, 2)]
    assert sum(part.layer.macs for part in parts) == layer.macs


def test_a_projection_of_stride_2_has_a_gradient_at_one_place_in_four():
    layer = Conv2d(
        name="project", channels=8, filters=16, ifmap_height=6, ifmap_width=6, kernel_height=1,
        kernel_width=1, stride_height=2, stride_width=2,
    )  # fmt: skip
    (part,) = input_gradient(layer)
    assert part.layer.macs == layer.macs and part.layer.name == "project/BP"


@given(small, side, side, side, st.booleans())
@settings(max_examples=12)
def test_products_against_autograd(batch, m, n, k, shared):
    layer = MatMul(name="fc", m=m, n=n, k=k, batch=1 if shared else batch, shared_weight=shared)
    tensors = _tensors(layer)
    dx, dw = _autograd(layer, tensors)
    assert np.array_equal(_computed(input_gradient(layer), tensors, dx.shape)[0], dx)
    part = weight_gradient(layer)
    assert np.array_equal(_computed([part], tensors, dw.shape)[0], dw)
    assert (part.kind, part.layer.name) == (("WG", "fc/WG") if shared else ("BP", "fc/BP2"))
