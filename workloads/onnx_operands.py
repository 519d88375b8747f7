"""Operands of the matrix layers of an ONNX model: its weights always, activations where it ran."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from workloads.errors import WorkloadError
from workloads.layers import Conv2d, MatMul
from workloads.onnx_border import malformed
from workloads.onnx_constants import Constants
from workloads.onnx_graph import Graph
from workloads.onnx_import import Trace, trace
from workloads.onnx_matrix import (
    bias_of,
    form_of,
    fused_relu,
    is_matrix,
    ofmap_of,
)
from workloads.onnx_model import dims_of_inputs, load_model
from workloads.onnx_recurrent import RecurrentOperands, is_recurrent, states_of
from workloads.onnx_runtime import capture, check_run
from workloads.onnx_shaping import is_gemm, product_moves, shaping_of
from workloads.onnx_values import Values
from workloads.operand_making import operands_of_parts
from workloads.operand_parts import NEEDED, Parts, bias_at, step_of
from workloads.operands import Operands
from workloads.quantize import SCHEME, Floats, Integers, quantize_symmetric, requantize_parameters

if TYPE_CHECKING:
    import onnx

Layer = Conv2d | MatMul
Draw = Callable[[Layer], Operands]


@dataclass(frozen=True, kw_only=True)
class Request:
    """What is wanted of a model's operands.

    bits: of the integers.  draw: operands of a layer from a seed, for what has no values; needed
    without inputs.  dims, skip_unsupported: as `workloads.onnx_import.import_onnx`.  as_file:
    integers of a quantised file stand as they are, with zero points and a scale a filter.
    """

    bits: int = 8
    draw: Draw | None = None
    dims: Mapping[str, int] | None = None
    skip_unsupported: bool = False
    as_file: bool = True


class ModelOperands:
    """Gives the operands of a model's layer when it is asked for it; layers: those that it has.

    inputs: each input of the network by name; None draws what the network computes.  Raises
    WorkloadError for a model that cannot be read or run, and for inputs that do not fit.
    """

    def __init__(
        self,
        model_or_path: str | Path | onnx.ModelProto,
        inputs: Mapping[str, NDArray[Any]] | None,
        request: Request,
    ) -> None:
        model = load_model(model_or_path)
        sizes = {**dims_of_inputs(model, inputs or {}), **(request.dims or {})}
        traced = trace(model, dims=sizes, skip_unsupported=request.skip_unsupported)
        self._request = request
        self._graph = traced.graph
        constants = Constants(traced.model, traced.graph)
        with malformed(traced.graph.where):
            run = None if inputs is None else _run(traced, constants, inputs)
        self._values = Values(traced.graph, constants, run)
        self._nodes: dict[str, onnx.NodeProto] = {}
        self._recurrent: dict[str, RecurrentOperands] = {}
        self.layers: list[Layer] = []
        for node, layers in traced.steps:
            matrix = [one for one in layers if isinstance(one, Conv2d | MatMul)]
            if is_recurrent(node):
                source = RecurrentOperands(self._values, traced.graph, node)
                self._recurrent |= {one.name: source for one in matrix}
            elif is_matrix(node):
                self._nodes |= {one.name: node for one in matrix}
            self.layers += matrix

    def __call__(self, layer: Layer) -> Operands:
        """Operands of one layer; raises WorkloadError for one that the model does not have."""
        with malformed(self._graph.where):
            return self._operands(layer)

    def _operands(self, layer: Layer) -> Operands:
        wanted = self._request
        drawn = None if self._values.ran or wanted.draw is None else wanted.draw(layer)
        if layer.name in self._recurrent:
            assert isinstance(layer, MatMul)
            parts = self._recurrent[layer.name].parts(layer, drawn)
        elif layer.name in self._nodes:
            parts = self._parts(layer, self._nodes[layer.name], drawn)
        else:
            raise WorkloadError(f"{self._graph.where}: no matrix layer is named {layer.name!r}")
        return operands_of_parts(layer, parts, bits=wanted.bits, as_file=wanted.as_file)

    def _parts(self, layer: Layer, node: onnx.NodeProto, drawn: Operands | None) -> Parts:
        graph, values = self._graph, self._values
        shaping = shaping_of(graph, node, layer)
        first, second = shaping.slots
        factor = float(graph.attribute(node, "alpha", 1.0)) if is_gemm(node) else 1.0
        ifmap = values.operand(node, first, shaping.ifmap, lambda: _given(drawn).ifmap)
        weight = values.operand(node, second, shaping.weight, lambda: _given(drawn).weight)
        step = step_of(layer, ifmap, weight)
        if step is not None and step.size > 1:
            step = shaping.own(step)
        bias = self._bias(layer, node, step)
        ofmap = values.ofmap(ofmap_of(graph, node), sums=form_of(node).sums)
        if ofmap.made is not None:
            ofmap = replace(ofmap, made=shaping.ofmap(ofmap.made))
        return Parts(
            ifmap=ifmap,
            weight=weight,
            bias=None if bias is None else shaping.bias(bias),
            ofmap=ofmap,
            factor=factor,
            drawn=drawn,
        )

    def _bias(
        self, layer: Layer, node: onnx.NodeProto, step: NDArray[Any] | None
    ) -> NDArray[Any] | None:
        bias = self._values.bias(bias_of(node), step) if layer.bias else None
        if bias is None:
            return None
        beta = float(self._graph.attribute(node, "beta", 1.0)) if is_gemm(node) else 1.0
        if beta != 1:
            whole = bias.dtype.kind in "iu" and step is not None
            bias = (bias * step if whole else bias) * np.float32(beta)
        if isinstance(layer, MatMul):
            filters = layer.n
        else:
            filters = self._graph.shape(node.output[0], node)[1]
        if bias.size not in (1, filters):
            raise self._graph.error(
                node, f"the bias must have {filters} elements, not the shape {bias.shape}"
            )
        return np.broadcast_to(bias.reshape(-1), (filters,))


def _given(drawn: Operands | None) -> Operands:
    if drawn is None:
        raise WorkloadError(NEEDED)
    return drawn


def _run(
    traced: Trace, constants: Constants, inputs: Mapping[str, NDArray[Any]]
) -> dict[str, NDArray[Any]]:
    """The tensors that operands need, in one run of ONNX Runtime."""
    check_run(traced.graph, traced.graph.nodes)
    names: dict[str, None] = {}
    values = Values(traced.graph, constants, {})
    for node, _ in traced.steps:
        if is_recurrent(node):
            names |= dict.fromkeys(states_of(node))
        elif is_matrix(node):
            names |= dict.fromkeys(values.needed(node))
    return capture(traced.model, inputs, [name for name in names if not constants.has(name)])


def operands_of_model(
    model_or_path: str | Path | onnx.ModelProto,
    inputs: Mapping[str, NDArray[Any]],
    request: Request,
) -> dict[str, Operands]:
    """What `workloads.operands.from_onnx` describes."""
    source = ModelOperands(model_or_path, inputs, request)
    return {layer.name: source(layer) for layer in source.layers}


def result_of(graph: Graph, node: onnx.NodeProto) -> str:
    """The tensor which a matrix layer writes: behind its ReLU if one is fused."""
    relu = fused_relu(graph, node)
    return relu.output[0] if relu is not None else node.output[0]


def float_operands(
    graph: Graph,
    node: onnx.NodeProto,
    layer: Layer,
    inputs: Sequence[NDArray[Any] | None],
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any] | None]:
    """A node's inputs in the shapes of its layer's (ifmap, weight, bias); alpha, beta applied."""
    first, second = inputs[0], inputs[1]
    assert first is not None and second is not None
    bias = inputs[2] if len(inputs) > 2 and layer.bias else None
    if isinstance(layer, MatMul):
        turns = product_moves(graph, node, layer, (first.shape, second.shape))
    else:
        shaping = shaping_of(graph, node, layer)
        turns = shaping.ifmap.array, shaping.weight.array
    if node.op_type == "Gemm":
        second = second * np.float32(graph.attribute(node, "alpha", 1.0))
        if bias is not None:
            bias = bias * np.float32(graph.attribute(node, "beta", 1.0))
            bias = np.broadcast_to(bias.reshape(-1), (layer.n if isinstance(layer, MatMul) else 0,))
    return turns[0](first), turns[1](second), bias


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
        bias=bias_at(real_bias, np.array(accumulator_scale)),
        multiplier=multiplier,
        shift=shift,
        scheme=f"{SCHEME}, {bits} bits",
        ifmap_scale=ifmap_scale,
        weight_scale=weight_scale,
        ofmap_scale=ofmap_scale,
        weight_origin="file",
        ifmap_origin="input",
    )
