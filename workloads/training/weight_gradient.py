"""WG: the gradient of a layer's weight.

Of a convolution dw[k, c, r, s] = Σ_npq dy[n, k, p, q] · x[n, c, p·stride − pad + r·dilation, …]: as
many MACs as the layer itself has.  It is written in one of two forms:

* product: what the windows see, [C/groups · R · S, N · P · Q], times dy, [N · P · Q, K/groups], one
  product a group.  The side with more rows comes first, as the ifmap: arrays that hold weights load
  them for as many rows.  Any machine can tile it; a machine that does not form windows itself reads
  an element of x as often as windows see it, and this is counted.
* convolution: x with its images as channels and its channels as images, under dy as the kernel,
  stride and dilation exchanged.  Nothing is repeated; but the kernel is as large as the plane, and
  machines that keep whole kernels in a scratchpad cannot tile it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from workloads.layers import Conv2d, MatMul
from workloads.training.input_gradient import Axis, column_axis, row_axis
from workloads.training.pass_layer import Array, PassLayer, Tensors, swapped

Form = Literal["product", "convolution"]


@dataclass(frozen=True, kw_only=True)
class ConvWeightProduct(PassLayer):
    """One product a group.  windows_first: the ifmap is x, not dy."""

    of: Conv2d
    layer: MatMul
    windows_first: bool

    def ifmap(self, tensors: Tensors) -> Array:
        return self._windows(tensors) if self.windows_first else self._gradients(tensors)

    def weight(self, tensors: Tensors) -> Array:
        other = self._gradients(tensors) if self.windows_first else self._windows(tensors)
        return swapped(other)

    def part(self, gradient: Array) -> Array:
        split = gradient.reshape(self.of.groups, -1, self._taps)
        return swapped(split) if self.windows_first else split

    def put(self, ofmap: Array, gradient: Array) -> None:
        rows = swapped(ofmap) if self.windows_first else ofmap
        gradient[...] = rows.reshape(gradient.shape)

    @property
    def _taps(self) -> int:
        return self.layer.m if self.windows_first else self.layer.n

    def _windows(self, tensors: Tensors) -> Array:
        """[groups, C/groups · R · S, N · P · Q]."""
        seen = windows(self.of, tensors.given("x"))
        return seen.reshape(self.of.groups, self._taps, -1)

    def _gradients(self, tensors: Tensors) -> Array:
        """[groups, K/groups, N · P · Q]."""
        dy = tensors.given("dy")
        filters = self.of.filters // self.of.groups
        return dy.transpose(1, 0, 2, 3).reshape(self.of.groups, filters, -1)


def windows(layer: Conv2d, x: Array) -> Array:
    """What windows see of x [N, C, H, W]: [C, R, S, N, P, Q], 0 on padding."""
    pads = ((0, 0), (0, 0), (layer.pad_top, layer.pad_bottom), (layer.pad_left, layer.pad_right))
    padded = np.pad(x, pads).transpose(1, 0, 2, 3)
    shape = (layer.channels, layer.kernel_height, layer.kernel_width,
             layer.batch, layer.ofmap_height, layer.ofmap_width)  # fmt: skip
    seen = np.empty(shape, x.dtype)
    for r in range(layer.kernel_height):
        rows = _every(r * layer.dilation_height, layer.stride_height, layer.ofmap_height)
        for s in range(layer.kernel_width):
            columns = _every(s * layer.dilation_width, layer.stride_width, layer.ofmap_width)
            seen[:, r, s] = padded[:, :, rows, columns]
    return seen


def _every(first: int, step: int, count: int) -> slice:
    return slice(first, first + (count - 1) * step + 1, step)


@dataclass(frozen=True, kw_only=True)
class Margin:
    """kept: rows of x that some window sees at most; behind: zeros behind them."""

    kept: int
    behind: int


@dataclass(frozen=True, kw_only=True)
class ConvWeightConvolution(PassLayer):
    """x as [C/groups, groups · N, H', W'] under dy as [K, N, P, Q], to [C/groups, K, R, S]."""

    of: Conv2d
    rows: Margin
    columns: Margin

    def ifmap(self, tensors: Tensors) -> Array:
        x = tensors.given("x")[:, :, : self.rows.kept, : self.columns.kept]
        images, channels, *plane = x.shape
        groups = self.of.groups
        split = x.reshape(images, groups, channels // groups, *plane)
        return split.transpose(2, 1, 0, 3, 4).reshape(channels // groups, groups * images, *plane)

    def weight(self, tensors: Tensors) -> Array:
        return tensors.given("dy").transpose(1, 0, 2, 3)

    def part(self, gradient: Array) -> Array:
        return gradient.transpose(1, 0, 2, 3)

    def put(self, ofmap: Array, gradient: Array) -> None:
        gradient[...] = ofmap.transpose(1, 0, 2, 3)


def _margin(axis: Axis) -> Margin:
    """So that there are as many outputs as taps."""
    reach = (axis.kernel - 1) * axis.dilation + (axis.ofmap - 1) * axis.stride + 1 - axis.pad
    kept = min(max(reach, 1), axis.ifmap)
    return Margin(kept=kept, behind=max(reach - kept, 0))


@dataclass(frozen=True, kw_only=True)
class SecondOperandGradient(PassLayer):
    """dw [b, K, N] = xᵀ [b, K, M] @ dy [b, M, N]."""

    def ifmap(self, tensors: Tensors) -> Array:
        return swapped(tensors.given("x"))

    def weight(self, tensors: Tensors) -> Array:
        return tensors.given("dy")

    def part(self, gradient: Array) -> Array:
        return gradient

    def put(self, ofmap: Array, gradient: Array) -> None:
        gradient[...] = ofmap


def weight_gradient(layer: Conv2d | MatMul, form: Form = "product") -> PassLayer:
    """WG of a layer: of a product whose operands are both computed, BP of the second one.

    A convolution whose padding leaves nothing of x for its last windows has no form as a
    convolution; it is a product then.
    """
    if isinstance(layer, MatMul):
        product = MatMul(
            name=f"{layer.name}/{'WG' if layer.shared_weight else 'BP2'}", m=layer.k, n=layer.n,
            k=layer.m, batch=layer.batch, shared_weight=False,
        )  # fmt: skip
        kind = "WG" if layer.shared_weight else "BP"
        return SecondOperandGradient(kind=kind, of=layer, layer=product)
    return _as_product(layer) if form == "product" else _as_convolution(layer)


def _as_product(layer: Conv2d) -> ConvWeightProduct:
    taps = layer.channels // layer.groups * layer.kernel_height * layer.kernel_width
    filters = layer.filters // layer.groups
    first = taps >= filters
    product = MatMul(
        name=f"{layer.name}/WG", m=taps if first else filters, n=filters if first else taps,
        k=layer.batch * layer.ofmap_height * layer.ofmap_width, batch=layer.groups,
        shared_weight=False,
    )  # fmt: skip
    return ConvWeightProduct(kind="WG", of=layer, layer=product, windows_first=first)


def _as_convolution(layer: Conv2d) -> PassLayer:
    rows, columns = _margin(row_axis(layer)), _margin(column_axis(layer))
    convolution = Conv2d(
        name=f"{layer.name}/WG", channels=layer.groups * layer.batch, filters=layer.filters,
        ifmap_height=rows.kept, ifmap_width=columns.kept,
        kernel_height=layer.ofmap_height, kernel_width=layer.ofmap_width,
        stride_height=layer.dilation_height, stride_width=layer.dilation_width,
        dilation_height=layer.stride_height, dilation_width=layer.stride_width,
        pad_top=layer.pad_top, pad_bottom=rows.behind,
        pad_left=layer.pad_left, pad_right=columns.behind,
        groups=layer.groups, batch=layer.channels // layer.groups,
    )  # fmt: skip
    made = convolution.ofmap_height, convolution.ofmap_width
    if made != (layer.kernel_height, layer.kernel_width):
        return _as_product(layer)
    return ConvWeightConvolution(kind="WG", of=layer, layer=convolution, rows=rows, columns=columns)


__all__ = ["ConvWeightConvolution", "ConvWeightProduct", "Form", "SecondOperandGradient",
           "weight_gradient", "windows"]  # fmt: skip
