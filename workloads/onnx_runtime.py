"""One float run of a model in ONNX Runtime, with its intermediate tensors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from workloads.errors import WorkloadError
from workloads.limits import check_limit
from workloads.names import printable
from workloads.onnx_branches import outer_names
from workloads.onnx_matrix import CONVOLUTIONS, ifmap_of, is_matrix, weight_of
from workloads.onnx_model import runtime_inputs
from workloads.onnx_walk import may_loop
from workloads.optional import load_optional
from workloads.threads import threads

if TYPE_CHECKING:
    import onnx

    from workloads.onnx_graph import Graph


def capture(
    model: onnx.ModelProto, inputs: Mapping[str, NDArray[Any]], tensors: Iterable[str]
) -> dict[str, NDArray[Any]]:
    """Values of `tensors` (any names of the graph) in one run on `inputs` (by input name).

    The model itself is not changed. Raises WorkloadError for an input which is absent, unknown
    or of another shape, and for whatever ONNX Runtime refuses.
    """
    helper = load_optional("onnx.numpy_helper", install="onnx", purpose="reading ONNX")
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    wanted = list(dict.fromkeys(tensors))
    values: dict[str, NDArray[Any]] = _checked_inputs(model, inputs)
    fed = dict(values)
    values.update({n: helper.to_array(constants[n]) for n in wanted if n in constants})
    exposed = [name for name in wanted if name not in values]
    refuse_loops(model.graph.node, exposed, model.graph.name)
    results = run_session(_expose(model, exposed), exposed, fed) if exposed else []
    values.update(zip(exposed, results, strict=True))
    return {name: values[name] for name in wanted}


def run_session(
    model: onnx.ModelProto, outputs: list[str], inputs: Mapping[str, NDArray[Any]]
) -> list[NDArray[Any]]:
    """What ONNX Runtime computes for `outputs`; raises WorkloadError for whatever it refuses."""
    runtime = load_optional("onnxruntime", install="onnxruntime", purpose="running a network")
    options = runtime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = threads()
    try:
        session = runtime.InferenceSession(
            model.SerializeToString(), options, ["CPUExecutionProvider"]
        )
        return session.run(outputs, dict(inputs))
    except Exception as error:  # ONNX Runtime's errors share no public base class
        raise WorkloadError(
            f"{model.graph.name}: ONNX Runtime refuses it: {str(error).strip().splitlines()[0]}"
        ) from error


def check_run(graph: Graph, nodes: Iterable[onnx.NodeProto]) -> None:
    """Raise WorkloadError for nodes whose results, or products, are beyond the limits.

    A result of a shape that is not known before the run is as large as the run makes it.
    """
    macs = 0
    for node in nodes:
        counts = [graph.element_count(name) or 0 for name in node.output if name]
        for name, count in zip(filter(None, node.output), counts, strict=True):
            check_limit("elements", count, f"{graph.where}: {printable(name)!r}: elements")
        if counts:
            macs += counts[0] * _products(graph, node)
    check_limit("macs", macs, f"{graph.where}: MACs with values")


def _products(graph: Graph, node: onnx.NodeProto) -> int:
    """Of an element of a node's result, as many as a matrix operator's operands have in common."""
    if not is_matrix(node):
        return 1
    weight = graph.known_shape(weight_of(node).tensor)
    if not weight:
        return 1
    if node.op_type in CONVOLUTIONS:
        return prod(weight[1:])
    ifmap = graph.known_shape(ifmap_of(node).tensor)
    return max(ifmap) if ifmap else 1


def refuse_loops(nodes: Sequence[onnx.NodeProto], wanted: Iterable[str], where: str) -> None:
    """Raise WorkloadError if what is wanted takes a loop, which may have no end, to compute.

    nodes: in order, each behind those that it reads of.
    """
    needed = set(wanted)
    for node in reversed(nodes):
        if needed.isdisjoint(node.output):
            continue
        if may_loop(node):
            name = printable(node.name or node.output[0])
            raise WorkloadError(
                f"{where}: {name!r} is a loop, which may have no end, and is not run; use "
                "--timing-only, or a model without it"
            )
        needed.update(node.input, outer_names(node))


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
