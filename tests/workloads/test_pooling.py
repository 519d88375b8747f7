"""Max pooling: sizes, and values by a loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from workloads.errors import WorkloadError
from workloads.layers import VectorWork
from workloads.onnx_import import import_onnx
from workloads.pooling import MaxPool, max_pool

pairs = st.tuples(st.integers(1, 4), st.integers(1, 4))


@st.composite
def pools(draw: st.DrawFn) -> MaxPool:
    window = draw(pairs)
    pad = draw(st.integers(0, window[0] - 1)), draw(st.integers(0, window[1] - 1))
    return MaxPool(window=window, stride=draw(pairs), pad=pad, ceil=draw(st.booleans()))


def by_a_loop(ofmap: Any, pool: MaxPool, sizes: tuple[int, int]) -> Any:
    """Every window with its padding, as the lowest number there is."""
    lowest = np.iinfo(np.int64).min
    found = np.full((ofmap.shape[0], *sizes, ofmap.shape[-1]), lowest)
    for image, u, v, k in np.ndindex(found.shape):
        for i, j in np.ndindex(pool.window):
            p, q = u * pool.stride[0] - pool.pad[0] + i, v * pool.stride[1] - pool.pad[1] + j
            if 0 <= p < ofmap.shape[1] and 0 <= q < ofmap.shape[2]:
                found[image, u, v, k] = max(found[image, u, v, k], ofmap[image, p, q, k])
    return found


@given(pools(), pairs, st.integers(0, 99))
def test_values_are_those_of_a_loop(pool: MaxPool, plane: tuple[int, int], seed: int) -> None:
    try:
        sizes = pool.pooled(plane)
    except WorkloadError:
        assume(False)
        raise
    ofmap = np.random.default_rng(seed).integers(-9, 3, (2, *plane, 3))
    found = max_pool(ofmap, pool)
    assert found.shape == (2, *sizes, 3)
    assert (found == by_a_loop(ofmap, pool, sizes)).all()


@given(pools(), pairs)
def test_windows_are_as_many_as_fit(pool: MaxPool, plane: tuple[int, int]) -> None:
    """Without `ceil` the last window ends in the padded plane; with it, it begins before its end
    and there is one more only where outputs would be left over."""
    for axis in (0, 1):
        window, stride, pad = pool.window[axis], pool.stride[axis], pool.pad[axis]
        ends = range(plane[axis] + 2 * pad)
        whole = [first for first in ends[::stride] if first + window <= len(ends)]
        more = [first for first in ends[::stride] if first < plane[axis] + pad]
        try:
            found = pool.pooled((plane[axis], plane[axis]) if pool.ceil else plane)[axis]
        except WorkloadError:
            continue
        if not pool.ceil:
            assert found == len(whole)
        else:
            short = bool(whole) and whole[-1] + window == len(ends)
            assert found == min(len(whole) + (not short), len(more))


def test_known_sizes() -> None:
    """AlexNet, VGG-16, GoogLeNet, ResNet."""
    assert MaxPool(window=(3, 3), stride=(2, 2)).pooled((55, 13)) == (27, 6)
    assert MaxPool(window=(2, 2), stride=(2, 2)).pooled((224, 14)) == (112, 7)
    assert MaxPool(window=(3, 3), stride=(2, 2), ceil=True).pooled((112, 28)) == (56, 14)
    assert MaxPool(window=(3, 3), stride=(2, 2), pad=(1, 1)).pooled((112, 7)) == (56, 4)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"window": (0, 1)}, "max pooling: window rows must be positive, not 0"),
        ({"stride": (1, -1)}, "max pooling: stride along columns must be positive, not -1"),
        ({"pad": (0, -1)}, "max pooling: pad of columns must be zero or positive, not -1"),
        (
            {"pad": (2, 0)},
            "max pooling: pad of rows must be smaller than the window of 2, not 2",
        ),
    ],
)
def test_sizes_that_are_refused(sizes: dict[str, Any], message: str) -> None:
    whole: dict[str, Any] = {"window": (2, 2), "stride": (1, 1), **sizes}
    with pytest.raises(WorkloadError) as raised:
        MaxPool(**whole)
    assert str(raised.value) == message


def test_a_window_larger_than_the_plane_is_refused() -> None:
    with pytest.raises(WorkloadError) as raised:
        MaxPool(window=(1, 3), stride=(1, 1)).pooled((2, 2))
    assert str(raised.value) == (
        "max pooling: the window must be at most the padded plane's 2 columns, not 3"
    )


POOLS: list[tuple[str, tuple[int, ...], dict[str, Any]]] = [
    ("MaxPool", (1, 3, 10), {"kernel_shape": [3], "strides": [2]}),
    ("MaxPool", (2, 3, 10), {"kernel_shape": [3], "dilations": [2], "strides": [2]}),
    ("MaxPool", (1, 3, 10), {"kernel_shape": [3], "strides": [2], "ceil_mode": 1}),
    ("MaxPool", (1, 3, 10), {"kernel_shape": [3], "strides": [2], "auto_pad": "SAME_UPPER"}),
    ("AveragePool", (1, 2, 9), {"kernel_shape": [4], "pads": [2, 1]}),
    ("AveragePool", (2, 3, 6, 7, 8),
     {"kernel_shape": [2, 3, 2], "strides": [2, 1, 2], "pads": [0, 1, 0, 0, 1, 0]}),
    ("MaxPool", (1, 2, 5, 6, 7), {"kernel_shape": [1, 3, 3], "strides": [1, 2, 3]}),
    ("GlobalAveragePool", (2, 3, 10), {}),
    ("GlobalMaxPool", (1, 3, 4, 5, 6), {}),
]  # fmt: skip


@pytest.mark.parametrize(("operator", "shape", "attributes"), POOLS)
def test_pools_of_a_file_along_one_and_three_axes(
    operator: str, shape: tuple[int, ...], attributes: dict[str, Any]
) -> None:
    """An operation for each element of a window and output; the outputs are ONNX Runtime's."""
    onnx = pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    value, kind = onnx.helper.make_tensor_value_info, onnx.TensorProto.FLOAT
    node = onnx.helper.make_node(operator, ["x"], ["y"], name="p", **attributes)
    graph = onnx.helper.make_graph([node], "g", [value("x", kind, shape)], [value("y", kind, None)])
    opsets = [onnx.helper.make_opsetid("", 17)]
    model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8)
    (layer,) = import_onnx(model).layers
    assert isinstance(layer, VectorWork)
    session = runtime.InferenceSession(model.SerializeToString())
    (found,) = session.run(None, {"x": np.ones(shape, np.float32)})
    whole = int(np.prod(shape[2:]))
    window = int(np.prod(attributes.get("kernel_shape", [whole])))
    assert (layer.name, layer.operator) == ("p", operator)
    assert (layer.input_elements, layer.output_elements) == (int(np.prod(shape)), found.size)
    assert layer.operations == found.size * window
