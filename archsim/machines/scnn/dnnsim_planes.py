"""A layer as DNNsim sees it: zeros or not, tiles of the padded plane, groups of filters, halos.

What is counted with these: `archsim.machines.scnn.dnnsim`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from archsim.errors import InputError, require
from archsim.machines.scnn import dnnsim_kernel as kernel
from archsim.machines.scnn.axis import Axis
from archsim.machines.scnn.design import Scnn
from archsim.machines.scnn.kernels import BoolArray
from archsim.machines.scnn.pooling import Window
from archsim.numbers import AnyIntArray, IntArray, ceil_div
from workloads.layers import Conv2d, MatMul
from workloads.operands import Operands

SIDE = 16
"""Rows and columns of the planes into which the inputs of a fully connected layer are folded."""


@dataclass(frozen=True, kw_only=True)
class Side:
    """Rows, or columns, of a plane.  size: without padding; pads: before and behind; pes: of the
    grid; tile: of a PE in the padded plane."""

    size: int
    kernel: int
    stride: int
    pads: tuple[int, int]
    pes: int
    tile: int = 0

    @property
    def padded(self) -> int:
        return self.size + sum(self.pads)

    @property
    def outputs(self) -> int:
        return (self.padded - self.kernel) // self.stride + 1

    @property
    def own(self) -> int:
        """Outputs of a PE, of which there must be room for the sums."""
        return ceil_div(self.outputs, self.pes)

    @property
    def halo(self) -> tuple[int, int, int]:
        """Rows, or columns, of sums for the PE before, for itself, and for the next; below 0 where
        the padding is larger than the kernel."""
        return self.kernel - 1 - self.pads[0], self.tile, self.pads[0]

    @property
    def rule(self) -> kernel.Axis:
        """As the kernel takes it."""
        return self.tile, self.stride, self.pes, self.pads[0], self.outputs

    @property
    def axis(self) -> Axis:
        """As our mappings have it; only sizes are the same."""
        return Axis(
            size=self.size, outputs=self.outputs, kernel=self.kernel, stride=self.stride,
            pad=self.pads[0], tile=self.tile, pes=self.pes, own=self.own,
            window=Window(outputs=self.outputs),
        )  # fmt: skip

    def parts(self, weights: tuple[int, int], beside: int) -> kernel.ByteArray:
        """The hash's part of the output at (place − tap) / stride, from place − tap = 1 − taps on;
        weights: of the output's bits 0 and 1; `beside` where it is not in the plane."""
        distance = np.arange(1 - self.kernel, self.padded)
        output = np.trunc(distance / self.stride).astype(np.int64)
        part = (output & 1) * weights[0] + (output >> 1 & 1) * weights[1]
        inside = (distance > -self.stride) & (output < self.outputs)
        return np.where(inside, part, beside).astype(np.uint8)


_FOLDED = Side(size=SIDE, kernel=SIDE, stride=1, pads=(0, 0), pes=0)
"""Of a fully connected layer."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Planes:
    """What is counted: ifmap [images, channels, rows, columns], padded, and weight [channels of a
    filter, rows, columns, filters], of each value whether it is not zero."""

    ifmap: BoolArray
    weight: BoolArray
    rows: Side
    columns: Side

    @property
    def filters(self) -> int:
        return self.weight.shape[3]

    @property
    def conv_groups(self) -> int:
        return self.ifmap.shape[1] // len(self.weight)

    def group_size(self, design: Scnn) -> int:
        """Kc, maybe more than there are filters.  Raises InputError where it would be 0."""
        sums = self.rows.own * self.columns.own
        require(
            sums <= design.accumulators,
            f"a PE has {sums} sums of one filter, but {design.banks} banks of "
            f"{design.bank_entries} hold {design.accumulators}; bank_entries of at least "
            f"{ceil_div(sums, design.banks)} would do",
        )
        return 1 if self._one_channel_each else design.accumulators // sums

    @property
    def _one_channel_each(self) -> bool:
        return len(self.weight) == 1 and self.conv_groups > 1

    def groups(self, size: int) -> IntArray:
        """First filter, filters, and first channel that they see, of each group of filters."""
        first = np.arange(0, self.filters, size)
        own, channels = self.filters // self.conv_groups, len(self.weight)
        seen = np.where(first >= own, channels, 0)
        if self._one_channel_each:
            seen = np.minimum(first // own, self.conv_groups - 1)
        return np.stack([first, np.minimum(size, self.filters - first), seen], axis=1)

    @property
    def halo_cycles(self) -> int:
        """For each filter of a group."""
        sums = [up * left for up in self.rows.halo for left in self.columns.halo]
        own = len(sums) // 2
        return max(0, *sums[:own], *sums[own + 1 :])

    def filter_parts(self, banks: int) -> kernel.ByteArray:
        """The hash's part of each filter."""
        filters = np.arange(self.filters)
        return (((filters & 4) << 2 | filters & 3) % banks).astype(np.uint8)

    def tables(self, design: Scnn) -> kernel.Tables:
        """Of the hash ((k₂ ⊕ y₁ ⊕ x₁) y₀ x₀ k₁ k₀) mod banks the other parts, and the banks seen:
        the first 2 · F · I."""
        banks = design.banks
        rows = self.rows.parts((8 % banks, 16 % banks), kernel.NO_ROW)
        columns = self.columns.parts((4 % banks, 16 % banks), kernel.NO_COLUMN)
        seen = np.arange(kernel.HASHED) < 2 * design.weight_lanes * design.ifmap_lanes
        return rows, columns, np.where(seen, 255, 0).astype(np.uint8)


def planes_of(design: Scnn, layer: Conv2d | MatMul, operands: Operands) -> Iterator[Planes]:
    """What is counted one behind the other: a convolution; each product of a batch.

    Raises InputError for a dilated kernel.
    """
    if isinstance(layer, MatMul):
        rows, columns = _on_grid(design, _FOLDED, _FOLDED)
        for ifmap, weight in zip(operands.ifmap, operands.weight, strict=True):
            yield Planes(
                ifmap=_folded(ifmap), weight=_taps(_folded(weight.T)), rows=rows, columns=columns
            )
        return
    sides, ifmap, weight = _sides(layer), operands.ifmap != 0, operands.weight != 0
    if (layer.ifmap_height, layer.ifmap_width) == (1, 1):
        sides = [replace(_FOLDED, stride=one.stride, pads=one.pads) for one in sides]
        ifmap, weight = _folded(ifmap[:, :, 0, 0]), _folded(weight[:, :, -1, -1])
    rows, columns = _on_grid(design, *sides)
    padded = np.pad(ifmap, ((0, 0), (0, 0), rows.pads, columns.pads))
    yield Planes(ifmap=padded, weight=_taps(weight), rows=rows, columns=columns)


def _sides(layer: Conv2d) -> list[Side]:
    dilations = layer.dilation_height, layer.dilation_width
    kernels = layer.kernel_height, layer.kernel_width
    if any(k > 1 and dilation > 1 for k, dilation in zip(kernels, dilations, strict=True)):
        raise InputError(f"dilation must be 1 in DNNsim's count, not {dilations[0]}x{dilations[1]}")
    sizes = layer.ifmap_height, layer.ifmap_width
    strides = layer.stride_height, layer.stride_width
    pads = (layer.pad_top, layer.pad_bottom), (layer.pad_left, layer.pad_right)
    return [
        Side(size=size, kernel=kernel_size, stride=stride, pads=around, pes=0)
        for size, kernel_size, stride, around in zip(sizes, kernels, strides, pads, strict=True)
    ]


def _on_grid(design: Scnn, rows: Side, columns: Side) -> tuple[Side, Side]:
    """A PE's tile is the grid's share of the padded plane; its columns are, as there, those of as
    many PEs as the grid has rows."""
    grid = design.grid_rows, design.grid_columns
    height = ceil_div(rows.padded, grid[0])
    width = ceil_div(columns.padded, grid[1]) * grid[1] // grid[0]
    return replace(rows, pes=grid[0], tile=height), replace(columns, pes=grid[1], tile=width)


def _folded(values: AnyIntArray | BoolArray) -> BoolArray:
    """Which of values [rows, inputs] are not zero, [rows, channels, 16, 16]."""
    area = SIDE * SIDE
    channels = ceil_div(values.shape[1], area)
    padded = np.pad(values != 0, ((0, 0), (0, channels * area - values.shape[1])))
    return padded.reshape(len(values), channels, SIDE, SIDE)


def _taps(weight: BoolArray) -> BoolArray:
    """[filters, channels, rows, columns] with the filters behind."""
    return np.ascontiguousarray(weight.transpose(1, 2, 3, 0))


__all__ = ["Planes", "Side", "planes_of"]
