"""ONNX models made ready to be read: loaded, checked, their dimensions fixed, shapes inferred."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from workloads.checks import positive
from workloads.errors import WorkloadError
from workloads.optional import load_optional

if TYPE_CHECKING:
    import onnx

FOLD_LIMIT = 1 << 20
"""Elements up to which a constant sub-graph is evaluated while shapes are inferred."""
_ROUNDS = 8


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
    if model.functions:
        inliner = load_optional("onnx.inliner", install="onnx", purpose="reading an ONNX model")
        model = inliner.inline_local_functions(model)
    return model


def _read(package: Any, path: Path) -> onnx.ModelProto:
    if not path.is_file():
        raise WorkloadError(f"{path}: no such file; an ONNX model (.onnx) is needed")
    try:
        return package.load(path)
    except OSError as error:
        raise WorkloadError(f"{path}: cannot be read: {error.strerror or error}") from error
    except Exception as error:  # protobuf, checker and external-data errors share no base class
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


def infer_shapes(model: onnx.ModelProto, where: str) -> onnx.ModelProto:
    """The model with the shapes which ONNX's inference finds, constants folded as it needs.

    A round infers, then evaluates the operators whose inputs are all known and whose result
    is small (shapes of shapes); rounds end when a round finds nothing new. Raises WorkloadError.
    """
    inference = load_optional("onnx.shape_inference", install="onnx", purpose="shape inference")
    for _ in range(_ROUNDS):
        try:
            model = inference.infer_shapes(model, data_prop=True)
        except Exception as error:  # InferenceError, or a protobuf limit of 2 GiB
            raise WorkloadError(f"{where}: shape inference fails: {error}") from error
        shapes = known_shapes(model)
        outputs = (name for node in model.graph.node for name in node.output if name)
        if all(name in shapes for name in outputs) or not _fold(model, shapes):
            break
    return model


def known_shapes(model: onnx.ModelProto) -> dict[str, tuple[int, ...]]:
    """Shapes of all tensors of which every dimension is known."""
    shapes: dict[str, tuple[int, ...]] = {
        tensor.name: tuple(tensor.dims) for tensor in model.graph.initializer
    }
    graph = model.graph
    for value in (*graph.input, *graph.value_info, *graph.output):
        kind = value.type.tensor_type
        if kind.HasField("shape") and all(dim.HasField("dim_value") for dim in kind.shape.dim):
            shapes[value.name] = tuple(dim.dim_value for dim in kind.shape.dim)
    return shapes


def _fold(model: onnx.ModelProto, shapes: Mapping[str, tuple[int, ...]]) -> bool:
    """Replace evaluable small nodes by initialisers, in place; whether there were any."""
    helper = load_optional("onnx.numpy_helper", install="onnx", purpose="reading ONNX")
    known: dict[str, Any] = {
        tensor.name: helper.to_array(tensor)
        for tensor in model.graph.initializer
        if _size(tensor.dims) <= FOLD_LIMIT
    }
    kept: list[onnx.NodeProto] = []
    for node in model.graph.node:
        values = _evaluate(model, node, known, shapes)
        if values is None:
            kept.append(node)
            continue
        for name, value in values.items():
            known[name] = value
            model.graph.initializer.append(helper.from_array(value, name))
    changed = len(kept) < len(model.graph.node)
    del model.graph.node[:]
    model.graph.node.extend(kept)
    return changed


def _evaluate(
    model: onnx.ModelProto,
    node: onnx.NodeProto,
    known: Mapping[str, Any],
    shapes: Mapping[str, tuple[int, ...]],
) -> dict[str, Any] | None:
    """Values of a node's outputs, or None where its inputs are not known or the result large."""
    import numpy as np

    inputs = [name for name in node.input if name]
    if node.op_type == "Shape" and not node.attribute and inputs[0] in shapes:
        return {node.output[0]: np.array(shapes[inputs[0]], np.int64)}
    if node.domain not in ("", "ai.onnx") or any(name not in known for name in inputs):
        return None
    if any(_size(shapes.get(name, ())) > FOLD_LIMIT for name in node.output):
        return None
    if node.op_type == "ConstantOfShape" and _size(known[inputs[0]]) > FOLD_LIMIT:
        return None
    if node.op_type.startswith(("Random", "Bernoulli", "Multinomial")):
        return None
    reference = load_optional("onnx.reference", install="onnx", purpose="reading an ONNX model")
    try:
        run = reference.ReferenceEvaluator(node).run(None, {name: known[name] for name in inputs})
    except Exception:  # an operator which the reference cannot run alone is left in the graph
        return None
    return dict(zip(node.output, (np.asarray(value) for value in run), strict=True))


def _size(dims: Iterable[Any]) -> int:
    size = 1
    for dim in dims:
        size *= int(cast("int", dim))
    return size
