"""A SimpleNet with its weights as an ONNX model.

Group normalisation is written as an instance normalisation of the groups laid flat: ONNX Runtime
computes that faster than the operator of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from workloads.optional import load_optional
from workloads.simplenet import NormalizedConvolution, SimpleNet

if TYPE_CHECKING:
    import onnx

EPSILON = 1e-5
"""Added to a group's variance."""


def simplenet_onnx(
    network: SimpleNet, weights: Mapping[str, npt.NDArray[np.float32]]
) -> onnx.ModelProto:
    """ "pictures" [n, colours, side, side] float32 to "logits" [n, classes].

    Raises WorkloadError for weights that are not the network's.
    """
    network.check(weights)
    return _Builder(network, weights).build()


class _Builder:
    def __init__(self, network: SimpleNet, weights: Mapping[str, npt.NDArray[np.float32]]) -> None:
        self._onnx: Any = load_optional("onnx", install="onnx", purpose="running a network")
        self._network, self._weights = network, weights
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

    def build(self) -> Any:
        helper, kind = self._onnx.helper, self._onnx.TensorProto.FLOAT
        network = self._network
        x = "pictures"
        for layer in network.convolutions:
            x = self._layer(x, layer)
        flat = self._node("Flatten", [x], "flat")
        operands = [flat, *(self._weight(f"classify.{part}") for part in ("weight", "bias"))]
        self._node("Gemm", operands, "logits", transB=1)
        graph = helper.make_graph(
            self._nodes,
            "simplenet",
            [
                helper.make_tensor_value_info(
                    "pictures", kind, ["n", network.colours, network.side, network.side]
                )
            ],
            [helper.make_tensor_value_info("logits", kind, ["n", network.classes])],
            self._constants,
        )
        opset = [helper.make_opsetid("", 17)]
        return helper.make_model(
            graph, opset_imports=opset, ir_version=8, producer_name="workloads"
        )

    def _layer(self, x: str, layer: NormalizedConvolution) -> str:
        name, across = layer.name, (1, layer.outputs, 1, 1)
        x = self._node(
            "Conv",
            [x, self._weight(f"{name}.weight"), self._weight(f"{name}.bias")],
            f"{name}/sum",
            kernel_shape=[layer.kernel] * 2,
            pads=[layer.kernel // 2] * 4,
        )
        groups = np.array([0, layer.groups, -1], np.int64)
        x = self._node("Reshape", [x, self._constant(f"{name}/groups", groups)], f"{name}/flat")
        ones = self._constant(f"{name}/ones", np.ones(layer.groups, np.float32))
        zeros = self._constant(f"{name}/zeros", np.zeros(layer.groups, np.float32))
        x = self._node("InstanceNormalization", [x, ones, zeros], f"{name}/normal", epsilon=EPSILON)
        shape = np.array([0, layer.outputs, layer.side, layer.side], np.int64)
        x = self._node("Reshape", [x, self._constant(f"{name}/shape", shape)], f"{name}/back")
        scale = (1 + self._weights[f"{name}.scale"]).astype(np.float32).reshape(across)
        x = self._node("Mul", [x, self._constant(f"{name}/scale", scale)], f"{name}/scaled")
        shift = self._weights[f"{name}.shift"].reshape(across)
        x = self._node("Add", [x, self._constant(f"{name}/shift", shift)], f"{name}/shifted")
        x = self._node("Relu", [x], f"{name}/relu")
        if layer.pool == 1:
            return x
        sides = [layer.pool] * 2
        return self._node("MaxPool", [x], f"{name}/pool", kernel_shape=sides, strides=sides)

    def _weight(self, name: str) -> str:
        return self._constant(name, self._weights[name])

    def _constant(self, name: str, array: npt.NDArray[Any]) -> str:
        whole = np.ascontiguousarray(array)
        self._constants.append(self._onnx.numpy_helper.from_array(whole, name))
        return name

    def _node(self, operator: str, inputs: list[str], name: str, **attributes: Any) -> str:
        node = self._onnx.helper.make_node(operator, inputs, [name], name=name, **attributes)
        self._nodes.append(node)
        return name


__all__ = ["simplenet_onnx"]
