"""Networks from ONNX models: shapes alone, the values of the weights are not read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from workloads.errors import WorkloadError
from workloads.feeds import onnx_feeds
from workloads.kv_cache import KvCache
from workloads.layers import Layer, Network
from workloads.names import printable
from workloads.onnx_border import check_structure, malformed
from workloads.onnx_branches import is_branch
from workloads.onnx_contrib import add_shapes
from workloads.onnx_graph import Graph
from workloads.onnx_inference import infer_shapes, without_weights
from workloads.onnx_language_rules import RULES
from workloads.onnx_lowering import CachedProducts, lowered
from workloads.onnx_matrix import fused_quantize, fused_relu
from workloads.onnx_model import (
    check_model,
    check_nodes,
    fix_dimensions,
    known_before,
    load_model,
)
from workloads.onnx_operators import HANDLERS

if TYPE_CHECKING:
    import onnx


@dataclass(frozen=True, kw_only=True, eq=False)
class Trace:
    """A model read: its shape-inferred form, its graph, and the layers of each node.

    `steps` holds the nodes in order, each with its layers: none for views and for a Relu or
    QuantizeLinear which is fused into the node before, several for LSTM and GRU.
    """

    model: onnx.ModelProto
    graph: Graph
    steps: tuple[tuple[onnx.NodeProto, tuple[Layer, ...]], ...]
    skipped: tuple[str, ...]
    kv_cache: KvCache | None = None


def supported_operators() -> tuple[str, ...]:
    """Names of the ONNX operators which `import_onnx` knows, sorted."""
    written_out = (".".join(filter(None, one)) for one in RULES)
    return tuple(sorted({*HANDLERS, *written_out}))


def import_onnx(
    path_or_model: str | Path | onnx.ModelProto,
    *,
    dims: Mapping[str, int] | None = None,
    skip_unsupported: bool = False,
    name: str | None = None,
) -> Network:
    """The network of an ONNX model.

    `dims` gives the dynamic dimensions of the inputs, by name ("INPUT:AXIS" for one without).
    A Relu which alone reads the result of a Conv, Gemm or MatMul becomes that layer's `relu`
    and is no layer of its own; nor is a QuantizeLinear which alone reads the result behind it, or
    a DequantizeLinear which these operators alone read: they take and make integers. Reshape and
    the like rename elements and are no layers; Concat, Transpose and the like are vector work of
    0 operations. What is computed from constants alone is no work. A layer is named after its
    node, or its first output.

    Raises WorkloadError for a missing, broken or non-ONNX file, a dynamic dimension not given,
    a shape which inference cannot find, and an operator which is not supported; the last are
    listed in `Network.skipped` instead with `skip_unsupported`.
    """
    traced = trace(path_or_model, dims=dims, skip_unsupported=skip_unsupported)
    where = str(path_or_model) if isinstance(path_or_model, str | Path) else "ONNX model"
    graph_name = printable(traced.model.graph.name)
    stem = Path(path_or_model).stem if isinstance(path_or_model, str | Path) else graph_name
    producer = printable(traced.model.producer_name)
    made = f", made by {producer}" if producer else ""
    return Network(
        name=printable(name or stem or "network"),
        layers=tuple(layer for _, layers in traced.steps for layer in layers),
        source=f"{printable(where, 1000)} (graph {graph_name}{made})",
        skipped=traced.skipped,
        feeds=onnx_feeds(traced.graph, traced.steps),
        kv_cache=traced.kv_cache,
    )


def trace(
    path_or_model: str | Path | onnx.ModelProto,
    *,
    dims: Mapping[str, int] | None = None,
    skip_unsupported: bool = False,
) -> Trace:
    """Read a model as `import_onnx` does, and keep which node each layer comes from."""
    is_path = isinstance(path_or_model, str | Path)
    where = str(path_or_model) if is_path else (path_or_model.graph.name or "model")
    with malformed(printable(where, 1000)):
        return _trace(load_model(path_or_model), where, dims or {}, skip_unsupported)


def _trace(
    model: onnx.ModelProto, where: str, dims: Mapping[str, int], skip_unsupported: bool
) -> Trace:
    check_structure(model.graph.node, known_before(model), where)
    cached = lowered(model, where)
    running = Graph(model, where).nodes
    unsupported = [
        node for node in running if operator_name(node) not in HANDLERS and not is_branch(node)
    ]
    if unsupported and not skip_unsupported:
        raise _unsupported(where, unsupported[0])
    if unsupported:
        supported = [node for node in running if operator_name(node) in HANDLERS]
        check_nodes(model, supported, where)
    else:
        check_model(without_weights(model), where)
    fix_dimensions(model, dims, where)
    add_shapes(model)
    infer_shapes(model, where)
    graph = Graph(model, where)
    left = [node for node in graph.nodes if operator_name(node) not in HANDLERS]
    if left and not skip_unsupported:
        raise _unsupported(where, left[0])
    return replace(_trace_graph(model, graph), kv_cache=_kv_cache(graph, cached))


def _kv_cache(graph: Graph, cached: tuple[CachedProducts, ...]) -> KvCache | None:
    """Of the keys and values that attentions keep; None where none does."""
    if not cached:
        return None

    def elements(names: Iterable[str]) -> int:
        return sum(graph.element_count(name) or 0 for name in names)

    return KvCache(
        elements=sum(elements(one.kept) for one in cached),
        appended=sum(elements(one.appended) for one in cached),
        readers=tuple(printable(name) for one in cached for name in one.readers),
    )


def _trace_graph(model: onnx.ModelProto, graph: Graph) -> Trace:
    fused: set[int] = set()
    skipped: list[str] = []
    steps: list[tuple[onnx.NodeProto, tuple[Layer, ...]]] = []
    for node in graph.nodes:
        operator = operator_name(node)
        if operator not in HANDLERS:
            skipped.append(f"{graph.name(node)}: {printable(operator)}")
            continue
        layers = () if id(node) in fused else HANDLERS[operator](graph, node)
        steps.append((node, layers))
        behind = fused_relu(graph, node), fused_quantize(graph, node)
        fused.update(id(one) for one in behind if one is not None)
    return Trace(model=model, graph=graph, steps=tuple(steps), skipped=tuple(skipped))


def operator_name(node: onnx.NodeProto) -> str:
    """The operator, with its domain before it unless that is ONNX's own."""
    return f"{node.domain}.{node.op_type}" if node.domain not in ("", "ai.onnx") else node.op_type


def _unsupported(where: str, node: onnx.NodeProto) -> WorkloadError:
    if is_branch(node):
        return WorkloadError(
            f"{where}: the condition of If {node.name or node.output[0]!r} must be known before "
            f"the network runs, and {node.input[0]!r} is not; skip it with --skip-unsupported"
        )
    return WorkloadError(
        f"{where}: operator {operator_name(node)} of node {node.name or node.output[0]!r} is not "
        f"supported; skip it with --skip-unsupported, or use one of "
        f"{', '.join(supported_operators())}"
    )
