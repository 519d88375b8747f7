"""What reading a network costs grows as its nodes do, whatever hangs on what."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from workloads.onnx_import import import_onnx

node = helper.make_node


def model_of(nodes: list[Any], shape: list[int], output: str, **stored: Any) -> onnx.ModelProto:
    def value(name: str, dims: Any) -> Any:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)

    kept = [numpy_helper.from_array(np.asarray(array), name) for name, array in stored.items()]
    graph = helper.make_graph(nodes, "large", [value("t0", shape)], [value(output, None)], kept)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


EYE = np.ones((8, 8), np.float32)


def chain(count: int) -> onnx.ModelProto:
    nodes = [node("MatMul", [f"t{at}", "w"], [f"t{at + 1}"], name="same") for at in range(count)]
    return model_of(nodes, [4, 8], f"t{count}", w=EYE)


def fan(count: int) -> onnx.ModelProto:
    nodes = [node("Relu", ["t0"], [f"t{at}"]) for at in range(1, count)]
    last = node("Concat", [one.output[0] for one in nodes], ["y"], axis=0)
    return model_of([*nodes, last], [1, 8], "y")


def tree(count: int) -> onnx.ModelProto:
    nodes = [node("MatMul", [f"t{at // 2}", "w"], [f"t{at}"]) for at in range(1, count)]
    return model_of(nodes, [4, 8], f"t{count - 1}", w=EYE)


def residual(count: int) -> onnx.ModelProto:
    """Every node reads the twenty before it."""
    nodes = [
        node("Sum", [f"t{one}" for one in range(max(0, at - 19), at + 1)], [f"t{at + 1}"])
        for at in range(count)
    ]
    return model_of(nodes, [1, 8], f"t{count}")


def shapes(count: int) -> onnx.ModelProto:
    """Of each, by arithmetic that inference alone does not follow, the shape of the next."""
    nodes: list[Any] = []
    for at in range(count // 6):
        nodes += [
            node("Shape", [f"t{at}"], [f"s{at}"]),
            node("ReduceProd", [f"s{at}"], [f"p{at}"], keepdims=1),
            node("Div", [f"p{at}", "two"], [f"d{at}"]),
            node("Concat", [f"d{at}", "rest"], [f"c{at}"], axis=0),
            node("Reshape", [f"t{at}", f"c{at}"], [f"r{at}"]),
            node("Relu", [f"r{at}"], [f"t{at + 1}"]),
        ]
    return model_of(nodes, [4, 8], f"t{count // 6}", two=np.array([2]), rest=np.array([-1]))


def constants(count: int) -> onnx.ModelProto:
    """A chain of them, whose last decides a shape."""
    nodes = [node("Add", [f"c{at}", "one"], [f"c{at + 1}"]) for at in range(count)]
    nodes += [
        node("NonZero", [f"c{count}"], ["places"]),
        node("Cast", ["places"], ["w"], to=TensorProto.FLOAT),
        node("MatMul", ["t0", "w"], ["y"]),
    ]
    return model_of(nodes, [4, 2], "y", c0=np.ones((64, 64), np.float32), one=np.float32(1))


def views(count: int) -> onnx.ModelProto:
    kinds = [("Identity", {}), ("Cast", {"to": TensorProto.FLOAT})]
    nodes = [
        node(kinds[at % 2][0], [f"t{at}"], [f"t{at + 1}"], **kinds[at % 2][1])
        for at in range(count)
    ]
    return model_of(nodes, [4, 8], f"t{count}")


def branches(count: int) -> onnx.ModelProto:
    nodes: list[Any] = []
    for at in range(count // 2):
        arms = [
            helper.make_graph(
                [node(kind, [f"t{at}"], ["r"])], "arm", [],
                [helper.make_tensor_value_info("r", TensorProto.FLOAT, None)],
            )
            for kind in ("Relu", "Tanh")
        ]  # fmt: skip
        nodes.append(node("If", ["c"], [f"t{at + 1}"], then_branch=arms[0], else_branch=arms[1]))
    return model_of(nodes, [4, 8], f"t{count // 2}", c=np.array(False))


def weights(count: int) -> onnx.ModelProto:
    """Each of its own; what is in them is not read."""
    rng = np.random.default_rng(0)
    stored = {f"w{at}": rng.normal(size=(64, 64)).astype(np.float32) for at in range(count)}
    nodes = [node("MatMul", [f"t{at}", f"w{at}"], [f"t{at + 1}"]) for at in range(count)]
    return model_of(nodes, [4, 64], f"t{count}", **stored)


TOPOLOGIES: dict[str, tuple[Callable[[int], onnx.ModelProto], Callable[[int], int]]] = {
    "chain": (chain, lambda count: count),
    "fan": (fan, lambda count: count),
    "tree": (tree, lambda count: count - 1),
    "residual": (residual, lambda count: count),
    "shapes": (shapes, lambda count: count // 6),
    "constants": (constants, lambda count: 1),
    "views": (views, lambda count: count // 2),
    "branches": (branches, lambda count: count // 2),
    "weights": (weights, lambda count: count),
}
"""With how many layers each has of so many nodes."""


def seconds(topology: str, count: int) -> float:
    """Processor seconds of reading it, the less of two tries."""
    make, layers = TOPOLOGIES[topology]
    model = make(count)
    found: list[float] = []
    for _ in range(2):
        begin = time.process_time()
        assert len(import_onnx(model).layers) == layers(count)
        found.append(time.process_time() - begin)
    return min(found)


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_cost_is_linear_in_nodes(topology: str) -> None:
    """Eight times the nodes take eight times as long, or less; sixty-four would be quadratic."""
    assert seconds(topology, 2400) < 20 * seconds(topology, 300)


@pytest.mark.slow
@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_ten_thousand_nodes(topology: str) -> None:
    """Well within the minute that reading and timing may take."""
    assert seconds(topology, 10_000) < 20
