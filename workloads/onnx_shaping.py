"""How the tensors of a matrix operator become those of its layers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from workloads.einsum import Einsum
from workloads.layers import Conv2d, MatMul
from workloads.onnx_convolution import is_convolution, pieces_of
from workloads.onnx_einsum import einsum_of
from workloads.onnx_matrix import Slot, ifmap_of, weight_of
from workloads.onnx_operators import broadcast
from workloads.onnx_values import Turn
from workloads.operands import operand_shapes
from workloads.windows import Piece

if TYPE_CHECKING:
    import onnx

    from workloads.onnx_graph import Graph

Layer = Conv2d | MatMul
Move = Callable[[NDArray[Any]], NDArray[Any]]


def _same(array: NDArray[Any]) -> NDArray[Any]:
    return array


@dataclass(frozen=True, kw_only=True, eq=False)
class Shaping:
    """Of one layer of a node.

    slots: the tensors of ifmap and weight.  bias: what makes [K] of the operator the layer's; own:
    the other way.  ofmap: what takes the layer's of the operator's results.
    """

    slots: tuple[Slot, Slot]
    ifmap: Turn
    weight: Turn
    bias: Move = _same
    own: Move = _same
    ofmap: Move = _same


def shaping_of(graph: Graph, node: onnx.NodeProto, layer: Layer) -> Shaping:
    """Of a layer that `workloads.onnx_operators` made of a node."""
    slots = ifmap_of(node), weight_of(node)
    if is_convolution(node):
        return _of_piece(slots, _piece(graph, node, layer.name))
    assert isinstance(layer, MatMul)
    if node.op_type == "Einsum":
        return _of_einsum(slots, einsum_of(graph, node))
    shapes = graph.shape(slots[0].tensor, node), graph.shape(slots[1].tensor, node)
    first, second = product_moves(graph, node, layer, shapes)
    return Shaping(slots=slots, ifmap=Turn(move=first), weight=Turn(move=second))


def _piece(graph: Graph, node: onnx.NodeProto, name: str) -> Piece:
    return next(one for one in pieces_of(graph, node) if one.name == name)


def _of_einsum(slots: tuple[Slot, Slot], found: Einsum) -> Shaping:
    def turn(number: int) -> Turn:
        sums = partial(found.summed_alone, number) if found.alone(number) else None
        return Turn(move=partial(found.operand, number), sums=sums)

    ordered = (slots[1], slots[0]) if found.swapped else slots
    return Shaping(slots=ordered, ifmap=turn(0), weight=turn(1))


def _of_piece(slots: tuple[Slot, Slot], piece: Piece) -> Shaping:
    return Shaping(
        slots=slots,
        ifmap=Turn(move=piece.ifmap, blank=piece.blank),
        weight=Turn(move=piece.weight),
        bias=piece.bias,
        own=piece.own,
        ofmap=piece.ofmap,
    )


def is_gemm(node: onnx.NodeProto) -> bool:
    """Whether a product may transpose its operands and multiply them by numbers."""
    return node.op_type in ("Gemm", "QGemm")


def product_moves(
    graph: Graph, node: onnx.NodeProto, layer: MatMul, shapes: tuple[tuple[int, ...], ...]
) -> tuple[Move, Move]:
    """What brings the two operands of a Gemm or MatMul, of `shapes`, into those of its layer."""
    batch = tuple[int, ...]()
    if layer.batch > 1:
        batch = broadcast(shapes[0][:-2], shapes[1][:-2])
    turned = tuple(
        is_gemm(node) and bool(graph.attribute(node, name, 0)) for name in ("transA", "transB")
    )

    def move_of(number: int) -> Move:
        def move(array: NDArray[Any]) -> NDArray[Any]:
            if turned[number]:
                array = array.T
            if batch:
                matrix = array.shape[-2:] if array.ndim > 1 else (1, *array.shape)
                array = np.broadcast_to(array, (*batch, *matrix))
            return array.reshape(operand_shapes(layer)[number])

        return move

    return move_of(0), move_of(1)


__all__ = ["Shaping", "is_gemm", "product_moves", "shaping_of"]
