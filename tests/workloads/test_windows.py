"""Convolutions of one to three axes, transposed or not: ONNX Runtime's values, counted MACs."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from archsim import EDGE_16, simulate
from workloads.errors import WorkloadError
from workloads.layers import Conv2d
from workloads.onnx_convolution import pieces_of
from workloads.onnx_import import import_onnx, trace
from workloads.onnx_operands import ModelOperands, Request
from workloads.onnx_runtime import run_session
from workloads.operands import from_onnx
from workloads.reference import accumulate, compute

node = helper.make_node
small = st.integers(1, 3)


@st.composite
def convolutions(draw: Any, operator: str) -> tuple[onnx.ModelProto, dict[str, Any]]:
    """A model of one, and all that it was drawn from."""
    axes, groups = draw(st.integers(1, 3)), draw(small)
    each = st.lists(small, min_size=axes, max_size=axes)
    sizes = draw(st.lists(st.integers(1, 6), min_size=axes, max_size=axes))
    kernel, strides, dilations = draw(each), draw(each), draw(each)
    channels, filters = groups * draw(st.integers(1, 2)), groups * draw(st.integers(1, 2))
    attributes: dict[str, Any] = {"strides": strides, "dilations": dilations, "group": groups}
    mode = draw(st.sampled_from(["pads", "VALID", "SAME_UPPER", "SAME_LOWER", "none"]))
    if mode == "pads":
        pads = draw(st.lists(st.integers(0, 2), min_size=2 * axes, max_size=2 * axes))
        attributes["pads"] = pads
    elif mode != "none":
        attributes["auto_pad"] = mode
    transposed = operator == "ConvTranspose"
    if transposed and mode in ("pads", "none"):
        extra = [
            draw(st.integers(0, max(s, d) - 1)) for s, d in zip(strides, dilations, strict=True)
        ]
        attributes["output_padding"] = extra
    first, second = (channels, filters) if transposed else (filters, channels)
    shape = (first, second // groups, *kernel)
    x = (draw(st.integers(1, 2)), channels, *sizes)
    random = np.random.default_rng(draw(st.integers(0, 99)))
    stored = {"w": random.normal(size=shape), "b": random.normal(size=filters)}
    made = node(operator, ["x", "w", "b"], ["y"], name="layer", **attributes)
    graph = helper.make_graph(
        [made],
        "windows",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(a.astype(np.float32), name) for name, a in stored.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    facts = {"x": random.normal(size=x).astype(np.float32), "kernel": kernel, "axes": axes,
             "strides": strides, "dilations": dilations, "groups": groups,
             "filters": filters, "mode": mode, **attributes}  # fmt: skip
    return model, facts


def checked(model: onnx.ModelProto, x: Any) -> tuple[Any, list[Conv2d]]:
    """Every layer's sums are ONNX Runtime's results at its places; returns the results."""
    (want,) = run_session(model, ["y"], {"x": x})
    traced = trace(model)
    ((made, _),) = traced.steps
    pieces = pieces_of(traced.graph, made)
    operands = from_onnx(model, {"x": x}, bits=13)
    left = np.ones(want.shape, bool)
    for piece in pieces:
        layer, found = piece.layer, operands[piece.name]
        sums = accumulate(layer, found.ifmap, found.weight)
        assert found.bias is not None
        sums = sums + found.bias.reshape(1, -1, 1, 1)
        real = sums * (found.ifmap_scale * found.weight_scale)
        assert np.allclose(real, piece.ofmap(want), atol=2e-2)
        for phases in piece.phases:
            left[:, :, *(phase.places for phase in phases)] = False
    bias = numpy_helper.to_array(model.graph.initializer[1]).reshape(-1, *([1] * (want.ndim - 2)))
    assert np.all((want == bias) | ~left)
    return want, [piece.layer for piece in pieces]


@settings(max_examples=60, deadline=None)
@given(drawn=convolutions("Conv"))
def test_convolutions(drawn: tuple[onnx.ModelProto, dict[str, Any]]) -> None:
    model, facts = drawn
    try:
        want, (layer,) = checked(model, facts["x"])
    except WorkloadError:  # ONNX Runtime has none of a kernel larger than the plane either
        with pytest.raises(WorkloadError):
            run_session(model, ["y"], {"x": facts["x"]})
        assume(False)
        return
    taps = prod(facts["kernel"]) * facts["x"].shape[1] // facts["groups"]
    assert layer.macs == want.size * taps


def axis_macs(facts: dict[str, Any], axis: int, size: int, result: int, before: int) -> int:
    """Pairs of a result and a tap that reads the ifmap or its padding, of phases that read it."""
    stride, dilation = facts["strides"][axis], facts["dilations"][axis]
    found: dict[int, list[int]] = {}
    for o, r in product(range(result), range(facts["kernel"][axis])):
        at, rest = divmod(o + before - dilation * r, stride)
        if rest == 0:
            found.setdefault(o % stride, []).append(at)
    reads = [one for one in found.values() if any(0 <= at < size for at in one)]
    # between the first and the last element that is read, everything is
    return sum(len(one) for one in reads)


@settings(max_examples=100, deadline=None)
@given(drawn=convolutions("ConvTranspose"))
def test_transposed_convolutions(drawn: tuple[onnx.ModelProto, dict[str, Any]]) -> None:
    model, facts = drawn
    try:
        want, layers = checked(model, facts["x"])
    except WorkloadError:
        with pytest.raises(WorkloadError):
            run_session(model, ["y"], {"x": facts["x"]})
        assume(False)
        return
    if facts["mode"] in ("pads", "none"):
        pads, sizes = facts.get("pads", [0] * 6), facts["x"].shape[2:]
        pairs = [
            axis_macs(facts, axis, sizes[axis], want.shape[2 + axis], pads[axis])
            for axis in range(facts["axes"])
        ]
        batch, channels = facts["x"].shape[:2]
        per_pair = batch * channels * facts["filters"] // facts["groups"]
        assert sum(layer.macs for layer in layers) == per_pair * prod(pairs)


def test_taps_that_step_over_the_ifmap_make_no_layer() -> None:
    """Found by a check: one element, between two taps that are two apart."""
    weight = np.ones((1, 1, 2), np.float32)
    graph = helper.make_graph(
        [node("ConvTranspose", ["x", "w"], ["y"], dilations=[2], pads=[1, 1])],
        "over",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, 1])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(weight, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    traced = trace(model)
    ((made, _),) = traced.steps
    assert pieces_of(traced.graph, made) == ()


def upsampling(stride: int, kernel: int, pad: int, size: int = 5) -> onnx.ModelProto:
    weight = np.random.default_rng(0).normal(size=(3, 4, kernel, kernel)).astype(np.float32)
    graph = helper.make_graph(
        [node("ConvTranspose", ["x", "w"], ["y"], strides=[stride] * 2, pads=[pad] * 4),
         node("Relu", ["y"], ["z"])],
        "up",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, size, size])],
        [helper.make_tensor_value_info("z", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(weight, "w")],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_phases_that_read_alike_are_one_layer() -> None:
    network = import_onnx(upsampling(stride=2, kernel=2, pad=0))
    (layer,) = network.matrix_layers
    assert isinstance(layer, Conv2d)
    assert (layer.name, layer.filters, layer.relu) == ("y", 16, True)
    assert layer.macs == 5 * 5 * 3 * 4 * 2 * 2  # every input times every tap
    assert [one.name for one in network.layers] == ["y", "y/interleave"]
    four = import_onnx(upsampling(stride=2, kernel=4, pad=1)).matrix_layers
    assert [one.name for one in four] == [f"y/phase{at}" for at in range(4)]
    zeros = 10 * 10 * 3 * 4 * 4 * 4
    assert sum(one.macs for one in four) == zeros // 4
    assert len(import_onnx(upsampling(stride=1, kernel=3, pad=1)).layers) == 1


def test_a_stride_of_a_billion_is_no_loop() -> None:
    made = upsampling(stride=10**9, kernel=2, pad=0, size=1)
    assert sum(one.macs for one in import_onnx(made).matrix_layers) == 3 * 4 * 2 * 2


@pytest.mark.parametrize("operator", ["Conv", "ConvTranspose"])
@pytest.mark.parametrize("zero", [0, 7])
def test_integers_of_a_file(operator: str, zero: int) -> None:
    """Of three axes, padded in depth with the zero point; ofmaps are the file's."""
    random = np.random.default_rng(5)
    shape = (4, 3, 2, 2, 3)
    stored = {
        "xs": np.float32(0.02), "xz": np.int8(zero),
        "wq": random.integers(-127, 128, shape).astype(np.int8),
        "ws": random.uniform(0.01, 0.02, shape[0] if operator == "Conv" else 3).astype(np.float32),
        "ys": np.float32(0.3), "yz": np.int8(-3),
    }  # fmt: skip
    axis = 0 if operator == "Conv" else 1
    channels = 3 if operator == "Conv" else 4
    nodes = [
        node("DequantizeLinear", ["x", "xs", "xz"], ["xf"]),
        node("DequantizeLinear", ["wq", "ws"], ["wf"], axis=axis),
        node(operator, ["xf", "wf"], ["yf"], name="layer", pads=[1, 0, 1, 1, 0, 1],
             strides=[1, 2, 2]),
        node("QuantizeLinear", ["yf", "ys", "yz"], ["y"]),
    ]  # fmt: skip
    graph = helper.make_graph(
        nodes,
        "whole",
        [helper.make_tensor_value_info("x", TensorProto.INT8, [2, channels, 3, 5, 5])],
        [helper.make_tensor_value_info("y", TensorProto.INT8, None)],
        [numpy_helper.from_array(np.asarray(a), name) for name, a in stored.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    x = random.integers(-128, 128, (2, channels, 3, 5, 5)).astype(np.int8)
    (want,) = run_session(model, ["y"], {"x": x})
    traced = trace(model)
    pieces = next(pieces_of(traced.graph, one) for one, _ in traced.steps if one.name == "layer")
    source = ModelOperands(model, {"x": x}, Request())
    result = simulate(EDGE_16, import_onnx(model), operands=source)
    by_name = {one.name: one for one in result.layers}
    for piece in pieces:
        found = source(piece.layer)
        assert found.file is not None
        made = compute(piece.layer, found, bits=8)
        wrong = np.count_nonzero(made != piece.ofmap(want))
        assert wrong <= made.size // 200  # ONNX Runtime sums floats here
        as_file = by_name[piece.name].as_file
        assert as_file is not None and as_file.unlike_runtime == wrong
        assert np.array_equal(np.asarray(by_name[piece.name].ofmap), made)


def test_four_axes_are_refused_by_name() -> None:
    graph = helper.make_graph(
        [node("Conv", ["x", "w"], ["y"])],
        "four",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2, 3, 3, 3, 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.ones((2, 2, 1, 1, 1, 1), np.float32), "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    with pytest.raises(WorkloadError, match=r"'y' \(Conv\): a convolution must have 1 to 3 axes"):
        import_onnx(model)
