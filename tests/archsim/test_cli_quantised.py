"""A whole network, quantised by ONNX Runtime's own tools, as `archsim run` shows and saves it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from command_line import Call, good
from onnx import TensorProto, helper, numpy_helper
from quantised_models import runtime

from archsim import EDGE_16, simulate
from archsim.report import report_html
from workloads.onnx_import import import_onnx, trace
from workloads.onnx_matrix import is_matrix, ofmap_of
from workloads.onnx_operands import ModelOperands, Request
from workloads.operands import from_onnx, synthetic
from workloads.reference import compute

os.environ.setdefault("TQDM_DISABLE", "1")
quantization: Any = pytest.importorskip("onnxruntime.quantization")
FORMS = ("qdq", "qdq-uint8", "qdq-symmetric", "operators", "dynamic")
MATRIX = 5


def small_network() -> onnx.ModelProto:
    """Convolutions (depthwise, strided, pointwise), an addition, pools, Gemm and MatMul."""
    random = np.random.default_rng(7)
    shapes = {
        "w1": (8, 3, 3, 3), "b1": (8,), "w2": (8, 1, 3, 3), "b2": (8,), "w3": (8, 8, 1, 1),
        "b3": (8,), "w4": (10, 8), "b4": (10,), "w5": (10, 6),
    }  # fmt: skip
    node = helper.make_node
    nodes = [
        node("Conv", ["x", "w1", "b1"], ["c1"], name="first", pads=[1, 1, 1, 1]),
        node("Relu", ["c1"], ["r1"], name="relu"),
        node("Conv", ["r1", "w2", "b2"], ["c2"], name="depthwise", group=8, strides=[2, 2],
             pads=[0, 1, 1, 0]),
        node("Conv", ["c2", "w3", "b3"], ["c3"], name="pointwise"),
        node("Add", ["c3", "c2"], ["a"], name="add"),
        node("MaxPool", ["a"], ["m"], name="pool", kernel_shape=[2, 2], strides=[2, 2]),
        node("GlobalAveragePool", ["m"], ["g"], name="mean"),
        node("Flatten", ["g"], ["f"], name="flat"),
        node("Gemm", ["f", "w4", "b4"], ["d"], name="dense", transB=1),
        node("MatMul", ["d", "w5"], ["y"], name="last"),
    ]  # fmt: skip
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3, 12, 12])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 6])],
        [
            numpy_helper.from_array((random.normal(size=shape) * 0.3).astype(np.float32), name)
            for name, shape in shapes.items()
        ],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def images(count: int) -> Iterator[dict[str, Any]]:
    random = np.random.default_rng(8)
    for _ in range(count):
        yield {"x": random.normal(size=(1, 3, 12, 12)).astype(np.float32)}


class Calibration(quantization.CalibrationDataReader):
    """Four images."""

    def __init__(self) -> None:
        self._images = images(4)

    def get_next(self) -> dict[str, Any] | None:
        return next(self._images, None)


@pytest.fixture(scope="module")
def quantised(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The network in every form; weights of 7 bits, with which all processors' kernels agree."""
    folder = tmp_path_factory.mktemp("quantised")
    onnx.save(small_network(), folder / "float.onnx")
    kinds, forms = quantization.QuantType, quantization.QuantFormat
    settings: dict[str, dict[str, Any]] = {
        "qdq": {"per_channel": True, "activation_type": kinds.QUInt8},
        "qdq-uint8": {"activation_type": kinds.QUInt8, "weight_type": kinds.QUInt8},
        "qdq-symmetric": {
            "per_channel": True,
            "activation_type": kinds.QInt8,
            "extra_options": {"ActivationSymmetric": True, "WeightSymmetric": True},
        },
        "operators": {"per_channel": True, "quant_format": forms.QOperator},
    }
    paths = {name: folder / f"{name}.onnx" for name in FORMS}
    for name, chosen in settings.items():
        quantization.quantize_static(
            folder / "float.onnx", paths[name], Calibration(), reduce_range=True, **chosen
        )
    quantization.quantize_dynamic(
        folder / "float.onnx", paths["dynamic"], per_channel=True, reduce_range=True
    )
    return paths


def integers_of(path: Path, x: Any) -> dict[str, Any]:
    """What ONNX Runtime makes of every matrix layer, before or as its integers leave it."""
    traced = trace(path, dims={"N": len(x)})
    names = {
        layers[0].name: ofmap_of(traced.graph, node).tensor
        for node, layers in traced.steps
        if is_matrix(node)
    }
    return dict(zip(names, runtime(onnx.load(path), {"x": x}, list(names.values())), strict=True))


@pytest.mark.parametrize("form", FORMS)
def test_all_layers_are_onnx_runtimes(
    archsim: Call, quantised: dict[str, Path], form: str, tmp_path: Path
) -> None:
    x = np.concatenate([one["x"] for one in images(2)])
    np.savez(tmp_path / "x.npz", x=x)
    words = ("run", "edge-16", quantised[form], "--dim", "N=2", "--input", "x.npz", "-o", "out")
    said = good(archsim(*words))
    wanted = integers_of(quantised[form], x)
    assert len(wanted) == MATRIX
    with np.load(tmp_path / "out" / "ofmaps.npz") as found:
        assert set(found.files) == set(wanted)
        for name, integers in wanted.items():
            assert found[name].dtype == integers.dtype
            assert np.array_equal(found[name].reshape(integers.shape), integers), name
    record = json.loads((tmp_path / "out" / "result.json").read_text())
    layers = [layer for layer in record["layers"] if layer["cycles"]]
    assert [layer["ofmap_values"] for layer in layers] == [one.size for one in wanted.values()]
    assert {layer["unlike_runtime_values"] for layer in layers} == {0}
    assert {(one["weight_origin"], one["ifmap_origin"]) for one in layers} == {("file", "input")}
    total = sum(one.size for one in wanted.values())
    assert f"ONNX Runtime made 0 of {total:,} (0 %) otherwise" in said
    if form == "dynamic":
        assert {layer["differing_values"] for layer in layers} == {None}
        assert "sums that leave whole (5)" in said
        return
    differing = sum(layer["differing_values"] for layer in layers)
    assert differing < 0.01 * total
    assert f"makes {differing:,} of {total:,}" in said
    assert "differ" in said.splitlines()[2]
    assert ("a multiplier a filter (5)" in said) == (form != "qdq-uint8")


def test_without_an_input_weights_are_the_files_and_all_places_say_so(
    archsim: Call, quantised: dict[str, Path], tmp_path: Path
) -> None:
    words = ("run", "edge-16", quantised["qdq"], "--dim", "N=1", "--density", 0.5)
    said = good(archsim(*words, "--seed", 3, "-o", "out", "--report", "page.html"))
    note = "of 5 layers, 5 have weights of the file; activations of 5 are drawn"
    assert note in said
    assert note in (tmp_path / "page.html").read_text()
    record = json.loads((tmp_path / "out" / "result.json").read_text())
    layers = [layer for layer in record["layers"] if layer["cycles"]]
    assert {(one["weight_origin"], one["ifmap_origin"]) for one in layers} == {("file", "drawn")}
    assert {one["unlike_runtime_values"] for one in layers} == {None}
    request = Request(draw=lambda one: synthetic(one, density=0.5, seed=3), dims={"N": 1})
    source = ModelOperands(quantised["qdq"], None, request)
    given = from_onnx(quantised["qdq"], next(images(1)))
    with np.load(tmp_path / "out" / "ofmaps.npz") as found:
        for layer in source.layers:
            operands = source(layer)
            assert np.array_equal(operands.weight, given[layer.name].weight)
            assert np.array_equal(found[layer.name], compute(layer, operands))
            assert operands.file is not None
            zeros = np.count_nonzero(operands.ifmap == operands.file.ifmap_zero)
            assert zeros == operands.ifmap.size - round(operands.ifmap.size / 2)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("design", ["volta", "vsq-5nm", "scnn"])
def test_cores_of_other_numbers_have_them_quantised_again(
    archsim: Call, quantised: dict[str, Path], form: str, design: str, tmp_path: Path
) -> None:
    """And say so; what they compute is near what ONNX Runtime does."""
    words = ("run", design, quantised[form], "--dim", "N=1", "--json")
    if design == "scnn":
        words += ("--density", "0.4")
    record = json.loads(good(archsim(*words)))
    layers = [layer for layer in record["layers"] if layer["cycles"]]
    assert len(layers) == MATRIX
    for layer in layers:
        assert (layer["weight_origin"], layer["ifmap_origin"]) == ("file", "drawn")
        assert "a file's integers quantised again" in layer["operands"]


def test_real_numbers_of_a_quantised_model_are_its_own(quantised: dict[str, Path]) -> None:
    """Taken as floats of 16 bits, operands stand for what the integers do."""
    x = next(images(1))
    whole = from_onnx(quantised["qdq"], x)
    again = from_onnx(quantised["qdq"], x, bits=16, as_file=False)
    network = import_onnx(quantised["qdq"], dims={"N": 1})
    result = simulate(EDGE_16, network, operands=whole)
    for layer in network.matrix_layers:
        one, other = whole[layer.name], again[layer.name]
        assert one.file is not None and other.file is None
        real = (one.ifmap.astype(int) - one.file.ifmap_zero) * one.ifmap_scale
        assert np.abs(real - other.ifmap * other.ifmap_scale).max() <= other.ifmap_scale
        ofmap = compute(layer, other, bits=16) * other.ofmap_scale
        integers = next(each.ofmap for each in result.layers if each.name == layer.name)
        assert integers is not None
        mine = (integers.astype(int) - one.file.zero) * one.ofmap_scale
        inside = (integers > one.file.kind.low) & (integers < one.file.kind.high)
        assert np.abs(mine - ofmap)[inside].max() <= 0.52 * one.ofmap_scale
    assert "operands" in report_html(result)
