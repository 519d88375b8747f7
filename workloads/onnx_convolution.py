"""ONNX's convolutions, transposed or not, read as what `workloads.windows` makes layers of."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from workloads.layers import Layer
from workloads.onnx_graph import Graph
from workloads.onnx_matrix import bias_of, fused_relu, ifmap_of, weight_of
from workloads.vector_work import movement
from workloads.windows import AXES, Axis, Piece, Sizes, Transposed, plain, transposed

if TYPE_CHECKING:
    import onnx

    Node = onnx.NodeProto

TRANSPOSED = "ConvTranspose"


def is_convolution(node: Node) -> bool:
    """Whether a matrix operator is one, transposed or not."""
    return "Conv" in node.op_type


def convolution(graph: Graph, node: Node) -> tuple[Layer, ...]:
    """Conv, and its like of integers."""
    return tuple(piece.layer for piece in pieces_of(graph, node))


def transposed_convolution(graph: Graph, node: Node) -> tuple[Layer, ...]:
    """ConvTranspose: its phases, and the bringing together of what they write."""
    pieces = pieces_of(graph, node)
    layers: list[Layer] = [piece.layer for piece in pieces]
    result = graph.shape(node.output[0], node)
    if sum(len(piece.phases) for piece in pieces) > 1:
        name = f"{graph.name(node)}/interleave"
        layers.append(movement(name, "DepthToSpace", prod(result), result))
    return tuple(layers)


def pieces_of(graph: Graph, node: Node) -> tuple[Piece, ...]:
    """The layers of a convolution; one if it is not transposed.  Raises WorkloadError."""
    ifmap = graph.shape(ifmap_of(node).tensor, node)
    weight = graph.shape(weight_of(node).tensor, node)
    axes, turned = len(ifmap) - 2, node.op_type == TRANSPOSED
    if not 1 <= axes <= AXES or len(weight) != len(ifmap):
        raise graph.error(node, f"a convolution must have 1 to {AXES} axes, not {axes}")
    groups = int(graph.attribute(node, "group", 1))
    if groups < 1 or ifmap[1] % groups or weight[0] % groups:
        raise graph.error(
            node, f"{ifmap[1]} channels must be cut into {groups} groups of whole ones"
        )
    inputs = weight[0] if turned else weight[1] * groups
    if inputs != ifmap[1]:
        shown = f"{ifmap[1]}" if turned else f"{ifmap[1]} / {groups}"
        found = weight[0] if turned else weight[1]
        raise graph.error(node, f"weight must have {shown} input channels, not {found}")
    sizes = Sizes(
        batch=ifmap[0],
        channels=ifmap[1],
        filters=weight[1] * groups if turned else weight[0],
        groups=groups,
        bias=bool(bias_of(node)),
        relu=fused_relu(graph, node) is not None,
    )
    name = graph.name(node)
    if turned:
        return transposed(name, sizes, _transposed_axes(graph, node, ifmap[2:], weight[2:]))
    return (plain(name, sizes, _plain_axes(graph, node, ifmap[2:], weight[2:])),)


def _listed(graph: Graph, node: Node, name: str, default: tuple[int, ...]) -> tuple[int, ...]:
    """An attribute of as many numbers as its default."""
    found = graph.integers(node, name, default)
    if len(found) != len(default):
        raise graph.error(node, f"{name} must be {len(default)} numbers, not {len(found)}")
    return found


def _steps(
    graph: Graph, node: Node, axes: int
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Strides, dilations and pads, all checked."""
    ones = (1,) * axes
    strides, dilations = (_listed(graph, node, name, ones) for name in ("strides", "dilations"))
    if min(strides + dilations) < 1:
        raise graph.error(
            node, f"strides and dilations must be positive, not {strides + dilations}"
        )
    return strides, dilations, _listed(graph, node, "pads", (0,) * 2 * axes)


def _plain_axes(
    graph: Graph, node: Node, ifmap: tuple[int, ...], kernel: tuple[int, ...]
) -> tuple[Axis, ...]:
    strides, dilations, pads = _steps(graph, node, len(ifmap))
    mode = graph.attribute(node, "auto_pad", "NOTSET")
    found: list[Axis] = []
    for at, (size, taps) in enumerate(zip(ifmap, kernel, strict=True)):
        before, after = pads[at], pads[at + len(ifmap)]
        if mode == "VALID":
            before = after = 0
        elif mode not in ("NOTSET", ""):
            span = dilations[at] * (taps - 1) + 1
            total = max((-(-size // strides[at]) - 1) * strides[at] + span - size, 0)
            before = total // 2 if mode == "SAME_UPPER" else -(-total // 2)
            after = total - before
        found.append(
            Axis(size=size, kernel=taps, stride=strides[at], dilation=dilations[at],
                 before=before, after=after)
        )  # fmt: skip
    return tuple(found)


def _transposed_axes(
    graph: Graph, node: Node, ifmap: tuple[int, ...], kernel: tuple[int, ...]
) -> tuple[Transposed, ...]:
    """The result's size is as inferred; with output_shape or auto_pad it says the padding."""
    strides, dilations, pads = _steps(graph, node, len(ifmap))
    extra = _listed(graph, node, "output_padding", (0,) * len(ifmap))
    mode = graph.attribute(node, "auto_pad", "NOTSET")
    result = graph.shape(node.output[0], node)[2:]
    said = bool(graph.integers(node, "output_shape", ()))
    found: list[Transposed] = []
    for at, (size, taps) in enumerate(zip(ifmap, kernel, strict=True)):
        before = pads[at]
        span = strides[at] * (size - 1) + extra[at] + dilations[at] * (taps - 1) + 1
        if mode == "VALID":
            before = 0
        elif said or mode not in ("NOTSET", ""):
            total = max(span - result[at], 0)
            before = total // 2 if mode == "SAME_UPPER" else -(-total // 2)
        found.append(
            Transposed(size=size, kernel=taps, stride=strides[at], dilation=dilations[at],
                       before=before, ofmap=result[at])
        )  # fmt: skip
    return tuple(found)


__all__ = ["convolution", "is_convolution", "pieces_of", "transposed_convolution"]
