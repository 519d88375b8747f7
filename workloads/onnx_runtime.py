"""One float run of a model in ONNX Runtime, with its intermediate tensors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from workloads.errors import WorkloadError
from workloads.onnx_model import runtime_inputs
from workloads.optional import load_optional

if TYPE_CHECKING:
    import onnx


def capture(
    model: onnx.ModelProto, inputs: Mapping[str, NDArray[Any]], tensors: Iterable[str]
) -> dict[str, NDArray[Any]]:
    """Values of `tensors` (any names of the graph) in one run on `inputs` (by input name).

    The model itself is not changed. Raises WorkloadError for an input which is absent, unknown
    or of another shape, and for whatever ONNX Runtime refuses.
    """
    runtime = load_optional("onnxruntime", install="onnxruntime", purpose="running a network")
    helper = load_optional("onnx.numpy_helper", install="onnx", purpose="reading ONNX")
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    wanted = list(dict.fromkeys(tensors))
    values: dict[str, NDArray[Any]] = _checked_inputs(model, inputs)
    fed = dict(values)
    values.update({n: helper.to_array(constants[n]) for n in wanted if n in constants})
    exposed = [name for name in wanted if name not in values]
    options = runtime.SessionOptions()
    options.log_severity_level = 3
    try:
        session = runtime.InferenceSession(
            _expose(model, exposed).SerializeToString(), options, ["CPUExecutionProvider"]
        )
        results: list[NDArray[Any]] = session.run(exposed, fed) if exposed else []
    except Exception as error:  # ONNX Runtime's errors share no public base class
        raise WorkloadError(f"{model.graph.name}: ONNX Runtime refuses it: {error}") from error
    values.update(zip(exposed, results, strict=True))
    return {name: values[name] for name in wanted}


def _expose(model: onnx.ModelProto, tensors: Iterable[str]) -> onnx.ModelProto:
    copy = type(model)()
    copy.CopyFrom(model)
    present = {value.name for value in copy.graph.output}
    for name in tensors:
        if name not in present:
            copy.graph.output.add(name=name)
    return copy


def _checked_inputs(
    model: onnx.ModelProto, inputs: Mapping[str, NDArray[Any]]
) -> dict[str, NDArray[Any]]:
    where = model.graph.name or "model"
    needed = {value.name: value for value in runtime_inputs(model)}
    for name in inputs:
        if name not in needed:
            raise WorkloadError(
                f"{where}: no input is named {name!r}; there are {', '.join(sorted(needed))}"
            )
    for name, value in needed.items():
        if name not in inputs:
            raise WorkloadError(f"{where}: input {name!r} must be given, and is not")
        shape = tuple(dim.dim_value for dim in value.type.tensor_type.shape.dim)
        if inputs[name].shape != shape:
            raise WorkloadError(
                f"{where}: input {name!r} must have shape {shape}, not {inputs[name].shape}"
            )
    return {name: np.asarray(array) for name, array in inputs.items()}
