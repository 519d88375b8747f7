"""What a model holds wherever it stands: graphs, nodes and tensors, those within others too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from workloads.errors import WorkloadError
from workloads.wire import DEEPEST

if TYPE_CHECKING:
    import onnx

    Node = onnx.NodeProto


def may_loop(node: Node) -> bool:
    """Whether a node is a loop, or holds one: how often it runs, nothing tells before."""
    return any(one.op_type in ("Loop", "Scan", "SequenceMap") for one in nodes_within(node))


def all_graphs(model: onnx.ModelProto) -> Iterator[onnx.GraphProto]:
    """The graph, those within it, and those within functions."""
    within = [graph for one in model.functions for node in one.node for graph in _subgraphs(node)]
    return graphs(model.graph, *within)


def all_nodes(model: onnx.ModelProto) -> Iterator[Node]:
    """Those of functions, and of all graphs."""
    for function in model.functions:
        yield from function.node
    for graph in all_graphs(model):
        yield from graph.node


def _all_attributes(model: onnx.ModelProto) -> Iterator[onnx.AttributeProto]:
    for node in all_nodes(model):
        yield from node.attribute


def all_tensors(model: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    """Initialisers and attributes, those of sparse tensors too."""
    for graph in all_graphs(model):
        yield from graph.initializer
    for one in _all_attributes(model):
        if one.HasField("t"):
            yield one.t
        yield from one.tensors
    for sparse in all_sparse(model):
        yield from (sparse.values, sparse.indices)


def all_sparse(model: onnx.ModelProto) -> Iterator[onnx.SparseTensorProto]:
    """Sparse initialisers and attributes."""
    for graph in all_graphs(model):
        yield from graph.sparse_initializer
    for one in _all_attributes(model):
        if one.HasField("sparse_tensor"):
            yield one.sparse_tensor
        yield from one.sparse_tensors


def _subgraphs(node: Node) -> Iterator[onnx.GraphProto]:
    for one in node.attribute:
        if one.HasField("g"):
            yield one.g
        yield from one.graphs


def graphs(*outermost: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """Graphs and those within them.  Raises WorkloadError for more than DEEPEST within another."""
    waiting = [(graph, 0) for graph in outermost]
    while waiting:
        found, depth = waiting.pop()
        if depth > DEEPEST:
            raise WorkloadError(f"graphs are nested deeper than {DEEPEST}")
        yield found
        inner = (graph for node in found.node for graph in _subgraphs(node))
        waiting.extend((graph, depth + 1) for graph in inner)


def nodes_within(node: Node) -> Iterator[Node]:
    """A node, and those of the graphs within it."""
    yield node
    for graph in graphs(*_subgraphs(node)):
        yield from graph.node


__all__ = [
    "all_graphs",
    "all_nodes",
    "all_sparse",
    "all_tensors",
    "graphs",
    "may_loop",
    "nodes_within",
]
