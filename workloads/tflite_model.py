"""Convolutional networks from TFLite files, as ONNX models; sparse constants are made dense.

TFLite keeps pruned weights as they are stored: dense axes, and the innermost one compressed (first
element of each row, columns).  Only what such networks are made of is known here (`_OPERATORS`).
Shapes are turned from [N, H, W, C] to [N, C, H, W]; a Pad before a convolution becomes its padding.

Integers of a quantised file stay as they are: each tensor of them is behind a QuantizeLinear and
before a DequantizeLinear of the file's scale and zero point, constants before the latter alone.
A fused ReLU or ReLU6 that no integer of the type is beyond is left out.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from workloads.errors import WorkloadError
from workloads.tflite_nodes import NAMES, Pads, TfliteNodes

if TYPE_CHECKING:
    import onnx

Floats = NDArray[np.float32]
NO_PADS: Pads = (0, 0, 0, 0)


def read_tflite(file: Path, *, name: str) -> onnx.ModelProto:
    """The ONNX model: inputs [N, C, H, W], named and of the types as in the file, as are outputs.

    What lies between is named after its operator and counted: conv1, depthwise1.

    Raises WorkloadError for an operator, an option or a sparse format that is not known here, for
    a broken or too large file, and where the packages tflite or onnx are absent.
    """
    try:
        return _Reader(file).model(name)
    except WorkloadError:
        raise
    except Exception as error:  # offsets of a broken file end in whatever reading them raises
        said = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise WorkloadError(f"{file}: a broken TFLite model: {said}") from error


class _Reader(TfliteNodes):
    def model(self, name: str) -> onnx.ModelProto:
        """All operators, in the file's order."""
        for one in self._graph.InputsAsNumpy():
            self._enter(int(one))
        for number in range(self._graph.OperatorsLength()):
            operator = self._graph.Operators(number)
            kind, output = self._operator_name(operator), int(operator.Outputs(0))
            if kind not in _OPERATORS:
                known = ", ".join(sorted(_OPERATORS))
                raise self._error(f"operator {kind} is not known; there are {known}")
            inputs = [int(one) for one in operator.InputsAsNumpy()]
            self._call(kind, output)
            _OPERATORS[kind](self, self._options(operator, kind), inputs, output)
            self._round(output)
        helper = self._onnx.helper
        graph = helper.make_graph(
            self._nodes,
            name,
            [self._info(int(one)) for one in self._graph.InputsAsNumpy()],
            [self._info(int(one)) for one in self._graph.OutputsAsNumpy()],
            self._made,
        )
        return helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", 17)],
            ir_version=8,
            producer_name="workloads",
        )

    def same_values(self, _: Any, inputs: list[int], output: int) -> None:
        """DENSIFY of constants."""
        values = self.constant(inputs[0])
        self._values[output] = values if values.dtype.kind in "iu" else values.astype(np.float32)

    def dequantize(self, _: Any, inputs: list[int], output: int) -> None:
        """Of constants, in half precision or integers; else the numbers of integers."""
        found = self._quantised(inputs[0])
        if not self._is_constant(inputs[0]):
            self._add("Identity", [self._name(inputs[0])], self._target(output))
            return
        values = self.constant(inputs[0]).astype(np.float32)
        if found is not None:
            shape = [1] * values.ndim
            shape[found.axis] = found.scale.size
            zero = found.zero.astype(np.float32).reshape(shape)
            values = (values - zero) * found.scale.reshape(shape)
        self._values[output] = values

    def quantize(self, _: Any, inputs: list[int], output: int) -> None:
        self._add("Identity", [self._name(inputs[0])], self._target(output))

    def pad(self, _: Any, inputs: list[int], output: int) -> None:
        """Into the convolutions that read it, or, of channels, as it is."""
        (before_n, after_n), rows, columns, channels = self.constant(inputs[1]).tolist()
        readers = self._readers.get(output, set[str]())
        if not (before_n or after_n or any(channels)) and readers <= set(NAMES):
            self._pads[output] = inputs[0], (rows[0], columns[0], rows[1], columns[1])
            return
        sides = ((before_n, after_n), channels, rows, columns)
        sizes = np.array([side[end] for end in range(2) for side in sides], np.int64)
        kept = self._keep(f"{self._name(output)}/pads", sizes)
        self._add("Pad", [self._name(inputs[0]), kept], self._target(output))

    def convolution(self, options: Any, inputs: list[int], output: int) -> None:
        """Filters [K, R, S, C]; of a depthwise one [1, R, S, K]."""
        kernel = self.constant(inputs[1])
        depthwise = type(options).__name__.startswith("Depthwise")
        turned = kernel.transpose(3, 0, 1, 2) if depthwise else kernel.transpose(0, 3, 1, 2)
        source, pads = self._pads.get(inputs[0], (inputs[0], NO_PADS))
        strides = options.StrideH(), options.StrideW()
        dilations = options.DilationHFactor(), options.DilationWFactor()
        if options.Padding() == self._tflite.Padding.SAME:
            own = _same_pads(self._shape(inputs[0])[1:3], kernel.shape[1:3], strides, dilations)
            pads = tuple(a + b for a, b in zip(pads, own, strict=True))
        name = self._name(output)
        constants = [self._parameter(f"{name}/weight", inputs[1], turned)]
        if len(inputs) > 2 and inputs[2] >= 0:
            constants.append(self._parameter(f"{name}/bias", inputs[2], self.constant(inputs[2])))
        self._add_active(
            options.FusedActivationFunction(), "Conv", [self._name(source), *constants], output,
            kernel_shape=turned.shape[2:], strides=strides, dilations=dilations, pads=pads,
            group=self._shape(source)[3] if depthwise else 1,
        )  # fmt: skip

    def fully_connected(self, options: Any, inputs: list[int], output: int) -> None:
        """Filters [N, K] of as many elements a row as they have."""
        name, weight = self._name(output), self.constant(inputs[1])
        if options.WeightsFormat():
            raise self._error(f"{name}: weights must not be shuffled")
        source = self._last(inputs[0], name)
        rows = self._keep(f"{name}/rows", np.array([-1, weight.shape[1]], np.int64))
        self._add("Reshape", [source, rows], f"{name}/matrix")
        constants = [self._parameter(f"{name}/weight", inputs[1], weight)]
        if len(inputs) > 2 and inputs[2] >= 0:
            constants.append(self._parameter(f"{name}/bias", inputs[2], self.constant(inputs[2])))
        if len(self._shape(output)) != 2:
            raise self._error(f"{name}: a fully connected layer must make a matrix")
        self._add_active(
            options.FusedActivationFunction(), "Gemm", [f"{name}/matrix", *constants], output,
            transB=1,
        )  # fmt: skip

    def _last(self, tensor: int, name: str) -> str:
        """A tensor with channels last, as the file has it."""
        if len(self._shape(tensor)) != 4:
            return self._name(tensor)
        self._add("Transpose", [self._name(tensor)], f"{name}/last", perm=(0, 2, 3, 1))
        return f"{name}/last"

    def addition(self, options: Any, inputs: list[int], output: int) -> None:
        names = [self._name(one) for one in inputs]
        self._add_active(options.FusedActivationFunction(), "Add", names, output)

    def relu(self, _: Any, inputs: list[int], output: int) -> None:
        self._add("Relu", [self._name(inputs[0])], self._target(output))

    def logistic(self, _: Any, inputs: list[int], output: int) -> None:
        self._add("Sigmoid", [self._name(inputs[0])], self._target(output))

    def softmax(self, options: Any, inputs: list[int], output: int) -> None:
        """Over the channels."""
        if options.Beta() != 1:
            raise self._error(f"{self._name(output)}: beta must be 1, not {options.Beta():g}")
        axis = 1 if len(self._shape(output)) == 4 else -1
        self._add("Softmax", [self._name(inputs[0])], self._target(output), axis=axis)

    def mean(self, options: Any, inputs: list[int], output: int) -> None:
        """Of the planes."""
        axes = sorted(int(axis) % 4 for axis in self.constant(inputs[1]).reshape(-1))
        if len(self._shape(inputs[0])) != 4 or axes != [1, 2]:
            raise self._error(f"{self._name(output)}: a mean must be one of planes")
        self._add(
            "ReduceMean", [self._name(inputs[0])], self._target(output), axes=(2, 3),
            keepdims=int(options.KeepDims()),
        )  # fmt: skip

    def average_pool(self, options: Any, inputs: list[int], output: int) -> None:
        """Padding is not among what is averaged, as in ONNX by default."""
        self._pool("AveragePool", options, inputs, output)

    def max_pool(self, options: Any, inputs: list[int], output: int) -> None:
        self._pool("MaxPool", options, inputs, output)

    def _pool(self, operator: str, options: Any, inputs: list[int], output: int) -> None:
        kernel = options.FilterHeight(), options.FilterWidth()
        strides = options.StrideH(), options.StrideW()
        pads = NO_PADS
        if options.Padding() == self._tflite.Padding.SAME:
            pads = _same_pads(self._shape(inputs[0])[1:3], kernel, strides, (1, 1))
        self._add_active(
            options.FusedActivationFunction(), operator, [self._name(inputs[0])], output,
            kernel_shape=kernel, strides=strides, pads=pads,
        )  # fmt: skip

    def concatenation(self, options: Any, inputs: list[int], output: int) -> None:
        axes = range(len(self._shape(output)))
        axis = axes[int(options.Axis())]
        turned = (0, 2, 3, 1)[axis] if len(axes) == 4 else axis
        names = [self._name(one) for one in inputs]
        self._add_active(options.FusedActivationFunction(), "Concat", names, output, axis=turned)

    def resize(self, options: Any, inputs: list[int], output: int) -> None:
        mode = "asymmetric"
        if options.HalfPixelCenters():
            mode = "half_pixel"
        elif options.AlignCorners():
            mode = "align_corners"
        sizes = self._keep(f"{self._name(output)}/sizes", np.array(self._turned(output), np.int64))
        self._add(
            "Resize", [self._name(inputs[0]), "", "", sizes], self._target(output),
            mode="linear", coordinate_transformation_mode=mode,
        )  # fmt: skip

    def depth_to_space(self, options: Any, inputs: list[int], output: int) -> None:
        names = [self._name(inputs[0])], self._target(output)
        self._add("DepthToSpace", *names, blocksize=options.BlockSize(), mode="DCR")

    def reshape(self, _: Any, inputs: list[int], output: int) -> None:
        """Of [N, H, W, C]."""
        name, target = self._name(output), self._target(output)
        shape = self._keep(f"{name}/shape", np.array(self._shape(output), np.int64))
        source = self._last(inputs[0], name)
        if len(self._shape(output)) != 4:
            self._add("Reshape", [source, shape], target)
            return
        self._add("Reshape", [source, shape], f"{name}/plane")
        self._add("Transpose", [f"{name}/plane"], target, perm=(0, 3, 1, 2))


def _same_pads(
    plane: tuple[int, ...],
    kernel: tuple[int, ...],
    strides: tuple[int, int],
    dilations: tuple[int, int],
) -> Pads:
    """TensorFlow's SAME: ⌈side / stride⌉ outputs, the odd one of the padding behind."""
    before: list[int] = []
    after: list[int] = []
    for side, taps, stride, dilation in zip(plane, kernel, strides, dilations, strict=True):
        reach = (-(-side // stride) - 1) * stride + (taps - 1) * dilation + 1
        needed = max(reach - side, 0)
        before.append(needed // 2)
        after.append(needed - needed // 2)
    return before[0], before[1], after[0], after[1]


_OPERATORS: dict[str, Callable[[_Reader, Any, list[int], int], None]] = {
    "DENSIFY": _Reader.same_values,
    "DEQUANTIZE": _Reader.dequantize,
    "QUANTIZE": _Reader.quantize,
    "FULLY_CONNECTED": _Reader.fully_connected,
    "AVERAGE_POOL_2D": _Reader.average_pool,
    "LOGISTIC": _Reader.logistic,
    "MEAN": _Reader.mean,
    "SOFTMAX": _Reader.softmax,
    "PAD": _Reader.pad,
    "CONV_2D": _Reader.convolution,
    "DEPTHWISE_CONV_2D": _Reader.convolution,
    "ADD": _Reader.addition,
    "RELU": _Reader.relu,
    "MAX_POOL_2D": _Reader.max_pool,
    "CONCATENATION": _Reader.concatenation,
    "RESIZE_BILINEAR": _Reader.resize,
    "DEPTH_TO_SPACE": _Reader.depth_to_space,
    "RESHAPE": _Reader.reshape,
}
