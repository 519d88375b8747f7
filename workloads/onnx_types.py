"""Types of a model's tensors: what is known of an element and a shape."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, cast

from numpy.typing import NDArray

from workloads.onnx_model import onnx_package

if TYPE_CHECKING:
    import onnx


def element_type(value: NDArray[Any]) -> int:
    """ONNX's number of an array's element type."""
    return int(onnx_package().helper.np_dtype_to_tensor_dtype(value.dtype))


def tensor_type(element: int, dims: Iterable[int]) -> onnx.TypeProto:
    """Of a tensor of elements of ONNX's number `element`, and of these sizes."""
    return onnx_package().helper.make_tensor_type_proto(element, list(dims))


def shape_of(kind: onnx.TypeProto | None) -> tuple[int, ...] | None:
    """Sizes of a tensor; None where not every dimension is known."""
    if kind is None or not kind.tensor_type.HasField("shape"):
        return None
    dims = kind.tensor_type.shape.dim
    return tuple(dim.dim_value for dim in dims) if all(_has_value(dim) for dim in dims) else None


def _has_value(dim: Any) -> bool:
    return bool(dim.HasField("dim_value"))


def is_complete(kind: onnx.TypeProto | None) -> bool:
    """Whether every dimension is known."""
    return shape_of(kind) is not None


def size_of(dims: Iterable[Any]) -> int:
    """Elements of a tensor of these sizes."""
    size = 1
    for dim in dims:
        size *= int(cast("int", dim))
    return size


__all__ = ["element_type", "is_complete", "shape_of", "size_of", "tensor_type"]
