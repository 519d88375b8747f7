"""What each operator of the built-in networks' notation makes: layers, and its result's shape."""

from __future__ import annotations

import re
from collections.abc import Callable
from math import prod

from workloads.errors import WorkloadError
from workloads.layers import Conv2d, Layer, MatMul
from workloads.pooling import MaxPool
from workloads.recurrent import Recurrence, recurrent_layers
from workloads.vector_work import (
    PER_OUTPUT,
    elementwise,
    local_response,
    movement,
    pooling,
    reduction,
)

Shape = tuple[int, ...]
Made = tuple[list[Layer], Shape]
_SUM = re.compile(r"\d+([*+]\d+)*")


def make_layers(name: str, operator: str, arguments: list[str], shapes: list[Shape]) -> Made:
    """Layers of one line of the notation, and the shape of its result.

    `shapes` are those of the tensors read; operators which read one ignore the others. Raises
    WorkloadError for an unknown operator and for arguments or shapes which do not fit it.
    """
    if operator in _JOINS:
        layer, result = _JOINS[operator](name, shapes)
        return [layer], result
    if operator in _OPERATORS:
        return _OPERATORS[operator](name, shapes[0], arguments)
    return _vector_operator(name, shapes[0], [operator])


def pool_of(operator: str, arguments: list[str]) -> MaxPool | None:
    """The max or average pooling that a line's words say; None if they say none."""
    if operator not in ("maxpool", "avgpool"):
        return None
    kernel, stride, pad = _window(arguments)
    return MaxPool(
        window=(kernel[0], kernel[1]),
        stride=(stride, stride),
        pad=(pad, pad),
        ceil="ceil" in arguments,
    )


def operator_name(word: str) -> str:
    """What ONNX calls the operator of a word of the notation."""
    return _NAMES.get(word, word)


def number(text: str) -> int:
    """Value of a sum of products of whole numbers, such as "4*64" or "1+196"."""
    if not _SUM.fullmatch(text):
        raise WorkloadError(f"a size must be whole numbers joined by * and +, not {text!r}")
    return sum(prod(int(factor) for factor in term.split("*")) for term in text.split("+"))


def shape_of(text: str) -> Shape:
    """Shape written as numbers joined by commas."""
    return tuple(number(part) for part in text.split(","))


def _window(arguments: list[str]) -> tuple[Shape, int, int]:
    kernel = tuple(number(side) for side in arguments[0].split("x"))
    stride = [number(word[1:]) for word in arguments if word.startswith("/")]
    pad = [number(word[1:]) for word in arguments if word.startswith("+")]
    return kernel, (stride or [1])[0], (pad or [0])[0]


def _conv(name: str, shape: Shape, arguments: list[str]) -> Made:
    batch, channels, height, width = shape
    kernel, stride, pad = _window(arguments[1:])
    groups = [number(word[7:]) for word in arguments if word.startswith("groups=")] or [1]
    layer = Conv2d(
        name=name,
        channels=channels,
        filters=number(arguments[0]),
        ifmap_height=height,
        ifmap_width=width,
        kernel_height=kernel[0],
        kernel_width=kernel[1],
        stride_height=stride,
        stride_width=stride,
        pad_top=pad,
        pad_left=pad,
        pad_bottom=pad,
        pad_right=pad,
        groups=channels if "depthwise" in arguments else groups[0],
        batch=batch,
        bias="bias" in arguments,
        relu="relu" in arguments,
    )
    return [layer], (batch, layer.filters, layer.ofmap_height, layer.ofmap_width)


def _rows(name: str, shape: Shape, arguments: list[str]) -> MatMul:
    return MatMul(
        name=name,
        m=prod(shape[:-1]),
        n=number(arguments[0]),
        k=shape[-1],
        bias="bias" in arguments,
        relu="relu" in arguments,
    )


def _fc(name: str, shape: Shape, arguments: list[str]) -> Made:
    layer = _rows(name, (shape[0], prod(shape[1:])), arguments)
    return [layer], (shape[0], layer.n)


def _linear(name: str, shape: Shape, arguments: list[str]) -> Made:
    layer = _rows(name, shape, arguments)
    return [layer], (*shape[:-1], layer.n)


def _product(name: str, shape: Shape, arguments: list[str]) -> Made:
    batch, m, n, k = (number(word) for word in arguments[:4])
    layer = MatMul(name=name, m=m, n=n, k=k, batch=batch, shared_weight=False)
    if prod(shape) != layer.ifmap_elements:
        raise WorkloadError(
            f"the ifmap must hold batch * m * k = {layer.ifmap_elements} elements, "
            f"not {prod(shape)}"
        )
    return [layer], shape_of(arguments[4])


def _pool(operator: str) -> Callable[[str, Shape, list[str]], Made]:
    def make(name: str, shape: Shape, arguments: list[str]) -> Made:
        kernel, stride, pad = _window(arguments)
        up = stride - 1 if "ceil" in arguments else 0
        sides = zip(shape[2:], kernel, strict=True)
        result = (
            *shape[:2],
            *((side + 2 * pad - span + up) // stride + 1 for side, span in sides),
        )
        return [pooling(name, operator, (shape, result), kernel)], result

    return make


def _globalpool(name: str, shape: Shape, arguments: list[str]) -> Made:
    result = (*shape[:2], *(1 for _ in shape[2:]))
    return [reduction(name, "GlobalAveragePool", shape, result)], result


def _lrn(name: str, shape: Shape, arguments: list[str]) -> Made:
    return [local_response(name, shape, number(arguments[0]))], shape


def _recurrent(kind: str) -> Callable[[str, Shape, list[str]], Made]:
    def make(name: str, shape: Shape, arguments: list[str]) -> Made:
        steps, batch, inputs = shape
        hidden, directions = number(arguments[0]), 2 if "both" in arguments else 1
        size = Recurrence(
            name=name, kind=kind, steps=steps, batch=batch, inputs=inputs, hidden=hidden,
            directions=directions,
        )  # fmt: skip
        return list(recurrent_layers(size)), (steps, batch, directions * hidden)

    return make


def _embed(name: str, shape: Shape, arguments: list[str]) -> Made:
    result = (*shape, number(arguments[0]))
    return [movement(name, "Gather", prod(shape) + prod(result), result)], result


def _reshape(name: str, shape: Shape, arguments: list[str]) -> Made:
    result = shape_of(arguments[0])
    if prod(result) > prod(shape):
        raise WorkloadError(f"a reshape must not make elements: {shape} to {result}")
    return [], result


def _vector_operator(name: str, shape: Shape, arguments: list[str]) -> Made:
    operator = arguments[0]
    if operator in PER_OUTPUT:
        return [elementwise(name, operator, shape)], shape
    if operator in _NORMALISING:
        return [reduction(name, operator, shape, shape)], shape
    known = sorted([*_OPERATORS, *_JOINS, *_NORMALISING, *PER_OUTPUT])
    raise WorkloadError(f"no operator is named {operator!r}; there are {', '.join(known)}")


def _add(name: str, shapes: list[Shape]) -> tuple[Layer, Shape]:
    if len(shapes) < 2 or len(set(shapes)) != 1:
        raise WorkloadError(f"add needs two or more tensors of one shape, not {shapes}")
    return elementwise(name, "Add", shapes[0], shapes), shapes[0]


def _concat(name: str, shapes: list[Shape]) -> tuple[Layer, Shape]:
    first = shapes[0]
    if any((s[0], *s[2:]) != (first[0], *first[2:]) for s in shapes):
        raise WorkloadError(f"concat needs tensors which differ in axis 1 only, not {shapes}")
    result = (first[0], sum(shape[1] for shape in shapes), *first[2:])
    return movement(name, "Concat", prod(result), result), result


_NORMALISING = ("Softmax", "LogSoftmax", "LayerNormalization", "RMSNormalization")
_NAMES = {
    "conv": "Conv", "fc": "Gemm", "linear": "MatMul", "product": "MatMul", "maxpool": "MaxPool",
    "avgpool": "AveragePool", "globalpool": "GlobalAveragePool", "lrn": "LRN", "lstm": "LSTM",
    "gru": "GRU", "embed": "Gather", "reshape": "Reshape", "add": "Add", "concat": "Concat",
}  # fmt: skip
_JOINS = {"add": _add, "concat": _concat}
_OPERATORS: dict[str, Callable[[str, Shape, list[str]], Made]] = {
    "conv": _conv,
    "fc": _fc,
    "linear": _linear,
    "product": _product,
    "maxpool": _pool("MaxPool"),
    "avgpool": _pool("AveragePool"),
    "globalpool": _globalpool,
    "lrn": _lrn,
    "lstm": _recurrent("LSTM"),
    "gru": _recurrent("GRU"),
    "embed": _embed,
    "reshape": _reshape,
}
