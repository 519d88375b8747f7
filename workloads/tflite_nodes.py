"""ONNX nodes made of a TFLite file's operators: names, fused activations, integers of the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workloads.limits import check_limit
from workloads.optional import load_optional
from workloads.tflite_file import KINDS, Quantised, TfliteFile

Pads = tuple[int, int, int, int]
"""Above, left, below, right."""

NAMES = {"CONV_2D": "conv", "DEPTHWISE_CONV_2D": "depthwise"}
"""Of convolutions."""

ACTIVATIONS = {0: (None, None), 1: (0.0, None), 2: (-1.0, 1.0), 3: (0.0, 6.0)}
"""Bounds by ActivationFunctionType."""

UNROUNDED = "/unrounded"
"""Behind the name of what an operator makes before it is the file's integers."""

REAL = "/real"
"""Behind the name of an input or output that the file has in integers: their numbers."""


class TfliteNodes(TfliteFile):
    """Nodes, constants and names so far, of the file that is read."""

    def __init__(self, file: Path) -> None:
        super().__init__(file)
        self._onnx: Any = load_optional("onnx", install="onnx", purpose="reading a TFLite model")
        self._nodes: list[Any] = []
        self._made: list[Any] = []
        self._elements = 0
        self._pads: dict[int, tuple[int, Pads]] = {}
        self._names: dict[int, str] = {}
        self._counts: dict[str, int] = {}

    def _turned(self, tensor: int) -> tuple[int, ...]:
        """The shape with channels in front."""
        shape = self._shape(tensor)
        if len(shape) != 4:
            return shape
        return (shape[0], shape[3], *shape[1:3])

    def _call(self, kind: str, output: int) -> None:
        """Name what an operator makes after its kind: conv1, conv2, depthwise1."""
        short = NAMES.get(kind, kind.lower())
        self._counts[short] = self._counts.get(short, 0) + 1
        if output not in self._graph.OutputsAsNumpy():
            self._names[output] = f"{short}{self._counts[short]}"
        elif self._quantised(output):
            self._names[output] = f"{self._raw_name(output)}{REAL}"

    def _enter(self, tensor: int) -> None:
        """Give the integers of an input as numbers."""
        found = self._quantised(tensor)
        if found is not None:
            self._names[tensor] = f"{self._raw_name(tensor)}{REAL}"
            self._dequantize(self._raw_name(tensor), found, self._names[tensor])

    def _round(self, output: int) -> None:
        """Bring what an operator wrote, if it did, into the integers of the file."""
        found, name = self._quantised(output), self._name(output)
        if found is None or not self._nodes or self._nodes[-1].output[0] != f"{name}{UNROUNDED}":
            return
        ends = output in self._graph.OutputsAsNumpy()
        integers = self._raw_name(output) if ends else f"{name}/integers"
        parameters = self._parameters(integers, found)
        self._add("QuantizeLinear", [f"{name}{UNROUNDED}", *parameters], integers)
        if output in self._readers:
            self._dequantize(integers, found, name)

    def _parameters(self, name: str, found: Quantised) -> list[str]:
        """Scale and zero point; of one value for all, a scalar."""
        single = found.scale.size == 1
        values = {"scale": found.scale, "zero": found.zero.astype(f"{found.kind.name}")}
        return [
            self._keep(f"{name}/{part}", array.reshape(()) if single else array)
            for part, array in values.items()
        ]

    def _dequantize(self, integers: str, found: Quantised, output: str, axis: int = 0) -> str:
        parameters = self._parameters(output, found)
        self._add("DequantizeLinear", [integers, *parameters], output, axis=axis)
        return output

    def _parameter(self, name: str, tensor: int, array: NDArray[Any]) -> str:
        """Weights or a bias, `array` of the constant `tensor`, filters first."""
        found = self._quantised(tensor)
        if found is None:
            return self._keep(name, array.astype(np.float32))
        return self._dequantize(self._keep(f"{name}/integers", array), found, name)

    def _name(self, tensor: int) -> str:
        return self._names.get(tensor) or self._raw_name(tensor)

    def _target(self, output: int) -> str:
        """What an operator writes: the tensor, or what is yet to be made the file's integers."""
        return f"{self._name(output)}{UNROUNDED}" if self._quantised(output) else self._name(output)

    def _info(self, tensor: int) -> Any:
        helper = self._onnx.helper
        kind = np.dtype(KINDS.get(self._graph.Tensors(tensor).Type(), np.float32))
        return helper.make_tensor_value_info(
            self._raw_name(tensor), helper.np_dtype_to_tensor_dtype(kind), self._turned(tensor)
        )

    def _keep(self, name: str, values: NDArray[Any]) -> str:
        self._elements += values.size  # tensors may share a buffer of the file
        check_limit("elements", self._elements, f"{self._where}: elements of constants")
        self._made.append(self._onnx.numpy_helper.from_array(np.asarray(values, order="C"), name))
        return name

    def _add(self, operator: str, inputs: list[str], output: str, **attributes: Any) -> None:
        name = output.removesuffix(UNROUNDED).removesuffix(REAL)
        if operator in ("QuantizeLinear", "DequantizeLinear"):
            name += f"/{operator}"
        node = self._onnx.helper.make_node(operator, inputs, [output], name=name, **attributes)
        self._nodes.append(node)

    def _add_active(
        self, activation: int, operator: str, inputs: list[str], output: int, **attributes: Any
    ) -> None:
        """A node, and the ReLU or bounds that TFLite has fused into it."""
        name, target = self._name(output), self._target(output)
        if activation not in ACTIVATIONS:
            raise self._error(
                f"{name}: the activation must be none, ReLU, ReLU6 or ReLU-1-to-1, not {activation}"
            )
        low, high = self._bounds(activation, output)
        if low is None and high is None:
            self._add(operator, inputs, target, **attributes)
            return
        self._add(operator, inputs, f"{name}/sum", **attributes)
        if low == 0 and high is None:
            self._add("Relu", [f"{name}/sum"], target)
            return
        bounds = [
            "" if bound is None else self._keep(f"{name}/{end}", np.array(bound, np.float32))
            for end, bound in (("low", low), ("high", high))
        ]
        self._add("Clip", [f"{name}/sum", *bounds], target)

    def _bounds(self, activation: int, output: int) -> tuple[float | None, float | None]:
        """Of an activation, without those that no integer of the output's type is beyond."""
        low, high = ACTIVATIONS[activation]
        found = self._quantised(output)
        if found is not None:
            scale, zero = float(found.scale[0]), int(found.zero[0])
            if low is not None and zero + round(low / scale) <= found.kind.low:
                low = None
            if high is not None and zero + round(high / scale) >= found.kind.high:
                high = None
        return low, high


__all__ = ["NAMES", "Pads", "TfliteNodes"]
