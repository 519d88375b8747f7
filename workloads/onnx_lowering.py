"""Operators of language models as the products and vector work that they are, before they are read.

Exporters write attention as one node, ONNX Runtime's or ONNX's own (opset 23 on), and
normalisations and activations with what stands around them. Each becomes nodes of ONNX's older
operators, named NODE/part, of the same results: shapes, layers, values and runs then follow as
from any others. What is not known to have been written out exactly is refused by name.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from workloads.errors import WorkloadError
from workloads.names import printable
from workloads.onnx_contrib import DOMAIN
from workloads.onnx_inference import without_weights
from workloads.onnx_model import onnx_package

if TYPE_CHECKING:
    import onnx

    Node = onnx.NodeProto


@dataclass(frozen=True, kw_only=True)
class CachedProducts:
    """Of one attention with a cache: tensors [batch, key heads, tokens, head width] of all keys and
    values, and of those appended; names of the nodes that multiply with the former."""

    kept: tuple[str, str]
    appended: tuple[str, str]
    readers: tuple[str, str]


@dataclass(kw_only=True)
class Writing:
    """Writes a node out: `add` makes nodes in order."""

    node: Node
    where: str
    opset: int
    ranks: Mapping[str, int]
    heads: Mapping[str, int]
    kinds: Mapping[str, int]
    made: list[Node] = field(default_factory=list["Node"])
    cached: list[CachedProducts] = field(default_factory=list[CachedProducts])

    @property
    def name(self) -> str:
        """Of the node, or of its first result."""
        return self.node.name or self.node.output[0]

    def error(self, message: str) -> WorkloadError:
        """Names the node and its operator."""
        name = printable(self.name)
        return WorkloadError(f"{self.where}: node {name!r} ({self.node.op_type}): {message}")

    def given(self, at: int) -> str:
        """An input; "" where it is absent."""
        return self.node.input[at] if at < len(self.node.input) else ""

    def wanted(self, at: int) -> str:
        """An output; "" where it is absent."""
        return self.node.output[at] if at < len(self.node.output) else ""

    def attributes(self, **defaults: Any) -> dict[str, Any]:
        """The node's attributes, all of which must be of these names; defaults of absent ones."""
        helper = onnx_package().helper
        found = {one.name: helper.get_attribute_value(one) for one in self.node.attribute}
        for name in found:
            if name not in defaults:
                known = ", ".join(defaults)
                raise self.error(
                    f"attribute {printable(name)!r} is not supported; those are {known}"
                )
        return defaults | found

    def only(self, inputs: Collection[int], outputs: Collection[int]) -> None:
        """Raise WorkloadError for other inputs, and for other outputs that somebody may read."""
        for at, name in enumerate(self.node.input):
            if name and at not in inputs:
                raise self.error(f"input {at}, {printable(name)!r}, is not supported")
        for at, name in enumerate(self.node.output):
            if name and at not in outputs:
                raise self.error(f"output {at}, {printable(name)!r}, is not supported")

    def add(
        self, operator: str, inputs: Sequence[str], part: str = "", *, out: str = "", **more: Any
    ) -> str:
        """One node of one output, named after its part; what the output is called."""
        name = f"{self.name}/{part or f'{operator}{len(self.made)}'}"
        made = out or f"{name}/out"
        helper = onnx_package().helper
        self.made.append(helper.make_node(operator, list(inputs), [made], name=name, **more))
        return made

    def split(self, tensor: str, count: int, axis: int, part: str) -> list[str]:
        """Equal parts along an axis."""
        name = f"{self.name}/{part}"
        made = [f"{name}/out{at}" for at in range(count)]
        more = {"num_outputs": count} if self.opset >= 18 else {}
        helper = onnx_package().helper
        self.made.append(helper.make_node("Split", [tensor], made, name=name, axis=axis, **more))
        return made

    def constant(self, values: Any, kind: type[np.generic] = np.int64) -> str:
        """A tensor of these values."""
        package = onnx_package()
        array: NDArray[Any] = np.array(values, kind)
        return self.add("Constant", (), value=package.numpy_helper.from_array(array))

    @property
    def floats(self) -> int:
        """ONNX's number of the type that the node computes in: that of its inputs, or of others of
        the model where these are not known."""
        own = [self.kinds[name] for name in self.node.input if name in self.kinds]
        found = [kind for kind in (*own, *self.kinds.values()) if kind in FLOATS]
        return found[0] if found else FLOATS[0]

    def number(self, value: float) -> str:
        """A constant of the type that the node computes in."""
        return self.as_floats(self.constant(value, np.float32))

    def as_floats(self, tensor: str, part: str = "") -> str:
        """A tensor in that type."""
        return self.add("Cast", (tensor,), part, to=self.floats)

    def size(self, tensor: str, axis: int) -> str:
        """[1]: how long a tensor is along an axis."""
        return self.add("Gather", (self.add("Shape", (tensor,)), self.constant([axis])))

    def reshaped(self, tensor: str, shape: Sequence[int], part: str = "") -> str:
        """0 leaves an axis as it is; −1 is what is left."""
        return self.add("Reshape", (tensor, self.constant(list(shape))), part)

    def mean(self, tensor: str, part: str) -> str:
        """Along the last axis, which stays."""
        if self.opset >= 18:
            return self.add("ReduceMean", (tensor, self.constant([-1])), part, keepdims=1)
        return self.add("ReduceMean", (tensor,), part, keepdims=1, axes=[-1])


Rule = Callable[[Writing], None]

LEAST_OPSET = 13
"""Of ONNX's own operators: axes are inputs from there on."""

FLOATS = (1, 10, 11, 16)
"""FLOAT, FLOAT16, DOUBLE and BFLOAT16 of ONNX's types of elements."""


def lowered(model: onnx.ModelProto, where: str) -> tuple[CachedProducts, ...]:
    """Write out, in place, the operators of `RULES` in the model's graph.

    Raises WorkloadError for attributes, inputs and outputs that their rules do not know.
    """
    from workloads.onnx_language_rules import RULES

    def rule_of(node: Node) -> Rule | None:
        return RULES.get((node.domain if node.domain != "ai.onnx" else "", node.op_type))

    if not any(rule_of(node) for node in model.graph.node):
        return ()
    ranks, heads, kinds = _known(model)
    opset = max(
        (one.version for one in model.opset_import if one.domain in ("", "ai.onnx")), default=0
    )
    nodes: list[Node] = []
    cached: list[CachedProducts] = []
    for node in model.graph.node:
        rule = rule_of(node)
        if rule is None:
            nodes.append(node)
            continue
        writing = Writing(
            node=node, where=where, opset=opset, ranks=ranks, heads=heads, kinds=kinds
        )
        if opset < LEAST_OPSET:
            raise writing.error(f"it is written out from opset {LEAST_OPSET} on, not {opset}")
        rule(writing)
        nodes += writing.made
        cached += writing.cached
    kept = [type(node).FromString(node.SerializeToString()) for node in nodes]
    del model.graph.node[:]
    model.graph.node.extend(kept)
    return tuple(cached)


def _known(model: onnx.ModelProto) -> tuple[dict[str, int], dict[str, int], dict[str, int]]:
    """Of tensors as far as ONNX's own inference finds them: how many axes, how long the second is,
    and the type of elements."""
    shape_inference = onnx_package().shape_inference
    try:
        graph = shape_inference.infer_shapes(without_weights(model)).graph
    except Exception:  # what is wrong with the model, its own inference says later
        graph = model.graph
    ranks: dict[str, int] = {one.name: len(one.dims) for one in graph.initializer}
    kinds: dict[str, int] = {one.name: one.data_type for one in graph.initializer}
    heads = {one.name: one.dims[1] for one in graph.initializer if len(one.dims) > 1}
    for value in (*graph.input, *graph.value_info, *graph.output):
        kind = value.type.tensor_type
        kinds[value.name] = kind.elem_type
        if kind.HasField("shape"):
            ranks[value.name] = len(kind.shape.dim)
            if len(kind.shape.dim) > 1 and kind.shape.dim[1].dim_value > 0:
                heads[value.name] = kind.shape.dim[1].dim_value
    return ranks, heads, kinds


__all__ = ["DOMAIN", "CachedProducts", "Rule", "Writing", "lowered"]
