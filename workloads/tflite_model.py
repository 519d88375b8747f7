"""Convolutional networks from TFLite files, as ONNX models; sparse constants are made dense.

TFLite keeps pruned weights as they are stored: dense axes, and the innermost one compressed (first
element of each row, columns).  Only what such networks are made of is known here: convolutions,
maxima, additions, concatenations, padding, bilinear resizing, depth to space, and views.  Shapes
are turned from [N, H, W, C] to [N, C, H, W]; a Pad before a convolution becomes its padding.

The file's structure is read by the package tflite, which is made from TFLite's own schema.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from workloads.errors import WorkloadError
from workloads.optional import load_optional

if TYPE_CHECKING:
    import onnx

Floats = NDArray[np.float32]
Pads = tuple[int, int, int, int]
"""Above, left, below, right."""

KINDS = {0: np.float32, 1: np.float16, 2: np.int32}
"""By TensorType."""

OPERATOR_FIELDS = {
    "CONV_2D": "Conv2DOptions",
    "DEPTHWISE_CONV_2D": "DepthwiseConv2DOptions",
    "ADD": "AddOptions",
    "RESIZE_BILINEAR": "ResizeBilinearOptions",
    "DEPTH_TO_SPACE": "DepthToSpaceOptions",
    "MAX_POOL_2D": "Pool2DOptions",
    "CONCATENATION": "ConcatenationOptions",
}
"""The table of an operator's options."""

NAMES = {"CONV_2D": "conv", "DEPTHWISE_CONV_2D": "depthwise"}
"""Of convolutions."""

NO_PADS: Pads = (0, 0, 0, 0)


def read_tflite(file: Path, *, name: str) -> onnx.ModelProto:
    """The ONNX model: inputs [N, C, H, W] float32, inputs and outputs named as in the file.

    What lies between is named after its operator and counted: conv1, depthwise1.

    Raises WorkloadError for an operator, an option or a sparse format that is not known here, and
    where the packages tflite or onnx are absent.
    """
    return _Reader(file).model(name)


class _Reader:
    def __init__(self, file: Path) -> None:
        purpose = "reading a TFLite model"
        self._tflite: Any = load_optional("tflite", install="tflite", purpose=purpose)
        self._onnx: Any = load_optional("onnx", install="onnx", purpose=purpose)
        self._where = str(file)
        data = file.read_bytes()
        if data[4:8] != b"TFL3":
            raise WorkloadError(f"{file}: not a TFLite model (no TFL3 at byte 4)")
        self._file = self._tflite.Model.GetRootAs(data, 0)
        self._graph = self._file.Subgraphs(0)
        codes: dict[str, Any] = self._tflite.BuiltinOperator.__dict__
        self._operator_names = {code: name for name, code in codes.items()}
        self._nodes: list[Any] = []
        self._made: list[Any] = []
        self._values: dict[int, NDArray[Any]] = {}
        self._pads: dict[int, tuple[int, Pads]] = {}
        self._names: dict[int, str] = {}
        self._counts: dict[str, int] = {}
        self._readers = self._kinds_of_readers()

    def model(self, name: str) -> onnx.ModelProto:
        """All operators, in the file's order."""
        for number in range(self._graph.OperatorsLength()):
            operator = self._graph.Operators(number)
            kind = self._operator_name(operator)
            if kind not in _OPERATORS:
                known = ", ".join(sorted(_OPERATORS))
                raise self._error(f"operator {kind} is not known; there are {known}")
            inputs = [int(one) for one in operator.InputsAsNumpy()]
            self._call(kind, int(operator.Outputs(0)))
            _OPERATORS[kind](self, self._options(operator, kind), inputs, int(operator.Outputs(0)))
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

    def _error(self, message: str) -> WorkloadError:
        return WorkloadError(f"{self._where}: {message}")

    def _operator_name(self, operator: Any) -> str:
        code = self._file.OperatorCodes(operator.OpcodeIndex())
        return self._operator_names[max(code.BuiltinCode(), code.DeprecatedBuiltinCode())]

    def _options(self, operator: Any, kind: str) -> Any:
        if kind not in OPERATOR_FIELDS:
            return None
        found, table = getattr(self._tflite, OPERATOR_FIELDS[kind])(), operator.BuiltinOptions()
        found.Init(table.Bytes, table.Pos)
        return found

    def _shape(self, tensor: int) -> tuple[int, ...]:
        return tuple(int(side) for side in self._graph.Tensors(tensor).ShapeAsNumpy())

    def _turned(self, tensor: int) -> tuple[int, ...]:
        """The shape with channels in front."""
        shape = self._shape(tensor)
        if len(shape) != 4:
            return shape
        return (shape[0], shape[3], *shape[1:3])

    def _kinds_of_readers(self) -> dict[int, set[str]]:
        """The operators that read each tensor."""
        found: dict[int, set[str]] = {}
        for number in range(self._graph.OperatorsLength()):
            operator = self._graph.Operators(number)
            for tensor in operator.InputsAsNumpy():
                found.setdefault(int(tensor), set()).add(self._operator_name(operator))
        return found

    def _call(self, kind: str, output: int) -> None:
        """Name what an operator makes after its kind: conv1, conv2, depthwise1."""
        short = NAMES.get(kind, kind.lower())
        self._counts[short] = self._counts.get(short, 0) + 1
        if output not in self._graph.OutputsAsNumpy():
            self._names[output] = f"{short}{self._counts[short]}"

    def _name(self, tensor: int) -> str:
        return self._names.get(tensor) or self._graph.Tensors(tensor).Name().decode()

    def _info(self, tensor: int) -> Any:
        kind = self._onnx.TensorProto.FLOAT
        return self._onnx.helper.make_tensor_value_info(
            self._name(tensor), kind, self._turned(tensor)
        )

    def constant(self, tensor: int) -> NDArray[Any]:
        """The values of a constant, as the file has them; a sparse one is made dense."""
        if tensor in self._values:
            return self._values[tensor]
        entry = self._graph.Tensors(tensor)
        buffer = self._file.Buffers(entry.Buffer())
        if not buffer.DataLength() or entry.Type() not in KINDS:
            raise self._error(f"{self._name(tensor)} must be a constant of floats or integers")
        stored = np.frombuffer(buffer.DataAsNumpy().tobytes(), KINDS[entry.Type()])
        shape, sparsity = self._shape(tensor), entry.Sparsity()
        if sparsity is None:
            return stored.reshape(shape)
        rows = self._dense_rows(tensor, sparsity, stored)
        return rows.reshape(shape)

    def _dense_rows(self, tensor: int, sparsity: Any, stored: NDArray[Any]) -> NDArray[Any]:
        axes = [sparsity.DimMetadata(axis) for axis in range(sparsity.DimMetadataLength())]
        order = list(sparsity.TraversalOrderAsNumpy())
        formats = [axis.Format() for axis in axes]
        shape = self._shape(tensor)
        if order != list(range(len(shape))) or formats != [0] * (len(shape) - 1) + [1]:
            raise self._error(
                f"{self._name(tensor)} must have dense axes and the innermost one compressed"
            )
        starts = self._indices(axes[-1].ArraySegmentsType(), axes[-1].ArraySegments())
        columns = self._indices(axes[-1].ArrayIndicesType(), axes[-1].ArrayIndices())
        dense = np.zeros((int(np.prod(shape[:-1])), shape[-1]), stored.dtype)
        dense[np.repeat(np.arange(len(dense)), np.diff(starts)), columns] = stored
        return dense

    def _indices(self, kind: int, table: Any) -> NDArray[np.int64]:
        """Of SparseIndexVector: 1 to 3 are numbers of 32, 16 and 8 bits."""
        name = {1: "Int32Vector", 2: "Uint16Vector", 3: "Uint8Vector"}[kind]
        vector = getattr(self._tflite, name)()
        vector.Init(table.Bytes, table.Pos)
        return vector.ValuesAsNumpy().astype(np.int64)

    def _keep(self, name: str, values: NDArray[Any]) -> str:
        self._made.append(self._onnx.numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name

    def _add(self, operator: str, inputs: list[str], output: str, **attributes: Any) -> None:
        node = self._onnx.helper.make_node(operator, inputs, [output], name=output, **attributes)
        self._nodes.append(node)

    def _add_active(
        self, activation: int, operator: str, inputs: list[str], output: int, **attributes: Any
    ) -> None:
        """A node, and the ReLU that TFLite has fused into it."""
        name = self._name(output)
        if activation not in (0, 1):
            raise self._error(f"{name}: the activation must be none or ReLU, not {activation}")
        if not activation:
            self._add(operator, inputs, name, **attributes)
            return
        self._add(operator, inputs, f"{name}/sum", **attributes)
        self._add("Relu", [f"{name}/sum"], name)

    def same_values(self, _: Any, inputs: list[int], output: int) -> None:
        """DENSIFY, DEQUANTIZE of constants in half precision."""
        self._values[output] = self.constant(inputs[0]).astype(np.float32)

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
        self._add("Pad", [self._name(inputs[0]), kept], self._name(output))

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
        arrays = {"weight": turned, "bias": self.constant(inputs[2])}
        constants = [
            self._keep(f"{name}/{part}", array.astype(np.float32)) for part, array in arrays.items()
        ]
        self._add_active(
            options.FusedActivationFunction(), "Conv", [self._name(source), *constants], output,
            kernel_shape=turned.shape[2:], strides=strides, dilations=dilations, pads=pads,
            group=self._shape(source)[3] if depthwise else 1,
        )  # fmt: skip

    def addition(self, options: Any, inputs: list[int], output: int) -> None:
        names = [self._name(one) for one in inputs]
        self._add_active(options.FusedActivationFunction(), "Add", names, output)

    def relu(self, _: Any, inputs: list[int], output: int) -> None:
        self._add("Relu", [self._name(inputs[0])], self._name(output))

    def max_pool(self, options: Any, inputs: list[int], output: int) -> None:
        kernel = options.FilterHeight(), options.FilterWidth()
        strides = options.StrideH(), options.StrideW()
        pads = NO_PADS
        if options.Padding() == self._tflite.Padding.SAME:
            pads = _same_pads(self._shape(inputs[0])[1:3], kernel, strides, (1, 1))
        self._add_active(
            options.FusedActivationFunction(), "MaxPool", [self._name(inputs[0])], output,
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
            "Resize", [self._name(inputs[0]), "", "", sizes], self._name(output),
            mode="linear", coordinate_transformation_mode=mode,
        )  # fmt: skip

    def depth_to_space(self, options: Any, inputs: list[int], output: int) -> None:
        names = [self._name(inputs[0])], self._name(output)
        self._add("DepthToSpace", *names, blocksize=options.BlockSize(), mode="DCR")

    def reshape(self, _: Any, inputs: list[int], output: int) -> None:
        """Of [N, H, W, C]."""
        name = self._name(output)
        self._add("Transpose", [self._name(inputs[0])], f"{name}/last", perm=(0, 2, 3, 1))
        shape = self._keep(f"{name}/shape", np.array(self._shape(output), np.int64))
        self._add("Reshape", [f"{name}/last", shape], name)


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
    "DEQUANTIZE": _Reader.same_values,
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
