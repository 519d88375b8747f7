"""The weights of an ONNX file are its own, however it has them; activations are drawn without an
input."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from workloads.errors import WorkloadError
from workloads.onnx_graph import Graph
from workloads.onnx_import import import_onnx
from workloads.onnx_operands import ModelOperands, Request
from workloads.onnx_runtime import capture
from workloads.operands import Operands, from_onnx, synthetic
from workloads.reference import compute

node = helper.make_node
WEIGHT = np.random.default_rng(3).normal(size=(6, 4)).astype(np.float32)
"""[K, N] of every model here."""

Source = tuple[list[Any], dict[str, Any]]


def constant(**value: Any) -> Source:
    return [node("Constant", [], ["w"], **value)], {}


def moved(operator: str, stored: Any, **attributes: Any) -> Source:
    return [node(operator, ["s"], ["w"], **attributes)], {"s": stored}


def quantised() -> Source:
    """Integers with a scale a column, behind a transposition and a cut."""
    scale = (np.abs(WEIGHT).max(axis=0) / 127).astype(np.float32)
    whole = np.rint(WEIGHT / scale).astype(np.int8)
    nodes = [
        node("DequantizeLinear", ["q", "qs"], ["d"], axis=0),
        node("Transpose", ["d"], ["t"], perm=[1, 0]),
        node("Slice", ["t", "from", "to"], ["w"]),
    ]
    stored = np.concatenate([whole.T, whole.T], axis=1)
    return nodes, {"q": stored, "qs": scale, "from": np.array([0, 0]), "to": np.array([6, 4])}


def split() -> Source:
    return [
        node("Split", ["s"], ["a", "w"], axis=0, num_outputs=2),
    ], {"s": np.concatenate([np.ones_like(WEIGHT), WEIGHT])}


def halves() -> Source:
    nodes = [
        node("Cast", ["s"], ["f"], to=TensorProto.FLOAT),
        node("Mul", ["f", "two"], ["m"]),
        node("Identity", ["m"], ["i"]),
        node("Add", ["i", "rest"], ["w"]),
    ]
    half = (WEIGHT / 2).astype(np.float16)
    rest = WEIGHT - 2 * half.astype(np.float32)
    return nodes, {"s": half, "two": np.float32(2), "rest": rest}


def sparse() -> Source:
    values = numpy_helper.from_array(WEIGHT.reshape(-1), "values")
    places = numpy_helper.from_array(np.arange(WEIGHT.size), "places")
    return [
        node("Constant", [], ["w"],
             sparse_value=helper.make_sparse_tensor(values, places, WEIGHT.shape)),
    ], {}  # fmt: skip


def as_sparse_initializer() -> onnx.ModelProto:
    """With two indices a value."""
    model = model_of(([], {}))
    places = np.argwhere(np.ones_like(WEIGHT))
    model.graph.sparse_initializer.append(
        helper.make_sparse_tensor(
            numpy_helper.from_array(WEIGHT.reshape(-1), "w"),
            numpy_helper.from_array(places, "places"),
            WEIGHT.shape,
        )
    )
    return model


SOURCES: dict[str, Callable[[], Source]] = {
    "initializer": lambda: ([], {"w": WEIGHT}),
    "Constant": lambda: constant(value=numpy_helper.from_array(WEIGHT)),
    "Constant of floats": lambda: (
        [node("Constant", [], ["l"], value_floats=WEIGHT.reshape(-1).tolist()),
         node("Reshape", ["l", "shape"], ["w"])],
        {"shape": np.array([6, -1])},
    ),
    "sparse Constant": sparse,
    "Transpose": lambda: moved("Transpose", np.ascontiguousarray(WEIGHT.T)),
    "Reshape": lambda: ([node("Reshape", ["s", "shape"], ["w"])],
                        {"s": WEIGHT.reshape(2, 12), "shape": np.array([6, 4])}),
    "Squeeze": lambda: ([node("Squeeze", ["s", "axes"], ["w"])],
                        {"s": WEIGHT[None], "axes": np.array([0])}),
    "Concat": lambda: ([node("Concat", ["s", "t"], ["w"], axis=1)],
                       {"s": WEIGHT[:, :1], "t": WEIGHT[:, 1:]}),
    "Gather": lambda: ([node("Gather", ["s", "at"], ["w"], axis=0)],
                       {"s": WEIGHT[::-1].copy(), "at": np.arange(6)[::-1].copy()}),
    "Split": split,
    "Cast and arithmetic": halves,
    "DequantizeLinear": quantised,
}  # fmt: skip


def model_of(source: Source, *, form: str = "MatMul", opset: int = 18) -> onnx.ModelProto:
    """y = x · w, with w from `source`."""
    nodes, stored = source
    graph = helper.make_graph(
        [*nodes, node(form, ["x", "w"], ["y"], name="layer")],
        "own",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [5, 6])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [5, 4])],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in stored.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def without_input(model: Any, **wanted: Any) -> ModelOperands:
    request = Request(draw=lambda layer: synthetic(layer, density=0.5, seed=2), **wanted)
    return ModelOperands(model, None, request)


def only(model: Any, **wanted: Any) -> Operands:
    source = without_input(model, **wanted)
    (layer,) = source.layers
    return source(layer)


def real_weight(found: Operands) -> Any:
    """In real numbers, a scale a column where there is one."""
    scale = found.weight_scale if found.file is None else found.file.weight_scales
    return found.weight[0].astype(float) * scale


@pytest.mark.parametrize("name", SOURCES)
def test_weights_are_the_files(name: str) -> None:
    model = model_of(SOURCES[name]())
    found = only(model, bits=16 if name != "DequantizeLinear" else 8)
    step = np.abs(WEIGHT).max() / (127 if name == "DequantizeLinear" else 32767)
    assert np.abs(real_weight(found) - WEIGHT).max() <= 0.51 * step
    assert (found.weight_origin, found.ifmap_origin) == ("file", "drawn")
    assert np.count_nonzero(found.ifmap) == 15  # half of 30, from the seed
    assert "weights" in found.scheme and "activations drawn" in found.scheme
    x = np.random.default_rng(4).normal(size=(5, 6)).astype(np.float32)
    given = from_onnx(model, {"x": x}, bits=16 if name != "DequantizeLinear" else 8)["layer"]
    assert np.array_equal(given.weight, found.weight)
    assert given.ifmap_origin == "input"


def test_a_sparse_initializer_is_dense() -> None:
    found = only(as_sparse_initializer(), bits=16)
    assert np.abs(real_weight(found) - WEIGHT).max() <= 1e-4


def test_integers_of_a_file_stand_as_they_are() -> None:
    """Scales a column are found wherever the integers were moved to."""
    source = quantised()
    found = only(model_of(source))
    assert np.array_equal(found.weight[0], source[1]["q"][:, :6].T)
    assert found.file is not None
    assert np.array_equal(found.file.weight_scales, source[1]["qs"])


def test_integers_stand_where_shapes_are_computed() -> None:
    """Whose constants are folded while shapes are inferred; integers of weights are not."""
    nodes, stored = quantised()
    nodes += [
        node("Shape", ["x"], ["sides"]),
        node("Gather", ["sides", "first"], ["rows"], axis=0),
        node("Gather", ["sides", "others"], ["pair"], axis=0),
        node("ReduceProd", ["pair"], ["rest"], keepdims=1),
        node("Concat", ["rows", "rest"], ["shape"], axis=0),
        node("Reshape", ["x", "shape"], ["plane"]),
        node("MatMul", ["plane", "w"], ["y"], name="layer"),
    ]
    stored |= {"first": np.array([0]), "others": np.array([1, 2])}
    graph = helper.make_graph(
        nodes,
        "shapes",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 2, 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in stored.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    assert only(model, dims={"n": 5}).file is not None


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("signed", [True, False])
def test_narrow_types(bits: int, signed: bool) -> None:
    """4-bit integers of ONNX's own types."""
    kind = getattr(TensorProto, f"{'' if signed else 'U'}INT{bits}")
    low = -(1 << bits - 1) if signed else 0
    whole = np.random.default_rng(1).integers(low, low + (1 << bits), (6, 4))
    zero = np.full(4, low + 3)
    stored = [
        helper.make_tensor("q", kind, whole.shape, whole.reshape(-1).tolist()),
        helper.make_tensor("qz", kind, (4,), zero.tolist()),
        numpy_helper.from_array(np.full(4, 0.5, np.float32), "qs"),
    ]
    model = model_of(([node("DequantizeLinear", ["q", "qs", "qz"], ["w"], axis=1)], {}), opset=21)
    model.graph.initializer.extend(stored)
    found = only(model)
    assert found.file is not None
    assert np.array_equal(found.weight[0] - found.file.weight_zero, whole - zero)


def test_scales_of_blocks_are_no_filters_own() -> None:
    """Sums have one scale: such integers are quantised again, and it is said."""
    whole = np.random.default_rng(1).integers(-8, 8, (6, 4)).astype(np.int8)
    scale = np.random.default_rng(2).uniform(0.1, 0.2, (3, 4)).astype(np.float32)
    nodes = [node("DequantizeLinear", ["q", "qs"], ["w"], axis=0, block_size=2)]
    found = only(model_of((nodes, {"q": whole, "qs": scale}), opset=21), bits=16)
    assert found.file is None
    assert found.scheme.endswith("a file's integers quantised again")
    wanted = whole * np.repeat(scale, 2, axis=0)
    assert np.abs(real_weight(found) - wanted).max() <= 0.51 * np.abs(wanted).max() / 32767


def test_a_constant_on_the_left_is_the_ifmap() -> None:
    graph = helper.make_graph(
        [node("MatMul", ["w", "x"], ["y"], name="layer")],
        "left",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [6, 3])],
        [numpy_helper.from_array(WEIGHT, "w")],
    )
    found = only(helper.make_model(graph, ir_version=10), bits=16)
    assert (found.weight_origin, found.ifmap_origin) == ("drawn", "file")
    assert np.abs(found.ifmap[0] * found.ifmap_scale - WEIGHT).max() <= 1e-4


def test_external_data(tmp_path: Path) -> None:
    onnx.save(
        model_of(SOURCES["initializer"]()), tmp_path / "m.onnx", save_as_external_data=True,
        location="m.bin", size_threshold=0,
    )  # fmt: skip
    assert (tmp_path / "m.bin").stat().st_size
    assert np.abs(real_weight(only(tmp_path / "m.onnx", bits=16)) - WEIGHT).max() <= 1e-4
    (tmp_path / "m.bin").unlink()
    with pytest.raises(WorkloadError, match=r"m\.onnx"):
        only(tmp_path / "m.onnx")


def test_gemm_in_all_its_forms() -> None:
    """What is computed is ONNX Runtime's result, within the steps of 16 bits."""
    random = np.random.default_rng(9)
    for number in range(16):
        forms: dict[str, Any] = {"transA": number & 1, "transB": number >> 1 & 1}
        a, b = random.normal(size=(5, 6)), random.normal(size=(6, 4))
        added = [np.zeros(0), *(random.normal(size=size) for size in (4, 1, (1, 4)))]
        c = added[number >> 2]
        inputs = ["a", "b"] + ["c"] * bool(c.size)
        stored = {"b": b.T if forms["transB"] else b, "c": c}
        shape = [6, 5] if forms["transA"] else [5, 6]
        graph = helper.make_graph(
            [node("Gemm", inputs, ["y"], name="layer", alpha=0.7, beta=-1.5, **forms)],
            "gemm",
            [helper.make_tensor_value_info("a", TensorProto.FLOAT, shape)],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, [5, 4])],
            [numpy_helper.from_array(np.asarray(stored[name], np.float32), name)
             for name in inputs[1:]],
        )  # fmt: skip
        model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 18)])
        x = (a.T if forms["transA"] else a).astype(np.float32)
        found = from_onnx(model, {"a": x}, bits=16)["layer"]
        (layer,) = import_onnx(model).matrix_layers
        y = compute(layer, found, bits=16)[0] * found.ofmap_scale
        wanted = capture(model, {"a": x}, ["y"])["y"]
        assert np.abs(y - wanted).max() <= 1e-3 * np.abs(wanted).max()
        drawn = only(model, bits=16)
        assert np.array_equal(drawn.weight, found.weight)


def test_what_gemm_adds_row_by_row_is_work_of_its_own() -> None:
    graph = helper.make_graph(
        [node("Gemm", ["x", "w", "c"], ["g"], name="layer"), node("Relu", ["g"], ["y"])],
        "rows",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [5, 6])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [5, 4])],
        [numpy_helper.from_array(WEIGHT, "w"),
         numpy_helper.from_array(np.ones((5, 1), np.float32), "c")],
    )  # fmt: skip
    model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 18)])
    network = import_onnx(model)
    assert [layer.name for layer in network.layers][:2] == ["layer", "layer/add"]
    (layer,) = network.matrix_layers
    assert not layer.bias and not layer.relu
    assert only(model).bias is None


def test_a_bias_is_added_to_activations_of_rms_one() -> None:
    nodes = [node("Gemm", ["x", "w", "b"], ["y"], name="layer")]
    graph = helper.make_graph(
        nodes,
        "biased",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [5, 6])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [5, 4])],
        [numpy_helper.from_array(WEIGHT, "w"),
         numpy_helper.from_array(np.arange(4, dtype=np.float32), "b")],
    )  # fmt: skip
    found = only(helper.make_model(graph, ir_version=10))
    real = found.ifmap * found.ifmap_scale
    assert np.sqrt(np.mean(np.square(real))) == pytest.approx(1)
    assert found.bias is not None
    assert np.allclose(found.bias * found.ifmap_scale * found.weight_scale, np.arange(4), atol=0.01)


def test_a_weight_that_serves_twice_and_one_that_is_computed() -> None:
    graph = helper.make_graph(
        [
            node("MatMul", ["x", "w"], ["a"], name="first"),
            node("MatMul", ["a", "v"], ["b"], name="second"),
            node("MatMul", ["b", "w"], ["c"], name="third"),
            node("Transpose", ["c"], ["t"]),
            node("MatMul", ["c", "t"], ["y"], name="fourth"),
        ],
        "shared",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [5, 6])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [5, 5])],
        [numpy_helper.from_array(WEIGHT, "w"),
         numpy_helper.from_array(np.ascontiguousarray(WEIGHT.T), "v")],
    )  # fmt: skip
    source = without_input(helper.make_model(graph, ir_version=10))
    first, second, third, fourth = (source(layer) for layer in source.layers)
    assert np.array_equal(first.weight, third.weight)
    assert np.array_equal(second.weight[0], first.weight[0].T)
    assert (fourth.weight_origin, fourth.ifmap_origin) == ("drawn", "drawn")
    assert fourth.scheme.startswith("weights drawn, activations drawn (")


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("lengths", [None, (4, 2, 0, 3)])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("named", [True, False])
def test_recurrent_layers(
    kind: str, direction: str, named: bool, lengths: tuple[int, ...] | None
) -> None:
    """Products of each step with the states before it: an LSTM made of them is ONNX Runtime's."""
    random = np.random.default_rng(2)
    inputs, hidden = 3, 5
    ends = lengths or (STEPS,) * 4
    ways, gates = 1 + (direction == "bidirectional"), {"LSTM": 4, "GRU": 3, "RNN": 1}[kind]
    w = random.normal(size=(ways, gates * hidden, inputs)).astype(np.float32)
    r = random.normal(size=(ways, gates * hidden, hidden)).astype(np.float32)
    start = random.normal(size=(ways, len(ends), hidden)).astype(np.float32)
    stored = {"w": w, "r": r, "start": start, "ends": np.array(ends, np.int32)}
    reads = ["x", "w", "r", "", "" if lengths is None else "ends", "start"]
    graph = helper.make_graph(
        [node(kind, reads, ["y" if named else "", "last"], name="cell", hidden_size=hidden,
              direction=direction)],
        "recurrent",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [STEPS, len(ends), inputs])],
        [helper.make_tensor_value_info("last", TensorProto.FLOAT, [ways, len(ends), hidden])],
        [numpy_helper.from_array(array, name) for name, array in stored.items()],
    )  # fmt: skip
    model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17)])
    x = random.normal(size=(STEPS, len(ends), inputs)).astype(np.float32)
    found = from_onnx(model, {"x": x}, bits=16)
    layers = import_onnx(model).matrix_layers
    assert list(found) == [layer.name for layer in layers]
    products = ways * sum(ends) * gates * hidden * (inputs + hidden)
    assert sum(layer.macs for layer in layers) == products
    states = capture(model, {"x": x}, ["last"])["last"]
    for way, prefix in enumerate(["cell", "cell/reverse"][:ways]):
        one = found[f"{prefix}/input"]
        sequences = [x[:end, at] for at, end in enumerate(ends)]
        rows = np.concatenate(sequences)
        assert near(np.sort(one.ifmap.ravel() * one.ifmap_scale), np.sort(rows.ravel()))
        assert near(one.weight[0] * one.weight_scale, w[way].T)
        before = states_by_step(found, prefix)
        backwards = direction == "reverse" or way == 1
        for at, sequence in enumerate(sequences):
            seen = (sequence[::-1] if backwards else sequence)[:, None]
            made = [start[way, [at]]]
            made += hidden_states(kind, (seen, w[way], r[way], made[0]))
            if ends[at]:  # of one of no steps ONNX Runtime says 0
                assert np.abs(made[-1] - states[way, at]).max() < 1e-5
            for step in range(ends[at]):
                place = sum(end > step for end in ends[:at])
                assert near(before[step][place], made[step][0])
    drawn = without_input(model, bits=16)
    for layer in drawn.layers:
        one = drawn(layer)
        assert (one.weight_origin, one.ifmap_origin) == ("file", "drawn")
        assert np.array_equal(one.weight, found[layer.name].weight)


STEPS = 4


def near(a: Any, b: Any) -> bool:
    return bool(np.abs(a - b).max() < 1e-3)


def states_by_step(found: dict[str, Operands], prefix: str) -> list[Any]:
    """The hidden states [rows, hidden] before each step, of the layers of one direction."""
    runs = {
        int(name.removeprefix(f"{prefix}/steps") or 0): one
        for name, one in found.items()
        if name.startswith(f"{prefix}/steps")
    }
    before: list[Any] = []
    for (first, one), end in zip(runs.items(), [*list(runs)[1:], STEPS], strict=True):
        states = one.ifmap[0] * one.ifmap_scale
        before += list(states.reshape(end - first, -1, states.shape[1]))
    return before


def hidden_states(kind: str, values: tuple[Any, ...]) -> list[Any]:
    """The states behind every step, by the equations of ONNX's LSTM and GRU."""

    def sigmoid(v: Any) -> Any:
        return 1 / (1 + np.exp(-v))

    x, w, r, h = values
    cell, found = np.zeros_like(h), []
    for one in x:
        into, back = one @ w.T, h @ r.T
        if kind == "LSTM":
            i, o, f, c = np.split(into + back, 4, axis=1)
            cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(c)
            h = sigmoid(o) * np.tanh(cell)
        elif kind == "RNN":
            h = np.tanh(into + back)
        else:
            (zi, ri, ni), (zb, rb, _) = np.split(into, 3, axis=1), np.split(back, 3, axis=1)
            z, reset = sigmoid(zi + zb), sigmoid(ri + rb)
            new = np.tanh(ni + (reset * h) @ r[2 * h.shape[1] :].T)
            h = (1 - z) * new + z * h
        found.append(h)
    return found


def test_weights_that_are_not_numbers_are_refused() -> None:
    bad = WEIGHT.copy()
    bad[2, 1] = np.nan
    with pytest.raises(WorkloadError, match=r"^layer: quantisation: every value must be finite"):
        only(model_of(([], {"w": bad})))
    nodes = [node("DequantizeLinear", ["q", "qs"], ["w"])]
    stored = {"q": np.ones((6, 4), np.int8), "qs": np.float32(0)}
    with pytest.raises(WorkloadError, match=r"^layer: scales must be positive and finite, not 0$"):
        only(model_of((nodes, stored)))


def test_activations_need_an_input_or_a_seed() -> None:
    source = ModelOperands(model_of(SOURCES["initializer"]()), None, Request())
    with pytest.raises(WorkloadError, match="need an input, or must be drawn"):
        source(source.layers[0])


@pytest.mark.parametrize("backwards", [False, True])
def test_a_long_chain_of_constants_is_run_once(backwards, monkeypatch) -> None:
    """Each of them is read; of what one run made, others begin with."""
    from workloads import onnx_constants

    count, ran = 60, 0
    nodes = [
        helper.make_node("Neg", [f"w{at - 1}" if at else "c"], [f"w{at}"]) for at in range(count)
    ]
    reads = [
        helper.make_node("MatMul", [f"t{at}" if at else "x", f"w{at}"], [f"t{at + 1}"])
        for at in range(count)
    ]
    value, kind = helper.make_tensor_value_info, TensorProto.FLOAT
    start = np.arange(4, dtype=np.float32).reshape(2, 2)
    graph = helper.make_graph(
        [*nodes, *reads], "g", [value("x", kind, [1, 2])], [value(f"t{count}", kind, None)],
        [numpy_helper.from_array(start, "c")],
    )  # fmt: skip
    inferred = onnx.shape_inference.infer_shapes(helper.make_model(graph))
    constants = onnx_constants.Constants(inferred, Graph(inferred, "here"))
    plain = onnx_constants.run_session

    def counted(model, outputs, inputs):
        nonlocal ran
        ran += len(model.graph.node)
        return plain(model, outputs, inputs)

    monkeypatch.setattr(onnx_constants, "run_session", counted)
    for at in reversed(range(count)) if backwards else range(count):
        assert np.array_equal(constants.value(f"w{at}"), start * (-1) ** (at + 1))
    assert ran == count
