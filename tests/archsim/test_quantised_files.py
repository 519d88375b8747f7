"""Layers of quantised ONNX models make ONNX Runtime's integers, operator by operator."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper
from quantised_models import Drawn, Kinds, Shape, model_of, runtime

from archsim import EDGE_16, simulate
from archsim.errors import InputError
from archsim.machine.design import Design
from archsim.machines.scnn.design import SCNN_ISCA17
from archsim.machines.systolic.design import Systolic
from archsim.machines.tensorcore.design import VOLTA as VOLTA_FLOATS
from archsim.machines.vsq.design import VSQ_5NM
from archsim.result import AsFile, LayerResult
from archsim.tiled.file_numerics import core_operands
from archsim.tiled.layer_values import layer_words
from archsim.tiled.numerics import TiledLayer
from archsim.tiled.timing import layer_output
from archsim.tiled.walk import walk
from workloads.onnx_import import import_onnx
from workloads.operands import from_onnx
from workloads.reference import accumulate, compute

node = helper.make_node
SHAPES = [
    Shape(),
    Shape(kernel=(1, 1), pads=(0, 0, 0, 0), filters=1),
    Shape(kernel=(1, 1), pads=(0, 0, 0, 0), strides=(2, 2), depth=17, filters=13),
    Shape(groups=5, depth=1, filters=1, strides=(2, 1)),
    Shape(groups=2, depth=3, filters=2, batch=2),
    Shape(pads=(0, 2, 1, 0), kernel=(2, 3), plane=(11, 7)),
    Shape(dilations=(2, 2), pads=(2, 2, 2, 2), plane=(5, 5)),
    Shape(plane=(1, 9), kernel=(1, 4), pads=(0, 3, 0, 0), batch=2),
    Shape(filters=31, depth=23, plane=(3, 3), pads=(0, 0, 0, 0)),
]
PLAIN = [
    Kinds(x=x, w=w, y=y, per_filter=per_filter)
    for x, w, y in (
        ("uint8", "int8", "uint8"),
        ("uint8", "uint8", "uint8"),
        ("int8", "int8", "int8"),
    )
    for per_filter in (False, True)
]


def as_quantisers_do(kinds: Kinds, bias: bool, relu: bool) -> Kinds:
    """Behind a ReLU nothing is below zero, so that zero is the type's smallest integer."""
    least = int(np.iinfo(kinds.y).min) if relu else None
    return replace(kinds, bias=bias, relu=relu, zero_y=least)


DRAWS = st.builds(as_quantisers_do, st.sampled_from(PLAIN), st.booleans(), st.booleans())
MATRICES = st.tuples(
    *(st.sampled_from([1, 2, 3, 7, 16, 17, 31]) for _ in "mnk"), st.integers(0, 99)
)


def ran(model: onnx.ModelProto, x: Any, design: Design = EDGE_16) -> LayerResult:
    """The result of the model's only matrix layer."""
    operands = from_onnx(model, {"x": x}, bits=design.intake.source_bits)
    found = simulate(design, import_onnx(model), operands=operands).layers
    (layer,) = [one for one in found if one.ofmap is not None]
    return layer


def of_file(layer: LayerResult) -> AsFile:
    """What it says of the file's integers."""
    assert layer.as_file is not None
    return layer.as_file


def check(model: onnx.ModelProto, x: Any, design: Design = EDGE_16) -> LayerResult:
    """The layer's integers are those of ONNX Runtime's kernels of integers, type and all.

    By default it may choose floats instead, also with regard to the tensors that it has to show.
    """
    wanted = runtime(model, {"x": x}, integers=True)
    default = runtime(model, {"x": x})
    layer = ran(model, x, design)
    assert layer.ofmap is not None
    assert layer.ofmap.dtype == wanted.dtype
    assert np.array_equal(layer.ofmap.reshape(wanted.shape), wanted)
    assert of_file(layer).unlike_runtime in (0, np.count_nonzero(default != wanted))
    assert np.abs(default.astype(int) - wanted).max() <= 1
    assert (layer.weight_origin, layer.ifmap_origin) == ("file", "input")
    return layer


def dequantize(source: str, name: str, output: str, **attributes: Any) -> Any:
    return node("DequantizeLinear", [source, f"{name}s", f"{name}z"], [output], **attributes)


def convolution(shape: Shape, kinds: Kinds, seed: int) -> tuple[Drawn, list[str]]:
    taps = shape.depth * shape.kernel[0] * shape.kernel[1]
    drawn = Drawn((shape.ifmap, shape.weight), kinds, seed=seed, taps=taps)
    return drawn, ["b"] if kinds.bias else []


def qdq(operator: str, drawn: Drawn, bias: list[str], **attributes: Any) -> onnx.ModelProto:
    """x, of floats, between QuantizeLinear and DequantizeLinear; then operator, Relu, and again."""
    axis = attributes.pop("filter_axis", 0)
    nodes = [
        node("QuantizeLinear", ["x", "xs", "xz"], ["xq"]),
        dequantize("xq", "x", "xf"),
        dequantize("w", "w", "wf", axis=axis),
        *([dequantize("b", "b", "bf", axis=0)] if bias else []),
        node(operator, ["xf", "wf", *(["bf"] if bias else [])], ["c"], name="layer", **attributes),
        *([node("Relu", ["c"], ["r"])] if drawn.kinds.relu else []),
        node("QuantizeLinear", ["r" if drawn.kinds.relu else "c", "ys", "yz"], ["y"]),
    ]
    return model_of(nodes, drawn)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@settings(max_examples=6, deadline=None)
@given(kinds=DRAWS, seed=st.integers(0, 999))
def test_convolutions(shape: Shape, kinds: Kinds, seed: int) -> None:
    """The same layer between QuantizeLinear and DequantizeLinear, as QLinearConv, ConvInteger."""
    drawn, bias = convolution(shape, kinds, seed)
    x = drawn.input
    names = ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz", *bias]
    linear = node("QLinearConv", names, ["y"], name="layer", **shape.attributes)
    whole = check(model_of([linear], drawn), x)
    between = check(qdq("Conv", drawn, bias, **shape.attributes), drawn.real(x))
    assert between.as_file and whole.as_file
    drawn.arrays["wz"] = drawn.arrays["wz"].reshape(-1)[0]
    sums = node("ConvInteger", ["x", "w", "xz", "wz"], ["y"], name="layer", **shape.attributes)
    layer = check(model_of([sums], drawn), x)
    assert of_file(layer).differing is None and "sums that leave whole" in of_file(layer).lacks


@settings(max_examples=40, deadline=None)
@given(kinds=DRAWS, sizes=MATRICES, transposed=st.booleans())
def test_fully_connected_layers(
    kinds: Kinds, sizes: tuple[int, int, int, int], transposed: bool
) -> None:
    m, n, k, seed = sizes
    shape = (n, k) if transposed else (k, n)
    drawn = Drawn(((m, k), shape), kinds, seed=seed, filter_axis=int(not transposed), taps=k)
    bias = ["b"] if kinds.bias else []
    form = {"transB": int(transposed), "filter_axis": int(not transposed)}
    x = drawn.input
    check(qdq("Gemm", drawn, bias, **form), drawn.real(x))
    names = ["x", "xs", "xz", "w", "ws", "wz", bias[0] if bias else "", "ys", "yz"]
    gemm = node("QGemm", names, ["y"], name="layer", domain="com.microsoft",
                transB=int(transposed))  # fmt: skip
    check(model_of([gemm], drawn), x)


@settings(max_examples=40, deadline=None)
@given(kinds=DRAWS, sizes=MATRICES, batch=st.sampled_from([(), (1,), (2,), (2, 3)]))
def test_products(kinds: Kinds, sizes: tuple[int, int, int, int], batch: tuple[int, ...]) -> None:
    m, n, k, seed = sizes
    drawn = Drawn(((*batch, m, k), (k, n)), kinds, seed=seed, filter_axis=1, taps=k)
    x = drawn.input
    check(qdq("MatMul", drawn, [], filter_axis=1), drawn.real(x))
    names = ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz"]
    check(model_of([node("QLinearMatMul", names, ["y"], name="layer")], drawn), x)
    sums = node("MatMulInteger", ["x", "w", "xz", "wz"], ["y"], name="layer")
    check(model_of([sums], drawn), x)


def test_a_relu_ends_at_the_zero_point() -> None:
    """Which need not be the type's end; ONNX Runtime computes such layers in floats."""
    drawn, bias = convolution(Shape(), Kinds(relu=True, zero_y=90), seed=8)
    model = qdq("Conv", drawn, bias, **Shape().attributes)
    x = drawn.real(drawn.input)
    layer, wanted = ran(model, x), runtime(model, {"x": x})
    assert layer.ofmap is not None
    assert layer.ofmap.min() == wanted.min() == 90
    assert np.abs(layer.ofmap.astype(int) - wanted).max() <= 1
    assert of_file(layer).unlike_runtime == np.count_nonzero(layer.ofmap != wanted)
    (network_layer,) = import_onnx(model).matrix_layers
    (plain,) = from_onnx(model, {"x": x}).values()
    assert np.array_equal(compute(network_layer, plain), layer.ofmap)


def test_integers_between_are_no_layers() -> None:
    """Those of a layer's result, and those that layers alone read; others are work."""
    drawn, bias = convolution(Shape(), Kinds(relu=True), seed=8)
    made = [layer.name for layer in import_onnx(qdq("Conv", drawn, bias)).layers]
    assert made == ["xq", "layer"]
    shared = qdq("Conv", drawn, bias)
    shared.graph.node.append(node("Sigmoid", ["xf"], ["other"]))
    shared.graph.node.append(node("Sigmoid", ["r"], ["more"]))
    made = [layer.name for layer in import_onnx(shared).layers]
    assert made == ["xq", "xf", "layer", "y", "other", "more"]


@pytest.mark.parametrize("zeros", [(0, 255), (255, 0), (128, 128), (0, 0)])
def test_sums_are_exact_at_the_ends_of_the_types(zeros: tuple[int, int]) -> None:
    """Compared with plain NumPy: kernels of some CPUs are not."""
    drawn = Drawn(((2, 400), (400, 3)), Kinds(w="uint8", per_filter=False), seed=1, filter_axis=1)
    drawn.arrays["w"] = np.where(drawn.random.random((400, 3)) < 0.02, 0, 255).astype(np.uint8)
    drawn.arrays |= {"xz": np.uint8(zeros[0]), "wz": np.uint8(zeros[1])}
    x = np.where(drawn.random.random((2, 400)) < 0.02, 0, 255).astype(np.uint8)
    sums = node("MatMulInteger", ["x", "w", "xz", "wz"], ["y"], name="layer")
    model = model_of([sums], drawn)
    (layer,) = import_onnx(model).matrix_layers
    wanted = accumulate(
        layer, x[None].astype(int) - zeros[0], drawn.arrays["w"][None].astype(int) - zeros[1]
    )
    found = ran(model, x).ofmap
    assert found is not None
    assert np.array_equal(found, wanted)


def test_two_computed_operands_are_both_the_inputs() -> None:
    """Attention's product: neither operand is a weight, both are integers of the run."""
    drawn = Drawn(((2, 5, 7), (7, 1)), Kinds(per_filter=False), seed=4, taps=7)
    nodes = [
        dequantize("x", "x", "xf"),
        node("Transpose", ["xf"], ["t"], perm=[0, 2, 1]),
        node("MatMul", ["xf", "t"], ["c"], name="layer"),
        node("QuantizeLinear", ["c", "ys", "yz"], ["y"]),
    ]
    drawn.arrays["ys"] = np.float32(2.0)
    model = model_of(nodes, drawn)
    x = drawn.input
    wanted = runtime(model, {"x": x})
    layer = ran(model, x)
    assert layer.ofmap is not None
    assert (layer.weight_origin, layer.ifmap_origin) == ("input", "input")
    assert np.abs(layer.ofmap.astype(int) - wanted).max() <= 1
    assert of_file(layer).unlike_runtime == np.count_nonzero(layer.ofmap != wanted) <= 1


# What the core's own rule makes of them


def test_the_core_counts_what_it_rounds_otherwise() -> None:
    """Against its rule in plain whole numbers, filter by filter."""
    drawn, _ = convolution(Shape(filters=16, plane=(31, 31)), Kinds(), seed=3)
    names = ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz", "b"]
    model = model_of([node("QLinearConv", names, ["y"], pads=[1] * 4, name="layer")], drawn)
    x = drawn.input
    layer = ran(model, x)
    (shape,) = import_onnx(model).matrix_layers
    c = drawn.arrays
    sums = accumulate(shape, x.astype(int) - int(c["xz"]), c["w"].astype(int))
    sums += c["b"][None, :, None, None]
    ratios = [float(c["xs"] * one / c["ys"]) for one in c["ws"]]
    shift = next(s for s in range(47, -1, -1) if round(max(ratios) * 2.0**s) < 1 << 16)
    made = np.empty(sums.shape, int)
    for k, ratio in enumerate(ratios):
        multiplier = round(ratio * 2.0**shift)
        fold = round((int(c["yz"]) - 128) * 2**shift / multiplier)
        for at, total in np.ndenumerate(sums[0, k]):
            made[0, k][at] = ((int(total) + fold) * multiplier + (1 << shift >> 1)) >> shift
    made = np.clip(made + 128, 0, 255)
    assert layer.ofmap is not None
    assert of_file(layer).differing == np.count_nonzero(made != layer.ofmap) > 0
    assert np.abs(made - layer.ofmap).max() == 1
    assert of_file(layer).lacks == ("padding with the zero point", "a multiplier a filter")


@pytest.mark.parametrize(
    ("kinds", "shape", "lacks"),
    [
        (Kinds(x="int8", y="int8", per_filter=False, zero_x=0, zero_y=0), Shape(), ()),
        (Kinds(x="uint8", per_filter=False, zero_x=128, zero_y=7), Shape(), ()),
        (Kinds(x="uint8", per_filter=False, zero_x=0), Shape(pads=(0, 0, 0, 0)), ()),
        (Kinds(x="uint8", per_filter=False, zero_x=0), Shape(), ("padding with the zero point",)),
        (Kinds(zero_x=128), Shape(), ("a multiplier a filter",)),
        (Kinds(per_filter=False, zero_x=128, zero_y=9, bias=False), Shape(),
         ("a bias for the zero points",)),
        (Kinds(per_filter=False, zero_x=128, zero_y=9, relu=True), Shape(),
         ("a ReLU at the zero point",)),
    ],
)  # fmt: skip
def test_what_a_core_lacks(kinds: Kinds, shape: Shape, lacks: tuple[str, ...]) -> None:
    drawn, bias = convolution(shape, kinds, seed=2)
    model = qdq("Conv", drawn, bias, **shape.attributes)
    assert of_file(ran(model, drawn.real(drawn.input))).lacks == lacks


def test_a_wider_core_takes_them_less_their_zero_points() -> None:
    """So that nothing is padded otherwise; only saturation, and scales, are the file's."""
    drawn, bias = convolution(Shape(), Kinds(zero_x=3, per_filter=False), seed=5)
    model = qdq("Conv", drawn, bias, **Shape().attributes)
    wide = replace(EDGE_16, operand_bits=16, accumulator_bits=40)
    layer = check(model, drawn.real(drawn.input), wide)
    assert of_file(layer).lacks == ("saturation to 8 bits",)


def test_a_narrower_core_has_them_quantised_again() -> None:
    drawn, bias = convolution(Shape(), Kinds(), seed=5)
    model = qdq("Conv", drawn, bias, **Shape().attributes)
    layer = ran(model, drawn.real(drawn.input), Systolic(operand_bits=4))
    assert not layer.as_file
    assert layer.operands.endswith("4 bits, a file's integers quantised again")
    operands = from_onnx(model, {"x": drawn.real(drawn.input)})["layer"]
    with pytest.raises(InputError, match="layer: ifmap must fit 4 bits"):
        layer_output(Systolic(operand_bits=4), import_onnx(model).matrix_layers[0], operands)


@pytest.mark.parametrize(
    ("kinds", "shape"),
    [
        (Kinds(x="int8", y="int8", per_filter=False, zero_x=0, zero_y=0, relu=True), Shape()),
        (Kinds(x="uint8", per_filter=False, zero_x=128, zero_y=7), Shape(groups=2)),
        (Kinds(x="uint8", per_filter=False, zero_x=9), Shape(pads=(0, 0, 0, 0), batch=2)),
    ],
)
def test_words_of_a_file_on_a_core(kinds: Kinds, shape: Shape) -> None:
    """Where a core lacks nothing its words make what the count says, zero points in the bias."""
    drawn, bias = convolution(shape, kinds, seed=11)
    model = qdq("Conv", drawn, bias, **shape.attributes)
    x = drawn.real(drawn.input)
    found, operands = ran(model, x), from_onnx(model, {"x": x})["layer"]
    assert of_file(found).lacks == () and found.ofmap is not None and found.tiling is not None
    (layer,) = import_onnx(model).matrix_layers
    plain = core_operands(layer, operands)
    assert plain.file is None
    made = layer_output(EDGE_16, layer, plain).astype(int) + (128 if kinds.y == "uint8" else 0)
    assert np.count_nonzero(made != found.ofmap) == of_file(found).differing
    numerics = EDGE_16.numerics
    problem = numerics.problem(layer)
    tiles = walk(problem.vector(), found.tiling.vector(), EDGE_16.machine)
    tiled = TiledLayer(layer=layer, problem=problem, tiling=found.tiling, tiles=tiles)
    for name, words in layer_words(EDGE_16, tiled, operands).items():
        assert np.array_equal(words, layer_words(EDGE_16, tiled, plain)[name])


def test_there_are_no_words_for_what_a_core_lacks() -> None:
    drawn, bias = convolution(Shape(), Kinds(zero_x=0), seed=1)
    model = qdq("Conv", drawn, bias, **Shape().attributes)
    operands = from_onnx(model, {"x": drawn.real(drawn.input)})["layer"]
    (layer,) = import_onnx(model).matrix_layers
    lacks = "padding with the zero point, a multiplier a filter"
    with pytest.raises(InputError, match=f"^layer: no words make .* lacks {lacks};"):
        core_operands(layer, operands)
    for design in (VOLTA_FLOATS, VSQ_5NM):
        with pytest.raises(InputError, match=r"^layer: operands must be quantised per tensor"):
            layer_output(design, layer, operands)
    with pytest.raises(InputError, match=r"^layer: operands must be quantised per tensor"):
        simulate(SCNN_ISCA17, import_onnx(model), operands={"layer": operands})
