"""The functions of a model that call one another: no circle, and not too much once written out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from workloads.errors import WorkloadError
from workloads.limits import check_limit
from workloads.names import printable
from workloads.onnx_walk import graphs, nodes_within

if TYPE_CHECKING:
    import onnx

    Node = onnx.NodeProto

Name = tuple[str, str, str]


def check_calls(model: onnx.ModelProto, where: str) -> None:
    """Refuse functions that call themselves, and models that are too large once written out."""
    functions: dict[Name, onnx.FunctionProto] = {
        (one.domain, one.name, one.overload): one for one in model.functions
    }
    if len(functions) < len(model.functions):
        raise WorkloadError(f"{where}: functions must have different names")
    totals: dict[Name, tuple[int, int]] = {}
    for name in _callees_first(functions, where):
        within = [inner for node in functions[name].node for inner in nodes_within(node)]
        totals[name] = _written_out(within, totals)
    all_nodes = [node for graph in graphs(model.graph) for node in graph.node]
    nodes, size = _written_out(all_nodes, totals)
    check_limit("nodes", nodes, f"{where}: nodes, functions written out,")
    check_limit("file_mib", size >> 20, f"{where}: MiB, functions written out,")


def _called(node: Node) -> Name:
    return node.domain, node.op_type, node.overload


def _written_out(nodes: Iterable[Node], totals: dict[Name, tuple[int, int]]) -> tuple[int, int]:
    """Nodes and bytes of nodes (those within them listed too) with what they call."""
    count = size = 0
    for node in nodes:
        inner = totals.get(_called(node))
        count += 1 if inner is None else inner[0]
        own = sum(one.ByteSize() for one in node.attribute if not (one.HasField("g") or one.graphs))
        size += own + (0 if inner is None else inner[1])
    return count, size


def _callees_first(functions: dict[Name, onnx.FunctionProto], where: str) -> list[Name]:
    """Every function behind those that it calls."""
    calls = {
        name: Counter(_called(inner) for node in function.node for inner in nodes_within(node))
        for name, function in functions.items()
    }
    order: dict[Name, None] = {}
    open_ones: set[Name] = set()
    waiting = list(functions)
    while waiting:
        name = waiting[-1]
        inner = [one for one in calls[name] if one in functions and one not in order]
        if name in order or not inner:
            order[waiting.pop()] = None
            open_ones.discard(name)
            continue
        open_ones.add(name)
        for one in inner:
            if one in open_ones:
                raise WorkloadError(
                    f"{where}: functions must not call themselves, as {printable(one[1])!r} does"
                )
        waiting += inner
    return list(order)


__all__ = ["check_calls"]
