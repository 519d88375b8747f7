"""The border of ONNX: a model's sizes against the limits, before anything makes room for them.

A file is counted before it is parsed, functions before they are written out, tensors before they
are read, dimensions before shapes are inferred.  `workloads.limits` has the limits.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workloads.errors import WorkloadError
from workloads.limits import HIGHEST, check_limit, limits
from workloads.names import printable
from workloads.onnx_calls import check_calls
from workloads.onnx_tensors import byte_size, check_sparse, check_tensor
from workloads.onnx_walk import all_graphs, all_nodes, all_sparse, all_tensors
from workloads.wire import DEEPEST, count_messages

if TYPE_CHECKING:
    import onnx

    Node = onnx.NodeProto

PARTS_PER_NODE = 16
"""Messages and texts of a file for each node that the limit allows."""

MOST_AXES = 64
"""Of a tensor; NumPy has no more."""

MALFORMED = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError)
"""What reading a node ends in that is not as its operator wants it."""

POSITIVE = ("kernel_shape", "strides", "dilations", "group", "hidden_size", "size", "blocksize",
            "num_outputs")  # fmt: skip
BOUNDED = (*POSITIVE, "pads", "output_padding", "output_shape", "block_size")
"""Attributes that are sizes; sizes have a limit."""

LISTS = (*BOUNDED, "perm", "axes")
"""Attributes with a number an axis, or two."""


@contextmanager
def malformed(where: str) -> Generator[None]:
    """Whatever a malformed model ends in, within, is a WorkloadError."""
    try:
        yield
    except WorkloadError:
        raise
    except MALFORMED as error:
        said = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise WorkloadError(
            f"{where}: a broken ONNX model: {said} ({type(error).__name__})"
        ) from error
    except MemoryError as error:
        raise WorkloadError(f"{where}: not enough memory for this model") from error


def read_counted(path: Path, kind: Any) -> bytes:
    """The bytes of a file of a serialised message (`kind`, such as ModelProto), counted."""
    if not path.is_file():
        raise WorkloadError(f"{path}: no such file; an ONNX model (.onnx) is needed")
    try:
        check_limit("file_mib", path.stat().st_size >> 20, f"{path}: MiB")
        data = path.read_bytes()
    except OSError as error:
        raise WorkloadError(f"{path}: cannot be read: {error.strerror or error}") from error
    nodes = limits().nodes
    most = {"": PARTS_PER_NODE * nodes, "onnx.NodeProto": nodes, "depth": DEEPEST}

    def count(name: str, number: int) -> None:
        if number <= most.get(name, number):
            return
        if name == "depth":
            raise WorkloadError(f"{path}: messages are nested deeper than {DEEPEST}")
        what = "nodes" if name else f"parts (of which a node may have {PARTS_PER_NODE})"
        check_limit("nodes", nodes + 1, f"{path}: {what}")

    count_messages(data, kind.DESCRIPTOR, count)
    return data


def check_model_sizes(model: onnx.ModelProto, where: str) -> None:
    """Raise WorkloadError for sizes of a model, as its file has it, that are beyond a limit."""
    check_calls(model, where)
    for graph in all_graphs(model):
        for value in (*graph.input, *graph.output, *graph.value_info):
            _check_dimensions(value, where)
    for tensor in all_tensors(model):
        check_tensor(tensor, where)
    for sparse in all_sparse(model):
        check_sparse(sparse, where)
    for node in all_nodes(model):
        _check_attributes(node, where)


def say_external_sizes(model: onnx.ModelProto, where: str) -> None:
    """Give each tensor outside the file the length that its header says, in place.

    Raises WorkloadError where the file says another, and for more than the limit in all.
    """
    total = 0
    for tensor in all_tensors(model):
        if tensor.data_location != tensor.EXTERNAL:
            continue
        size, what = byte_size(tensor), f"{where}: constant {printable(tensor.name)!r}"
        total += size
        check_limit("file_mib", total >> 20, f"{where}: MiB of external data")
        said = [one for one in tensor.external_data if one.key == "length"]
        for one in said:
            if one.value != str(size):
                raise WorkloadError(
                    f"{what} must have {size:,} bytes for its shape, not {printable(one.value)!r}"
                )
        if not said:
            tensor.external_data.add(key="length", value=str(size))


def check_structure(nodes: Iterable[Node], known: Iterable[str], where: str) -> None:
    """Raise WorkloadError unless every node makes something new of what was there before it.

    known: the tensors that are there before the first node.
    """
    seen = set(known)
    for node in nodes:
        shown = f"{where}: node {printable(node.name or node.op_type)!r}"
        if not any(node.output):
            raise WorkloadError(f"{shown} must have an output, and has none")
        for name in node.input:
            if name and name not in seen:
                raise WorkloadError(
                    f"{shown} reads {printable(name)!r}, which nothing before it writes"
                )
        for name in filter(None, node.output):
            if name in seen:
                raise WorkloadError(f"{shown} writes {printable(name)!r}, which is written twice")
            seen.add(name)


def check_shape(shape: tuple[int, ...], what: str) -> None:
    """Raise WorkloadError for a shape that no tensor has, or that is beyond the limit."""
    if len(shape) > MOST_AXES:
        raise WorkloadError(f"{what} must have at most {MOST_AXES} axes, not {len(shape)}")
    for side in shape:
        if side < 0:
            raise WorkloadError(f"{what}: dimensions must be zero or positive, not {side}")
        check_limit("size", side, f"{what}: a dimension")
    if prod(shape) > HIGHEST:
        raise WorkloadError(f"{what} must have at most 2^62 elements; make it smaller")


def _check_dimensions(value: onnx.ValueInfoProto, where: str) -> None:
    """Of an input, an output or what lies between; what is not said there counts as 1."""
    dims = value.type.tensor_type.shape.dim
    shape = tuple(dim.dim_value if dim.dim_value > 0 else 1 for dim in dims)
    check_shape(shape, f"{where}: tensor {printable(value.name)!r}")


def _check_attributes(node: Node, where: str) -> None:
    shown = f"{where}: node {printable(node.name or node.op_type)!r}"
    for one in node.attribute:
        values = (*one.ints, one.i) if one.HasField("i") else tuple(one.ints)
        if one.name in LISTS and len(values) > 2 * MOST_AXES:
            raise WorkloadError(
                f"{shown}: {one.name} must have at most {2 * MOST_AXES} numbers, not {len(values)}"
            )
        for value in values if one.name in BOUNDED else ():
            if value <= 0 and one.name in POSITIVE:
                raise WorkloadError(f"{shown}: {one.name} must be positive, not {value}")
            check_limit("size", abs(value), f"{shown}: {one.name}")


__all__ = [
    "check_model_sizes",
    "check_shape",
    "check_structure",
    "malformed",
    "read_counted",
    "say_external_sizes",
]
