"""Values of the small constants that shapes are computed from, node by node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from workloads.onnx_types import size_of
from workloads.optional import load_optional

if TYPE_CHECKING:
    import onnx

    Node = onnx.NodeProto

FOLD_LIMIT = 1 << 20
"""Elements up to which a constant is evaluated for what depends on it."""

EVALUATED = (
    "Abs", "Add", "And", "ArgMax", "ArgMin", "BitShift", "Cast", "Ceil", "Clip", "Compress",
    "Concat", "Constant", "ConstantOfShape", "CumSum", "Div", "Equal", "Exp", "Expand", "Flatten",
    "Floor", "Gather", "GatherElements", "GatherND", "Greater", "GreaterOrEqual", "Identity",
    "Less", "LessOrEqual", "Log", "Max", "Mean", "Min", "Mod", "Mul", "Neg", "NonZero", "Not",
    "OneHot", "Or", "Pad", "Pow", "Range", "Reciprocal", "ReduceMax", "ReduceMean", "ReduceMin",
    "ReduceProd", "ReduceSum", "Relu", "Reshape", "Round", "ScatterElements", "ScatterND", "Shape",
    "Sign", "Size", "Slice", "Split", "Sqrt", "Squeeze", "Sub", "Sum", "Tile", "TopK", "Transpose",
    "Trilu", "Unique", "Unsqueeze", "Where", "Xor",
)  # fmt: skip
"""Operators that shapes are computed with.  Each takes no longer than its operands and its result
are large, which convolutions and loops would."""

SELECTIONS = ("NonZero", "Unique", "Compress")
"""Operators whose result is as large as their input at most, and of a shape that values decide."""


def computed(
    model: onnx.ModelProto, node: Node, values: dict[str, NDArray[Any]]
) -> dict[str, NDArray[Any]]:
    """What a node makes of values; nothing where ONNX's reference cannot run it alone."""
    reference = load_optional("onnx.reference", install="onnx", purpose="reading an ONNX model")
    versions = {one.domain: one.version for one in model.opset_import}
    try:
        run = reference.ReferenceEvaluator(node, opsets=versions)
        made = run.run(None, {name: values[name] for name in node.input if name})
        arrays = [np.asarray(value) for value in made]
        return {name: one for name, one in zip(node.output, arrays, strict=True) if name}
    except Exception:
        return {}


def told_shape(node: Node, shape: tuple[int, ...]) -> NDArray[np.int64]:
    """What Shape or Size says."""
    if node.op_type == "Size":
        return np.array(size_of(shape), np.int64)
    ends = {one.name: one.i for one in node.attribute}
    return np.array(shape, np.int64)[ends.get("start", 0) : ends.get("end")]


__all__ = ["EVALUATED", "FOLD_LIMIT", "SELECTIONS", "computed", "told_shape"]
