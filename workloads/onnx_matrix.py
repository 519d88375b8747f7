"""What the matrix operators of ONNX multiply: their tensors, with scales and zero points.

An operator of integers names scales and zero points among its inputs.  One of floats has none:
its integers are behind a DequantizeLinear, and a QuantizeLinear makes those of its result.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from workloads.onnx_einsum import is_product

if TYPE_CHECKING:
    import onnx

    from workloads.onnx_graph import Graph

    Node = onnx.NodeProto


@dataclass(frozen=True, kw_only=True)
class Slot:
    """A tensor and the tensors of its scale and zero point, "" where there are none."""

    tensor: str
    scale: str = ""
    zero: str = ""


@dataclass(frozen=True, kw_only=True)
class Form:
    """Where a matrix operator has its operands: positions among its inputs, -1 for none.

    Each of ifmap, weight and ofmap: (tensor, scale, zero point); the ofmap's tensor is the output.
    sums: the result is accumulators.
    """

    ifmap: tuple[int, int, int] = (0, -1, -1)
    weight: tuple[int, int, int] = (1, -1, -1)
    bias: int = -1
    ofmap: tuple[int, int] = (-1, -1)
    sums: bool = False
    integers: bool = True


_FLOAT = Form(bias=2, integers=False)
_WHOLE = Form(ifmap=(0, -1, 2), weight=(1, -1, 3), sums=True)
FORMS = {
    "Conv": _FLOAT,
    "ConvTranspose": _FLOAT,
    "Gemm": _FLOAT,
    "MatMul": Form(integers=False),
    "Einsum": Form(integers=False),
    "ConvInteger": _WHOLE,
    "MatMulInteger": _WHOLE,
    "QLinearConv": Form(ifmap=(0, 1, 2), weight=(3, 4, 5), bias=8, ofmap=(6, 7)),
    "QLinearMatMul": Form(ifmap=(0, 1, 2), weight=(3, 4, 5), ofmap=(6, 7)),
    "QGemm": Form(ifmap=(0, 1, 2), weight=(3, 4, 5), bias=6, ofmap=(7, 8)),
}
"""By operator."""

OF_FLOATS = tuple(name for name, form in FORMS.items() if not form.integers)
"""Which a ReLU and a QuantizeLinear behind may be one layer with, and a DequantizeLinear before."""


def takes_floats(graph: Graph, node: Node) -> bool:
    """Whether a node is a matrix product of floats; an Einsum may be none."""
    if node.op_type == "Einsum":
        return is_product(graph, node)
    return node.op_type in OF_FLOATS


CONVOLUTIONS = ("Conv", "ConvInteger", "QLinearConv")


def form_of(node: Node) -> Form:
    """Of a matrix operator."""
    return FORMS[node.op_type]


def is_matrix(node: Node) -> bool:
    """Whether an operator is one matrix product."""
    return node.op_type in FORMS


def ifmap_of(node: Node) -> Slot:
    """The first operand."""
    return _slot(node, form_of(node).ifmap)


def weight_of(node: Node) -> Slot:
    """The second operand."""
    return _slot(node, form_of(node).weight)


def bias_of(node: Node) -> str:
    """The tensor of the bias; "" for none."""
    return _input(node, form_of(node).bias)


def ofmap_of(graph: Graph, node: Node) -> Slot:
    """What the layer writes: behind its fused Relu and QuantizeLinear."""
    form = form_of(node)
    if form.integers:
        scale, zero = (_input(node, at) for at in form.ofmap)
        return Slot(tensor=node.output[0], scale=scale, zero=zero)
    last = fused_relu(graph, node) or node
    found = fused_quantize(graph, node)
    if found is None:
        return Slot(tensor=last.output[0])
    return Slot(tensor=found.output[0], scale=found.input[1], zero=_input(found, 2))


def fused_relu(graph: Graph, node: Node) -> Node | None:
    """The Relu which alone reads the result of a matrix operator of floats, computed with it."""
    if not takes_floats(graph, node):
        return None
    reader = graph.only_consumer(node.output[0])
    return reader if reader is not None and reader.op_type == "Relu" else None


def fused_quantize(graph: Graph, node: Node) -> Node | None:
    """The QuantizeLinear of one scale which alone reads this layer's result, behind its Relu.

    It is how the layer's accumulators become its integers.
    """
    if not takes_floats(graph, node):
        return None
    last = fused_relu(graph, node) or node
    reader = graph.only_consumer(last.output[0])
    if reader is None or reader.op_type != "QuantizeLinear" or reader.input[0] != last.output[0]:
        return None
    constant = all(graph.is_constant(name) for name in reader.input[1:])
    return reader if constant and graph.element_count(reader.input[1]) == 1 else None


def is_read_whole(graph: Graph, node: Node) -> bool:
    """Whether a DequantizeLinear is read by matrix operators alone, which take its integers."""
    if node.op_type != "DequantizeLinear" or node.output[0] in graph.outputs:
        return False
    readers = graph.consumers(node.output[0])
    return bool(readers) and all(takes_floats(graph, one) for one in readers)


def _slot(node: Node, places: tuple[int, int, int]) -> Slot:
    tensor, scale, zero = (_input(node, at) for at in places)
    return Slot(tensor=tensor, scale=scale, zero=zero)


def _input(node: Node, at: int) -> str:
    return node.input[at] if 0 <= at < len(node.input) else ""


__all__ = [
    "CONVOLUTIONS",
    "FORMS",
    "Form",
    "Slot",
    "bias_of",
    "form_of",
    "fused_quantize",
    "fused_relu",
    "ifmap_of",
    "is_matrix",
    "is_read_whole",
    "ofmap_of",
    "takes_floats",
    "weight_of",
]
