"""What a core computes: exact integer convolutions, fast enough for whole networks.

Operands of at most 8 bits are multiplied as bytes (`archsim.layer.integer_values`).  Others, and
all where that is not to be had, are summed by floating-point matrix multiplication where every
partial sum is exact: float32 while |sum| < 2^24, float64 while |sum| < 2^53.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from archsim.layer.integer_values import IntegerLayer, integer_values
from archsim.layer.pixel_sums import PixelSums
from archsim.layer.problem import Problem, margins
from archsim.numbers import AnyIntArray, IntArray, rescale, saturate, wrap

FloatArray = npt.NDArray[np.floating[Any]]


def exact_terms(operand_bits: int, mantissa_bits: int) -> int:
    """How many products of signed operands a float of that mantissa sums exactly."""
    return 1 << max(mantissa_bits - 2 * (operand_bits - 1), 0)


def _windows(ifmap: FloatArray, problem: Problem) -> FloatArray:
    """A view [H', W', C] as windows [P, Q, R, S, C]; the padding is already there."""
    rows, columns, channel = ifmap.strides
    shape = (
        problem.out_height,
        problem.out_width,
        problem.kernel_height,
        problem.kernel_width,
        problem.channels,
    )
    strides = (
        rows * problem.stride_height,
        columns * problem.stride_width,
        rows * problem.dilation_height,
        columns * problem.dilation_width,
        channel,
    )
    return np.lib.stride_tricks.as_strided(ifmap, shape, strides, writeable=False)


def _padded(ifmap: FloatArray, problem: Problem) -> FloatArray:
    """[H, W, C] with the zeros that the windows reach into."""
    rows, columns = margins(problem)
    return np.pad(ifmap, (rows, columns, (0, 0))) if any(rows + columns) else ifmap


def _depthwise(ifmap: FloatArray, weight: FloatArray, problem: Problem) -> FloatArray:
    """All groups of one channel and one filter at once: [H', W', G] → [P, Q, G]."""
    total = np.zeros((problem.out_height, problem.out_width, problem.groups), ifmap.dtype)
    for row in range(problem.kernel_height):
        for column in range(problem.kernel_width):
            top, left = row * problem.dilation_height, column * problem.dilation_width
            bottom = top + (problem.out_height - 1) * problem.stride_height + 1
            right = left + (problem.out_width - 1) * problem.stride_width + 1
            part = ifmap[top : bottom : problem.stride_height, left : right : problem.stride_width]
            total += part * weight[:, 0, row, column, 0]
    return total


def _product(ifmap: FloatArray, weight: FloatArray, problem: Problem, limit: int) -> FloatArray:
    """One group of one image: [H', W', C] and [K, R, S, C] to [P·Q, K], in exact slices."""
    pixels = problem.out_height * problem.out_width
    taps = problem.kernel_height * problem.kernel_width
    if taps == 1 and problem.stride_height == problem.stride_width == 1:
        matrix = ifmap[: problem.out_height, : problem.out_width].reshape(pixels, -1)
    else:
        matrix = _windows(ifmap, problem).reshape(pixels, -1)
    kernel = weight.reshape(problem.filters, -1)
    depth = matrix.shape[1]
    if depth <= limit:
        return matrix @ kernel.T
    total = np.zeros((pixels, problem.filters))
    for start in range(0, depth, limit):
        total += matrix[:, start : start + limit] @ kernel[:, start : start + limit].T
    return total


def span_sums(
    problem: Problem, ifmap: AnyIntArray, weight: AnyIntArray, spans: Sequence[tuple[int, int]]
) -> list[IntArray]:
    """Exact sums [images, P, Q, K] of one group, over some of a kernel's elements each.

    ifmap [images, 1, H, W, C], weight [1, K, R, S, C]; spans: of elements [R · S · C].
    """
    kernel = weight[0].reshape(problem.filters, -1).astype(np.float64)
    shape = (problem.out_height, problem.out_width, problem.filters)
    found = [np.empty((problem.images, *shape), np.int64) for _ in spans]
    for image in range(problem.images):
        padded = _padded(ifmap[image, 0].astype(np.float64), problem)
        matrix = _windows(padded, problem).reshape(shape[0] * shape[1], -1)
        for sums, (begin, end) in zip(found, spans, strict=True):
            sums[image] = (matrix[:, begin:end] @ kernel[:, begin:end].T).reshape(shape)
    return found


def accumulate(
    problem: Problem, ifmap: AnyIntArray, weight: AnyIntArray, operand_bits: int
) -> FloatArray:
    """Exact sums [images, groups, P, Q, K] as whole numbers in floating point."""
    single = exact_terms(operand_bits, 24)
    narrow = single >= 64
    dtype = np.float32 if narrow else np.float64
    limit = single if narrow else exact_terms(operand_bits, 53)
    x, w = np.ascontiguousarray(ifmap, dtype), np.ascontiguousarray(weight, dtype)
    shape = (problem.images, problem.groups, problem.out_height, problem.out_width, problem.filters)
    exact = problem.channels * problem.kernel_height * problem.kernel_width <= limit
    out = np.empty(shape, dtype if exact else np.float64)
    for image in range(problem.images):
        if problem.channels == problem.filters == 1 and problem.groups > 1:
            stacked = np.ascontiguousarray(x[image, :, :, :, 0].transpose(1, 2, 0))
            sums = _depthwise(_padded(stacked, problem), w, problem)
            out[image, :, :, :, 0] = sums.transpose(2, 0, 1)
            continue
        for group in range(problem.groups):
            padded = _padded(x[image, group], problem)
            with np.errstate(invalid="ignore"):  # raised by lanes that BLAS pads, never by ours
                sums = _product(padded, w[group], problem, limit)
            out[image, group] = sums.reshape(shape[2:])
    return out


def requantize(
    sums: IntArray,
    bias: IntArray | int,
    scaling: tuple[int, int],
    relu: bool,
    operand_bits: int,
) -> IntArray:
    """The output stage on sums [..., K]: saturate(relu((sums + bias) · multiplier / 2^shift))."""
    scaled = rescale(sums + bias, *scaling)
    if relu:
        scaled = np.maximum(scaled, 0)
    return saturate(scaled, operand_bits)


def compute(
    problem: Problem,
    operands: tuple[AnyIntArray, AnyIntArray, IntArray | None],
    scaling: tuple[int, int],
    widths: tuple[int, int],
    more: AnyIntArray | PixelSums | None = None,
) -> AnyIntArray:
    """The ofmap [images, groups, P, Q, K] of split operands (ifmap, weight, bias).

    scaling: multiplier and shift; widths: operand and accumulator bits; more: what is added to the
    sums, int32 in the ofmap's shape, or of some pixels, where accumulators have 32 bits at most.
    As `kept_type` says, in whatever order the axes lie.
    """
    ifmap, weight, bias = operands
    layer = IntegerLayer(
        problem=problem, ifmap=ifmap, weight=weight, bias=bias, scaling=scaling, widths=widths,
        more=more,
    )  # fmt: skip
    found = integer_values(layer)
    return _compute_by_floats(layer) if found is None else found


def compute_with_sums(
    problem: Problem,
    operands: tuple[AnyIntArray, AnyIntArray, IntArray | None],
    scaling: tuple[int, int],
    widths: tuple[int, int],
) -> tuple[AnyIntArray, IntArray]:
    """The same, and the sums before the bias [images, groups, P, Q, K], as accumulators keep
    them."""
    ifmap, weight, bias = operands
    layer = IntegerLayer(
        problem=problem, ifmap=ifmap, weight=weight, bias=bias, scaling=scaling, widths=widths
    )
    planes = problem.images, problem.groups, problem.filters, problem.out_height, problem.out_width
    sums = np.empty(planes, np.int64).transpose(0, 1, 3, 4, 2)  # filters first, as products lie
    found = integer_values(layer, sums)
    if found is not None:
        return found, sums
    sums = _sums_by_floats(layer)
    return _kept(layer, sums), sums


def _compute_by_floats(layer: IntegerLayer) -> AnyIntArray:
    return _kept(layer, _sums_by_floats(layer))


def _sums_by_floats(layer: IntegerLayer) -> IntArray:
    """As accumulators keep them."""
    operand_bits, accumulator_bits = layer.widths
    sums = accumulate(layer.problem, layer.ifmap, layer.weight, operand_bits).astype(np.int64)
    more = layer.whole_more()
    if more is not None:
        sums += more
    return wrap(sums, accumulator_bits)


def _kept(layer: IntegerLayer, sums: IntArray) -> AnyIntArray:
    """Outputs of sums."""
    bits, relu = layer.widths[0], bool(layer.problem.relu)
    offset = 0 if layer.bias is None else layer.bias[None, :, None, None, :]
    return requantize(sums, offset, layer.scaling, relu, bits).astype(kept_type(bits))


def kept_type(bits: int) -> type[np.signedinteger[Any]]:
    """NumPy's narrowest type of signed integers of so many bits."""
    return next(kind for kind in (np.int8, np.int16, np.int32, np.int64)
                if bits <= np.iinfo(kind).bits)  # fmt: skip
