"""Values of a model's constant tensors, computed when they are asked for.

A constant is an initialiser, in the file or in one beside it, or what nodes make of constants
alone: those nodes are run by ONNX Runtime.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from workloads.affine import Affine, broadcast_parameter, integer_type
from workloads.errors import WorkloadError
from workloads.onnx_graph import Graph
from workloads.onnx_model import onnx_package
from workloads.onnx_runtime import check_run, run_session
from workloads.onnx_tensors import check_indices

if TYPE_CHECKING:
    import onnx

MOVES = ("Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Slice", "Gather",
         "Split", "Expand", "Dropout")  # fmt: skip
"""Operators that only move the elements of their first input."""

KEPT_ELEMENTS = 1 << 16
"""Constants up to this size are kept once they are known."""

PASSING_ELEMENTS = 1 << 22
"""Of all constants that are kept of one run beside that which was asked for: others may begin with
them, so that a chain of thousands, each of which a layer reads, is not run from its start again."""


class Constants:
    """Of one shape-inferred model."""

    def __init__(self, model: onnx.ModelProto, graph: Graph) -> None:
        self._model = model
        self._graph = graph
        self._stored = {tensor.name: tensor for tensor in model.graph.initializer}
        self._sparse = {tensor.values.name: tensor for tensor in model.graph.sparse_initializer}
        self._nodes = list(model.graph.node)
        self._makers = {
            name: at for at, node in enumerate(self._nodes) for name in node.output if name
        }
        self._known: dict[str, NDArray[Any]] = {}

    def has(self, tensor: str) -> bool:
        """Whether the tensor is a constant."""
        return bool(tensor) and self._graph.is_constant(tensor)

    def maker(self, tensor: str) -> onnx.NodeProto | None:
        """The node that writes a tensor, constant or not."""
        at = self._makers.get(tensor)
        return None if at is None else self._nodes[at]

    def value(self, tensor: str) -> NDArray[Any]:
        """The values of a constant; raises WorkloadError where ONNX Runtime cannot make them."""
        if tensor in self._known:
            return self._known[tensor]
        found = self._stored_value(tensor)
        if found is None:
            found = self.remade(tensor, {})
        if found.size <= KEPT_ELEMENTS:
            self._known[tensor] = found
        return found

    def affine(self, tensor: str) -> Affine | None:
        """A constant that a file has in integers: behind DequantizeLinear, and what moves it since.

        None for other constants.
        """
        path: list[str] = []
        while (node := self.maker(tensor)) is not None and node.op_type in MOVES:
            path.append(tensor)
            tensor = node.input[0]
        if node is None or node.op_type != "DequantizeLinear" or not self.has(tensor):
            return None
        found = self.dequantized(node, self.value(node.input[0]))
        if found is None or not path:
            return found
        return found.mapped(lambda array: self.remade(path[0], {tensor: np.array(array)}))

    def dequantized(self, node: onnx.NodeProto, values: NDArray[Any]) -> Affine | None:
        """What a DequantizeLinear makes of integers; None where they are none, or its scale and
        zero point are not constant."""
        zero = node.input[2] if len(node.input) > 2 else ""
        axis = int(self._graph.attribute(node, "axis", 1))
        block = int(self._graph.attribute(node, "block_size", 0))
        if not self.has(node.input[1]) or (zero and not self.has(zero)):
            return None
        return self.integers(values, (node.input[1], zero), axis, block)

    def integers(
        self, values: NDArray[Any], names: tuple[str, str], axis: int, block: int = 0
    ) -> Affine | None:
        """Integers with the constants `names`, a scale and a zero point ("" for 1 and 0)."""
        scale = self.value(names[0]).astype(np.float32) if names[0] else np.float32(1)
        zero = self.value(names[1]).astype(np.int64) if names[1] else np.int64(0)
        return affine(values, (np.asarray(scale), np.asarray(zero)), axis, block)

    def _stored_value(self, tensor: str) -> NDArray[Any] | None:
        """Of an initialiser or a node Constant."""
        helper = onnx_package().numpy_helper
        node = self.maker(tensor)
        if tensor in self._stored:
            return np.asarray(helper.to_array(self._stored[tensor]))
        if tensor in self._sparse:
            return _dense(self._sparse[tensor])
        if node is not None and node.op_type == "Constant":
            value = self._graph.attribute(node, "value", None)
            sparse = self._graph.attribute(node, "sparse_value", None)
            if sparse is not None:
                return _dense(sparse)
            return None if value is None else np.asarray(helper.to_array(value))
        return None

    def remade(self, tensor: str, given: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
        """A tensor made from constants and what is given in place of others; WorkloadError where
        ONNX Runtime cannot."""
        nodes, stored = self._needed(tensor, given)
        check_run(self._graph, nodes)
        passing = [] if given else self._passing(nodes, tensor)
        if passing:
            try:
                found = self._run(nodes, stored, [tensor, *passing])
            except WorkloadError:  # some types can be computed and not be had
                pass
            else:
                self._known.update(zip(passing, found[1:], strict=True))
                return found[0]
        try:
            return self._run(nodes, stored, [tensor])[0]
        except WorkloadError as error:
            raise WorkloadError(
                f"{self._graph.where}: the constant {tensor!r} must be computable: {error}"
            ) from error

    def _passing(self, nodes: list[onnx.NodeProto], but: str) -> list[str]:
        """Small constants that a run of nodes computes too: all, or some all along the way."""
        names = [name for node in nodes for name in node.output if name and name != but]
        counts = {name: self._graph.element_count(name) for name in names}
        small = [name for name, count in counts.items() if count and count <= KEPT_ELEMENTS]
        total = sum(counts[name] or 0 for name in small)
        return small[:: max(1, -(-total // PASSING_ELEMENTS))]

    def _run(
        self, nodes: list[onnx.NodeProto], stored: list[onnx.TensorProto], wanted: list[str]
    ) -> list[NDArray[Any]]:
        helper = onnx_package().helper
        outputs = [helper.make_empty_tensor_value_info(name) for name in wanted]
        model = helper.make_model(
            helper.make_graph(nodes, "constants", [], outputs, stored),
            opset_imports=self._model.opset_import,
            ir_version=self._model.ir_version,
        )
        return [np.asarray(one) for one in run_session(model, wanted, {})]

    def _needed(
        self, tensor: str, given: Mapping[str, NDArray[Any]]
    ) -> tuple[list[onnx.NodeProto], list[onnx.TensorProto]]:
        """Nodes that make a constant, in order, and the tensors that they begin with."""
        helper = onnx_package().numpy_helper
        wanted, seen = [tensor], {tensor}
        needed: set[int] = set()
        stored = [helper.from_array(array, name) for name, array in given.items()]
        while wanted:
            name = wanted.pop()
            node = self.maker(name)
            if name in given:
                continue
            if not given and name in self._known:
                stored.append(helper.from_array(self._known[name], name))
                continue
            if name in self._stored:
                stored.append(self._stored[name])
            elif name in self._sparse:
                stored.append(helper.from_array(_dense(self._sparse[name]), name))
            elif node is not None and self._says_shape(node):
                stored.append(helper.from_array(self._shape_of(node), name))
            elif node is not None and self._makers[name] not in needed:
                needed.add(self._makers[name])
                wanted += [one for one in node.input if one and one not in seen]
                seen.update(node.input)
        return [self._nodes[at] for at in sorted(needed)], stored

    def _says_shape(self, node: onnx.NodeProto) -> bool:
        return node.op_type in ("Shape", "Size") and not self.has(node.input[0])

    def _shape_of(self, node: onnx.NodeProto) -> NDArray[np.int64]:
        """What Shape or Size says of a tensor that is not constant but whose shape is."""
        shape = np.array(self._graph.shape(node.input[0], node), np.int64)
        if node.op_type == "Size":
            return np.array(shape.prod(), np.int64)
        start = self._graph.attribute(node, "start", 0)
        return shape[start : self._graph.attribute(node, "end", None)]


def _dense(sparse: onnx.SparseTensorProto) -> NDArray[Any]:
    """Indices are of the flat tensor [values], or of its axes [values, axes]."""
    helper = onnx_package().numpy_helper
    values, places = helper.to_array(sparse.values), helper.to_array(sparse.indices)
    check_indices(places, tuple(sparse.dims), sparse.values.name)
    dense = np.zeros(tuple(sparse.dims), values.dtype)
    if places.ndim == 1:
        dense.reshape(-1)[places] = values
    else:
        dense[tuple(places.T)] = values
    return dense


def affine(
    values: NDArray[Any],
    parameters: tuple[NDArray[Any], NDArray[Any]],
    axis: int,
    block: int = 0,
) -> Affine | None:
    """Integers with their (scale, zero point) along `axis`; None where the values are none."""
    kind = integer_type(values.dtype.name)
    if kind is None:
        return None
    if kind.storage != values.dtype:
        values = values.astype(kind.storage)
    if not values.ndim:
        axis = 0
    scale, zero = (broadcast_parameter(one, values.shape, axis, block) for one in parameters)
    return Affine(values=values, scale=scale, zero=zero, kind=kind)


__all__ = ["KEPT_ELEMENTS", "MOVES", "Constants", "affine"]
