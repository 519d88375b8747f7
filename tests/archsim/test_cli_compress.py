"""`archsim compress`: its figures are those of the codecs, and bad input is one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from command_line import Call, good, refused
from onnx import TensorProto, helper, numpy_helper

from archsim.codecs.boveda import BovedaFormat, footprint
from archsim.codecs.reference_codecs import CODECS
from archsim.compression import drawn, has_relu, measure, tensors_of, totals
from workloads.builtin import builtin
from workloads.layers import MatMul, Network
from workloads.operands import synthetic


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A convolution with its ReLU and one behind, with weights and an input."""
    random = np.random.default_rng(0)
    shapes = {"w1": (6, 3, 3, 3), "w2": (5, 6, 1, 1)}
    weights = [
        numpy_helper.from_array(random.standard_normal(shape).astype(np.float32), name)
        for name, shape in shapes.items()
    ]
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["a"], name="first"),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Conv", ["b", "w2"], ["y"], name="second"),
    ]
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 3, 8, 7))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        weights,
    )
    path = tmp_path / "small.onnx"
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    np.savez(tmp_path / "x.npz", x=random.standard_normal((1, 3, 8, 7)).astype(np.float32))
    return path


def record(archsim: Call, *words: object) -> dict[str, Any]:
    return json.loads(good(archsim("compress", *words, "--json")))


def test_an_array_is_counted_by_every_codec(archsim: Call) -> None:
    random = np.random.default_rng(0)
    values = random.integers(-20, 20, (5, 3, 40)).astype(np.int16)
    np.save("x.npy", values)
    for axes in (0, 1, 2):
        found = record(archsim, "x.npy", "--aligned-axes", axes, "--group", 8)
        bits = found["tensors"][0]["bits"]
        assert bits == {
            name: codec.bits(values, 8, True, axes, 8) for name, codec in CODECS.items()
        }
        assert list(found["totals"]) == ["activations"]
        assert found["totals"]["activations"]["bits"] == bits
    assert record(archsim, "x.npy", "--group", 8) == found


def test_boveda_is_counted_as_asked(archsim: Call) -> None:
    values = np.zeros((4, 64), np.int64)
    values[1:, :7] = 5
    np.save("x.npy", values)
    options = "--metadata", "same", "--zero-width", "--bits", 16
    found = record(archsim, "x.npy", *options)
    form = BovedaFormat(container_bits=16, signed=False, metadata="same", zero_width=True)
    expected = footprint(values, form, aligned_axes=1)
    assert found["tensors"][0]["boveda"] == vars(expected)
    assert found["tensors"][0]["bits"]["boveda"] == expected.total_bits
    assert not found["tensors"][0]["signed"]
    plain = CODECS["boveda"].bits(values, 16, False, 1, 16)
    assert expected.total_bits < plain


def test_real_numbers_are_quantised(archsim: Call) -> None:
    np.save("x.npy", np.array([[0.5, -1.0, 0.25, 1e-9]]))
    found = record(archsim, "x.npy", "--bits", 4)
    expected = CODECS["fpc"].bits(np.array([[4, -7, 2, 0]]), 4, True, 1, 16)
    assert found["tensors"][0]["bits"]["fpc"] == expected
    assert "real numbers quantised" in found["tensors_are"]


def test_a_model_has_its_own_values(archsim: Call, model: Path) -> None:
    found = record(archsim, model, "--input", "x.npz")
    facts = [(one["layer"], one["kind"], one["shape"], one["signed"]) for one in found["tensors"]]
    assert facts == [
        ("first", "weights", [6, 3, 3, 3], True),
        ("first", "activations", [1, 8, 7, 3], True),
        ("second", "weights", [5, 1, 1, 6], True),
        ("second", "activations", [1, 6, 5, 6], False),
    ]
    assert {one["origin"] for one in found["tensors"]} == {"real"}
    assert found["tensors_are"].startswith("all real: weights, and activations of one input")
    assert list(found["totals"]) == ["weights", "activations", "total"]
    for name in CODECS:
        parts = [one["bits"][name] for one in found["tensors"]]
        sums = {kind: total["bits"][name] for kind, total in found["totals"].items()}
        assert sums == {
            "weights": parts[0] + parts[2],
            "activations": parts[1] + parts[3],
            "total": sum(parts),
        }
    without = record(archsim, model, "--layer", "second")
    assert [one["layer"] for one in without["tensors"]] == ["second", "second"]
    assert [one["origin"] for one in without["tensors"]] == ["real", "drawn"]
    assert without["tensors_are"].startswith("weights of the model; activations drawn (normal, ")
    given = next(one for one in found["tensors"] if one["layer"] == "second")
    assert without["tensors"][0]["bits"] == given["bits"]
    drawn = record(archsim, model, "--layer", "second", "--operands", "synthetic")
    assert {one["origin"] for one in drawn["tensors"]} == {"drawn"}
    assert "none of a trained network" in drawn["tensors_are"]


def test_the_table_says_what_is_real(archsim: Call, model: Path) -> None:
    said = good(archsim("compress", model, "--input", "x.npz", "--layers", "--bits", 16))
    for word in (*CODECS, "first", "1 × 6 × 5 × 6", "containers of 16 bits", "all real"):
        assert word in said
    found = record(archsim, model, "--input", "x.npz", "--bits", 16)
    total = found["totals"]["total"]
    line = next(line for line in said.splitlines() if line.strip().startswith("fpc"))
    assert f"{total['bits']['fpc'] / total['values']:.3f}" in line
    assert f"{100 * total['bits']['fpc'] / total['bits']['raw']:.1f}" in line
    drawn_ones = good(archsim("compress", model, "--density", 0.5, "--zero-width"))
    assert "activations drawn (normal, density 0.5, seed 0)" in drawn_ones
    assert "codes of no width" in drawn_ones


def test_the_table_says_where_tails_are(archsim: Call) -> None:
    np.save("narrow.npy", np.full((50, 3), 100))
    said = good(archsim("compress", "narrow.npy"))
    assert "100 % of them in narrow.npy's activations of 3 channels" in said
    np.save("wide.npy", np.full((50, 32), 100))
    assert "tails" not in good(archsim("compress", "wide.npy"))


def test_drawn_tensors_are_those_of_a_network_with_relus() -> None:
    network = builtin("alexnet")
    assert has_relu(network)
    tensors = list(drawn(network, bits=8, density=0.3, only={"conv1", "conv2"}))
    assert [one.signed for one in tensors if one.kind == "activations"] == [True, False]
    assert [one.values.shape for one in tensors] == [
        (96, 11, 11, 3), (1, 227, 227, 3), (256, 5, 5, 48), (1, 27, 27, 96),
    ]  # fmt: skip
    for one in tensors:
        assert abs(np.count_nonzero(one.values) / one.values.size - 0.3) < 1e-3
    found = [measure(one, BovedaFormat()) for one in tensors]
    every = totals(found)["total"]
    assert every.values == sum(one.values.size for one in tensors)
    assert every.boveda.total_bits == every.bits["boveda"]
    assert every.of_raw("raw") == 1


def test_products_of_computed_operands_have_no_weights() -> None:
    layers = {
        "shared": MatMul(name="shared", m=3, n=5, k=4),
        "attention": MatMul(name="attention", m=3, n=5, k=4, batch=2, shared_weight=False),
        "again": MatMul(name="again", m=3, n=5, k=4, weight_of="shared"),
    }
    network = Network(name="three", layers=tuple(layers.values()), source="made up")
    assert not has_relu(network)
    facts = {
        name: [(one.kind, one.values.shape) for one in tensors_of(layer, synthetic(layer), "drawn")]
        for name, layer in layers.items()
    }
    assert facts == {
        "shared": [("weights", (1, 5, 4)), ("activations", (1, 3, 4))],
        "attention": [("activations", (2, 5, 4)), ("activations", (2, 3, 4))],
        "again": [("activations", (1, 3, 4))],
    }
    operands = synthetic(layers["shared"])
    weight = tensors_of(layers["shared"], operands, "drawn")[0].values
    assert (weight[0] == operands.weight[0].T).all()


def test_help_teaches(archsim: Call) -> None:
    said = good(archsim("compress", "--help"))
    assert "archsim compress squeezenet-imagenet" in said
    assert "--zero-width" in said


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("x.npy", "--bits", 5), "container_bits must be 4, 8 or 16, not 5"),
        (("x.npy", "--group", 0), "group must be positive, not 0"),
        (("x.npy", "--layer", "a"), "--layer is for networks; x.npy is one array"),
        (
            ("x.npy", "--aligned-axes", 2),
            "aligned_axes must be at most 1 of shape (2, 3), not 2",
        ),
        (
            ("x.npy", "--bits", 4),
            "values[1, 1] must fit signed containers of 4 bits, which 70 does not; "
            "signed containers of 8 bits would",
        ),
        (("absent.npy",), "absent.npy cannot be read: No such file or directory"),
        (("text.npy",), "text.npy must hold integers or real numbers, not <U1"),
        (("two.npy",), "two.npy holds several arrays; give an .npy file"),
        (("none.npy",), "none.npy must hold values, not the shape (0, 2)"),
        (
            ("alexnet", "--layer", "conv9"),
            "alexnet has no layer 'conv9'; did you mean conv5 or conv4 or conv3?",
        ),
        (
            ("alexnet", "--aligned-axes", 1),
            "--aligned-axes is for .npy files; layers have their own",
        ),
        (("alexnet", "--density", 2), "--density must be above 0 and at most 1, not 2"),
        (
            ("alexnet", "--operands", "real"),
            "alexnet has shapes only: real tensors need an ONNX file with --input FILE.npz, "
            "or a packaged network (`archsim list workloads`)",
        ),
        (
            ("squeezenet-imagenet", "--density", 0.5),
            "--density is of drawn tensors, and squeezenet-imagenet has real ones; "
            "say --operands synthetic",
        ),
    ],
)
def test_what_is_refused(archsim: Call, words: tuple[object, ...], message: str) -> None:
    np.save("x.npy", np.array([[1, -2, 3], [4, 70, 6]]))
    np.save("text.npy", np.array(["a"]))
    np.save("none.npy", np.zeros((0, 2)))
    with Path("two.npy").open("wb") as file:
        np.savez(file, a=np.zeros(2), b=np.zeros(2))
    assert refused(archsim("compress", *words)) == message


def test_a_file_that_is_no_array(archsim: Call) -> None:
    Path("x.npy").write_bytes(b"nothing")
    assert refused(archsim("compress", "x.npy")).startswith("x.npy is not an .npy file of numbers")
