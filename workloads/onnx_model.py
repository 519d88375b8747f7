"""ONNX models made ready to be read: loaded, checked, their dimensions fixed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workloads.checks import positive
from workloads.errors import WorkloadError
from workloads.onnx_border import (
    check_model_sizes,
    read_counted,
    say_external_sizes,
)
from workloads.onnx_external import read_external
from workloads.optional import load_optional

if TYPE_CHECKING:
    import onnx


def onnx_package() -> Any:
    """The package `onnx`; raises WorkloadError if it is not installed."""
    return load_optional("onnx", install="onnx", purpose="reading an ONNX model")


def load_model(path_or_model: str | Path | onnx.ModelProto) -> onnx.ModelProto:
    """A copy of the model with a non-empty graph and local functions inlined.

    Raises WorkloadError for a missing, broken or non-ONNX file.
    """
    package = onnx_package()
    if isinstance(path_or_model, str | Path):
        model = _read(package, Path(path_or_model))
        where = str(path_or_model)
    else:
        model = package.ModelProto()
        model.CopyFrom(path_or_model)
        where = model.graph.name or "model"
    if not model.HasField("graph") or not model.graph.node or not model.opset_import:
        raise WorkloadError(f"{where}: not an ONNX model: it holds no graph of operators")
    check_model_sizes(model, where)
    if isinstance(path_or_model, str | Path):
        say_external_sizes(model, where)
        read_external(model, Path(path_or_model))
    if model.functions:
        inliner = load_optional("onnx.inliner", install="onnx", purpose="reading an ONNX model")
        try:
            model = inliner.inline_local_functions(model)
        except Exception as error:  # the checker's, which is no class of Python's
            raise WorkloadError(f"{where}: functions cannot be inlined: {error}") from error
    return model


def _read(package: Any, path: Path) -> onnx.ModelProto:
    """The model as the file has it, its external data not read."""
    data = read_counted(path, package.ModelProto)
    try:
        return package.ModelProto.FromString(data)
    except Exception as error:  # protobuf's own
        raise WorkloadError(f"{path}: not an ONNX model, or a broken one: {error}") from error


def check_model(model: onnx.ModelProto, where: str) -> None:
    """Raise WorkloadError with the finding of ONNX's own checker, if it has one.

    The checker demands that outputs have shapes, which inference will find: an output without
    one gets an empty one, in place.
    """
    for value in model.graph.output:
        if value.type.HasField("tensor_type"):
            value.type.tensor_type.shape.SetInParent()
    checker = load_optional("onnx.checker", install="onnx", purpose="reading an ONNX model")
    try:
        checker.check_model(model)
    except checker.ValidationError as error:
        finding = str(error).strip().splitlines()[0]
        raise WorkloadError(f"{where}: not a valid ONNX model: {finding}") from error


def check_nodes(model: onnx.ModelProto, nodes: Iterable[onnx.NodeProto], where: str) -> None:
    """`check_model` for single nodes of a model that has others which the checker does not know."""
    checker = load_optional("onnx.checker", install="onnx", purpose="reading an ONNX model")
    context = checker.C.CheckerContext()
    context.ir_version = model.ir_version
    context.opset_imports = {one.domain: one.version for one in model.opset_import}
    for node in nodes:
        try:
            checker.check_node(node, context)
        except checker.ValidationError as error:
            finding = str(error).strip().splitlines()[0]
            raise WorkloadError(f"{where}: not a valid ONNX model: {finding}") from error


def known_before(model: onnx.ModelProto) -> list[str]:
    """The tensors that are there before the first node: inputs and constants."""
    graph = model.graph
    sparse = (tensor.values.name for tensor in graph.sparse_initializer)
    return [*(one.name for one in (*graph.input, *graph.initializer)), *sparse]


def runtime_inputs(model: onnx.ModelProto) -> list[onnx.ValueInfoProto]:
    """Inputs of the graph which are given at run time, initialisers excepted."""
    constant = {tensor.name for tensor in model.graph.initializer}
    return [value for value in model.graph.input if value.name not in constant]


def dimension_name(value: onnx.ValueInfoProto, axis: int) -> str:
    """Name by which a dynamic dimension is given: its own, or "INPUT:AXIS" if it has none.

    Some exporters write "?" for every unknown dimension, which names none.
    """
    named = value.type.tensor_type.shape.dim[axis].dim_param
    return named if named not in ("", "?") else f"{value.name}:{axis}"


def dims_of_inputs(model: onnx.ModelProto, inputs: Mapping[str, Any]) -> dict[str, int]:
    """The dynamic dimensions as the arrays of `inputs` (by input name) have them."""
    dims: dict[str, int] = {}
    for value in runtime_inputs(model):
        shape = value.type.tensor_type.shape
        given = inputs.get(value.name)
        if given is not None and len(given.shape) == len(shape.dim):
            for axis, dim in enumerate(shape.dim):
                if dim.dim_value <= 0:
                    dims[dimension_name(value, axis)] = int(given.shape[axis])
    return dims


def fix_dimensions(model: onnx.ModelProto, dims: Mapping[str, int], where: str) -> None:
    """Give every dynamic dimension of the inputs its value from `dims`, in place.

    Raises WorkloadError for a dimension which is dynamic and not given, for a name which no
    dimension bears, and for a value which is not positive.
    """
    found: set[str] = set()
    missing: dict[str, str] = {}
    for value in runtime_inputs(model):
        if not value.type.tensor_type.HasField("shape"):
            raise WorkloadError(f"{where}: input {value.name!r} must have a shape, not none")
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            if dim.dim_value > 0:
                continue
            name = dimension_name(value, axis)
            found.add(name)
            if name in dims:
                positive(where, **{name: dims[name]})
                dim.dim_value = dims[name]
            else:
                missing.setdefault(name, value.name)
    for name, tensor in missing.items():
        flags = " ".join(f"--dim {each}=1" for each in missing)
        raise WorkloadError(
            f"{where}: dimension {name!r} of input {tensor!r} is dynamic and not given; "
            f"give it with {flags} (or another size)"
        )
    for name in dims:
        if name not in found:
            raise WorkloadError(
                f"{where}: no dynamic dimension is named {name!r}; "
                f"there are {', '.join(sorted(found)) or 'none'}"
            )
    _drop_stale(model, dims)


def _drop_stale(model: onnx.ModelProto, dims: Mapping[str, int]) -> None:
    keep: list[onnx.ValueInfoProto] = []
    for value in model.graph.value_info:
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param in dims:
                dim.dim_value = dims[dim.dim_param]
        if all(dim.HasField("dim_value") for dim in value.type.tensor_type.shape.dim):
            keep.append(value)
    del model.graph.value_info[:]
    model.graph.value_info.extend(keep)
    for value in model.graph.output:
        if value.type.HasField("tensor_type"):
            value.type.tensor_type.ClearField("shape")


def known_shapes(model: onnx.ModelProto) -> dict[str, tuple[int, ...]]:
    """Shapes of all tensors of which every dimension is known."""
    shapes: dict[str, tuple[int, ...]] = {
        tensor.name: tuple(tensor.dims) for tensor in model.graph.initializer
    }
    graph = model.graph
    shapes |= {sparse.values.name: tuple(sparse.dims) for sparse in graph.sparse_initializer}
    for value in (*graph.input, *graph.value_info, *graph.output):
        kind = value.type.tensor_type
        if kind.HasField("shape") and all(dim.HasField("dim_value") for dim in kind.shape.dim):
            shapes[value.name] = tuple(dim.dim_value for dim in kind.shape.dim)
    return shapes


def known_types(model: onnx.ModelProto) -> dict[str, int]:
    """Types of elements (TensorProto.DataType) as far as they are said."""
    graph = model.graph
    types = {tensor.name: tensor.data_type for tensor in graph.initializer}
    for value in (*graph.input, *graph.value_info, *graph.output):
        types.setdefault(value.name, value.type.tensor_type.elem_type)
    return types
