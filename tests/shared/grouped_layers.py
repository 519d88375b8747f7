"""Random grouped layers, and a block of groups as a layer of its own, made by plain loops."""

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from archsim.codecs.vector_operands import VectorOperands
from archsim.layer.problem import problem_of
from archsim.numbers import AnyIntArray
from workloads.layers import Conv2d, MatMul


@st.composite
def grouped_layers(draw: st.DrawFn, most_groups: int = 40, most: int = 5) -> Conv2d | MatMul:
    """2 to `most_groups` groups of 1 to `most` channels and filters; products with own weights."""
    whole = lambda low, high: draw(st.integers(low, high))  # noqa: E731
    groups = whole(2, most_groups)
    if whole(0, 4) == 0:
        return MatMul(
            name="m", batch=groups, shared_weight=False, m=whole(1, 12), n=whole(1, most),
            k=whole(1, most), bias=draw(st.booleans()), relu=draw(st.booleans()),
        )  # fmt: skip
    kernel = whole(1, 3), whole(1, 3)
    dilation = whole(1, 2), whole(1, 2)
    pads = [whole(0, kernel[axis] - 1) for axis in (0, 1, 0, 1)]
    least = [max(1, (kernel[a] - 1) * dilation[a] + 1 - pads[a] - pads[a + 2]) for a in (0, 1)]
    return Conv2d(
        name="c", channels=groups * whole(1, most), filters=groups * whole(1, most), groups=groups,
        ifmap_height=least[0] + whole(0, 5), ifmap_width=least[1] + whole(0, 5),
        kernel_height=kernel[0], kernel_width=kernel[1], stride_height=whole(1, 2),
        stride_width=whole(1, 3), pad_top=pads[0], pad_left=pads[1], pad_bottom=pads[2],
        pad_right=pads[3], dilation_height=dilation[0], dilation_width=dilation[1],
        batch=draw(st.sampled_from([1, 1, 2])), bias=draw(st.booleans()),
        relu=draw(st.booleans()),
    )  # fmt: skip


def as_convolution(layer: Conv2d | MatMul, operands: Any) -> tuple[Conv2d, Any]:
    """A product as a 1 × 1 convolution over a row of M pixels; operands of any kind."""
    if isinstance(layer, Conv2d):
        return layer, operands
    batch = layer.batch
    conv = Conv2d(
        name=layer.name, channels=batch * layer.k, filters=batch * layer.n, groups=batch,
        ifmap_height=1, ifmap_width=layer.m, kernel_height=1, kernel_width=1, bias=layer.bias,
        relu=layer.relu,
    )  # fmt: skip

    def plane(values: Any) -> Any:
        """[b, M, K] as [1, b · K, 1, M]."""
        return None if values is None else values.transpose(0, 2, 1).reshape(1, -1, 1, layer.m)

    def kernels(values: Any) -> Any:
        """[b, K, N] as [b · N, K, 1, 1]."""
        if values is None:
            return None
        return values.transpose(0, 2, 1).reshape(-1, values.shape[1])[:, :, None, None]

    changes: dict[str, Any] = {"ifmap": plane(operands.ifmap), "weight": kernels(operands.weight)}
    if operands.bias is not None:
        changes["bias"] = np.tile(operands.bias, batch)
    if isinstance(operands, VectorOperands):
        changes |= {
            "ifmap_scales": plane(operands.ifmap_scales),
            "weight_scales": kernels(operands.weight_scales),
            "multiplier": np.tile(operands.multiplier, batch),
            "weight_coarse": np.tile(operands.weight_coarse, batch),
        }
    return conv, replace(operands, **changes)


def blocks(layer: Conv2d, operands: Any, groups: int, vector: int = 1) -> tuple[Conv2d, Any]:
    """The layer whose groups are blocks of `groups` groups, and its operands, zeros and all.

    vector: channels of a group are filled up with zeros to a multiple of it.
    """
    problem = problem_of(layer)
    count = -(-layer.groups // groups)
    depth = -(-problem.channels // vector) * vector
    reach = [
        (getattr(problem, f"out_{side}") - 1) * getattr(problem, f"stride_{side}")
        + (getattr(problem, f"kernel_{side}") - 1) * getattr(problem, f"dilation_{side}")
        + 1
        for side in ("height", "width")
    ]
    conv = replace(
        layer,
        channels=count * groups * depth,
        filters=count * groups * problem.filters,
        groups=count,
        ifmap_height=problem.height,
        ifmap_width=problem.width,
        stride_height=problem.stride_height,
        stride_width=problem.stride_width,
        pad_bottom=max(0, reach[0] - problem.pad_top - problem.height),
        pad_right=max(0, reach[1] - problem.pad_left - problem.width),
    )
    sampled = operands.ifmap[:, :, :: problem.row_sample, :: problem.column_sample]
    sizes = (layer.groups, groups, problem.filters)
    changes: dict[str, Any] = {
        "ifmap": _planes(sampled[..., : problem.height, : problem.width], sizes, depth),
        "weight": _diagonal(operands.weight, sizes, depth),
    }
    if isinstance(operands, VectorOperands):
        if operands.ifmap_scales is not None:
            scales = operands.ifmap_scales[:, :, :: problem.row_sample, :: problem.column_sample]
            scales = scales[..., : problem.height, : problem.width]
            changes["ifmap_scales"] = _planes(scales, sizes, depth // vector)
        if operands.weight_scales is not None:
            changes["weight_scales"] = _diagonal(operands.weight_scales, sizes, depth // vector)
        for name in ("multiplier", "weight_coarse"):
            changes[name] = _longer(getattr(operands, name), conv.filters)
    if operands.bias is not None:
        changes["bias"] = _longer(operands.bias, conv.filters)
    return conv, replace(operands, **changes)


def _longer(values: Any, size: int) -> Any:
    return np.concatenate([values, np.zeros(size - len(values), values.dtype)])


def _planes(values: AnyIntArray, sizes: tuple[int, int, int], depth: int) -> AnyIntArray:
    """[N, G · C, H, W] with empty channels behind each group, and empty groups behind them."""
    total, groups, _ = sizes
    channels = values.shape[1] // total
    count = -(-total // groups) * groups
    whole = np.zeros((len(values), count * depth, *values.shape[2:]), values.dtype)
    for group in range(total):
        for channel in range(channels):
            whole[:, group * depth + channel] = values[:, group * channels + channel]
    return whole


def _diagonal(values: AnyIntArray, sizes: tuple[int, int, int], depth: int) -> AnyIntArray:
    """[G · K, C, R, S] as [G' · K, groups · depth, R, S], 0 off a filter's own group."""
    total, groups, filters = sizes
    count = -(-total // groups) * groups
    whole = np.zeros((count * filters, groups * depth, *values.shape[2:]), values.dtype)
    for group in range(total):
        for k in range(filters):
            for channel in range(values.shape[1]):
                place = (group % groups) * depth + channel
                whole[group * filters + k, place] = values[group * filters + k, channel]
    return whole
