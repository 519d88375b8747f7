"""ONNX's Einsum: the product that it is, with the sums and transpositions around it."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from workloads.einsum import Einsum, parsed
from workloads.errors import WorkloadError
from workloads.layers import Layer, MatMul
from workloads.vector_work import elementwise, movement, reduction

if TYPE_CHECKING:
    import onnx

    from workloads.onnx_graph import Graph

    Node = onnx.NodeProto


def einsum_of(graph: Graph, node: Node) -> Einsum:
    """A constant operand is the weight.  Raises WorkloadError for equations that are no product."""
    shapes = [graph.shape(name, node) for name in node.input]
    constant = [graph.is_constant(name) for name in node.input]
    equation = str(graph.attribute(node, "equation", ""))
    try:
        return parsed(equation, shapes, swapped=constant == [True, False])
    except WorkloadError as error:
        raise graph.error(node, str(error)) from error


def is_product(graph: Graph, node: Node) -> bool:
    """Whether an Einsum is a matrix product."""
    return node.op_type == "Einsum" and einsum_of(graph, node).is_product


def einsum(graph: Graph, node: Node, *, relu: bool) -> tuple[Layer, ...]:
    """ReduceSum of what one operand alone sums, Transpose where axes lie otherwise than a product
    has them (each matrix may be transposed, as a Gemm's), and the MatMul; or a Mul, a ReduceSum, a
    Transpose alone."""
    found, name = einsum_of(graph, node), graph.name(node)
    result = graph.shape(node.output[0], node)
    if not found.is_product:
        return _without_product(graph, node, found)
    layers: list[Layer] = []
    names = node.input[::-1] if found.swapped else node.input
    for number, side in enumerate(("ifmap", "weight")):
        if graph.is_constant(names[number]):
            continue
        term, alone = found.ordered[number], found.alone(number)
        left = found.size(tuple(one for one in term.kept if one not in alone))
        if alone:
            layers.append(reduction(f"{name}/{side}/sum", "ReduceSum", term.shape, (left,)))
        if found.is_turned(number):
            layers.append(movement(f"{name}/{side}/transpose", "Transpose", left, (left,)))
    batch = found.size(found.batch)
    layers.append(
        MatMul(
            name=name,
            m=found.size(found.rows),
            n=found.size(found.columns),
            k=found.size(found.summed),
            batch=batch,
            shared_weight=batch == 1 and graph.is_constant(names[1]),
            relu=relu,
        )
    )
    if found.result_is_turned:
        layers.append(movement(f"{name}/transpose", "Transpose", prod(result), result))
    return tuple(layers)


def _without_product(graph: Graph, node: Node, found: Einsum) -> tuple[Layer, ...]:
    name, result = graph.name(node), graph.shape(node.output[0], node)
    shapes = [graph.shape(one, node) for one in graph.computed_inputs(node)]
    if len(found.terms) == 1:
        (term,) = found.terms
        if prod(term.shape) != prod(result):
            return (reduction(name, "ReduceSum", term.shape, result),)
        return (movement(name, "Transpose", prod(result), result),)
    layers: list[Layer] = []
    for number, term in enumerate(found.ordered):
        if alone := found.alone(number):
            left = found.size(tuple(one for one in term.kept if one not in alone))
            layers.append(reduction(f"{name}/sum{number}", "ReduceSum", term.shape, (left,)))
    return (*layers, elementwise(name, "Mul", result, shapes))


__all__ = ["einsum", "einsum_of", "is_product"]
