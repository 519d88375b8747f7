"""The structure of a TFLite file: tensors, constants, operators, what integers stand for.

Read by the package tflite, which is made from TFLite's own schema.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workloads.affine import IntegerType, integer_type
from workloads.errors import WorkloadError
from workloads.limits import check_limit
from workloads.optional import load_optional

KINDS = {
    0: np.float32,
    1: np.float16,
    2: np.int32,
    3: np.uint8,
    4: np.int64,
    7: np.int16,
    9: np.int8,
}
"""By TensorType."""

MOST_INPUTS = 4096
"""Of an operator; operators may share the list of theirs."""

OPERATOR_FIELDS = {
    "CONV_2D": "Conv2DOptions",
    "DEPTHWISE_CONV_2D": "DepthwiseConv2DOptions",
    "FULLY_CONNECTED": "FullyConnectedOptions",
    "ADD": "AddOptions",
    "RESIZE_BILINEAR": "ResizeBilinearOptions",
    "DEPTH_TO_SPACE": "DepthToSpaceOptions",
    "MAX_POOL_2D": "Pool2DOptions",
    "AVERAGE_POOL_2D": "Pool2DOptions",
    "CONCATENATION": "ConcatenationOptions",
    "MEAN": "ReducerOptions",
    "SOFTMAX": "SoftmaxOptions",
}
"""The table of an operator's options."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Quantised:
    """real = (integer − zero) · scale; of one or, along `axis` of the file's tensor, of several."""

    scale: NDArray[np.float32]
    zero: NDArray[np.int64]
    axis: int
    kind: IntegerType


class TfliteFile:
    """Look-ups in the first graph of a file.  Raises WorkloadError for what is no TFLite model."""

    def __init__(self, file: Path) -> None:
        self._tflite: Any = load_optional(
            "tflite", install="tflite", purpose="reading a TFLite model"
        )
        self._where = str(file)
        if not file.is_file():
            raise WorkloadError(f"{file}: no such file; a TFLite model (.tflite) is needed")
        try:
            check_limit("file_mib", file.stat().st_size >> 20, f"{file}: MiB")
            data = file.read_bytes()
        except OSError as error:
            raise WorkloadError(f"{file}: cannot be read: {error.strerror or error}") from error
        if data[4:8] != b"TFL3":
            raise WorkloadError(f"{file}: not a TFLite model (no TFL3 at byte 4)")
        self._file = self._tflite.Model.GetRootAs(data, 0)
        self._graph = self._file.Subgraphs(0)
        codes: dict[str, Any] = self._tflite.BuiltinOperator.__dict__
        self._operator_names = {code: name for name, code in codes.items()}
        self._values: dict[int, NDArray[Any]] = {}
        self._readers = self._kinds_of_readers()

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

    def _kinds_of_readers(self) -> dict[int, set[str]]:
        """The operators that read each tensor."""
        found: dict[int, set[str]] = {}
        check_limit("nodes", self._graph.OperatorsLength(), f"{self._where}: operators")
        for number in range(self._graph.OperatorsLength()):
            operator = self._graph.Operators(number)
            if operator.InputsLength() > MOST_INPUTS:
                raise self._error(f"an operator must have at most {MOST_INPUTS} inputs")
            for tensor in operator.InputsAsNumpy():
                found.setdefault(int(tensor), set()).add(self._operator_name(operator))
        return found

    def _is_constant(self, tensor: int) -> bool:
        """Whether the file, or what was made of it, has its values."""
        buffer = self._file.Buffers(self._graph.Tensors(tensor).Buffer())
        return tensor in self._values or bool(buffer.DataLength())

    def _raw_name(self, tensor: int) -> str:
        return self._graph.Tensors(tensor).Name().decode()

    def _quantised(self, tensor: int) -> Quantised | None:
        """How a tensor's integers stand for numbers; None for floats, and for plain integers."""
        entry = self._graph.Tensors(tensor)
        found = entry.Quantization()
        kind = integer_type(np.dtype(KINDS.get(entry.Type(), np.float32)).name)
        if kind is None or found is None or not found.ScaleLength():
            return None
        scale = np.array(found.ScaleAsNumpy(), np.float32)
        zero = np.zeros(len(scale), np.int64)
        if found.ZeroPointLength():
            zero = zero + np.array(found.ZeroPointAsNumpy(), np.int64)
        return Quantised(scale=scale, zero=zero, axis=found.QuantizedDimension(), kind=kind)

    def constant(self, tensor: int) -> NDArray[Any]:
        """The values of a constant, as the file has them; a sparse one is made dense."""
        if tensor in self._values:
            return self._values[tensor]
        entry = self._graph.Tensors(tensor)
        buffer = self._file.Buffers(entry.Buffer())
        if not buffer.DataLength() or entry.Type() not in KINDS:
            raise self._error(f"{self._raw_name(tensor)} must be a constant of floats or integers")
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
                f"{self._raw_name(tensor)} must have dense axes and the innermost one compressed"
            )
        starts = self._indices(axes[-1].ArraySegmentsType(), axes[-1].ArraySegments())
        columns = self._indices(axes[-1].ArrayIndicesType(), axes[-1].ArrayIndices())
        check_limit(
            "elements", int(np.prod(shape, dtype=object)), f"{self._raw_name(tensor)}: elements"
        )
        dense = np.zeros((int(np.prod(shape[:-1])), shape[-1]), stored.dtype)
        dense[np.repeat(np.arange(len(dense)), np.diff(starts)), columns] = stored
        return dense

    def _indices(self, kind: int, table: Any) -> NDArray[np.int64]:
        """Of SparseIndexVector: 1 to 3 are numbers of 32, 16 and 8 bits."""
        name = {1: "Int32Vector", 2: "Uint16Vector", 3: "Uint8Vector"}[kind]
        vector = getattr(self._tflite, name)()
        vector.Init(table.Bytes, table.Pos)
        return vector.ValuesAsNumpy().astype(np.int64)


__all__ = ["KINDS", "Quantised", "TfliteFile"]
