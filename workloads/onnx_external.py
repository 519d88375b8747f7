"""Tensors whose values lie in files beside the model: checked before they are read, read when they
are wanted.

A file lies in the model's folder or one within it; its part, of `offset` and `length` bytes, holds
what the tensor's shape and type take.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from workloads.digits import whole
from workloads.errors import WorkloadError
from workloads.onnx_branches import bodies
from workloads.onnx_tensors import byte_size
from workloads.optional import load_optional

if TYPE_CHECKING:
    import onnx


def read_external(model: onnx.ModelProto, where: Path) -> None:
    """Put the values of a model's external tensors into it, in place.

    where: the model's file.  Raises WorkloadError for a file that is absent, outside the model's
    folder, too short or that cannot be read, and for a length that is not the tensor's.
    """
    package = load_optional("onnx", install="onnx", purpose="reading an ONNX model")
    external = package.TensorProto.EXTERNAL
    for tensor in _tensors(model.graph):
        if tensor.data_location == external:
            tensor.raw_data = _values(tensor, where)
            tensor.data_location = package.TensorProto.DEFAULT
            del tensor.external_data[:]


def _tensors(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    """Of a graph and of those within it."""
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield from (sparse.values, sparse.indices)
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            if attribute.HasField("sparse_tensor"):
                yield from (attribute.sparse_tensor.values, attribute.sparse_tensor.indices)
            yield from attribute.tensors
        for body in bodies(node):
            yield from _tensors(body)


def _values(tensor: onnx.TensorProto, where: Path) -> bytes:
    what = f"{where}: external data of tensor {tensor.name!r}"
    said = {entry.key: entry.value for entry in tensor.external_data}
    path = _inside(what, said.get("location", ""), where.resolve().parent)
    needed = byte_size(tensor)
    offset = _number(what, "offset", said.get("offset", "0"))
    length = _number(what, "length", said["length"]) if said.get("length") else needed
    if length != needed:
        raise WorkloadError(f"{what} must be {needed} bytes long, not {length}")
    try:
        size = path.stat().st_size
        if offset + length > size:
            raise WorkloadError(
                f"{what}: {path.name} must have {offset + length} bytes, not {size}"
            )
        with path.open("rb") as file:
            file.seek(offset)
            return file.read(length)
    except OSError as error:
        raise WorkloadError(f"{what}: {path.name}: {error.strerror or error}") from error


def _inside(what: str, location: str, folder: Path) -> Path:
    """The file, which neither its name nor a link may lead out of the model's folder."""
    if not location or "\0" in location or Path(location).is_absolute():
        raise WorkloadError(f"{what} must lie beside the model, not at {location[:200]!r}")
    try:
        path = (folder / location).resolve()
        present = path.is_file()
    except (OSError, RuntimeError) as error:  # a name that is too long, links in a circle
        raise WorkloadError(f"{what}: {location[:200]!r} cannot be found") from error
    if not path.is_relative_to(folder):
        raise WorkloadError(f"{what} must lie beside the model, not at {location[:200]!r}")
    if not present:
        raise WorkloadError(f"{what}: no such file: {location[:200]!r}")
    return path


def _number(what: str, name: str, text: str) -> int:
    number = whole(text)
    if number is None:
        raise WorkloadError(f"{what}: its {name} must be a whole number, not {text[:40]!r}")
    return number


__all__ = ["read_external"]
