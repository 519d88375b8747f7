"""Quantised models with scales, zero points, weights or biases that cannot be: a line, or a run."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from onnx import helper
from quantised_models import Drawn, Kinds, Shape, model_of

from archsim import EDGE_16, simulate
from archsim.errors import InputError
from workloads.errors import WorkloadError
from workloads.onnx_import import import_onnx
from workloads.onnx_operands import ModelOperands, Request
from workloads.operands import synthetic

SCALES: list[Any] = [
    *(np.float32(value) for value in (0, -1, "nan", "inf", 1e-45, 1e38)),
    *(np.ones(shape, np.float32) for shape in (0, 3, (2, 2), (4, 1))),
    np.float64(1),
    np.int8(3),
]
ZEROS: list[Any] = [
    np.int8(1), np.uint8(3), np.zeros(0, np.uint8), np.ones(3, np.uint8), np.int32(5),
    np.float32(1), np.ones((2, 2), np.uint8), np.uint16(4),
]  # fmt: skip
WEIGHTS: list[Any] = [
    np.zeros((0, 3, 3, 3), np.int8), np.ones((4, 3, 3, 3), np.float32),
    np.ones((4, 3, 3, 3), np.int32), np.ones((4, 2, 3, 3), np.int8), np.ones(4, np.int8),
    np.full((4, 3, 3, 3), -128, np.int8), np.ones((4, 3, 3, 3), np.uint16),
]  # fmt: skip
BIASES: list[Any] = [
    np.zeros(0, np.int32), np.ones(3, np.int32), np.float32(1), np.full(4, 2**31 - 1, np.int32),
]  # fmt: skip
WRONG = {"w": WEIGHTS, "b": BIASES} | {
    f"{name}{part}": values for part, values in (("s", SCALES), ("z", ZEROS)) for name in "xwy"
}
FORMS = ("Conv", "QLinearConv", "ConvInteger", "Gemm", "MatMulInteger", "QLinearMatMul")


def drawn_model(form: str, draw: random.Random) -> tuple[Any, Any]:
    """A model with one or two wrong constants, and an input; by the form of its operator."""
    kinds = Kinds(
        per_filter=draw.random() < 0.5, bias=draw.random() < 0.5, relu=draw.random() < 0.3
    )
    seed = draw.randrange(1000)
    if "Conv" in form:
        drawn = Drawn((Shape().ifmap, Shape().weight), kinds, seed=seed, taps=27)
    else:
        drawn = Drawn(((3, 5), (5, 4)), kinds, seed=seed, filter_axis=1, taps=5)
    for _ in range(draw.choice([1, 1, 2])):
        name = draw.choice(list(WRONG))
        drawn.arrays[name] = draw.choice(WRONG[name])
    node = helper.make_node
    pads: dict[str, Any] = {"pads": [1] * 4} if "Conv" in form else {}
    bias = ["b"] if kinds.bias else []
    if form in ("Conv", "Gemm"):
        axis = draw.choice([0, 0, 1, 7, -9])
        nodes = [
            node("QuantizeLinear", ["x", "xs", "xz"], ["xq"]),
            node("DequantizeLinear", ["xq", "xs", "xz"], ["xf"]),
            node("DequantizeLinear", ["w", "ws", "wz"], ["wf"], axis=axis),
            *([node("DequantizeLinear", ["b", "bs", "bz"], ["bf"], axis=0)] if bias else []),
            node(form, ["xf", "wf", *(["bf"] if bias else [])], ["c"], name="layer", **pads),
            node("QuantizeLinear", ["c", "ys", "yz"], ["y"]),
        ]
        return model_of(nodes, drawn), np.ones(drawn.shapes[0], np.float32)
    names = {
        "QLinearConv": ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz", *bias],
        "QLinearMatMul": ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz"],
    }.get(form, ["x", "w", "xz", "wz"])
    return model_of([node(form, names, ["y"], name="layer", **pads)], drawn), drawn.input


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("with_input", [False, True])
def test_wrong_constants_are_refused_in_one_line(form: str, with_input: bool) -> None:
    draw = random.Random(f"{form} {with_input}")
    refused = 0
    for _ in range(15):
        model, x = drawn_model(form, draw)
        try:
            network = import_onnx(model)
            inputs = {"x": x} if with_input else None
            operands = ModelOperands(model, inputs, Request(draw=synthetic))
            simulate(EDGE_16, network, operands=operands)
        except (InputError, WorkloadError) as error:
            assert "\n" not in str(error)
            assert len(str(error)) < 600
            refused += 1
    assert refused > 2


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("ws", np.float32(0), "layer: scales must be positive and finite, not 0"),
        ("ys", np.float32("nan"), "layer: scales must be positive and finite, not nan"),
        ("yz", np.ones(3, np.uint8),
         r"the zero point of activations must be one number, not of the shape \(3,\)"),
        ("b", np.ones(3, np.int32), r"the bias must have 4 elements, not the shape \(3,\)"),
    ],
)  # fmt: skip
def test_what_is_said(name: str, value: Any, message: str) -> None:
    drawn = Drawn((Shape().ifmap, Shape().weight), Kinds(per_filter=False), seed=0, taps=27)
    drawn.arrays[name] = value
    names = ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz", "b"]
    model = model_of([helper.make_node("QLinearConv", names, ["y"], name="layer")], drawn)
    source = ModelOperands(model, None, Request(draw=synthetic))
    with pytest.raises(WorkloadError, match=message):
        source(source.layers[0])
