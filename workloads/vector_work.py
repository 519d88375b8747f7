"""The counting rule of vector work, and the layers made by it.

One operation is one scalar addition, subtraction, multiplication, division, comparison,
selection or elementary function (exp, erf, tanh, power, square root, ...). A multiplication
and an addition are two operations. Constants folded before running (a normalisation's scale
from its variance) cost nothing. Moving an element costs no operation.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from workloads.layers import VectorWork

PER_OUTPUT = {
    "Relu": 1, "LeakyRelu": 2, "PRelu": 2, "Clip": 2, "Elu": 3, "Selu": 4, "ThresholdedRelu": 2,
    "Sigmoid": 1, "Tanh": 1, "HardSigmoid": 4, "HardSwish": 5, "Mish": 4, "Swish": 2,
    "Softplus": 2, "Softsign": 3, "Gelu": 5, "Erf": 1, "Exp": 1, "Log": 1, "Sqrt": 1, "Pow": 1,
    "Sin": 1, "Cos": 1, "Neg": 1, "Abs": 1, "Reciprocal": 1, "Floor": 1, "Ceil": 1, "Round": 1,
    "Sign": 1, "Add": 1, "Sub": 1, "Mul": 1, "Div": 1, "Mod": 1, "Equal": 1, "Greater": 1,
    "GreaterOrEqual": 1, "Less": 1, "LessOrEqual": 1, "Not": 1, "And": 1, "Or": 1, "Where": 1,
    "RotaryEmbedding": 3, "BatchNormalization": 2, "QuantizeLinear": 3, "DequantizeLinear": 2,
    "DynamicQuantizeLinear": 5, "QLinearAdd": 8, "QLinearMul": 8, "QLinearConcat": 5,
    "QLinearSigmoid": 6, "QLinearLeakyRelu": 7,
}  # fmt: skip
"""Operations per output element of element-wise work.

LeakyRelu: compare, multiply. Clip: two comparisons. HardSigmoid: multiply, add, clip.
HardSwish: that and a multiplication. Gelu, 0.5 x (1 + erf(x / sqrt 2)): multiply, erf, add, two
multiplications. RotaryEmbedding: two multiplications, add. BatchNormalization: multiply, add (mean
and variance folded into both).
DynamicQuantizeLinear: minimum, maximum, and QuantizeLinear's. QLinearX: X between a
DequantizeLinear of each operand and a QuantizeLinear.
"""

PER_INPUT = {
    "Softmax": 5, "LogSoftmax": 6, "LayerNormalization": 7, "RMSNormalization": 4,
    "InstanceNormalization": 7, "GroupNormalization": 7, "LpNormalization": 3,
    "MeanVarianceNormalization": 5, "GlobalAveragePool": 1, "GlobalMaxPool": 1, "ReduceMean": 1,
    "ReduceSum": 1, "ReduceMax": 1, "ReduceMin": 1, "ReduceProd": 1, "ReduceL2": 2,
    "QLinearGlobalAveragePool": 1, "QLinearSoftmax": 10,
    "ReduceSumSquare": 2, "ArgMax": 1, "ArgMin": 1, "TopK": 1, "CumSum": 1,
}  # fmt: skip
"""Operations per input element of work which reduces along an axis.

The few operations done once per reduction (a mean's division, 1 / sqrt(variance + epsilon)) are
left out. Softmax: compare, subtract, exp, add, divide. LayerNormalization: add (mean), subtract,
square, add (variance), multiply by 1 / deviation, multiply by gamma, add beta.
"""

MOVES = (
    "Concat", "Transpose", "Slice", "Split", "Gather", "GatherElements", "GatherND", "Pad",
    "Expand", "Tile", "DepthToSpace", "SpaceToDepth", "Trilu", "ScatterND", "ScatterElements",
    "Cast", "TensorScatter",
)  # fmt: skip
"""Operators which move elements and compute nothing."""


def elementwise(
    name: str, operator: str, output: Sequence[int], inputs: Sequence[Sequence[int]] = ()
) -> VectorWork:
    """Work of PER_OUTPUT; shapes of the output and of the computed inputs (default: as output)."""
    elements = prod(output)
    return VectorWork(
        name=name,
        operator=operator,
        input_elements=sum(prod(shape) for shape in inputs) if inputs else elements,
        output_elements=elements,
        operations=PER_OUTPUT[operator] * elements,
    )


def reduction(name: str, operator: str, ifmap: Sequence[int], ofmap: Sequence[int]) -> VectorWork:
    """Work of PER_INPUT; shapes of the reduced tensor and of the result."""
    return VectorWork(
        name=name,
        operator=operator,
        input_elements=prod(ifmap),
        output_elements=prod(ofmap),
        operations=PER_INPUT[operator] * prod(ifmap),
    )


def movement(name: str, operator: str, moved: int, ofmap: Sequence[int]) -> VectorWork:
    """Work of MOVES: `moved` elements read, none computed."""
    return VectorWork(
        name=name,
        operator=operator,
        input_elements=moved,
        output_elements=prod(ofmap),
        operations=0,
    )


def pooling(
    name: str, operator: str, shapes: tuple[Sequence[int], Sequence[int]], window: Sequence[int]
) -> VectorWork:
    """A pooling of `shapes` = (ifmap, ofmap): one operation per window element and output."""
    ifmap, ofmap = shapes
    return VectorWork(
        name=name,
        operator=operator,
        input_elements=prod(ifmap),
        output_elements=prod(ofmap),
        operations=prod(ofmap) * prod(window),
    )


def local_response(name: str, shape: Sequence[int], size: int) -> VectorWork:
    """Local response normalisation over `size` channels: size + 4 operations per element.

    Square, size - 1 additions, scale, add, power, divide (Krizhevsky 2012, section 3.3).
    """
    return VectorWork(
        name=name,
        operator="LRN",
        input_elements=prod(shape),
        output_elements=prod(shape),
        operations=prod(shape) * (size + 4),
    )
