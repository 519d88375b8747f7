"""`If` whose condition is known before the network runs: the arm that it takes, in its place.

An arm reads names of the graphs around it; its own, which may be those of another arm, become
new ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from workloads.optional import load_optional

if TYPE_CHECKING:
    import onnx

    Node = onnx.NodeProto
    Body = onnx.GraphProto


def is_branch(node: Node) -> bool:
    """Whether a node is ONNX's `If`."""
    return node.op_type == "If" and node.domain in ("", "ai.onnx")


def bodies(node: Node) -> Iterator[Body]:
    """The graphs within a node: arms of an `If`, bodies of loops."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def outer_names(node: Node) -> dict[str, None]:
    """Names that the graphs within a node read of those around it, in order."""
    found: dict[str, None] = {}
    for body in bodies(node):
        own = _defined(body)
        for inner in body.node:
            found |= dict.fromkeys(inner.input)
            found |= outer_names(inner)
        found |= dict.fromkeys(value.name for value in body.output)
        found = {name: None for name in found if name and name not in own}
    return found


def reads(node: Node) -> dict[str, None]:
    """All names that a node reads, its inputs first."""
    return dict.fromkeys(name for name in node.input if name) | outer_names(node)


class Inliner:
    """Puts arms into the places of their nodes.  used: every name of the model."""

    def __init__(self, used: Iterable[str]) -> None:
        self._used = set(used)

    def arm(self, node: Node, *, taken: bool) -> Body:
        """A copy of an arm in which what it makes is named anew, and its results as the node's.

        A result that the arm does not make, or makes once for two, comes by an Identity.
        """
        which = "then_branch" if taken else "else_branch"
        arm = type(next(bodies(node)))()
        arm.CopyFrom(next(one.g for one in node.attribute if one.name == which))
        made = {name for inner in arm.node for name in inner.output if name}
        results = dict[str, str]()
        copies: list[tuple[str, str]] = []
        for value, name in zip(arm.output, node.output, strict=False):
            if name and value.name in made and value.name not in results:
                results[value.name] = name
            elif name:
                copies.append((value.name, name))
        prefix = next((name for name in node.output if name), "If")
        new = {name: self._fresh(f"{prefix}/{name}") for name in _defined(arm) - results.keys()}
        new |= results
        for inner in arm.node:
            inner.name = f"{node.name}/{inner.name}" if node.name and inner.name else ""
        _rename(arm, new)
        helper = load_optional("onnx.helper", install="onnx", purpose="reading an ONNX model")
        for old, to in copies:
            arm.node.append(helper.make_node("Identity", [new.get(old, old)], [to]))
        return arm

    def _fresh(self, name: str) -> str:
        found, number = name, 1
        while found in self._used:
            number += 1
            found = f"{name}_{number}"
        self._used.add(found)
        return found


def _defined(body: Body) -> set[str]:
    """Names that a graph makes itself."""
    names = {value.name for value in body.input} | {tensor.name for tensor in body.initializer}
    names |= {tensor.values.name for tensor in body.sparse_initializer}
    return names | {name for node in body.node for name in node.output if name}


def _rename(body: Body, new: Mapping[str, str]) -> None:
    """Everywhere in a graph, in place; in the graphs within it, what is not their own."""
    for tensor in body.initializer:
        tensor.name = new.get(tensor.name, tensor.name)
    for sparse in body.sparse_initializer:
        sparse.values.name = new.get(sparse.values.name, sparse.values.name)
    for value in (*body.value_info, *body.output, *body.input):
        value.name = new.get(value.name, value.name)
    for node in body.node:
        node.input[:] = [new.get(name, name) for name in node.input]
        node.output[:] = [new.get(name, name) for name in node.output]
        for inner in bodies(node):
            own = _defined(inner)
            _rename(inner, {old: to for old, to in new.items() if old not in own})


def all_names(body: Body) -> Iterator[str]:
    """Names of a graph and of those within it, each once or more."""
    yield from _defined(body)
    for node in body.node:
        for inner in bodies(node):
            yield from all_names(inner)


__all__ = ["Inliner", "all_names", "bodies", "is_branch", "outer_names", "reads"]
