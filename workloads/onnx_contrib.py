"""Shapes of the integer operators that ONNX Runtime has beside ONNX's own.

ONNX's inference does not know them. Each has a twin among ONNX's operators whose result is of the
same shape, so that shapes are inferred in a copy of the model where the twins stand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from workloads.errors import WorkloadError
from workloads.onnx_inference import infer_shapes
from workloads.onnx_model import onnx_package

if TYPE_CHECKING:
    import onnx

DOMAIN = "com.microsoft"

TWINS: dict[str, tuple[str, tuple[int, ...] | slice, tuple[str, ...]]] = {
    "QuantizeLinear": ("QuantizeLinear", slice(None), ("axis", "block_size")),
    "DequantizeLinear": ("DequantizeLinear", slice(None), ("axis", "block_size")),
    "QGemm": ("Gemm", (0, 3), ("transA", "transB")),
    "QLinearAdd": ("Add", (0, 3), ()),
    "QLinearMul": ("Mul", (0, 3), ()),
    "QLinearConcat": ("Concat", slice(2, None, 3), ("axis",)),
    "QLinearSigmoid": ("Identity", (0,), ()),
    "QLinearLeakyRelu": ("Identity", (0,), ()),
    "QLinearSoftmax": ("Identity", (0,), ()),
    "QLinearGlobalAveragePool": ("GlobalAveragePool", (0,), ()),
    "QLinearAveragePool": (
        "AveragePool",
        (0,),
        ("auto_pad", "ceil_mode", "count_include_pad", "kernel_shape", "pads", "strides"),
    ),
}
"""Operator, its inputs among ours, attributes that both have."""


def add_shapes(model: onnx.ModelProto) -> None:
    """Say in the model's value_info, in place, what shapes the twins' inference finds.

    Does nothing to a model without such operators, and says nothing of what cannot be inferred.
    """
    if not any(node.domain == DOMAIN and node.op_type in TWINS for node in model.graph.node):
        return
    copy = type(model)()
    copy.CopyFrom(model)
    for node in copy.graph.node:
        if node.domain == DOMAIN and node.op_type in TWINS and _channels_first(node):
            _turn(node)
    try:
        infer_shapes(copy, "")
    except WorkloadError:  # what is wrong with the model, the inference of the model itself says
        return
    present = {value.name for value in model.graph.value_info}
    ours = {name for node in model.graph.node if node.domain == DOMAIN for name in node.output}
    for value in copy.graph.value_info:
        if value.name not in present and value.name in ours:
            model.graph.value_info.append(value)


def _channels_first(node: onnx.NodeProto) -> bool:
    helper = onnx_package().helper
    values: dict[str, Any] = {
        one.name: helper.get_attribute_value(one)
        for one in node.attribute
        if one.name == "channels_last"
    }
    return not values.get("channels_last", 0)


def _turn(node: onnx.NodeProto) -> None:
    """Into its twin, in place."""
    operator, places, attributes = TWINS[node.op_type]
    inputs = list(node.input)
    kept = inputs[places] if isinstance(places, slice) else [inputs[at] for at in places]
    shared = [one for one in node.attribute if one.name in attributes]
    node.op_type, node.domain = operator, ""
    del node.input[:]
    node.input.extend(kept)
    del node.attribute[:]
    node.attribute.extend(shared)


__all__ = ["DOMAIN", "TWINS", "add_shapes"]
