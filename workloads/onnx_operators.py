"""What each supported ONNX operator is as layers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

from workloads.layers import Layer, MatMul
from workloads.onnx_contrib import DOMAIN as CONTRIB
from workloads.onnx_convolution import convolution, transposed_convolution
from workloads.onnx_einsum import einsum
from workloads.onnx_graph import Graph
from workloads.onnx_matrix import bias_of, fused_relu, ifmap_of, is_read_whole, weight_of
from workloads.onnx_recurrence import recurrence_of
from workloads.recurrent import recurrent_layers
from workloads.vector_work import (
    MOVES,
    PER_INPUT,
    PER_OUTPUT,
    elementwise,
    local_response,
    movement,
    pooling,
    reduction,
)

if TYPE_CHECKING:
    import onnx

    Node = onnx.NodeProto

Handler = Callable[[Graph, "Node"], tuple[Layer, ...]]

VIEWS = ("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Dropout")
"""Operators which only rename elements where they lie: no layer."""

CONSTANTS = ("Constant", "ConstantOfShape", "Shape", "Size", "Range", "EyeLike")
"""Operators whose result is known before the network runs: no layer."""


def gemm(graph: Graph, node: Node) -> tuple[Layer, ...]:
    """Gemm: one product of two matrices, either of them transposed on demand.

    A third operand of one row is the layer's bias; another is added behind it, which is work.
    """
    first, second = ifmap_of(node).tensor, weight_of(node).tensor
    a, b = graph.shape(first, node), graph.shape(second, node)
    if (len(a), len(b)) != (2, 2):
        raise graph.error(node, f"its operands must be matrices, not of {len(a)} and {len(b)} axes")
    m, k = a[::-1] if graph.attribute(node, "transA", 0) else a
    rows, n = b[::-1] if graph.attribute(node, "transB", 0) else b
    if rows != k:
        raise graph.error(node, f"the second matrix must have {k} rows, not {rows}")
    name, bias = graph.name(node), has_row_bias(graph, node)
    layer = MatMul(
        name=name,
        m=m,
        n=n,
        k=k,
        shared_weight=graph.is_constant(second),
        bias=bias,
        relu=fused_relu(graph, node) is not None,
    )
    if bias or not bias_of(node):
        return (layer,)
    added = [(m, n)] if graph.is_constant(bias_of(node)) else [(m, n), (m, n)]
    return replace(layer, relu=False), elementwise(f"{name}/add", "Add", (m, n), added)


def has_row_bias(graph: Graph, node: Node) -> bool:
    """Whether what a Gemm adds is one row, the same to all: a bias."""
    added = bias_of(node)
    return bool(added) and prod(graph.shape(added, node)[:-1]) == 1


def matmul(graph: Graph, node: Node) -> tuple[Layer, ...]:
    """MatMul with NumPy's broadcasting.

    A second operand without batch axes serves all rows, which are folded into M; it is a shared
    weight if it is constant. One with batch axes makes a batch of products.
    """
    first, second = ifmap_of(node).tensor, weight_of(node).tensor
    a, b = graph.shape(first, node), graph.shape(second, node)
    a = (1, *a) if len(a) == 1 else a
    b = (*b, 1) if len(b) == 1 else b
    if a[-1] != b[-2]:
        raise graph.error(node, f"the second matrix must have {a[-1]} rows, not {b[-2]}")
    name, relu = graph.name(node), fused_relu(graph, node) is not None
    if prod(b[:-2]) == 1:
        shared = graph.is_constant(second)
        rows = prod(a[:-1])
        return (MatMul(name=name, m=rows, n=b[-1], k=a[-1], shared_weight=shared, relu=relu),)
    batch = prod(broadcast(a[:-2], b[:-2]))
    return (
        MatMul(name=name, m=a[-2], n=b[-1], k=a[-1], batch=batch, shared_weight=False, relu=relu),
    )


def _einsum(graph: Graph, node: Node) -> tuple[Layer, ...]:
    return einsum(graph, node, relu=fused_relu(graph, node) is not None)


def broadcast(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """Shape to which both shapes are broadcast (they are known to be compatible)."""
    rank = max(len(a), len(b))
    pairs = zip((1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b, strict=True)
    return tuple(y if x == 1 else x for x, y in pairs)


def _recurrent(graph: Graph, node: Node) -> tuple[Layer, ...]:
    return recurrent_layers(recurrence_of(graph, node))


def _elementwise(graph: Graph, node: Node) -> tuple[Layer, ...]:
    if node.op_type == "BatchNormalization":
        inputs = [node.input[0]]
    else:
        inputs = graph.computed_inputs(node)
    shapes = [graph.shape(name, node) for name in inputs]
    result = graph.shape(node.output[0], node)
    return (elementwise(graph.name(node), node.op_type, result, shapes),)


def _dequantize(graph: Graph, node: Node) -> tuple[Layer, ...]:
    """None where matrix operators alone read the result: they take the integers."""
    return () if is_read_whole(graph, node) else _elementwise(graph, node)


def _variadic(graph: Graph, node: Node) -> tuple[Layer, ...]:
    """Sum, Mean, Max, Min of several tensors: one operation less than operands, per element."""
    shapes = [graph.shape(name, node) for name in graph.computed_inputs(node)]
    result = graph.shape(node.output[0], node)
    work = elementwise(graph.name(node), "Add", result, shapes)
    steps = len(node.input) - 1 + (node.op_type == "Mean")
    return (replace(work, operator=node.op_type, operations=steps * prod(result)),)


def _reduction(graph: Graph, node: Node) -> tuple[Layer, ...]:
    ifmap = graph.shape(node.input[0], node)
    result = graph.shape(node.output[0], node)
    return (reduction(graph.name(node), node.op_type, ifmap, result),)


def _pooling(graph: Graph, node: Node) -> tuple[Layer, ...]:
    shapes = (graph.shape(node.input[0], node), graph.shape(node.output[0], node))
    window = graph.integers(node, "kernel_shape", ())
    return (pooling(graph.name(node), node.op_type, shapes, window),)


def _local_response(graph: Graph, node: Node) -> tuple[Layer, ...]:
    shape = graph.shape(node.input[0], node)
    size = int(graph.attribute(node, "size", 1))
    return (local_response(graph.name(node), shape, size),)


def _movement(graph: Graph, node: Node) -> tuple[Layer, ...]:
    moved = [prod(graph.shape(name, node)) for name in node.output if name]
    if node.op_type in ("Concat", "Transpose", "Slice", "Split", "Pad", "Cast"):
        read = sum(moved)
        if node.op_type in ("Concat", "Pad"):
            read = sum(prod(graph.shape(name, node)) for name in graph.computed_inputs(node))
    else:
        indices = [name for name in graph.computed_inputs(node) if name != node.input[0]]
        read = sum(moved) + sum(prod(graph.shape(name, node)) for name in indices)
    return (movement(graph.name(node), node.op_type, read, (sum(moved),)),)


def _interpolation(graph: Graph, node: Node) -> tuple[Layer, ...]:
    """Resize: nearest moves elements; linear costs 2 operations per tap, 2^axes taps."""
    ifmap = graph.shape(node.input[0], node)
    result = graph.shape(node.output[0], node)
    work = movement(graph.name(node), node.op_type, prod(ifmap), result)
    mode = graph.attribute(node, "mode", "nearest")
    if mode == "nearest":
        return (work,)
    if mode != "linear":
        raise graph.error(node, f"mode must be nearest or linear, not {mode}")
    axes = sum(x != y for x, y in zip(ifmap, result, strict=True))
    return (replace(work, operations=prod(result) * 2 * 2**axes),)


def _nothing(graph: Graph, node: Node) -> tuple[Layer, ...]:
    del graph, node
    return ()


HANDLERS: dict[str, Handler] = {
    "Conv": convolution,
    "ConvTranspose": transposed_convolution,
    "Gemm": gemm,
    "MatMul": matmul,
    "Einsum": _einsum,
    "ConvInteger": convolution,
    "MatMulInteger": matmul,
    "QLinearConv": convolution,
    "QLinearMatMul": matmul,
    "LSTM": _recurrent,
    "GRU": _recurrent,
    "RNN": _recurrent,
    "MaxPool": _pooling,
    "AveragePool": _pooling,
    "LRN": _local_response,
    "Resize": _interpolation,
    **dict.fromkeys(("Sum", "Mean", "Max", "Min"), _variadic),
    **dict.fromkeys(PER_OUTPUT, _elementwise),
    **dict.fromkeys(PER_INPUT, _reduction),
    **dict.fromkeys(MOVES, _movement),
    **dict.fromkeys((*VIEWS, *CONSTANTS), _nothing),
    "DequantizeLinear": _dequantize,
    f"{CONTRIB}.DequantizeLinear": _dequantize,
    f"{CONTRIB}.QuantizeLinear": _elementwise,
    f"{CONTRIB}.QGemm": gemm,
    f"{CONTRIB}.QLinearAveragePool": _pooling,
    f"{CONTRIB}.QLinearGlobalAveragePool": _reduction,
    f"{CONTRIB}.QLinearSoftmax": _reduction,
    **{
        f"{CONTRIB}.{name}": _elementwise
        for name in (
            "QLinearAdd",
            "QLinearMul",
            "QLinearConcat",
            "QLinearSigmoid",
            "QLinearLeakyRelu",
        )
    },
}
"""Every supported operator."""
