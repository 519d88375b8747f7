"""Layers of quantised TFLite files make the integers of TFLite's own interpreter."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import Call, good
from hypothesis import given, settings
from hypothesis import strategies as st
from quantised_tflite import Operator, Tensor, interpreted, tflite_bytes

from archsim import EDGE_16, simulate
from archsim.result import LayerResult
from workloads.errors import WorkloadError
from workloads.onnx_import import import_onnx
from workloads.operands import from_onnx
from workloads.tflite_model import read_tflite

NEEDED = ("tflite", "ai_edge_litert", "flatbuffers")
pytestmark = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in NEEDED),
    reason=f"the packages of {', '.join(NEEDED)} are not all installed",
)
SIZES = st.sampled_from([1, 2, 3, 5, 8, 17])
SAME, VALID = 0, 1


def ofmap_side(side: int, kernel: int, stride: int, padding: int) -> int:
    return -(-side // stride) if padding == SAME else (side - kernel) // stride + 1


def quantised(random: Any, name: str, shape: tuple[int, ...], kind: str = "int8") -> Tensor:
    zero = int(random.integers(-100, 100)) + (128 if kind == "uint8" else 0)
    return Tensor(name=name, shape=shape, kind=kind, scale=random.uniform(0.01, 0.05), zero=zero)


def weights(
    random: Any, shape: tuple[int, ...], axis: int, kind: str = "int8", limit: int = 63
) -> Tensor:
    """A scale a filter; of uint8, one, with a zero point."""
    values = random.integers(-limit, limit, shape, endpoint=True)
    if kind == "uint8":
        return Tensor(name="w", shape=shape, kind=kind, scale=0.01, zero=131,
                      values=(values + 128).astype(np.uint8))  # fmt: skip
    scale = random.uniform(0.002, 0.02, shape[axis])
    return Tensor(name="w", shape=shape, kind=kind, scale=scale, axis=axis,
                  values=values.astype(np.int8))  # fmt: skip


def bias(random: Any, x: Tensor, w: Tensor, count: int) -> Tensor:
    values = random.integers(-3000, 3000, count).astype(np.int32)
    scale = np.float32(x.scale) * np.asarray(w.scale, np.float32)
    return Tensor(name="b", shape=(count,), kind="int32", scale=scale, values=values)


def ran(file: Path, x: Any) -> LayerResult:
    """The only matrix layer; x as the file has it."""
    model = read_tflite(file, name="one")
    turned = x.transpose(0, 3, 1, 2) if x.ndim == 4 else x
    operands = from_onnx(model, {"x": np.ascontiguousarray(turned)})
    found = simulate(EDGE_16, import_onnx(model), operands=operands).layers
    (layer,) = [one for one in found if one.ofmap is not None]
    return layer


def check(file: Path, x: Any) -> LayerResult:
    """Equal to the interpreter's default kernels; its reference kernels may differ by one."""
    layer = ran(file, x)
    (wanted,) = interpreted(file, x)
    assert layer.ofmap is not None
    ours = layer.ofmap.transpose(0, 2, 3, 1) if wanted.ndim == 4 else layer.ofmap[0]
    assert ours.dtype == wanted.dtype
    assert np.array_equal(ours, wanted)
    assert layer.as_file is not None and layer.as_file.unlike_runtime is not None
    (plain,) = interpreted(file, x, plain=True)
    assert np.abs(plain.astype(int) - ours).max() <= 1
    return layer


@settings(max_examples=25, deadline=None)
@given(
    channels=SIZES, filters=SIZES, side=st.integers(3, 9), kernel=st.sampled_from([1, 2, 3]),
    stride=st.sampled_from([1, 2]), padding=st.sampled_from([SAME, VALID]),
    activation=st.sampled_from([0, 1, 3]), depthwise=st.booleans(), seed=st.integers(0, 999),
    kind=st.sampled_from(["int8", "int8", "uint8"]),
)  # fmt: skip
def test_convolutions(  # noqa: PLR0913
    tmp_path_factory: pytest.TempPathFactory, channels: int, filters: int, side: int, kernel: int,
    stride: int, padding: int, activation: int, depthwise: bool, seed: int, kind: str,
) -> None:  # fmt: skip
    random = np.random.default_rng(seed)
    wide = side + 2
    filters = channels if depthwise else filters
    sides = [ofmap_side(one, kernel, stride, padding) for one in (side, wide)]
    x = quantised(random, "x", (2, side, wide, channels), kind)
    shape = (1, kernel, kernel, channels) if depthwise else (filters, kernel, kernel, channels)
    w = weights(random, shape, 3 if depthwise else 0, kind)
    y = quantised(random, "y", (2, *sides, filters), kind)
    taps = kernel * kernel * (1 if depthwise else channels)
    y.scale = float(np.sqrt(taps) * 60 * 40 * x.scale * np.max(w.scale) / 100)
    if activation:  # as converters do: nothing is below zero
        y.zero = 0 if kind == "uint8" else -128
    if activation == 3:
        y.scale = 6 / 255
    table = "DepthwiseConv2DOptions" if depthwise else "Conv2DOptions"
    options = {"Padding": padding, "StrideW": stride, "StrideH": stride,
               "FusedActivationFunction": activation, "DilationWFactor": 1,
               "DilationHFactor": 1}  # fmt: skip
    if depthwise:
        options["DepthMultiplier"] = 1
    code = "DEPTHWISE_CONV_2D" if depthwise else "CONV_2D"
    operator = Operator(code=code, inputs=[0, 1, 2], output=3, table=table, options=options)
    file = tmp_path_factory.mktemp("tflite") / "one.tflite"
    tensors = [x, w, bias(random, x, w, filters), y]
    file.write_bytes(tflite_bytes(tensors, [operator], [0], [3]))
    kinds = np.iinfo(kind)
    layer = check(file, random.integers(kinds.min, kinds.max, x.shape, endpoint=True).astype(kind))
    assert layer.name in ("y", "y/sum")


@settings(max_examples=25, deadline=None)
@given(m=SIZES, n=SIZES, k=SIZES, per_filter=st.booleans(), seed=st.integers(0, 999))
def test_fully_connected_layers(
    tmp_path_factory: pytest.TempPathFactory, m: int, n: int, k: int, per_filter: bool, seed: int
) -> None:
    random = np.random.default_rng(seed)
    x, y = quantised(random, "x", (m, k)), quantised(random, "y", (m, n))
    w = weights(random, (n, k), 0)
    if not per_filter:
        w.scale = 0.01
    y.scale = float(np.sqrt(k) * 60 * 40 * x.scale * np.max(w.scale) / 100)
    operator = Operator(
        code="FULLY_CONNECTED", inputs=[0, 1, 2], output=3, table="FullyConnectedOptions",
        options={"FusedActivationFunction": 0},
    )  # fmt: skip
    file = tmp_path_factory.mktemp("tflite") / "one.tflite"
    file.write_bytes(tflite_bytes([x, w, bias(random, x, w, n), y], [operator], [0], [3]))
    check(file, random.integers(-128, 127, x.shape, endpoint=True).astype(np.int8))


def test_how_often_reference_kernels_round_otherwise(tmp_path: Path) -> None:
    """They multiply by 32 bits of fixed point: of 41,472 values 81 differ."""
    random = np.random.default_rng(6)
    x, y = quantised(random, "x", (2, 36, 36, 8)), quantised(random, "y", (2, 36, 36, 16))
    w = weights(random, (16, 3, 3, 8), 0)
    y.scale = float(np.sqrt(72) * 60 * 40 * x.scale * np.max(w.scale) / 100)
    options = {"StrideW": 1, "StrideH": 1, "DilationWFactor": 1, "DilationHFactor": 1}
    operator = Operator(
        code="CONV_2D", inputs=[0, 1, 2], output=3, table="Conv2DOptions", options=options
    )
    file = tmp_path / "one.tflite"
    file.write_bytes(tflite_bytes([x, w, bias(random, x, w, 16), y], [operator], [0], [3]))
    given = random.integers(-128, 127, x.shape, endpoint=True).astype(np.int8)
    layer = check(file, given)
    assert layer.ofmap is not None and layer.ofmap.size == 41472
    plain = interpreted(file, given, plain=True)[0].transpose(0, 3, 1, 2)
    assert 0 < np.count_nonzero(plain != layer.ofmap) < 0.005 * plain.size


def small_network(random: Any) -> bytes:
    """Pad, convolution, depthwise convolution, addition, average, fully connected, softmax."""
    x = quantised(random, "x", (1, 9, 9, 3))
    padded = Tensor(name="padded", shape=(1, 11, 11, 3), kind="int8", scale=x.scale, zero=x.zero)
    sizes = Tensor(name="sizes", shape=(4, 2), kind="int32",
                   values=np.array([[0, 0], [1, 1], [1, 1], [0, 0]], np.int32))  # fmt: skip
    first = Tensor(name="first", shape=(1, 9, 9, 8), kind="int8", scale=0.05, zero=-128)
    second = Tensor(name="second", shape=(1, 9, 9, 8), kind="int8", scale=0.06, zero=3)
    added = Tensor(name="added", shape=(1, 9, 9, 8), kind="int8", scale=0.07, zero=-20)
    mean = Tensor(name="mean", shape=(1, 1, 1, 8), kind="int8", scale=0.07, zero=-20)
    flat = Tensor(name="flat", shape=(1, 8), kind="int8", scale=0.07, zero=-20)
    shape = Tensor(name="shape", shape=(2,), kind="int32", values=np.array([1, 8], np.int32))
    logits = Tensor(name="logits", shape=(1, 5), kind="int8", scale=0.05, zero=7)
    y = Tensor(name="y", shape=(1, 5), kind="int8", scale=1 / 256, zero=-128)
    w1, w2 = weights(random, (8, 3, 3, 3), 0), weights(random, (1, 3, 3, 8), 3)
    w3 = weights(random, (5, 8), 0)
    b1, b2, b3 = bias(random, x, w1, 8), bias(random, first, w2, 8), bias(random, flat, w3, 5)
    tensors = [x, sizes, padded, w1, b1, first, w2, b2, second, added, mean, shape, flat, w3, b3,
               logits, y]  # fmt: skip
    one = {"StrideW": 1, "StrideH": 1}
    dilation = {"DilationWFactor": 1, "DilationHFactor": 1}
    operators = [
        Operator(code="PAD", inputs=[0, 1], output=2, table="PadOptions"),
        Operator(code="CONV_2D", inputs=[2, 3, 4], output=5, table="Conv2DOptions",
                 options={**one, **dilation, "Padding": VALID, "FusedActivationFunction": 1}),
        Operator(code="DEPTHWISE_CONV_2D", inputs=[5, 6, 7], output=8,
                 table="DepthwiseConv2DOptions",
                 options={**one, **dilation, "Padding": SAME, "DepthMultiplier": 1}),
        Operator(code="ADD", inputs=[5, 8], output=9, table="AddOptions"),
        Operator(code="AVERAGE_POOL_2D", inputs=[9], output=10, table="Pool2DOptions",
                 options={**one, "Padding": VALID, "FilterWidth": 9, "FilterHeight": 9}),
        Operator(code="RESHAPE", inputs=[10, 11], output=12, table="ReshapeOptions"),
        Operator(code="FULLY_CONNECTED", inputs=[12, 13, 14], output=15,
                 table="FullyConnectedOptions", options={"FusedActivationFunction": 0}),
        Operator(code="SOFTMAX", inputs=[15], output=16, table="SoftmaxOptions",
                 options={"Beta": 1}),
    ]  # fmt: skip
    return tflite_bytes(tensors, operators, [0], [16])


def test_a_whole_network(archsim: Call, tmp_path: Path) -> None:
    """The operators between are ONNX Runtime's, whose averages may differ from TFLite's by one."""
    import onnx

    random = np.random.default_rng(3)
    file = tmp_path / "small.tflite"
    file.write_bytes(small_network(random))
    x = random.integers(-128, 127, (1, 9, 9, 3), endpoint=True).astype(np.int8)
    np.savez(tmp_path / "x.npz", x=np.ascontiguousarray(x.transpose(0, 3, 1, 2)))
    said = good(archsim("run", "edge-16", file, "--input", "x.npz", "-o", "out"))
    assert "ofmaps of 3 layers are the file's integers" in said
    record = json.loads((tmp_path / "out" / "result.json").read_text())
    layers = [layer for layer in record["layers"] if layer["cycles"]]
    names = ["conv1", "depthwise1", "fully_connected1"]
    assert [layer["name"] for layer in layers] == names
    assert {layer["unlike_runtime_values"] for layer in layers} == {0}
    from workloads.onnx_runtime import run_session

    model = read_tflite(file, name="small")
    kinds = {value.name: value.type.tensor_type.elem_type for value in model.graph.output}
    assert kinds == {"y": onnx.TensorProto.INT8}
    (ours,) = run_session(model, ["y"], {"x": x.transpose(0, 3, 1, 2)})
    assert np.abs(ours.astype(int) - interpreted(file, x)[0]).max() <= 1
    drawn = good(archsim("run", "edge-16", file))
    assert "of 3 layers, 3 have weights of the file; activations of 3 are drawn" in drawn


def test_bounds_that_integers_reach_stay(tmp_path: Path) -> None:
    """A ReLU6 whose output goes beyond 6 is a Clip."""
    random = np.random.default_rng(0)
    x, y = quantised(random, "x", (1, 4, 4, 2)), quantised(random, "y", (1, 4, 4, 3))
    y.scale, y.zero = 0.1, -128
    w = weights(random, (3, 1, 1, 2), 0)
    options = {"StrideW": 1, "StrideH": 1, "DilationWFactor": 1, "DilationHFactor": 1,
               "FusedActivationFunction": 3}  # fmt: skip
    operator = Operator(
        code="CONV_2D", inputs=[0, 1, 2], output=3, table="Conv2DOptions", options=options
    )
    file = tmp_path / "one.tflite"
    file.write_bytes(tflite_bytes([x, w, bias(random, x, w, 3), y], [operator], [0], [3]))
    given = random.integers(-128, 127, x.shape, endpoint=True).astype(np.int8)
    model = read_tflite(file, name="one")
    from workloads.onnx_runtime import run_session

    (ours,) = run_session(model, ["y"], {"x": given.transpose(0, 3, 1, 2)})
    made = [node.op_type for node in model.graph.node]
    assert made[-3:] == ["Conv", "Clip", "QuantizeLinear"]
    assert np.abs(ours.transpose(0, 2, 3, 1).astype(int) - interpreted(file, given)[0]).max() <= 1


def test_broken_files_are_refused_in_one_line(tmp_path: Path) -> None:
    """Cut off, or with bytes that are others: whatever is still read has the limits of a file."""
    whole = small_network(np.random.default_rng(0))
    draw = np.random.default_rng(4)
    file, refused = tmp_path / "broken.tflite", 0
    for number in range(60):
        broken = bytearray(whole)
        if number % 3:
            for place in draw.integers(0, len(whole), 1 + number % 5):
                broken[place] = draw.choice([0, 128, 255])
        else:
            broken = broken[: draw.integers(len(whole))]
        file.write_bytes(bytes(broken))
        try:
            read_tflite(file, name="broken")
        except WorkloadError as error:
            assert "\n" not in str(error)
            refused += 1
    assert refused > 20
    with pytest.raises(WorkloadError, match=r"none\.tflite: no such file; a TFLite model"):
        read_tflite(tmp_path / "none.tflite", name="none")
