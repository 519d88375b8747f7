"""Einsum as the product that it is: ONNX Runtime's values, MACs counted from the equation."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from workloads.errors import WorkloadError
from workloads.layers import MatMul
from workloads.onnx_import import import_onnx
from workloads.onnx_runtime import run_session
from workloads.operands import from_onnx
from workloads.reference import accumulate

KINDS = ("batch", "m", "n", "k", "first", "second")


def model_of(equation: str, arrays: list[Any], constant: set[int]) -> onnx.ModelProto:
    names = ["a", "b", "c"][: len(arrays)]
    values = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, array.shape)
        for at, (name, array) in enumerate(zip(names, arrays, strict=True))
        if at not in constant
    ]
    graph = helper.make_graph(
        [helper.make_node("Einsum", names, ["y"], name="sum", equation=equation)],
        "einsum",
        values,
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(arrays[at], names[at]) for at in constant],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@st.composite
def equations(draw: Any) -> tuple[str, dict[str, int], dict[str, str]]:
    """An equation, the size of each label, and its kind."""
    kinds = draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=6))
    labels = dict(zip("zyxwvu", kinds, strict=False))
    sizes = {label: draw(st.integers(1, 4)) for label in labels}
    first = [one for one, kind in labels.items() if kind in ("batch", "m", "k", "first")]
    second = [one for one, kind in labels.items() if kind in ("batch", "n", "k", "second")]
    result = [one for one, kind in labels.items() if kind in ("batch", "m", "n")]
    terms = ["".join(draw(st.permutations(one))) for one in (first, second, result)]
    return f"{terms[0]},{terms[1]}->{terms[2]}", sizes, labels


@settings(max_examples=100, deadline=None)
@given(drawn=equations(), constant=st.sampled_from([set[int](), {0}, {1}]))
def test_products(drawn: Any, constant: set[int]) -> None:
    equation, sizes, kinds = drawn
    random = np.random.default_rng(0)
    arrays: list[Any] = []
    for term in equation.split("->")[0].split(","):
        shape = [sizes[one] for one in term]
        arrays.append(random.normal(size=shape).astype(np.float32))
    model = model_of(equation, arrays, constant)
    inputs = {name: array for at, (name, array) in enumerate(zip("ab", arrays, strict=True))
              if at not in constant}  # fmt: skip
    (want,) = run_session(model, ["y"], inputs)
    layers = import_onnx(model).layers
    products = [one for one in layers if isinstance(one, MatMul)]
    of = {kind: [one for one, mine in kinds.items() if mine == kind] for kind in KINDS}
    if not (of["k"] or (of["m"] and of["n"])):
        assert not products
        return
    (layer,) = products
    macs = prod(sizes[one] for kind in ("batch", "m", "n", "k") for one in of[kind])
    assert layer.macs == macs
    assert layer.shared_weight == (bool(constant) and layer.batch == 1)
    sums = [one for one in layers if getattr(one, "operator", "") == "ReduceSum"]
    wanted = [at for at, kind in enumerate(("first", "second")) if of[kind] and at not in constant]
    assert len(sums) == len(wanted)
    found = from_onnx(model, inputs, bits=15)["sum"]
    made = accumulate(layer, found.ifmap, found.weight) * (found.ifmap_scale * found.weight_scale)
    groups = [of["batch"], of["n"], of["m"]] if constant == {0} else [of["batch"], of["m"], of["n"]]
    result = equation.split("->")[1]
    order = [one for group in groups for one in sorted(group, key=result.index)]
    made = made.reshape([sizes[one] for one in order])
    assert np.allclose(made.transpose([order.index(one) for one in result]), want, atol=5e-2)


@pytest.mark.parametrize(
    ("equation", "shapes", "product"),
    [
        ("ij,jk", [(2, 3), (3, 4)], (1, 2, 3, 4)),
        (" i j , j k -> i k ", [(2, 3), (3, 4)], (1, 2, 3, 4)),
        ("...ij,...jk->...ik", [(5, 2, 3), (1, 3, 4)], (1, 10, 3, 4)),
        ("...ij,...jk", [(5, 6, 2, 3), (1, 6, 3, 4)], (6, 10, 3, 4)),
        ("b...h,hn->b...n", [(2, 3, 4, 5), (5, 6)], (1, 24, 5, 6)),
        ("bthd,bshd->bhts", [(2, 7, 3, 4), (2, 8, 3, 4)], (6, 7, 4, 8)),
        ("ij,jk->ik", [(2, 1), (3, 4)], (1, 2, 1, 4)),
        ("i,i->", [(6,), (6,)], (1, 1, 6, 1)),
        ("i,j->ij", [(2,), (3,)], (1, 2, 1, 3)),
    ],
)
def test_equations(equation: str, shapes: Any, product: tuple[int, ...]) -> None:
    random = np.random.default_rng(1)
    arrays = [random.normal(size=shape).astype(np.float32) for shape in shapes]
    model = model_of(equation, arrays, set())
    (layer,) = import_onnx(model).matrix_layers
    assert isinstance(layer, MatMul)
    assert (layer.batch, layer.m, layer.k, layer.n) == product
    found = from_onnx(model, dict(zip("ab", arrays, strict=True)), bits=15)["sum"]
    made = accumulate(layer, found.ifmap, found.weight) * (found.ifmap_scale * found.weight_scale)
    want = np.einsum(equation.replace(" ", ""), *arrays)
    assert np.allclose(np.sort(made.ravel()), np.sort(want.ravel()), atol=5e-2)


def test_transpositions_and_sums_are_layers() -> None:
    arrays = [np.ones(shape, np.float32) for shape in ((2, 7, 3, 4, 5), (2, 8, 3, 4))]
    layers = import_onnx(model_of("bthde,bshd->bths", arrays, set())).layers
    assert [one.name for one in layers] == [
        "sum/ifmap/sum", "sum/ifmap/transpose", "sum/weight/transpose", "sum", "sum/transpose",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("equation", "shapes", "operator"),
    [("ij->ji", [(2, 3)], "Transpose"), ("ij->j", [(2, 3)], "ReduceSum"),
     ("ij,j->ij", [(2, 3), (3,)], "Mul")],
)  # fmt: skip
def test_what_is_no_product_is_vector_work(equation: str, shapes: Any, operator: str) -> None:
    arrays = [np.ones(shape, np.float32) for shape in shapes]
    (layer,) = import_onnx(model_of(equation, arrays, set())).layers
    assert getattr(layer, "operator", "") == operator


@pytest.mark.parametrize(
    ("equation", "shapes", "said"),
    [
        ("ii->i", [(3, 3)], "takes a diagonal of 'ii', which is no product"),
        ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 5)], "must be of one or two tensors"),
        ("i1,1k->ik", [(2, 3), (3, 4)], "labels must be letters, not 'i1'"),
    ],
)
def test_others_are_refused_by_name(equation: str, shapes: Any, said: str) -> None:
    arrays = [np.ones(shape, np.float32) for shape in shapes]
    with pytest.raises(WorkloadError, match=rf"'sum' \(Einsum\): equation .*{said}|inference") as e:
        import_onnx(model_of(equation, arrays, set()))
    assert "\n" not in str(e.value)
