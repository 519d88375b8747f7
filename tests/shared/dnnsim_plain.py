"""DNNsim's count of SCNN in plain loops, value by value, from its rules in docs/contracts/scnn.md.

Nothing is shared with the model but the design and the layer.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from archsim.machines.scnn.design import Scnn
from workloads.layers import Conv2d, MatMul
from workloads.operands import Operands

Layer = Conv2d | MatMul


@dataclass(frozen=True, kw_only=True)
class Plain:
    """A layer as DNNsim sees it.  ifmap [C, H, W] of one image, weight [K, C of a filter, R, S]."""

    design: Scnn
    ifmap: Any
    weight: Any
    stride: tuple[int, int]
    pads: tuple[tuple[int, int], tuple[int, int]]

    def sizes(self, axis: int) -> tuple[int, int, int]:
        """Inputs with padding, taps, outputs."""
        size, taps = self.ifmap.shape[1 + axis] + sum(self.pads[axis]), self.weight.shape[2 + axis]
        return size, taps, (size - taps) // self.stride[axis] + 1

    def tile(self, axis: int) -> int:
        """The grid's rows cut the plane in both directions, once it is whole tiles of the grid."""
        grid = self.design.grid_rows, self.design.grid_columns
        whole = self.sizes(axis)[0]
        while whole % grid[axis]:
            whole += 1
        return whole // grid[0]

    def count(self) -> dict[str, int]:
        """Cycles, products and cycles in which multipliers wait."""
        design, (filters, channels) = self.design, self.weight.shape[:2]
        own = [
            -(-self.sizes(axis)[2] // n)
            for axis, n in ((0, design.grid_rows), (1, design.grid_columns))
        ]
        kc = design.banks * design.bank_entries // (own[0] * own[1])
        of_all = self.ifmap.shape[0]
        alone = channels == 1 and of_all > 1
        kc = 1 if alone else kc
        found: dict[str, int] = dict.fromkeys(("cycles", "mults", "idle_conflicts"), 0)
        of_group = filters // (of_all // channels)
        for first in range(0, filters, kc):
            some = range(first, min(first + kc, filters))
            seen = 0 if first < of_group else channels
            if alone:
                seen = min(first // of_group, of_all - 1)
            for channel in range(channels):
                pes = [
                    self.pe((i, j), self.ifmap[seen + channel], channel, some)
                    for i, j in product(range(design.grid_rows), range(design.grid_columns))
                ]
                found["cycles"] += max(cycles for cycles, _, _ in pes)
                found["mults"] += sum(made for _, made, _ in pes)
                lanes = design.weight_lanes * design.ifmap_lanes
                found["idle_conflicts"] += sum(waited for _, _, waited in pes) * lanes
            found["cycles"] += self.halo() * len(some)
        return found

    def halo(self) -> int:
        sides = [
            (self.sizes(a)[1] - 1 - self.pads[a][0], self.tile(a), self.pads[a][0]) for a in (0, 1)
        ]
        around = [(i, j) for i, j in product(range(3), repeat=2) if (i, j) != (1, 1)]
        return max(0, max(sides[0][i] * sides[1][j] for i, j in around))

    def pe(
        self, pe: tuple[int, int], plane: Any, channel: int, some: range
    ) -> tuple[int, int, int]:
        """Cycles, products, cycles of waiting, with a channel and some filters."""
        (top, left), (sy, sx) = (self.pads[0][0], self.pads[1][0]), self.stride
        activations: dict[Any, list[Any]] = defaultdict(list)
        for y, x in product(range(plane.shape[0]), range(plane.shape[1])):
            if plane[y, x] and self.has(pe, y + top, x + left):
                activations[(y + top) % sy, (x + left) % sx].append((y + top, x + left))
        weights: dict[Any, list[Any]] = defaultdict(list)
        for r, s, k in product(*map(range, self.weight.shape[2:]), some):
            if self.weight[k, channel, r, s]:
                weights[(r + top) % sy, (s + left) % sx].append((r, s, k))
        cycles = made = waited = 0
        for phase, values in activations.items():
            for some_values, some_weights in product(
                _vectors(values, self.design.ifmap_lanes),
                _vectors(weights[phase], self.design.weight_lanes),
            ):
                banks = Counter(
                    bank for a, w in product(some_values, some_weights) for bank in self.bank(a, w)
                )
                made += banks.total()
                most = max([1, *(n % 256 for bank, n in banks.items() if bank < self.seen)])
                cycles, waited = cycles + most, waited + most - 1
        return cycles, made, waited

    @property
    def seen(self) -> int:
        """Banks in which products are seen to meet."""
        return 2 * self.design.weight_lanes * self.design.ifmap_lanes

    def has(self, pe: tuple[int, int], y: int, x: int) -> bool:
        """Whether a PE has a place of the padded plane."""
        tile = self.tile(0), self.tile(1)
        return all(
            n * size <= at < (n + 1) * size for n, size, at in zip(pe, tile, (y, x), strict=True)
        )

    def bank(self, activation: tuple[int, int], weight: tuple[int, int, int]) -> list[int]:
        """Of the product, if it has an output."""
        (y, x), (r, s, k) = activation, weight
        p, q = int((y - r) / self.stride[0]), int((x - s) / self.stride[1])  # towards zero
        if y - r <= -self.stride[0] or x - s <= -self.stride[1]:
            return []
        if p >= self.sizes(0)[2] or q >= self.sizes(1)[2]:
            return []
        upper = (k >> 2 & 1) ^ (p >> 1 & 1) ^ (q >> 1 & 1)
        number = 16 * upper + 8 * (p & 1) + 4 * (q & 1) + (k & 3)
        return [number % self.design.banks]


def _vectors(values: list[Any], lanes: int) -> list[list[Any]]:
    return [values[at : at + lanes] for at in range(0, len(values), lanes)]


def _folded(values: Any) -> Any:
    """[rows, inputs] as [rows, channels, 16, 16]."""
    channels = -(-values.shape[1] // 256)
    whole = np.zeros((len(values), 256 * channels), values.dtype)
    whole[:, : values.shape[1]] = values
    return whole.reshape(-1, channels, 16, 16)


def plain_count(design: Scnn, layer: Layer, operands: Operands) -> dict[str, list[int]]:
    """DNNsim's figures of each image."""
    jobs: list[Plain] = []
    if isinstance(layer, MatMul):
        for rows, weight in zip(operands.ifmap, operands.weight, strict=True):
            folded = _folded(weight.T)
            jobs += [
                Plain(design=design, ifmap=one, weight=folded, stride=(1, 1), pads=((0, 0), (0, 0)))
                for one in _folded(rows)
            ]
    else:
        ifmaps, weight = operands.ifmap, operands.weight
        if ifmaps.shape[2:] == (1, 1):
            ifmaps, weight = _folded(ifmaps[:, :, 0, 0]), _folded(weight[:, :, -1, -1])
        stride = layer.stride_height, layer.stride_width
        pads = (layer.pad_top, layer.pad_bottom), (layer.pad_left, layer.pad_right)
        jobs = [
            Plain(design=design, ifmap=one, weight=weight, stride=stride, pads=pads)
            for one in ifmaps
        ]
    found = [job.count() for job in jobs]
    return {name: [one[name] for one in found] for name in found[0]}
