"""The execution of a network in integers, operator by operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from workloads.integer_operators import (
    Levels,
    Window,
    add,
    average_pool,
    clip,
    concatenate,
    max_pool,
    multiply,
    relu,
)
from workloads.layers import Conv2d, MatMul
from workloads.onnx_import import Trace
from workloads.onnx_operands import float_operands, make_operands, result_of
from workloads.onnx_operators import VIEWS
from workloads.operands import Operands
from workloads.quantize import Floats, Integers, quantize_at, quantize_symmetric, scale_of

if TYPE_CHECKING:
    import onnx

MatrixFunction = Callable[[Conv2d | MatMul, Operands], NDArray[Any]]


class Execution:
    """Tensors computed so far, in integers (`levels`) or, after a Softmax, real (`floats`).

    `measured` are the float tensors from which scales are calibrated. `tensors`, `scales`,
    `operands` and `errors` are those of `workloads.integer_network.IntegerRun`.
    """

    def __init__(
        self, traced: Trace, matmul: MatrixFunction, measured: dict[str, NDArray[Any]], bits: int
    ) -> None:
        self._graph = traced.graph
        self._steps = traced.steps
        self._matmul = matmul
        self._measured = measured
        self._bits = bits
        self.levels: dict[str, Levels] = {}
        self.floats: dict[str, NDArray[np.float64]] = {}
        self.tensors: dict[str, Integers] = {}
        self.scales: dict[str, float] = {}
        self.operands: dict[str, Operands] = {}
        self.errors: dict[str, float] = {}

    def execute(self, reals: Mapping[str, Floats]) -> None:
        """Run every node; `reals` are the float tensors with which each layer is compared."""
        for node, layers in self._steps:
            if node.output[0] in self.levels:
                continue
            if node.op_type == "Softmax":
                self._softmax(node)
                continue
            if node.op_type not in _OPERATORS:
                raise self._graph.error(
                    node, f"not supported in integers; there are {', '.join(_SUPPORTED)}"
                )
            if any(name in self.floats for name in node.input):
                raise self._graph.error(node, "Softmax must be the last operator of the network")
            target = self._target(node)
            result = _OPERATORS[node.op_type](self, node)
            self.levels[target] = result
            if layers:
                self._record(layers[0].name, result, reals[target])

    def _target(self, node: onnx.NodeProto) -> str:
        return result_of(self._graph, node) if node.op_type in _MATRIX else node.output[0]

    def _record(self, layer: str, result: Levels, real: Floats) -> None:
        self.tensors[layer] = result.values
        self.scales[layer] = result.scale
        size = float(np.sqrt(np.mean(np.square(real, dtype=np.float64))))
        error = float(np.sqrt(np.mean(np.square(result.real - real))))
        self.errors[layer] = error / size if size else error

    def _softmax(self, node: onnx.NodeProto) -> None:
        x = self.levels[node.input[0]].real
        axis = int(self._graph.attribute(node, "axis", -1))
        powers = np.exp(x - x.max(axis=axis, keepdims=True))
        self.floats[node.output[0]] = powers / powers.sum(axis=axis, keepdims=True)

    def _input(self, node: onnx.NodeProto, index: int = 0) -> Levels:
        name = node.input[index]
        if name not in self.levels:
            values, scale = quantize_symmetric(self._measured[name], self._bits)
            return Levels(values=values, scale=scale)
        return self.levels[name]

    def _scale(self, node: onnx.NodeProto) -> float:
        return scale_of(self._measured[self._target(node)], self._bits)

    def matrix(self, node: onnx.NodeProto) -> Levels:
        layer = next(layers[0] for other, layers in self._steps if other is node)
        assert isinstance(layer, Conv2d | MatMul)
        x = self._input(node)
        if node.op_type == "Conv" and x.values.ndim > 4:
            raise self._graph.error(node, "not supported in integers over three axes")
        if node.input[1] in self.levels:
            raise self._graph.error(node, "the second operand must be a constant")
        ready = [x.values, *(self._measured[name] if name else None for name in node.input[1:])]
        ifmap, weight, bias = float_operands(self._graph, node, layer, ready)
        scale = self._scale(node)
        operands = make_operands((ifmap, x.scale), (weight, bias), scale, bits=self._bits)
        self.operands[layer.name] = operands
        values = np.asarray(self._matmul(layer, operands))
        if values.size != layer.ofmap_elements or values.dtype.kind != "i":
            raise self._graph.error(
                node,
                f"matmul must return {layer.ofmap_elements} integers, "
                f"not {values.size} of {values.dtype}",
            )
        limit = 1 << (self._bits - 1)
        if values.min() < -limit or values.max() >= limit:
            raise self._graph.error(node, f"matmul must saturate its results to {self._bits} bits")
        shape = self._graph.shape(node.output[0], node)
        return Levels(values=values.reshape(shape).astype(x.values.dtype), scale=scale)

    def relu(self, node: onnx.NodeProto) -> Levels:
        return relu(self._input(node))

    def clip(self, node: onnx.NodeProto) -> Levels:
        bounds = [
            float(self._measured[node.input[i]])
            if len(node.input) > i and node.input[i]
            else float(self._graph.attribute(node, name, default))
            for i, name, default in ((1, "min", -np.inf), (2, "max", np.inf))
        ]
        return clip(self._input(node), bounds[0], bounds[1])

    def max_pool(self, node: onnx.NodeProto) -> Levels:
        return max_pool(self._input(node), self._window(node))

    def average_pool(self, node: onnx.NodeProto) -> Levels:
        include = bool(self._graph.attribute(node, "count_include_pad", 0))
        return average_pool(
            self._input(node),
            self._window(node),
            self._scale(node),
            self._bits,
            include_pad=include,
        )

    def global_average(self, node: onnx.NodeProto) -> Levels:
        x = self._input(node)
        sides = (x.values.shape[2], x.values.shape[3])
        window = Window(kernel=sides, stride=(1, 1), dilation=(1, 1), before=(0, 0), ofmap=(1, 1))
        return average_pool(x, window, self._scale(node), self._bits)

    def _window(self, node: onnx.NodeProto) -> Window:
        shape = self._graph.shape(node.output[0], node)
        mode = self._graph.attribute(node, "auto_pad", "NOTSET")
        if len(shape) != 4 or mode not in ("NOTSET", "VALID"):
            raise self._graph.error(node, "pooling must have two axes and explicit pads")

        def pair(name: str, default: tuple[int, int]) -> tuple[int, int]:
            values = self._graph.integers(node, name, default)
            return values[0], values[1]

        return Window(
            kernel=pair("kernel_shape", (1, 1)),
            stride=pair("strides", (1, 1)),
            dilation=pair("dilations", (1, 1)),
            before=pair("pads", (0, 0)),
            ofmap=(shape[2], shape[3]),
        )

    def concatenate(self, node: onnx.NodeProto) -> Levels:
        parts = [self._input(node, i) for i in range(len(node.input))]
        axis = int(self._graph.attribute(node, "axis", 1))
        return concatenate(parts, axis, self._scale(node), self._bits)

    def add(self, node: onnx.NodeProto) -> Levels:
        parts = [self._input(node, i) for i in range(len(node.input))]
        return add(parts, self._scale(node), self._bits)

    def multiply(self, node: onnx.NodeProto) -> Levels:
        left, right = self._input(node, 0), self._input(node, 1)
        return multiply(left, right, self._scale(node), self._bits)

    def instance_norm(self, node: onnx.NodeProto) -> Levels:
        """Each channel of a picture: less its mean, over its deviation, in real numbers."""
        x = self._input(node).real
        axes = tuple(range(2, x.ndim))
        centred = x - x.mean(axis=axes, keepdims=True)
        epsilon = float(self._graph.attribute(node, "epsilon", 1e-5))
        normal = centred / np.sqrt(np.square(centred).mean(axis=axes, keepdims=True) + epsilon)
        across = (-1, *[1] * (x.ndim - 2))
        gain, shift = (self._measured[name].reshape(across) for name in node.input[1:])
        scale = self._scale(node)
        return Levels(values=quantize_at(normal * gain + shift, scale, self._bits), scale=scale)

    def transpose(self, node: onnx.NodeProto) -> Levels:
        x = self._input(node)
        order = self._graph.integers(node, "perm", range(x.values.ndim)[::-1])
        return Levels(values=x.values.transpose(order), scale=x.scale)

    def view(self, node: onnx.NodeProto) -> Levels:
        x = self._input(node)
        shape = self._graph.shape(node.output[0], node)
        return Levels(values=x.values.reshape(shape), scale=x.scale)


_MATRIX = ("Conv", "Gemm", "MatMul")
_OPERATORS = {
    **dict.fromkeys(_MATRIX, Execution.matrix),
    **dict.fromkeys(VIEWS, Execution.view),
    "Relu": Execution.relu,
    "Clip": Execution.clip,
    "MaxPool": Execution.max_pool,
    "AveragePool": Execution.average_pool,
    "GlobalAveragePool": Execution.global_average,
    "Concat": Execution.concatenate,
    "Add": Execution.add,
    "Sum": Execution.add,
    "Mul": Execution.multiply,
    "InstanceNormalization": Execution.instance_norm,
    "Transpose": Execution.transpose,
}
_SUPPORTED = sorted([*_OPERATORS, "Softmax"])
