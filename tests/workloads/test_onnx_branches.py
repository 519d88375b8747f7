"""An `If` whose condition is known is the arm that it takes: same results, same layers."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from workloads.errors import WorkloadError
from workloads.layers import MatMul
from workloads.onnx_import import import_onnx, trace
from workloads.onnx_runtime import run_session
from workloads.operands import from_onnx

node = helper.make_node
SIDE = 3


def value(name: str, kind: int = TensorProto.FLOAT, shape: Any = None) -> Any:
    return helper.make_tensor_value_info(name, kind, shape)


def stored(name: str, array: Any) -> Any:
    return numpy_helper.from_array(np.asarray(array), name)


class Builder:
    """Arms of random depth; `taken` counts the products that run."""

    def __init__(self, draw: Any) -> None:
        self.draw, self.taken, self.ifs = draw, 0, 0

    def condition(self, want: bool) -> tuple[list[Any], list[Any], str]:
        """Nodes, initialisers and the name of a condition, by one of several ways."""
        name = f"cond{self.ifs}"
        way = self.draw(st.sampled_from(["stored", "Constant", "shape", "arithmetic"]))
        if way == "stored":
            return [], [stored(name, np.array([want]))], name
        if way == "Constant":
            return [node("Constant", [], [name], value=stored("", np.array(want)))], [], name
        start = "x" if way == "shape" else "three"
        nodes = [node("Shape", [start], [f"{name}s"])] if way == "shape" else []
        begin = f"{name}s" if way == "shape" else start
        nodes += [
            node("ReduceSum", [begin], [f"{name}r"], keepdims=0),
            node("Cast", [f"{name}r"], [f"{name}c"], to=TensorProto.INT64),
            node("Equal", [f"{name}c", "six" if want else "three"], [name]),
        ]
        return nodes, [], name

    def body(self, source: str, depth: int, runs: bool) -> tuple[list[Any], list[Any], str]:
        """Nodes that make a tensor of `source`; names repeat from arm to arm."""
        nodes, kept = [node("MatMul", [source, "w"], [f"inner{depth}"])], []
        self.taken += runs
        last = f"inner{depth}"
        if self.draw(st.booleans()):
            kept.append(stored(f"bias{depth}", np.full(SIDE, depth + 0.5, np.float32)))
            nodes.append(node("Add", [last, f"bias{depth}"], [f"sum{depth}"]))
            last = f"sum{depth}"
        if depth:
            more, constants, last = self.branch(last, depth - 1, runs)
            nodes, kept = nodes + more, kept + constants
        return nodes, kept, last

    def branch(self, source: str, depth: int, runs: bool) -> tuple[list[Any], list[Any], str]:
        want = self.draw(st.booleans())
        self.ifs += 1
        number = self.ifs
        before, constants, condition = self.condition(want)
        arms = {}
        for which in (True, False):
            nodes, kept, last = self.body(source, depth, runs and which == want)
            own = f"result{number}"
            nodes.append(node("Relu", [last], [own]))
            arms[which] = helper.make_graph(nodes, "arm", [], [value(own)], kept)
        made = f"if{number}"
        fork = node("If", [condition], [made], name=made, then_branch=arms[True],
                    else_branch=arms[False])  # fmt: skip
        return [*before, fork], constants, made


def model_of(nodes: list[Any], constants: list[Any], outputs: list[str]) -> onnx.ModelProto:
    weight = np.random.default_rng(1).normal(size=(SIDE, SIDE)).astype(np.float32)
    graph = helper.make_graph(
        nodes,
        "branches",
        [value("x", shape=["n", SIDE])],
        [value(name) for name in outputs],
        [stored("w", weight), stored("three", np.array(3)), stored("six", np.array(6)), *constants],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@settings(max_examples=40)
@given(data=st.data())
def test_arms_compute_what_the_model_computes(data: Any) -> None:
    builder = Builder(data.draw)
    nodes, constants, last = [], [], "x"
    for _ in range(data.draw(st.integers(1, 3))):
        more, kept, last = builder.branch(last, data.draw(st.integers(0, 2)), True)
        nodes, constants = nodes + more, constants + kept
    model = model_of(nodes, constants, [last])
    traced = trace(model, dims={"n": 3})
    x = {"x": np.random.default_rng(0).normal(size=(3, SIDE)).astype(np.float32)}
    assert not any(one.op_type == "If" for one in traced.model.graph.node)
    (want,) = ReferenceEvaluator(model).run([last], x)
    (got,) = run_session(traced.model, [last], x)
    assert np.allclose(want, got, atol=1e-4)
    layers = import_onnx(model, dims={"n": 3}).matrix_layers
    assert layers == tuple(
        MatMul(name=one.name, m=3, n=SIDE, k=SIDE, relu=one.relu) for one in layers
    )
    assert len(layers) == builder.taken == len(from_onnx(model, x))


def fork(condition: str, then: Any, other: Any, outputs: tuple[str, ...] = ("y",)) -> Any:
    return node("If", [condition], list(outputs), then_branch=then, else_branch=other)


def arm(nodes: list[Any], *outputs: str) -> Any:
    return helper.make_graph(nodes, "arm", [], [value(name) for name in outputs])


def test_one_result_twice_and_a_result_of_the_graph_around() -> None:
    both = arm([node("Relu", ["x"], ["r"])], "r", "r")
    model = model_of([fork("yes", both, both, ("a", "b")), node("Add", ["a", "b"], ["y"])],
                     [stored("yes", np.array(True))], ["y"])  # fmt: skip
    assert [one.name for one in import_onnx(model, dims={"n": 3}).layers] == ["a", "y"]
    outer = arm([node("Identity", ["x"], ["o"])], "o")
    model = model_of([fork("yes", outer, both), node("Relu", ["y"], ["z"])],
                     [stored("yes", np.array(True))], ["z"])  # fmt: skip
    assert [one.name for one in import_onnx(model, dims={"n": 3}).layers] == ["z"]


def test_a_condition_that_a_run_decides_is_refused_by_name() -> None:
    nodes = [
        node("ReduceSum", ["x"], ["s"], keepdims=0),
        node("Greater", ["s", "zero"], ["positive"]),
        fork("positive", arm([node("Relu", ["x"], ["a"])], "a"),
             arm([node("MatMul", ["x", "w"], ["b"])], "b")),
    ]  # fmt: skip
    model = model_of(nodes, [stored("zero", np.float32(0))], ["y"])
    said = "the condition of If 'y' must be known before the network runs, and 'positive' is not"
    with pytest.raises(WorkloadError, match=said):
        import_onnx(model, dims={"n": 3})
    assert import_onnx(model, dims={"n": 3}, skip_unsupported=True).skipped == ("y: If",)


def test_what_the_arm_that_is_not_taken_holds_does_not_matter() -> None:
    wrong = arm([node("Det", ["x"], ["b"])], "b")
    model = model_of([fork("no", wrong, arm([node("Relu", ["x"], ["a"])], "a"))],
                     [stored("no", np.array(False))], ["y"])  # fmt: skip
    assert [one.name for one in import_onnx(model, dims={"n": 3}).layers] == ["y"]


def test_a_loop_that_reads_what_is_computed_is_no_constant() -> None:
    """Though its own inputs are constants."""
    body = helper.make_graph(
        [node("Identity", ["go"], ["on"]), node("Relu", ["x"], ["r"])],
        "body",
        [value("i", TensorProto.INT64, []), value("go", TensorProto.BOOL, [])],
        [value("on", TensorProto.BOOL, []), value("r")],
    )
    model = model_of([node("Loop", ["three", "yes"], ["y"], body=body)],
                     [stored("yes", np.array(True))], ["y"])  # fmt: skip
    with pytest.raises(WorkloadError, match="operator Loop of node 'y' is not supported"):
        import_onnx(model, dims={"n": 3})
