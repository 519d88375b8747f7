"""A model's graph as the importer reads it: shapes, attributes, constants and consumers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from math import prod
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from workloads.errors import WorkloadError
from workloads.names import printable
from workloads.onnx_branches import outer_names
from workloads.onnx_model import known_shapes, known_types, onnx_package
from workloads.onnx_walk import may_loop

if TYPE_CHECKING:
    import onnx

    Node = onnx.NodeProto


class Graph:
    """Look-ups in one shape-inferred model.

    A tensor is constant if it is an initialiser, a result of Constant, Shape or Size, or computed
    from constants alone: such nodes are folded before a network runs and are no work.
    """

    def __init__(self, model: onnx.ModelProto, where: str) -> None:
        """Index the model; `where` opens the messages of errors."""
        self.where = where
        self.outputs = {value.name for value in model.graph.output}
        self._shapes = known_shapes(model)
        self._types = known_types(model)
        self._constant = {tensor.name for tensor in model.graph.initializer}
        self._constant.update(tensor.values.name for tensor in model.graph.sparse_initializer)
        self._stored = {tensor.name: tensor for tensor in model.graph.initializer}
        self._makers = {
            name: node
            for node in model.graph.node
            if node.op_type in ("Constant", "Identity", "Cast")
            for name in node.output
        }
        self._names: dict[int, str] = {}
        self.nodes: list[Node] = []
        used: Counter[str] = Counter()
        consumers: dict[str, list[Node]] = {}
        for node in model.graph.node:
            if self._is_folded(node):
                self._constant.update(node.output)
                continue
            self._names[id(node)] = _unique(printable(node.name or node.output[0]), used)
            self.nodes.append(node)
            for name in {*node.input, *outer_names(node)}:
                consumers.setdefault(name, []).append(node)
        self._consumers = consumers

    def _is_folded(self, node: Node) -> bool:
        if node.op_type in ("Constant", "Shape", "Size"):
            return True
        if may_loop(node):
            return False
        names = (*node.input, *outer_names(node))
        return bool(node.input) and all(self.is_constant(name) for name in names)

    def name(self, node: Node) -> str:
        """Name of the node's layer: the node's name or first output, made unique."""
        return self._names[id(node)]

    def is_constant(self, tensor: str) -> bool:
        """Whether the tensor is known before the network runs (an absent input counts so)."""
        return not tensor or tensor in self._constant

    def shape(self, tensor: str, node: Node) -> tuple[int, ...]:
        """Shape of a tensor which `node` reads or writes; raises WorkloadError if unknown."""
        shape = self._shapes.get(tensor)
        if shape is None:
            raise WorkloadError(
                f"{self.where}: node {self.name(node)!r} ({node.op_type}): the shape of tensor "
                f"{tensor!r} must be known after shape inference, and is not"
            )
        return shape

    def small_constant(self, tensor: str) -> NDArray[Any] | None:
        """Whole numbers of an initialiser or a Constant, copied or cast since; None of others."""
        helper, seen = onnx_package().numpy_helper, set[str]()
        while tensor in self._makers and tensor not in seen:
            seen.add(tensor)
            node = self._makers[tensor]
            if node.op_type == "Constant":
                value = self.attribute(node, "value", None)
                listed = self.attribute(node, "value_ints", None)
                if value is not None:
                    return np.asarray(helper.to_array(value))
                return None if listed is None else np.array(listed, np.int64)
            tensor = node.input[0]
        stored = self._stored.get(tensor)
        return None if stored is None else np.asarray(helper.to_array(stored))

    def known_shape(self, tensor: str) -> tuple[int, ...] | None:
        """Shape of a tensor; None where it is not known."""
        return self._shapes.get(tensor)

    def computed_inputs(self, node: Node) -> list[str]:
        """The node's inputs which are not constant, each once, in order."""
        return [name for name in dict.fromkeys(node.input) if not self.is_constant(name)]

    def consumers(self, tensor: str) -> tuple[Node, ...]:
        """The nodes which read `tensor`, those of constants excepted."""
        return tuple(self._consumers.get(tensor, ()))

    def element_count(self, tensor: str) -> int | None:
        """Elements of a tensor; None where its shape is not known."""
        shape = self._shapes.get(tensor)
        return None if shape is None else prod(shape)

    def element_type(self, tensor: str) -> str:
        """ONNX's name of the type of a tensor's elements, "" where it is not known: INT8."""
        kind = self._types.get(tensor, 0)
        return onnx_package().TensorProto.DataType.Name(kind) if kind else ""

    def only_consumer(self, tensor: str) -> Node | None:
        """The single node which reads `tensor`, unless the tensor is an output of the network."""
        readers = self._consumers.get(tensor, [])
        return readers[0] if len(readers) == 1 and tensor not in self.outputs else None

    def attribute(self, node: Node, name: str, default: Any) -> Any:
        """Value of an attribute, or `default`."""
        for attribute in node.attribute:
            if attribute.name == name:
                value = onnx_package().helper.get_attribute_value(attribute)
                return value.decode(errors="replace") if isinstance(value, bytes) else value
        return default

    def integers(self, node: Node, name: str, default: Iterable[int]) -> tuple[int, ...]:
        """Value of an attribute which lists whole numbers, or `default`."""
        value = cast("Iterable[int]", self.attribute(node, name, default))
        return tuple(int(number) for number in value)

    def error(self, node: Node, message: str) -> WorkloadError:
        """A WorkloadError which names the node and its operator."""
        return WorkloadError(f"{self.where}: node {self.name(node)!r} ({node.op_type}): {message}")


def _unique(name: str, used: Counter[str]) -> str:
    used[name] += 1
    return name if used[name] == 1 else _unique(f"{name}_{used[name]}", used)
