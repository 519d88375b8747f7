"""Shapes of a model's tensors, in one pass over its nodes.

ONNX's own inference comes first, over the whole model without its weights.  What it leaves open is
found node by node, with the values of the small constants that shapes depend on (shapes of shapes);
an `If` whose condition is such a constant becomes the arm that it takes.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from workloads.einsum import parsed
from workloads.errors import WorkloadError
from workloads.names import printable
from workloads.onnx_border import check_shape
from workloads.onnx_branches import Inliner, all_names, is_branch, reads
from workloads.onnx_folding import EVALUATED, FOLD_LIMIT, SELECTIONS, computed, told_shape
from workloads.onnx_model import onnx_package
from workloads.onnx_types import element_type, is_complete, shape_of, size_of, tensor_type
from workloads.optional import load_optional

if TYPE_CHECKING:
    import onnx

    Node = onnx.NodeProto
    Types = dict[str, onnx.TypeProto]

KEPT_LIMIT = 1 << 24
"""Elements of all constants that are evaluated and still to be read."""

TOLD_LIMIT = 1 << 12
"""Elements up to which the inference of a node is told the values of an input, and up to which
that of the whole model has those of an initialiser."""


def infer_shapes(model: onnx.ModelProto, where: str) -> None:
    """Say in the model's value_info, in place, every shape that can be found, and put arms into the
    places of the `If`s that are known to take them.  Raises WorkloadError.
    """
    branches = any(is_branch(node) for node in model.graph.node)
    types = _whole_inference(model, where, branches=branches)
    known = {tensor.name for tensor in model.graph.initializer}
    known |= {tensor.values.name for tensor in model.graph.sparse_initializer}
    outputs = (name for node in model.graph.node for name in node.output if name)
    if branches or not all(name in known or is_complete(types.get(name)) for name in outputs):
        found = _Pass(model, types)
        nodes = found.run()
        del model.graph.node[:]
        model.graph.node.extend(nodes)
    for name, kind in types.items():
        shape = shape_of(kind)
        if shape is not None:
            check_shape(shape, f"{where}: tensor {printable(name)!r}")
    _say(model, types)


def _whole_inference(model: onnx.ModelProto, where: str, *, branches: bool) -> Types:
    """Types by ONNX's own inference, of inputs and initialisers too.

    It could follow values, too (`data_prop`), but would write down each of a large tensor.

    branches: an arm that is not taken may be wrong, and is not spoken of.
    """
    inference = load_optional("onnx.shape_inference", install="onnx", purpose="shape inference")
    slim = without_weights(model)
    try:
        slim = inference.infer_shapes(slim)
    except Exception as error:  # InferenceError, or a protobuf limit of 2 GiB
        if not branches:
            raise WorkloadError(f"{where}: shape inference fails: {error}") from error
    graph = slim.graph
    types = {value.name: value.type for value in (*graph.output, *graph.value_info, *graph.input)}
    for tensor in graph.initializer:
        types[tensor.name] = tensor_type(tensor.data_type, tensor.dims)
    for sparse in graph.sparse_initializer:
        types[sparse.values.name] = tensor_type(sparse.values.data_type, sparse.dims)
    return types


def without_weights(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy in which large initialisers are inputs, whose values no inference reads."""
    slim = type(model)(ir_version=model.ir_version)
    slim.opset_import.extend(model.opset_import)
    graph = model.graph
    slim.graph.name = graph.name
    for field in ("node", "input", "output", "value_info", "sparse_initializer"):
        getattr(slim.graph, field).extend(getattr(graph, field))
    present = {value.name for value in graph.input}
    for tensor in graph.initializer:
        if size_of(tensor.dims) <= TOLD_LIMIT:
            slim.graph.initializer.append(tensor)
        elif tensor.name not in present:
            slim.graph.input.add(name=tensor.name, type=tensor_type(tensor.data_type, tensor.dims))
    return slim


def _say(model: onnx.ModelProto, types: Types) -> None:
    """Complete types, in the model's value_info; nothing of its inputs and initialisers."""
    graph = model.graph
    made = {name for node in graph.node for name in node.output if name}
    del graph.value_info[:]
    for name, kind in types.items():
        if name in made and is_complete(kind):
            graph.value_info.add(name=name, type=kind)


class _Pass:
    """Over the nodes of one model, in their order.  types: what is known already; completed."""

    def __init__(self, model: onnx.ModelProto, types: Types) -> None:
        self._model = model
        self._types = types
        self._inliner = Inliner(all_names(model.graph))
        self._versions = {one.domain or "ai.onnx": one.version for one in model.opset_import}
        self._wanted = self._found_wanted()
        self._values: dict[str, NDArray[Any]] = {}
        self._kept = 0
        self._readers = Counter(name for node in model.graph.node for name in reads(node))
        for tensor in model.graph.initializer:
            self._store(tensor)

    def run(self) -> list[Node]:
        """The nodes, arms in the places of theirs."""
        waiting = list(reversed(self._model.graph.node))
        done: list[Node] = []
        while waiting:
            node = waiting.pop()
            condition = self._values.get(node.input[0]) if is_branch(node) else None
            if condition is not None and condition.size == 1:
                waiting += reversed(self._taken(node, taken=bool(condition.reshape(-1)[0])))
            else:
                self._complete(node)
                self._evaluate(node)
                done.append(node)
            self._forget(node)
        return done

    def _forget(self, node: Node) -> None:
        """The values that this node was the last to read."""
        for name in reads(node):
            self._readers[name] -= 1
            if self._readers[name] == 0 and name in self._values:
                self._kept -= self._values.pop(name).size

    def _taken(self, node: Node, *, taken: bool) -> list[Node]:
        """The nodes of an arm; its constants become the model's."""
        arm = self._inliner.arm(node, taken=taken)
        for tensor in arm.initializer:
            self._types[tensor.name] = tensor_type(tensor.data_type, tensor.dims)
        for sparse in arm.sparse_initializer:
            kind = tensor_type(sparse.values.data_type, sparse.dims)
            self._types[sparse.values.name] = kind
        self._model.graph.initializer.extend(arm.initializer)
        self._model.graph.sparse_initializer.extend(arm.sparse_initializer)
        for value in arm.value_info:
            self._types.setdefault(value.name, value.type)
        for name in node.output:  # the two arms may make different shapes
            self._types.pop(name, None)
        names = [name for inner in arm.node for name in reads(inner)]
        self._wanted.update(names)
        self._readers.update(names)
        for tensor in arm.initializer:
            self._store(tensor)
        return list(arm.node)

    def _found_wanted(self) -> set[str]:
        """Names whose values shapes, or conditions, may depend on."""
        wanted = set[str]()
        for node in reversed(self._model.graph.node):
            complete = all(is_complete(self._types.get(name)) for name in node.output if name)
            if is_branch(node) or not complete or any(name in wanted for name in node.output):
                wanted.update(reads(node))
        return wanted

    def _store(self, tensor: onnx.TensorProto) -> None:
        helper = onnx_package().numpy_helper
        if tensor.name in self._wanted and size_of(tensor.dims) <= FOLD_LIMIT:
            self._keep(tensor.name, np.asarray(helper.to_array(tensor)))

    def _keep(self, name: str, value: NDArray[Any]) -> None:
        if value.size <= FOLD_LIMIT and self._kept + value.size <= KEPT_LIMIT:
            self._kept += value.size
            self._values[name] = value

    def _complete(self, node: Node) -> None:
        """Types of a node's results where they are not complete, as far as they can be found."""
        if all(is_complete(self._types.get(name)) for name in node.output if name):
            return
        package, domain = onnx_package(), node.domain or "ai.onnx"
        known = {name: self._types[name] for name in reads(node) if name in self._types}
        told = {
            name: package.numpy_helper.from_array(self._values[name], name)
            for name in node.input
            if name in self._values and self._values[name].size <= TOLD_LIMIT
        }
        inference = load_optional("onnx.shape_inference", install="onnx", purpose="inference")
        try:
            schema = package.defs.get_schema(
                node.op_type, self._versions.get(domain, 0), node.domain
            )
            found = inference.infer_node_outputs(
                schema, node, known, told, opset_imports=self._model.opset_import,
                ir_version=self._model.ir_version,
            )  # fmt: skip
        except Exception:  # an operator without a schema or an input without a type: left open
            found = {}
        if node.op_type == "Einsum":
            found = self._einsum(node)
        for name, kind in found.items():
            if not is_complete(self._types.get(name)):
                self._types[name] = kind

    def _einsum(self, node: Node) -> Types:
        """The result's type, which ONNX's inference finds for some equations only."""
        shapes = [shape_of(self._types.get(name)) for name in node.input]
        equation = next((one.s.decode() for one in node.attribute if one.name == "equation"), "")
        known = [one for one in shapes if one is not None]
        try:
            found = parsed(equation, known) if len(known) == len(shapes) else None
        except WorkloadError:  # which reading the node will say
            found = None
        if found is None:
            return {}
        element = self._types[node.input[0]].tensor_type.elem_type
        dims = [found.sizes[label] for label in found.result]
        return {node.output[0]: tensor_type(element, dims)}

    def _evaluate(self, node: Node) -> None:
        """Values of a node's results, where they are wanted, their inputs known and they small."""
        if not any(name in self._wanted for name in node.output):
            return
        shape = shape_of(self._types.get(node.input[0])) if node.input else None
        if node.op_type in ("Shape", "Size") and shape is not None:
            self._keep(node.output[0], told_shape(node, shape))
            return
        inputs = [name for name in node.input if name]
        if node.domain not in ("", "ai.onnx") or any(name not in self._values for name in inputs):
            return
        if node.op_type not in EVALUATED:
            return
        results = [shape_of(self._types.get(name)) for name in node.output if name]
        small = all(one is not None and size_of(one) <= FOLD_LIMIT for one in results)
        if not (small or node.op_type in SELECTIONS) or any(reads(node).keys() - set(inputs)):
            return
        for name, value in computed(self._model, node, self._values).items():
            self._types[name] = tensor_type(element_type(value), value.shape)
            self._keep(name, value)


__all__ = ["infer_shapes", "without_weights"]
