"""Which layer's ofmap is another one's ifmap, with at most a max pooling between."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from workloads.errors import WorkloadError
from workloads.onnx_graph import Graph
from workloads.pooling import Feed, MaxPool

if TYPE_CHECKING:
    import onnx

    from workloads.layers import Layer

    Steps = tuple[tuple[onnx.NodeProto, tuple[Layer, ...]], ...]


def onnx_feeds(graph: Graph, steps: Steps) -> tuple[Feed, ...]:
    """Of the convolutions of a model, in its order.

    A Relu between is the layer's own; anything else, and a second reader, ends the way.  So does a
    convolution of three axes, whose planes are read more than once.
    """
    names = {
        id(node): layers[0].name
        for node, layers in steps
        if layers and not (node.op_type == "Conv" and len(graph.shape(node.input[0], node)) > 4)
    }
    found: list[Feed] = []
    for node, _ in steps:
        if node.op_type != "Conv" or id(node) not in names:
            continue
        feed = _follow(graph, node, names)
        if feed is not None:
            found.append(feed)
    return tuple(found)


def _follow(graph: Graph, node: onnx.NodeProto, names: dict[int, str]) -> Feed | None:
    way = _readers(graph, node)
    reader = next(way)
    if reader is not None and reader.op_type == "Relu":
        reader = next(way)
    pool: MaxPool | None = None
    pool_name = ""
    if reader is not None and reader.op_type == "MaxPool":
        pool, pool_name = _pool(graph, reader), names.get(id(reader), "")
        reader = next(way) if pool else None
    if reader is None or reader.op_type != "Conv" or id(reader) not in names:
        return None
    return Feed(source=names[id(node)], target=names[id(reader)], pool=pool, pool_layer=pool_name)


def _readers(graph: Graph, node: onnx.NodeProto) -> Iterator[Any]:
    """The only reader of the node's output, the only one of that one's output, and so on; None
    where there are more or none, or where it is not the reader's first input."""
    while True:
        output = node.output[0]
        reader = graph.only_consumer(output)
        if reader is None or reader.input[0] != output:
            yield None
            return
        yield reader
        node = reader


def _pool(graph: Graph, node: onnx.NodeProto) -> MaxPool | None:
    """None for what `MaxPool` does not say: other axes, dilation, padding that is not alike."""
    window = graph.integers(node, "kernel_shape", ())
    if len(window) != 2 or len(node.output) > 1:
        return None
    strides = graph.integers(node, "strides", (1, 1))
    pads = graph.integers(node, "pads", (0, 0, 0, 0))
    dilated = graph.integers(node, "dilations", (1, 1)) != (1, 1)
    alike = graph.attribute(node, "auto_pad", "NOTSET") == "NOTSET" and pads[:2] == pads[2:]
    if dilated or not alike:
        return None
    try:
        return MaxPool(
            window=(window[0], window[1]),
            stride=(strides[0], strides[1]),
            pad=(pads[0], pads[1]),
            ceil=bool(graph.attribute(node, "ceil_mode", 0)),
        )
    except WorkloadError:
        return None


__all__ = ["onnx_feeds"]
