"""Small quantised ONNX models, drawn from a seed, and what ONNX Runtime computes of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

TYPES = {
    "float32": TensorProto.FLOAT,
    "int8": TensorProto.INT8,
    "uint8": TensorProto.UINT8,
    "int32": TensorProto.INT32,
}
WEIGHT_LIMIT = 63
"""With it kernels of CPUs without VNNI, which add two products in 16 bits, are exact too."""


@dataclass(frozen=True, kw_only=True)
class Shape:
    """Of a convolution: filters, channels a group, groups, plane, kernel, strides, dilation, pads,
    images."""

    filters: int = 4
    depth: int = 3
    groups: int = 1
    plane: tuple[int, int] = (7, 5)
    kernel: tuple[int, int] = (3, 3)
    strides: tuple[int, int] = (1, 1)
    dilations: tuple[int, int] = (1, 1)
    pads: tuple[int, int, int, int] = (1, 1, 1, 1)
    batch: int = 1

    @property
    def ifmap(self) -> tuple[int, ...]:
        return (self.batch, self.depth * self.groups, *self.plane)

    @property
    def weight(self) -> tuple[int, ...]:
        return (self.filters * self.groups, self.depth, *self.kernel)

    @property
    def attributes(self) -> dict[str, Any]:
        return {
            "group": self.groups,
            "strides": self.strides,
            "dilations": self.dilations,
            "pads": self.pads,
        }


@dataclass(frozen=True, kw_only=True)
class Kinds:
    """Types of ifmap, weight and ofmap; whether weights have a scale a filter; what is added."""

    x: str = "uint8"
    w: str = "int8"
    y: str = "uint8"
    per_filter: bool = True
    bias: bool = True
    relu: bool = False
    zero_x: int | None = None
    zero_y: int | None = None


class Drawn:
    """Constants of one layer, drawn from a seed: name to array."""

    def __init__(self, shapes: tuple[tuple[int, ...], tuple[int, ...]], kinds: Kinds, *,
                 seed: int, filter_axis: int = 0, taps: int = 1) -> None:  # fmt: skip
        random = np.random.default_rng(seed)
        self.random, self.kinds, self.shapes = random, kinds, shapes
        count = shapes[1][filter_axis]
        x, y = np.iinfo(kinds.x), np.iinfo(kinds.y)
        zero_x = (
            random.integers(x.min, x.max, endpoint=True) if kinds.zero_x is None else kinds.zero_x
        )
        zero_y = (
            random.integers(y.min, y.max, endpoint=True) if kinds.zero_y is None else kinds.zero_y
        )
        middle = 128 if kinds.w == "uint8" else 0
        values = random.integers(-WEIGHT_LIMIT, WEIGHT_LIMIT, shapes[1], endpoint=True)
        scales = random.uniform(0.001, 0.02, count if kinds.per_filter else ()).astype(np.float32)
        zeros = np.full(scales.shape, middle + (5 if middle else 0))
        scale_x = np.float32(random.uniform(0.005, 0.05))
        reach = np.sqrt(taps) * 60 * 40 * scale_x * np.max(scales)
        bias = random.integers(-4000, 4000, count)
        self.x_type = kinds.x
        self.arrays: dict[str, Any] = {
            "w": (values + middle).astype(kinds.w),
            "ws": scales,
            "wz": zeros.astype(kinds.w),
            "xs": scale_x,
            "xz": np.array(zero_x, kinds.x),
            "ys": np.float32(reach / 100),
            "yz": np.array(zero_y, kinds.y),
            "b": bias.astype(np.int32),
            "bs": (scale_x * scales).astype(np.float32),
            "bz": np.zeros(scales.shape, np.int32),
        }

    def real(self, x: Any) -> Any:
        """What integers of the ifmap stand for."""
        centred = x.astype(np.float32) - np.float32(self.arrays["xz"])
        return centred * self.arrays["xs"]

    @property
    def input(self) -> Any:
        """Integers over the whole range of the type."""
        kind = np.iinfo(self.x_type)
        return self.random.integers(kind.min, kind.max, self.shapes[0], endpoint=True).astype(
            self.x_type
        )


def model_of(nodes: list[Any], drawn: Drawn, opset: int = 17) -> onnx.ModelProto:
    """Of nodes between the input x and the output y, with the constants that they read."""
    read = {name for node in nodes for name in node.input}
    made = {name for node in nodes for name in node.output}
    assert "y" in made
    floats = nodes[0].op_type == "QuantizeLinear"
    sums = nodes[-1].op_type in ("ConvInteger", "MatMulInteger")
    graph = helper.make_graph(
        nodes,
        "quantised",
        [
            helper.make_tensor_value_info(
                "x", TYPES["float32" if floats else drawn.x_type], drawn.shapes[0]
            )
        ],
        [helper.make_tensor_value_info("y", TYPES["int32" if sums else drawn.kinds.y], None)],
        [
            numpy_helper.from_array(np.asarray(array), name)
            for name, array in drawn.arrays.items()
            if name in read
        ],
    )
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def runtime(
    model: onnx.ModelProto,
    feeds: dict[str, Any],
    outputs: list[str] | None = None,
    *,
    integers: bool = False,
) -> Any:
    """What ONNX Runtime computes for the outputs, or for y.

    integers: by kernels of integers for int8 too, where some processors' default is floats.
    """
    wanted = outputs or ["y"]
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    present = {value.name for value in copy.graph.output}
    copy.graph.output.extend(
        helper.make_empty_tensor_value_info(name) for name in wanted if name not in present
    )
    options = onnxruntime.SessionOptions()
    if integers:
        options.add_session_config_entry("session.qdqisint8allowed", "1")
    session = onnxruntime.InferenceSession(copy.SerializeToString(), options)
    found = session.run(wanted, feeds)
    return found if outputs else found[0]
