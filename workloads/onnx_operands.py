"""Quantised operands of the matrix layers of an ONNX model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from workloads.layers import Conv2d, MatMul
from workloads.onnx_graph import Graph
from workloads.onnx_import import trace
from workloads.onnx_model import dims_of_inputs, load_model
from workloads.onnx_operators import broadcast, fused_relu
from workloads.onnx_runtime import capture
from workloads.operands import Operands, operand_shapes
from workloads.quantize import (
    SCHEME,
    Floats,
    Integers,
    quantize_symmetric,
    requantize_parameters,
    scale_of,
)

if TYPE_CHECKING:
    import onnx


def operands_of_model(
    model_or_path: str | Path | onnx.ModelProto,
    inputs: Mapping[str, NDArray[Any]],
    *,
    bits: int,
    dims: Mapping[str, int] | None,
) -> dict[str, Operands]:
    """What `workloads.operands.from_onnx` describes."""
    model = load_model(model_or_path)
    sizes = {**dims_of_inputs(model, inputs), **(dims or {})}
    traced = trace(model, dims=sizes)
    graph = traced.graph
    matrix = [
        (node, layers[0])
        for node, layers in traced.steps
        if node.op_type in ("Conv", "Gemm", "MatMul")
    ]
    names = [name for node, _ in matrix for name in (*node.input, result_of(graph, node)) if name]
    values = capture(traced.model, inputs, names)
    found: dict[str, Operands] = {}
    for node, layer in matrix:
        assert isinstance(layer, Conv2d | MatMul)
        ifmap, weight, bias = float_operands(
            graph, node, layer, [values[n] if n else None for n in node.input]
        )
        ofmap_scale = scale_of(values[result_of(graph, node)], bits)
        levels, ifmap_scale = quantize_symmetric(ifmap, bits)
        found[layer.name] = make_operands(
            (levels, ifmap_scale), (weight, bias), ofmap_scale, bits=bits
        )
    return found


def result_of(graph: Graph, node: onnx.NodeProto) -> str:
    """The tensor which a matrix layer writes: behind its ReLU if one is fused."""
    relu = fused_relu(graph, node)
    return relu.output[0] if relu is not None else node.output[0]


def float_operands(
    graph: Graph,
    node: onnx.NodeProto,
    layer: Conv2d | MatMul,
    inputs: Sequence[NDArray[Any] | None],
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any] | None]:
    """A node's inputs in the shapes of its layer's (ifmap, weight, bias); alpha, beta applied."""
    first, second = inputs[0], inputs[1]
    assert first is not None and second is not None
    bias = inputs[2] if len(inputs) > 2 else None
    if node.op_type == "Gemm":
        first = first.T if graph.attribute(node, "transA", 0) else first
        second = second.T if graph.attribute(node, "transB", 0) else second
        second = second * np.float32(graph.attribute(node, "alpha", 1.0))
        if bias is not None:
            bias = bias * np.float32(graph.attribute(node, "beta", 1.0))
            bias = _row_bias(graph, node, bias, second.shape[1])
    if node.op_type == "MatMul" and isinstance(layer, MatMul) and layer.batch > 1:
        batch = broadcast(first.shape[:-2], second.shape[:-2])
        first = np.broadcast_to(first, (*batch, *first.shape[-2:]))
        second = np.broadcast_to(second, (*batch, *second.shape[-2:]))
    ifmap_shape, weight_shape = operand_shapes(layer)
    return first.reshape(ifmap_shape), second.reshape(weight_shape), bias


def _row_bias(graph: Graph, node: onnx.NodeProto, bias: NDArray[Any], columns: int) -> NDArray[Any]:
    if bias.ndim > 1 and bias.shape[0] != 1:
        raise graph.error(node, f"the bias must be one row, not of shape {bias.shape}")
    return np.broadcast_to(bias.reshape(-1), (columns,))


def make_operands(
    ifmap: tuple[Integers, float],
    parameters: tuple[Floats, Floats | None],
    ofmap_scale: float,
    *,
    bits: int,
) -> Operands:
    """Operands from an ifmap in integers with its scale, and (weight, bias) in float.

    The bias is rounded to int32 at ifmap_scale * weight_scale, and clipped to it.
    """
    levels, ifmap_scale = ifmap
    real_weight, real_bias = parameters
    weight, weight_scale = quantize_symmetric(real_weight, bits)
    accumulator_scale = ifmap_scale * weight_scale
    multiplier, shift = requantize_parameters(accumulator_scale / ofmap_scale)
    return Operands(
        ifmap=levels,
        weight=weight,
        bias=None if real_bias is None else _bias(real_bias, accumulator_scale),
        multiplier=multiplier,
        shift=shift,
        scheme=f"{SCHEME}, {bits} bits",
        ifmap_scale=ifmap_scale,
        weight_scale=weight_scale,
        ofmap_scale=ofmap_scale,
    )


def _bias(real: Floats, scale: float) -> Integers:
    limits = np.iinfo(np.int32)
    whole = np.rint(np.asarray(real, np.float64) / scale)
    return np.clip(whole, limits.min, limits.max).astype(np.int32)
