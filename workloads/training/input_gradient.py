"""BP: the gradient of a layer's input, as layers without inserted zeros.

Of a convolution y[p] = Σ_r w[r] · x[p·s − pad + r·d] the gradient of x along one axis is

    dx[h] = Σ_r w[r] · dy[(h + pad − r·d) / s]     over all r where the division leaves no rest.

Places h of one rest of s (a phase) ask for the same taps r, every ρ-th with ρ = s / gcd(s, d), and
of these each place needs the next dy: a convolution of stride 1 and dilation d / gcd(s, d) over dy,
with those taps in reverse.  So a layer of stride s is at most s phases along each axis, which
together multiply as often as the layer itself, but for its margins; a phase without taps is 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

import numpy as np

from workloads.layers import Conv2d, MatMul
from workloads.training.pass_layer import Array, PassLayer, Tensors, swapped


@dataclass(frozen=True, kw_only=True)
class Axis:
    """Of a convolution along one axis: sizes as in `Conv2d`."""

    ifmap: int
    ofmap: int
    kernel: int
    stride: int
    dilation: int
    pad: int


@dataclass(frozen=True, kw_only=True)
class Phase:
    """The places first, first + step, … of the input along one axis (`outputs` of them).

    taps: of the kernel, in reverse; seen: the gradients of the ofmap that these windows see, with
    `before` and `behind` zeros at their margins.
    """

    places: slice
    outputs: int
    taps: slice
    kernel: int
    dilation: int
    seen: slice
    before: int
    behind: int


def phases(axis: Axis) -> tuple[Phase, ...]:
    """Those of an axis that have work, in the order of their first place."""
    found = (_phase(axis, first) for first in range(min(axis.stride, axis.ifmap)))
    return tuple(one for one in found if one is not None)


def _phase(axis: Axis, first: int) -> Phase | None:
    together = gcd(axis.stride, axis.dilation)
    apart = axis.stride // together
    taps = [r for r in range(min(apart, axis.kernel))
            if (first + axis.pad - r * axis.dilation) % axis.stride == 0]  # fmt: skip
    if not taps:
        return None
    tap = taps[0]
    kernel = (axis.kernel - 1 - tap) // apart + 1
    dilation = axis.dilation // together
    outputs = (axis.ifmap - 1 - first) // axis.stride + 1
    nearest = (first + axis.pad - tap * axis.dilation) // axis.stride
    low, high = nearest - (kernel - 1) * dilation, nearest + outputs - 1
    start, stop = max(low, 0), min(high, axis.ofmap - 1) + 1
    if start >= stop:
        return None
    return Phase(
        places=slice(first, None, axis.stride),
        outputs=outputs,
        taps=slice(tap, None, apart),
        kernel=kernel,
        dilation=dilation,
        seen=slice(start, stop),
        before=start - low,
        behind=high + 1 - stop,
    )


@dataclass(frozen=True, kw_only=True)
class ConvInputGradient(PassLayer):
    """One pair of phases of a convolution: dy [N, K, P', Q'] with weight [C, K/groups, R', S']."""

    of: Conv2d
    rows: Phase
    columns: Phase

    def ifmap(self, tensors: Tensors) -> Array:
        return tensors.given("dy")[:, :, self.rows.seen, self.columns.seen]

    def weight(self, tensors: Tensors) -> Array:
        taps = tensors.given("w")[:, :, self.rows.taps, self.columns.taps][:, :, ::-1, ::-1]
        return exchanged(taps, self.of.groups)

    def part(self, gradient: Array) -> Array:
        return gradient[:, :, self.rows.places, self.columns.places]

    def put(self, ofmap: Array, gradient: Array) -> None:
        gradient[:, :, self.rows.places, self.columns.places] = ofmap


def exchanged(weight: Array, groups: int) -> Array:
    """[K, C/groups, R, S] as [C, K/groups, R, S]: each group's filters and channels exchanged."""
    filters, depth, *kernel = weight.shape
    split = weight.reshape(groups, filters // groups, depth, *kernel)
    return np.swapaxes(split, 1, 2).reshape(groups * depth, filters // groups, *kernel)


@dataclass(frozen=True, kw_only=True)
class FirstOperandGradient(PassLayer):
    """dx [b, M, K] = dy [b, M, N] @ wᵀ [b, N, K]."""

    def ifmap(self, tensors: Tensors) -> Array:
        return tensors.given("dy")

    def weight(self, tensors: Tensors) -> Array:
        return swapped(tensors.given("w"))

    def part(self, gradient: Array) -> Array:
        return gradient

    def put(self, ofmap: Array, gradient: Array) -> None:
        gradient[...] = ofmap


def input_gradient(layer: Conv2d | MatMul) -> tuple[PassLayer, ...]:
    """BP of a layer, as one layer or, of a stride, as one for each pair of phases."""
    if isinstance(layer, MatMul):
        product = MatMul(
            name=f"{layer.name}/BP", m=layer.m, n=layer.k, k=layer.n, batch=layer.batch,
            shared_weight=layer.shared_weight, steps=layer.steps,
            weight_of=layer.weight_of or (layer.name if layer.shared_weight else ""),
        )  # fmt: skip
        return (FirstOperandGradient(kind="BP", of=layer, layer=product),)
    along = phases(row_axis(layer)), phases(column_axis(layer))
    pairs = [(rows, columns) for rows in along[0] for columns in along[1]]
    alone = len(pairs) == 1
    return tuple(_conv_part(layer, rows, columns, alone=alone) for rows, columns in pairs)


def row_axis(layer: Conv2d) -> Axis:
    """A convolution along its rows."""
    return Axis(
        ifmap=layer.ifmap_height, ofmap=layer.ofmap_height, kernel=layer.kernel_height,
        stride=layer.stride_height, dilation=layer.dilation_height, pad=layer.pad_top,
    )  # fmt: skip


def column_axis(layer: Conv2d) -> Axis:
    """A convolution along its columns."""
    return Axis(
        ifmap=layer.ifmap_width, ofmap=layer.ofmap_width, kernel=layer.kernel_width,
        stride=layer.stride_width, dilation=layer.dilation_width, pad=layer.pad_left,
    )  # fmt: skip


def _conv_part(layer: Conv2d, rows: Phase, columns: Phase, *, alone: bool) -> ConvInputGradient:
    suffix = "" if alone else f"{rows.places.start}.{columns.places.start}"
    convolution = Conv2d(
        name=f"{layer.name}/BP{suffix}", channels=layer.filters, filters=layer.channels,
        ifmap_height=rows.seen.stop - rows.seen.start,
        ifmap_width=columns.seen.stop - columns.seen.start,
        kernel_height=rows.kernel, kernel_width=columns.kernel,
        pad_top=rows.before, pad_bottom=rows.behind,
        pad_left=columns.before, pad_right=columns.behind,
        dilation_height=rows.dilation, dilation_width=columns.dilation,
        groups=layer.groups, batch=layer.batch,
    )  # fmt: skip
    return ConvInputGradient(kind="BP", of=layer, layer=convolution, rows=rows, columns=columns)


__all__ = [
    "Axis",
    "ConvInputGradient",
    "FirstOperandGradient",
    "Phase",
    "column_axis",
    "exchanged",
    "input_gradient",
    "phases",
    "row_axis",
]
