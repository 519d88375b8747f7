"""Sums with a scale a vector, where dot products are those of bytes.

A dot product of a vector is a product of matrices of bytes, filters × V by V × pixels, of all
vectors of a block at once (`archsim.layer.integer_products`).  One pass then scales, rounds, adds
and limits, vector by vector in the core's order, within 32 bits: a filter's collectors of a block
of pixels stay in the nearest cache.  A collector that wraps does so here at 32 bits and in the end
at its own width, which is the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from archsim.codecs.vector_dot import VectorMac
from archsim.layer.integer_products import BITS, DEEPEST, Product
from archsim.layer.problem import Problem
from archsim.layer.seen import Windows
from archsim.machines.vsq import product_kernels as pk
from archsim.machines.vsq import vector_kernels as vk
from archsim.numbers import AnyIntArray, IntArray, ceil_div
from workloads.threads import in_threads

_NARROW = 30
"""Bits of terms and collectors, so that their sum stays within 32."""

_LEAST_LENGTH = 32
"""Of shorter vectors, writing and reading the dot products takes longer than making them."""

_DOT_BYTES = 1 << 20
"""Of the dot products that are made at once: they stay in a core's cache."""

_LEAST_PIXELS = 64
_MOST_PIXELS = 1024


def are_bytes(mac: VectorMac, length: int) -> bool:
    """Whether values are signed bytes, and all that is summed stays within 32 bits."""
    unsigned = not mac.activation.signed, not mac.weight.signed
    widths = mac.activation.bits + unsigned[0], mac.weight.bits + unsigned[1]
    sums = mac.term_bits(length), mac.accumulator_bits, mac.full_scale_bits
    return max(widths) <= BITS and max(sums) <= _NARROW and _LEAST_LENGTH <= length <= DEEPEST


@dataclass(frozen=True, kw_only=True, eq=False)
class Planes:
    """Operands of one group and image, channels first, whole vectors: ifmap [J · V, H, W] and
    scales [J, H, W]; weight [R · S, J, K, V], plus 128, and scales [R · S, J, K]."""

    problem: Problem
    ifmap: npt.NDArray[np.int8]
    ifmap_scales: pk.Words
    weight: npt.NDArray[np.uint8]
    weight_scales: pk.Words


def sums_by_products(
    problem: Problem, tensors: tuple[vk.Pair, vk.Pair], rules: IntArray, product: Product
) -> IntArray:
    """Sums [images, groups, P, Q, K] of (ifmap, scales) and (weight, scales), split by groups.

    problem: its channels are elements.  rules: of the summation (`vk.SummationRules`), of values
    for which `are_bytes`.
    """
    named = vk.SummationRules(*rules.tolist())
    pixels = problem.out_height * problem.out_width
    sums = np.empty((problem.images, problem.groups, pixels, problem.filters), np.int64)
    length = min(named.length, problem.channels)  # of a short vector alone, its own
    (ifmap, a_scales), weight = tensors[0], tensors[1]
    for group in range(problem.groups):
        taps, w_scales = _taps(weight[0][group], weight[1][group], length)
        for image in range(problem.images):
            planes = Planes(
                problem=problem,
                ifmap=_channels_first(ifmap[image, group], length),
                ifmap_scales=np.ascontiguousarray(
                    a_scales[image, group].transpose(2, 0, 1), np.int32
                ),
                weight=taps,
                weight_scales=w_scales,
            )
            _add_plane(planes, rules, product, sums[image, group])
    shape = sums.shape[:2]
    return sums.reshape(*shape, problem.out_height, problem.out_width, problem.filters)


def _channels_first(values: AnyIntArray, length: int) -> npt.NDArray[np.int8]:
    """[H, W, C] as [J · V, H, W], zeros behind the last channel."""
    turned = values.transpose(2, 0, 1)
    short = -len(turned) % length
    if short:
        turned = np.pad(turned, ((0, short), (0, 0), (0, 0)))
    return np.ascontiguousarray(turned, np.int8)


def _taps(
    weight: AnyIntArray, scales: AnyIntArray, length: int
) -> tuple[npt.NDArray[np.uint8], pk.Words]:
    """Weights [K, R, S, C] and scales [K, R, S, J] of a group as `Planes` has them."""
    filters, rows, columns, channels = weight.shape
    vectors = ceil_div(channels, length)
    values = np.empty((rows * columns, vectors, filters, length), np.uint8)
    flat = np.ascontiguousarray(weight.transpose(0, 3, 1, 2)).reshape(filters, -1)
    pk.shifted_vectors(flat, channels, values)
    turned = np.ascontiguousarray(scales.transpose(1, 2, 3, 0), np.int32)
    return values, turned.reshape(rows * columns, vectors, filters)


def _add_plane(planes: Planes, rules: IntArray, product: Product, sums: IntArray) -> None:
    """Every block of rows of the ofmap, side by side in threads: sums [pixels, K]."""
    one = planes.problem

    def block(rows: tuple[int, int]) -> None:
        _add_rows(planes, rules, product, rows, sums)

    width = Windows(one).width
    most = max(_DOT_BYTES // (4 * one.filters), _LEAST_PIXELS)
    high = max(min(most, _MOST_PIXELS) // width, 1)
    rows = range(0, one.out_height, high)
    in_threads(block, [(at, min(at + high, one.out_height)) for at in rows])


def _add_rows(
    planes: Planes, rules: IntArray, product: Product, rows: tuple[int, int], sums: IntArray
) -> None:
    """Some rows, tile by tile of their channels."""
    one, named = planes.problem, vk.SummationRules(*rules.tolist())
    vectors = planes.weight.shape[1]
    width = Windows(one).width
    pixels = (rows[1] - rows[0]) * width
    collectors = np.empty((one.filters, pixels), np.int32)
    found, bits = collectors, named.bits
    if vectors > named.tile:
        found, bits = np.zeros_like(collectors, _held_in(named.sum_bits)), named.sum_bits
    for first in range(0, vectors, named.tile):
        tile = slice(first, min(first + named.tile, vectors))
        collectors[:] = 0
        for dots, own, beside in _steps(planes, rows, tile, product):
            pk.add_vectors(dots, own, beside, rules, collectors)
        if found is not collectors:
            pk.add_collectors(collectors, named.bits, found)
    pk.turn(found, bits, (rows[0] * one.out_width, width, one.out_width), sums)


def _held_in(bits: int) -> type[np.int32 | np.int64]:
    """The narrower, in which sums that wrap at so many bits may wrap as well."""
    return np.int32 if bits <= 32 else np.int64


def _steps(
    planes: Planes, rows: tuple[int, int], tile: slice, product: Product
) -> Iterator[tuple[pk.Words, pk.Words, pk.Words]]:
    """Dot products [vectors, K, pixels], and scales of pixels and filters, in order, a few vectors
    at a time."""
    one, length = planes.problem, planes.weight.shape[3]
    channels = slice(tile.start * length, tile.stop * length)
    windows = Windows(one, taps_first=True)
    seen = windows.seen(planes.ifmap[None, channels], rows)
    scales = windows.seen(planes.ifmap_scales[None, tile], rows)
    seen = seen.reshape(-1, length, seen.shape[1])
    weight = planes.weight[:, tile].reshape(len(seen), one.filters, length)
    beside = planes.weight_scales[:, tile].reshape(len(seen), one.filters)
    many = max(_DOT_BYTES // (4 * one.filters * seen.shape[2]), 1)
    for at in range(0, len(seen), many):
        few = slice(at, at + many)
        yield product(weight[few], seen[few]), scales[few], beside[few]


__all__ = ["are_bytes", "sums_by_products"]
