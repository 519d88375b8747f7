"""Tensors of an ONNX file looked at before they are read: what a header says may be a lie."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from workloads.errors import WorkloadError
from workloads.limits import check_limit
from workloads.names import printable

if TYPE_CHECKING:
    import onnx

BITS = {
    1: 32, 2: 8, 3: 8, 4: 16, 5: 16, 6: 32, 7: 64, 9: 8, 10: 16, 11: 64, 12: 32, 13: 64, 14: 64,
    15: 128, 16: 16, 17: 8, 18: 8, 19: 8, 20: 8, 21: 4, 22: 4, 23: 4, 24: 8, 25: 2, 26: 2,
}  # fmt: skip
"""Of an element by TensorProto.DataType; texts (8) have none."""

STRINGS = 8

FIELDS = {
    1: "float_data", 7: "int64_data", 11: "double_data", 12: "uint64_data", 13: "uint64_data",
    14: "float_data", 15: "double_data", STRINGS: "string_data",
}  # fmt: skip
"""Where elements are that are not raw bytes; others are in int32_data."""


def check_tensor(tensor: onnx.TensorProto, where: str) -> None:
    """Raise WorkloadError unless a tensor holds what its dimensions and type say, within limits."""
    kind = tensor.data_type
    what = f"{where}: constant {printable(tensor.name)!r}"
    count = _elements(tensor.dims, what)
    check_limit("elements", count, f"{what}: elements")
    if kind not in BITS and kind != STRINGS:
        raise WorkloadError(f"{what} must be of a known type, not of type {kind}")
    if tensor.data_location == tensor.EXTERNAL:
        return
    bits = BITS.get(kind, 0)
    if tensor.HasField("raw_data"):
        found, wanted, unit = len(tensor.raw_data), byte_size(tensor), "bytes"
    else:
        found, wanted, unit = _listed(tensor, count, bits)
    if found != wanted:
        raise WorkloadError(f"{what} must have {wanted:,} {unit} for its shape, not {found:,}")


def byte_size(tensor: onnx.TensorProto) -> int:
    """Bytes of a tensor's elements, packed."""
    return -(-prod(tensor.dims) * BITS.get(tensor.data_type, 0) // 8)


def _elements(dims: Any, what: str) -> int:
    if any(side < 0 for side in dims):
        raise WorkloadError(f"{what}: dimensions must be zero or positive, not {min(dims)}")
    for side in dims:
        check_limit("size", side, f"{what}: a dimension")
    return prod(dims)


def _listed(tensor: onnx.TensorProto, count: int, bits: int) -> tuple[int, int, str]:
    """Elements that there are in their field, those wanted, and what they are."""
    field = FIELDS.get(tensor.data_type, "int32_data")
    each = 2 if tensor.data_type in (14, 15) else 1
    packed = 8 // bits if 0 < bits < 8 else 1
    return len(getattr(tensor, field)), -(-count * each // packed), "elements"


def check_sparse(sparse: onnx.SparseTensorProto, where: str) -> None:
    """The same of a sparse tensor, whose indices must lie within it."""
    what = f"{where}: sparse constant {printable(sparse.values.name)!r}"
    count = _elements(sparse.dims, what)
    check_limit("elements", count, f"{what}: elements")
    rows, axes = prod(sparse.values.dims), len(sparse.dims)
    if sparse.indices.data_type != 7 or list(sparse.indices.dims) not in ([rows], [rows, axes]):
        raise WorkloadError(f"{what} must have {rows} int64 indices, or as many rows of {axes}")


def check_indices(places: Any, dims: tuple[int, ...], what: str) -> None:
    """Raise WorkloadError for indices [values] of the flat tensor, or [values, axes], beyond it."""
    most = (prod(dims),) if places.ndim == 1 else dims
    if places.size and ((places < 0).any() or (places >= list(most)).any()):
        raise WorkloadError(f"{what}: indices of a sparse constant must lie within {dims}")


__all__ = ["byte_size", "check_indices", "check_sparse", "check_tensor"]
