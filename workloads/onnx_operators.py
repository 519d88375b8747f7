"""What each supported ONNX operator is as layers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

from workloads.layers import Conv2d, Layer, MatMul
from workloads.onnx_graph import Graph
from workloads.recurrent import Recurrence, recurrent_layers
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


def convolution(graph: Graph, node: Node) -> tuple[Layer, ...]:
    """Conv over one or two axes; one axis becomes a Conv2d of height 1."""
    ifmap = graph.shape(node.input[0], node)
    weight = graph.shape(node.input[1], node)
    if len(ifmap) not in (3, 4) or len(weight) != len(ifmap):
        raise graph.error(node, f"a convolution must have 1 or 2 axes, not {len(ifmap) - 2}")
    groups = int(graph.attribute(node, "group", 1))
    if weight[1] * groups != ifmap[1]:
        raise graph.error(
            node, f"weight must have {ifmap[1]} / {groups} input channels, not {weight[1]}"
        )
    axes = len(ifmap) - 2
    kernel = _two(weight[2:])
    stride = _two(graph.integers(node, "strides", [1] * axes))
    dilation = _two(graph.integers(node, "dilations", [1] * axes))
    height, width = _two(ifmap[2:])
    pads = _pads(graph, node, ((height, width), kernel, stride, dilation))
    layer = Conv2d(
        name=graph.name(node),
        channels=ifmap[1],
        filters=weight[0],
        ifmap_height=height,
        ifmap_width=width,
        kernel_height=kernel[0],
        kernel_width=kernel[1],
        stride_height=stride[0],
        stride_width=stride[1],
        pad_top=pads[0],
        pad_left=pads[1],
        pad_bottom=pads[2],
        pad_right=pads[3],
        dilation_height=dilation[0],
        dilation_width=dilation[1],
        groups=groups,
        batch=ifmap[0],
        bias=_has_bias(node),
        relu=fused_relu(graph, node) is not None,
    )
    return (layer,)


def _two(values: tuple[int, ...]) -> tuple[int, int]:
    return (1, values[0]) if len(values) == 1 else (values[0], values[1])


def _pads(
    graph: Graph, node: Node, sizes: tuple[tuple[int, int], ...]
) -> tuple[int, int, int, int]:
    """Padding (top, left, bottom, right); `sizes` are ifmap, kernel, stride, dilation."""
    mode = graph.attribute(node, "auto_pad", "NOTSET")
    if mode in ("NOTSET", ""):
        pads = graph.integers(node, "pads", [0, 0, 0, 0])
        return (0, pads[0], 0, pads[1]) if len(pads) == 2 else (pads[0], pads[1], pads[2], pads[3])
    if mode == "VALID":
        return (0, 0, 0, 0)
    before: list[int] = []
    after: list[int] = []
    for side, kernel, stride, dilation in zip(*sizes, strict=True):
        span = dilation * (kernel - 1) + 1
        total = max((-(-side // stride) - 1) * stride + span - side, 0)
        small = total // 2
        before.append(small if mode == "SAME_UPPER" else total - small)
        after.append(total - before[-1])
    return (before[0], before[1], after[0], after[1])


def _has_bias(node: Node) -> bool:
    return len(node.input) > 2 and bool(node.input[2])


def fused_relu(graph: Graph, node: Node) -> Node | None:
    """The Relu which alone reads this Conv's or Gemm's result, and is computed with it."""
    if node.op_type not in ("Conv", "Gemm", "MatMul"):
        return None
    reader = graph.only_consumer(node.output[0])
    return reader if reader is not None and reader.op_type == "Relu" else None


def gemm(graph: Graph, node: Node) -> tuple[Layer, ...]:
    """Gemm: one product of two matrices, either of them transposed on demand."""
    a = graph.shape(node.input[0], node)
    b = graph.shape(node.input[1], node)
    m, k = a[::-1] if graph.attribute(node, "transA", 0) else a
    rows, n = b[::-1] if graph.attribute(node, "transB", 0) else b
    if rows != k:
        raise graph.error(node, f"the second matrix must have {k} rows, not {rows}")
    relu = fused_relu(graph, node) is not None
    layer = MatMul(
        name=graph.name(node),
        m=m,
        n=n,
        k=k,
        shared_weight=graph.is_constant(node.input[1]),
        bias=_has_bias(node),
        relu=relu,
    )
    return (layer,)


def matmul(graph: Graph, node: Node) -> tuple[Layer, ...]:
    """MatMul with NumPy's broadcasting.

    A second operand without batch axes serves all rows, which are folded into M; it is a shared
    weight if it is constant. One with batch axes makes a batch of products.
    """
    a = graph.shape(node.input[0], node)
    b = graph.shape(node.input[1], node)
    a = (1, *a) if len(a) == 1 else a
    b = (*b, 1) if len(b) == 1 else b
    if a[-1] != b[-2]:
        raise graph.error(node, f"the second matrix must have {a[-1]} rows, not {b[-2]}")
    name, relu = graph.name(node), fused_relu(graph, node) is not None
    if prod(b[:-2]) == 1:
        shared = graph.is_constant(node.input[1])
        rows = prod(a[:-1])
        return (MatMul(name=name, m=rows, n=b[-1], k=a[-1], shared_weight=shared, relu=relu),)
    batch = prod(broadcast(a[:-2], b[:-2]))
    return (
        MatMul(name=name, m=a[-2], n=b[-1], k=a[-1], batch=batch, shared_weight=False, relu=relu),
    )


def broadcast(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """Shape to which both shapes are broadcast (they are known to be compatible)."""
    rank = max(len(a), len(b))
    pairs = zip((1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b, strict=True)
    return tuple(y if x == 1 else x for x, y in pairs)


def _recurrent(graph: Graph, node: Node) -> tuple[Layer, ...]:
    shape = graph.shape(node.input[0], node)
    recurrence = graph.shape(node.input[2], node)
    steps, batch = (shape[1], shape[0]) if graph.attribute(node, "layout", 0) else shape[:2]
    size = Recurrence(
        name=graph.name(node),
        kind=node.op_type,
        steps=steps,
        batch=batch,
        inputs=shape[2],
        hidden=recurrence[2],
        directions=recurrence[0],
    )
    return recurrent_layers(size)


def _elementwise(graph: Graph, node: Node) -> tuple[Layer, ...]:
    if node.op_type == "BatchNormalization":
        inputs = [node.input[0]]
    else:
        inputs = graph.computed_inputs(node)
    shapes = [graph.shape(name, node) for name in inputs]
    result = graph.shape(node.output[0], node)
    return (elementwise(graph.name(node), node.op_type, result, shapes),)


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
    "Gemm": gemm,
    "MatMul": matmul,
    "LSTM": _recurrent,
    "GRU": _recurrent,
    "MaxPool": _pooling,
    "AveragePool": _pooling,
    "LRN": _local_response,
    "Resize": _interpolation,
    **dict.fromkeys(("Sum", "Mean", "Max", "Min"), _variadic),
    **dict.fromkeys(PER_OUTPUT, _elementwise),
    **dict.fromkeys(PER_INPUT, _reduction),
    **dict.fromkeys(MOVES, _movement),
    **dict.fromkeys((*VIEWS, *CONSTANTS), _nothing),
}
"""Every supported operator."""
