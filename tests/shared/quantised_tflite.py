"""Small quantised TFLite files of one operator or several, and TFLite's own interpreter."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

TYPES = {"int8": 9, "uint8": 3, "int32": 2, "float32": 0}


VERSIONS = {"CONV_2D": 3, "DEPTHWISE_CONV_2D": 3, "FULLY_CONNECTED": 4, "RESHAPE": 1}
"""Of operators, 2 where none is said: those that take int8."""


@dataclass(kw_only=True)
class Tensor:
    """scale, zero: None for plain values.  values: None for what is computed."""

    name: str
    shape: tuple[int, ...]
    kind: str
    scale: Any = None
    zero: int = 0
    axis: int = 0
    values: Any = None


@dataclass(kw_only=True)
class Operator:
    """code: of BuiltinOperator.  options: name of the table and its fields."""

    code: str
    inputs: list[int]
    output: int
    table: str = ""
    options: dict[str, int] = field(default_factory=dict[str, int])


def tflite_bytes(
    tensors: list[Tensor], operators: list[Operator], inputs: list[int], outputs: list[int]
) -> bytes:
    """The file, written with the builders of the package tflite."""
    return _Writer().file(tensors, operators, (inputs, outputs))


class _Writer:
    def __init__(self) -> None:
        import flatbuffers
        import tflite

        self._build = flatbuffers.Builder(1024)
        self._tflite: Any = tflite

    def _vector(self, values: Any, kind: str) -> int:
        return self._build.CreateNumpyVector(np.asarray(values, kind))

    def _offsets(self, made: list[int]) -> int:
        self._build.StartVector(4, len(made), 4)
        for one in reversed(made):
            self._build.PrependUOffsetTRelative(one)
        return self._build.EndVector()

    def _table(self, name: str, **fields: int | None) -> int:
        getattr(self._tflite, f"{name}Start")(self._build)
        for field_name, value in fields.items():
            if value is not None:
                getattr(self._tflite, f"{name}Add{field_name}")(self._build, value)
        return getattr(self._tflite, f"{name}End")(self._build)

    def file(
        self,
        tensors: list[Tensor],
        operators: list[Operator],
        ends: tuple[list[int], list[int]],
    ) -> bytes:
        buffers = [self._buffer(values) for values in (None, *(one.values for one in tensors))]
        entries = [self._tensor(number + 1, one) for number, one in enumerate(tensors)]
        codes = list(dict.fromkeys(one.code for one in operators))
        made_codes = [self._code(code) for code in codes]
        made = [self._operator(one, codes.index(one.code)) for one in operators]
        parts = {
            "Tensors": self._offsets(entries),
            "Inputs": self._vector(ends[0], "<i4"),
            "Outputs": self._vector(ends[1], "<i4"),
            "Operators": self._offsets(made),
            "Name": self._build.CreateString("main"),
        }
        graph = self._offsets([self._table("SubGraph", **parts)])
        known, stored = self._offsets(made_codes), self._offsets(buffers)
        whole = {"Version": 3, "OperatorCodes": known, "Subgraphs": graph, "Buffers": stored}
        self._build.Finish(self._table("Model", **whole), b"TFL3")
        return bytes(self._build.Output())

    def _buffer(self, values: Any) -> int:
        data = None
        if values is not None:
            data = self._vector(np.frombuffer(values.tobytes(), "u1"), "u1")
        return self._table("Buffer", Data=data)

    def _tensor(self, buffer: int, tensor: Tensor) -> int:
        name, shape = self._build.CreateString(tensor.name), self._vector(tensor.shape, "<i4")
        stands = None
        if tensor.scale is not None:
            scales = np.asarray(tensor.scale, "<f4").reshape(-1)
            scale = self._vector(scales, "<f4")
            zero = self._vector([tensor.zero] * len(scales), "<i8")
            stands = self._table(
                "QuantizationParameters",
                Scale=scale,
                ZeroPoint=zero,
                QuantizedDimension=tensor.axis,
            )
        return self._table(
            "Tensor", Shape=shape, Type=TYPES[tensor.kind], Buffer=buffer, Name=name,
            Quantization=stands,
        )  # fmt: skip

    def _code(self, code: str) -> int:
        number = getattr(self._tflite.BuiltinOperator, code)
        return self._table(
            "OperatorCode",
            DeprecatedBuiltinCode=min(number, 127),
            Version=VERSIONS.get(code, 2),
            BuiltinCode=number,
        )

    def _operator(self, one: Operator, code: int) -> int:
        reads, writes = self._vector(one.inputs, "<i4"), self._vector([one.output], "<i4")
        kind = table = None
        if one.table:
            table = self._table(one.table, **one.options)
            kind = getattr(self._tflite.BuiltinOptions, one.table)
        return self._table(
            "Operator", OpcodeIndex=code, Inputs=reads, Outputs=writes, BuiltinOptionsType=kind,
            BuiltinOptions=table,
        )  # fmt: skip


def interpreted(file: Path, given: Any, *, plain: bool = False) -> list[Any]:
    """Outputs by TFLite's interpreter, as the file has them; `given` [N, H, W, C] or [N, K].

    plain: by its reference kernels, whose fixed-point rounding is another.
    """
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    kinds = OpResolverType.BUILTIN_REF if plain else OpResolverType.AUTO
    found = Interpreter(str(file), experimental_op_resolver_type=kinds)
    found.allocate_tensors()
    found.set_tensor(found.get_input_details()[0]["index"], given)
    found.invoke()
    return [found.get_tensor(one["index"]) for one in found.get_output_details()]
