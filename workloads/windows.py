"""Convolutions of one to three axes, transposed or not, as the `Conv2d` layers that compute them.

One axis is a plane of height 1.  Of three, each depth of the result is an image: its channels are
those of all the depths under its window, so that one layer sums over them as over channels:

    ofmap[n·D' + d] = conv2d(ifmap of channels c·T + t: c at depth d·stride − pad + t·dilation,
                             weight of channels c·T + t: c at depth t)

A transposed convolution of stride s along an axis writes its result in s phases: the pixels
o ≡ φ − pad (mod s) take the taps r with r·dilation ≡ φ (mod s) alone, so that each phase is a
convolution of stride 1 with those taps, in reverse order, over the ifmap as it is:

    ofmap[o₀ + s·j] = Σ_r ifmap[j + (o₀ + pad − dilation·r) / s] · weight[r]

Its MACs are those of the taps; no zeros are inserted and multiplied (as Dumoulin and Visin describe
it, "A guide to convolution arithmetic", 2016, section 4.6).  Phases that read the same windows are
one layer, their filters side by side.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import gcd, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workloads.layers import Conv2d
from workloads.limits import check_limit

AXES = 3
"""The most axes of a convolution."""


@dataclass(frozen=True, kw_only=True)
class Axis:
    """A convolution along one axis; low: the first element of the ifmap that is read, of `size`."""

    size: int
    kernel: int
    stride: int = 1
    dilation: int = 1
    before: int = 0
    after: int = 0
    low: int = 0

    @property
    def ofmap(self) -> int:
        """Elements of the result."""
        span = self.dilation * (self.kernel - 1) + 1
        return (self.before + self.size + self.after - span) // self.stride + 1


@dataclass(frozen=True, kw_only=True)
class Phase:
    """Along one axis: `taps` of the kernel make the elements `places` of the result."""

    axis: Axis
    taps: slice
    places: slice


@dataclass(frozen=True, kw_only=True)
class Transposed:
    """A transposed convolution along one axis: `ofmap` elements, the first `before` cut off."""

    size: int
    kernel: int
    stride: int
    dilation: int
    before: int
    ofmap: int

    @property
    def count(self) -> int:
        """Of phases with taps, at most."""
        return min(self.kernel, self.stride // gcd(self.dilation, self.stride))

    def phases(self) -> Iterator[Phase]:
        """Those that read some of the ifmap."""
        common = gcd(self.dilation, self.stride)
        apart, step = self.stride // common, self.dilation // common
        for least in range(self.count):
            first = (self.dilation * least - self.before) % self.stride
            taps = range(least, self.kernel, apart)
            count = -(-(self.ofmap - first) // self.stride)
            begin = (first + self.before - self.dilation * taps[-1]) // self.stride
            end = (first + self.before - self.dilation * least) // self.stride + count
            if count <= 0 or not self._reads(begin, count, step, len(taps)):
                continue
            low, high = max(begin, 0), min(end, self.size)
            axis = Axis(size=high - low, kernel=len(taps), dilation=step, low=low,
                        before=low - begin, after=end - high)  # fmt: skip
            reverse = slice(taps[-1], taps[0] - apart if taps[0] >= apart else None, -apart)
            yield Phase(axis=axis, taps=reverse, places=slice(first, None, self.stride))

    def _reads(self, begin: int, count: int, step: int, taps: int) -> bool:
        """Whether windows at `begin` … `begin + count - 1` hold an element, not padding alone.

        Taps may lie on both sides of the ifmap and step over it: the first window end that is
        not before the ifmap decides.
        """
        first = max(0, -((begin + count - 1) // step))
        return first < taps and begin + first * step < self.size


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """What all pieces of a convolution share."""

    batch: int
    channels: int
    filters: int
    groups: int
    bias: bool
    relu: bool


@dataclass(frozen=True, kw_only=True)
class Piece:
    """A layer of a convolution, and how its tensors lie in those of the operator.

    phases: each of every axis, in one layer if there are several.  transposed: the weight is
    [C, K/groups, …], else [K, C/groups, …].  All tensors have their two axes of channels first.
    """

    name: str
    sizes: Sizes
    phases: tuple[tuple[Phase, ...], ...]
    transposed: bool = False

    @property
    def axes(self) -> tuple[Axis, ...]:
        """Of all phases."""
        return tuple(phase.axis for phase in self.phases[0])

    @property
    def _depth(self) -> Axis:
        return self.axes[0] if len(self.axes) == AXES else Axis(size=1, kernel=1)

    @property
    def _plane(self) -> tuple[Axis, Axis]:
        axes = (Axis(size=1, kernel=1), *self.axes)
        return axes[-2], axes[-1]

    @cached_property
    def layer(self) -> Conv2d:
        """Raises WorkloadError for sizes that make none."""
        rows, columns = self._plane
        sizes, depth = self.sizes, self._depth
        return Conv2d(
            name=self.name,
            channels=sizes.channels * depth.kernel,
            filters=sizes.filters * len(self.phases),
            ifmap_height=rows.size,
            ifmap_width=columns.size,
            kernel_height=rows.kernel,
            kernel_width=columns.kernel,
            stride_height=rows.stride,
            stride_width=columns.stride,
            pad_top=rows.before,
            pad_left=columns.before,
            pad_bottom=rows.after,
            pad_right=columns.after,
            dilation_height=rows.dilation,
            dilation_width=columns.dilation,
            groups=sizes.groups,
            batch=sizes.batch * depth.ofmap,
            bias=sizes.bias,
            relu=sizes.relu,
        )

    def ifmap(self, array: NDArray[Any]) -> NDArray[Any]:
        """[N, C, …] as the layer's; at depths that are `blank` with any of its elements."""
        plane = tuple(slice(one.low, one.low + one.size) for one in self.axes)
        array = array[:, :, *plane]
        if len(self.axes) == AXES:
            at = np.clip(self._depths, 0, self._depth.size - 1)
            array = np.moveaxis(array[:, :, at], 2, 1)  # [N, D', C, T, H, W]
        layer = self.layer
        return array.reshape(layer.batch, layer.channels, layer.ifmap_height, layer.ifmap_width)

    @property
    def _depths(self) -> NDArray[np.int64]:
        """[D', T]: under each window; outside of the ifmap in its padding."""
        depth = self._depth
        first = np.arange(depth.ofmap) * depth.stride - depth.before
        return first[:, None] + np.arange(depth.kernel) * depth.dilation

    @property
    def blank(self) -> NDArray[np.bool_] | None:
        """Which elements of the layer's ifmap are padding: it broadcasts along them."""
        outside = (self._depths < 0) | (self._depths >= self._depth.size)
        if not outside.any():
            return None
        images = np.broadcast_to(outside, (self.sizes.batch, *outside.shape))
        channels = (images.shape[0] * images.shape[1], self.sizes.channels, images.shape[2])
        per_channel = np.broadcast_to(images.reshape(-1, 1, images.shape[2]), channels)
        return per_channel.reshape(channels[0], -1, 1, 1)

    def weight(self, array: NDArray[Any]) -> NDArray[Any]:
        """The operator's weight as the layer's."""
        layer, groups = self.layer, self.sizes.groups
        parts = [array[:, :, *(phase.taps for phase in phases)] for phases in self.phases]
        if self.transposed:  # [C, K/g, …] to [K, C/g, …]
            inputs = self.sizes.channels // groups
            grouped = [one.reshape(groups, inputs, *one.shape[1:]) for one in parts]
            parts = [one.swapaxes(1, 2).reshape(-1, inputs, *one.shape[3:]) for one in grouped]
        depth = layer.channels // layer.groups
        shape = (layer.filters, depth, layer.kernel_height, layer.kernel_width)
        return self._side_by_side(parts).reshape(shape)

    def bias(self, array: NDArray[Any]) -> NDArray[Any]:
        """[K] as the layer's."""
        return self._side_by_side([array] * len(self.phases))

    def own(self, array: NDArray[Any]) -> NDArray[Any]:
        """[K] of the operator from what is of the layer's filters."""
        shape = (self.sizes.groups, len(self.phases), -1)
        return array.reshape(shape)[:, 0].reshape(-1)

    def ofmap(self, array: NDArray[Any]) -> NDArray[Any]:
        """The operator's result [N, K, …], what the layer makes of it [N, K, P, Q]."""
        layer = self.layer
        parts = [array[:, :, *(phase.places for phase in phases)] for phases in self.phases]
        filters_first = [one.swapaxes(0, 1) for one in parts]
        made = self._side_by_side(filters_first).swapaxes(0, 1)
        if len(self.axes) == AXES:
            made = made.swapaxes(1, 2)
        return made.reshape(layer.batch, layer.filters, layer.ofmap_height, layer.ofmap_width)

    def _side_by_side(self, parts: list[NDArray[Any]]) -> NDArray[Any]:
        """Arrays [K, …] of the phases as one, group by group."""
        if len(parts) == 1:
            return parts[0]
        groups, rest = self.sizes.groups, parts[0].shape[1:]
        return np.stack([one.reshape(groups, -1, *rest) for one in parts], 1).reshape(-1, *rest)


def plain(name: str, sizes: Sizes, axes: tuple[Axis, ...]) -> Piece:
    """A convolution that is not transposed."""
    phases = tuple(Phase(axis=axis, taps=slice(None), places=slice(None)) for axis in axes)
    return Piece(name=name, sizes=sizes, phases=(phases,))


def transposed(name: str, sizes: Sizes, axes: tuple[Transposed, ...]) -> tuple[Piece, ...]:
    """The layers of a transposed convolution, named NAME, or NAME/phase0, NAME/phase1, …

    Raises WorkloadError for more phases than a network may have layers.
    """
    check_limit("layers", prod(axis.count for axis in axes), f"{name}: phases")
    alike: dict[tuple[Any, ...], list[tuple[Phase, ...]]] = {}
    for phases in product(*(tuple(axis.phases()) for axis in axes)):
        alike.setdefault(tuple((one.axis, one.axis.ofmap) for one in phases), []).append(phases)
    several = len(alike) > 1
    return tuple(
        Piece(name=f"{name}/phase{at}" if several else name, sizes=sizes, phases=tuple(one),
              transposed=True)
        for at, one in enumerate(alike.values())
    )  # fmt: skip


__all__ = ["AXES", "Axis", "Phase", "Piece", "Sizes", "Transposed", "plain", "transposed"]
