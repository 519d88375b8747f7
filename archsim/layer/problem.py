"""A layer as the core sees it: every matrix layer becomes a (grouped, strided) convolution."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import lru_cache
from operator import attrgetter
from typing import Literal

import numpy as np

from archsim.errors import require, require_positive
from archsim.numbers import IntArray, ceil_div
from workloads.layers import Conv2d, MatMul

Order = Literal["pixels_outer", "filters_outer"]


@dataclass(frozen=True, kw_only=True)
class Problem:
    """ofmap[image, group, P, Q, K] from ifmap[image, group, H, W, C] and weight[group, K, R, S, C].

    channels and filters are counted within one group.  A matrix product M × N × K is a 1 × 1
    convolution over one row of M pixels with K channels and N filters; products of a batch with
    weights of their own are groups.
    """

    images: int
    groups: int
    channels: int
    height: int
    width: int
    kernel_height: int
    kernel_width: int
    stride_height: int
    stride_width: int
    dilation_height: int
    dilation_width: int
    pad_top: int
    pad_left: int
    out_height: int
    out_width: int
    filters: int
    has_bias: int
    relu: int
    row_sample: int = 1
    column_sample: int = 1
    """Every n-th row and column is sent: a kernel of one row needs no more at a stride of n."""
    row_units: int = 0
    """Units of a pixel in memory, of which the channels are kept; 0: all of them are."""

    def vector(self) -> IntArray:
        """The fields in order, for the kernels."""
        return np.array(_FIELDS(self), np.int64)

    @property
    def macs(self) -> int:
        """Multiply-accumulates, those on padding included."""
        pixels = self.images * self.groups * self.out_height * self.out_width
        return pixels * self.filters * self.channels * self.kernel_height * self.kernel_width

    def side_by_side(self, groups: int) -> Problem:
        """The problem whose every group is a block of `groups` groups of this one.

        A block's channels and filters are those of its groups, one group behind the other; a
        filter's weights are 0 off its own group.  The last block is filled up with empty groups.
        """
        if groups == 1:
            return self
        return replace(
            self,
            groups=ceil_div(self.groups, groups),
            channels=groups * self.channels,
            filters=groups * self.filters,
        )


_FIELDS = attrgetter(*(entry.name for entry in fields(Problem)))


@lru_cache(maxsize=1024)
def problem_of(layer: Conv2d | MatMul) -> Problem:
    """The problem of a layer."""
    if isinstance(layer, MatMul):
        products = 1 if layer.shared_weight else layer.batch
        pixels = layer.m * (layer.batch if layer.shared_weight else 1)
        return Problem(
            images=1, groups=products, channels=layer.k, height=1, width=pixels,
            kernel_height=1, kernel_width=1, stride_height=1, stride_width=1,
            dilation_height=1, dilation_width=1, pad_top=0, pad_left=0,
            out_height=1, out_width=pixels, filters=layer.n,
            has_bias=int(layer.bias), relu=int(layer.relu),
            row_units=0 if layer.kept is None else layer.kept.units,
        )  # fmt: skip
    pointwise_row = layer.kernel_height == 1 and layer.pad_top == layer.pad_bottom == 0
    pointwise_column = layer.kernel_width == 1 and layer.pad_left == layer.pad_right == 0
    return Problem(
        images=layer.batch,
        groups=layer.groups,
        channels=layer.channels // layer.groups,
        height=layer.ofmap_height if pointwise_row else layer.ifmap_height,
        width=layer.ofmap_width if pointwise_column else layer.ifmap_width,
        kernel_height=layer.kernel_height,
        kernel_width=layer.kernel_width,
        stride_height=1 if pointwise_row else layer.stride_height,
        stride_width=1 if pointwise_column else layer.stride_width,
        dilation_height=layer.dilation_height,
        dilation_width=layer.dilation_width,
        pad_top=layer.pad_top,
        pad_left=layer.pad_left,
        out_height=layer.ofmap_height,
        out_width=layer.ofmap_width,
        filters=layer.filters // layer.groups,
        has_bias=int(layer.bias),
        relu=int(layer.relu),
        row_sample=layer.stride_height if pointwise_row else 1,
        column_sample=layer.stride_width if pointwise_column else 1,
    )


def margins(problem: Problem) -> tuple[tuple[int, int], tuple[int, int]]:
    """Zeros (before, behind) that the windows reach into, along rows and columns of the ifmap."""
    reach_height = (problem.kernel_height - 1) * problem.dilation_height + 1
    reach_width = (problem.kernel_width - 1) * problem.dilation_width + 1
    height = (problem.out_height - 1) * problem.stride_height + reach_height
    width = (problem.out_width - 1) * problem.stride_width + reach_width
    bottom = max(height - problem.pad_top - problem.height, 0)
    right = max(width - problem.pad_left - problem.width, 0)
    return (problem.pad_top, bottom), (problem.pad_left, right)


(
    IMAGES,
    GROUPS,
    CHANNELS,
    HEIGHT,
    WIDTH,
    KERNEL_HEIGHT,
    KERNEL_WIDTH,
    STRIDE_HEIGHT,
    STRIDE_WIDTH,
    DILATION_HEIGHT,
    DILATION_WIDTH,
    PAD_TOP,
    PAD_LEFT,
    OUT_HEIGHT,
    OUT_WIDTH,
    FILTERS,
    HAS_BIAS,
    RELU,
    ROW_SAMPLE,
    COLUMN_SAMPLE,
    ROW_UNITS,
) = range(len(fields(Problem)))


@dataclass(frozen=True, kw_only=True)
class Tiling:
    """The sizes of a tile, and which loop is outside.

    pixel_rows × pixel_columns output pixels of each of `images` images, `filters` filters and
    `channels` channels of one group.  Channels are innermost: a tile's partial sums stay in the
    accumulators.  groups: how many groups lie side by side on the array, as one block of their
    channels and filters (`Problem.side_by_side`).  With more than one, filters and channels count
    those of the block, and a tile has all of them.
    """

    pixel_rows: int
    pixel_columns: int
    filters: int
    channels: int
    order: Order = "pixels_outer"
    images: int = 1
    groups: int = 1

    def __post_init__(self) -> None:
        require_positive(
            pixel_rows=self.pixel_rows,
            pixel_columns=self.pixel_columns,
            filters=self.filters,
            channels=self.channels,
            images=self.images,
            groups=self.groups,
        )
        require(
            self.order in ("pixels_outer", "filters_outer"),
            f"order must be pixels_outer or filters_outer, not {self.order!r}",
        )

    def vector(self) -> IntArray:
        """Sizes and order, for the kernels: [TILING_COLUMNS]."""
        return np.array(
            [self.pixel_rows, self.pixel_columns, self.filters, self.channels,
             int(self.order == "filters_outer"), self.images, self.groups], np.int64,
        )  # fmt: skip

    @classmethod
    def from_vector(cls, vector: IntArray) -> Tiling:
        """The inverse of `vector`."""
        rows, columns, filters, channels, outer, images, groups = vector.tolist()
        return cls(
            pixel_rows=rows,
            pixel_columns=columns,
            filters=filters,
            channels=channels,
            order="filters_outer" if outer else "pixels_outer",
            images=images,
            groups=groups,
        )


(
    T_ROWS,
    T_COLUMNS,
    T_FILTERS,
    T_CHANNELS,
    T_FILTERS_OUTER,
    T_IMAGES,
    T_GROUPS,
    TILING_COLUMNS,
) = range(8)
