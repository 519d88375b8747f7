"""What a core of operands of at most 8 bits computes: exact products of bytes, kept in one pass.

Sums wrap at the accumulators' width.  Wrapping is modular, so that one wrap of the whole sum is
what a wrap after every fold, or every product, leads to; a sum here has 32 bits and never wraps
itself.  Groups of few products are summed by plain loops, others by products of matrices
(`archsim.layer.integer_products`), filters × pixels or, where the weight lies so in memory, pixels
× filters, in blocks that stay in the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from archsim.layer import integer_kernels as ik
from archsim.layer.block_products import BlockProducts
from archsim.layer.integer_products import BITS, DEEPEST, Product, Sums, product_for, shifted
from archsim.layer.pixel_sums import PixelSums
from archsim.layer.problem import Problem
from archsim.layer.seen import Block, Windows, is_product
from archsim.numbers import AnyIntArray, IntArray, ceil_div, wrap
from workloads.threads import in_threads, threads

Bytes = npt.NDArray[np.int8]

_BLOCK_BYTES = 5 << 17
"""Of what a block sees, or of its sums: about what a core's own cache takes."""

_LEAST_PIXELS = 512
"""Of a block: of fewer, packing the filters again would weigh."""

_FEW_FILTERS = 4
"""Of a group: for so many or fewer, gathering what windows see costs more than the products."""

_FEW_MACS = 1 << 15
"""Of a group and an image: fewer take less time than a call."""

_THREAD_MACS = 1 << 23
"""Fewer are not worth a thread."""


@dataclass(frozen=True, kw_only=True, eq=False)
class IntegerLayer:
    """Operands [images, groups, H, W, C], [groups, K, R, S, C] and biases [groups, K] of a problem,
    and how its sums are kept.

    scaling: multiplier and shift; widths: bits of operands and accumulators; more: what is added to
    the sums [images, groups, P, Q, K], int32, or to those of some pixels.
    """

    problem: Problem
    ifmap: AnyIntArray
    weight: AnyIntArray
    bias: IntArray | None
    scaling: tuple[int, int]
    widths: tuple[int, int]
    more: AnyIntArray | PixelSums | None = None

    def rules(self, *, by_column: bool) -> IntArray:
        """For the kernel that keeps sums."""
        (multiplier, shift), (bits, accumulator_bits) = self.scaling, self.widths
        return ik.OutputRules(
            multiplier=multiplier,
            half=(1 << shift) >> 1,
            shift=shift,
            wrapped=max(64 - accumulator_bits, 0),
            lowest=0 if self.problem.relu else -1 << (bits - 1),
            highest=(1 << (bits - 1)) - 1,
            by_column=int(by_column),
        ).vector()

    def whole_more(self) -> AnyIntArray | None:
        """What is added, of all pixels."""
        if isinstance(self.more, PixelSums):
            return self.more.whole(self.problem)
        return self.more

    def biases(self) -> IntArray:
        """[groups, K]: 0 without any."""
        shape = self.problem.groups, self.problem.filters
        return np.zeros(shape, np.int64) if self.bias is None else self.bias.astype(np.int64)

    def channels_first(self) -> tuple[Bytes, Bytes]:
        """[images, groups, C, H, W] and [groups, K, C, R, S]: no copies where they lie so."""
        ifmap, weight = self.ifmap.transpose(0, 1, 4, 2, 3), self.weight.transpose(0, 1, 4, 2, 3)
        return np.ascontiguousarray(ifmap, np.int8), np.ascontiguousarray(weight, np.int8)


def integer_values(layer: IntegerLayer, sums: IntArray | None = None) -> Bytes | None:
    """The ofmap [images, groups, P, Q, K]; None where floats are the better way.

    sums: filled with those before the bias, as accumulators keep them, in the ofmap's shape.
    """
    one = layer.problem
    depth = one.channels * one.kernel_height * one.kernel_width
    if layer.widths[0] > BITS or depth > DEEPEST:
        return None
    group_macs = one.out_height * one.out_width * one.filters * depth
    if one.groups > 1 and (one.filters <= _FEW_FILTERS or group_macs <= _FEW_MACS):
        return _directly(layer, sums)
    product = product_for(one.macs, depth)
    if product is None:
        return None
    if is_product(one) and _lies_by_channels(layer.weight):
        return _pixels_by_filters(layer, product, sums)
    return _filters_by_pixels(layer, product, sums)


def _lies_by_channels(weight: AnyIntArray) -> bool:
    """Whether a channel's weights of all filters lie side by side, as of a matrix product."""
    return weight.transpose(0, 4, 2, 3, 1).flags.c_contiguous


def _directly(layer: IntegerLayer, given: IntArray | None) -> Bytes:
    """By plain loops; given: the sums to be filled, here and below."""
    one = layer.problem
    ifmap, weight = layer.channels_first()
    bias, rules = layer.biases().reshape(-1), layer.rules(by_column=False)
    pixels, more = one.out_height * one.out_width, layer.whole_more()
    out = np.empty((one.images, one.groups * one.filters, pixels), np.int8)

    def image(at: int) -> None:
        sums = np.empty(out.shape[1:], np.int32)
        ik.add_directly(ifmap[at], weight, one.vector(), sums)
        if more is not None:
            sums += more[at].transpose(0, 3, 1, 2).reshape(sums.shape)
        if given is not None:
            planes = sums.reshape(one.groups, one.filters, one.out_height, one.out_width)
            given[at] = wrap(planes.transpose(0, 2, 3, 1).astype(np.int64), layer.widths[1])
        ik.keep(sums, bias, rules, 0, out[at])

    in_threads(image, range(one.images), most=_workers(one))
    return _by_filter(one, out)


def _filters_by_pixels(layer: IntegerLayer, product: Product, given: IntArray | None) -> Bytes:
    """Filters × channels by channels × pixels."""
    one = layer.problem
    ifmap, weight = layer.channels_first()
    filters = shifted(weight.reshape(one.groups, one.filters, -1))
    rules, bias = layer.rules(by_column=False), layer.biases().reshape(-1)
    windows, pixels = Windows(one), one.out_height * one.out_width
    planes = ifmap.reshape(one.images, -1, one.height, one.width)
    out = np.empty((one.images, one.groups * one.filters, pixels), np.int8)
    added, shape = layer.more, (one.groups, one.out_height, one.out_width)
    more = np.empty((0, *out.shape[1:]), np.int32)
    if isinstance(added, np.ndarray):  # filters first, as it usually lies
        more = np.ascontiguousarray(added.transpose(0, 1, 4, 2, 3)).reshape(out.shape)

    def keep(sums: Sums, place: IntArray) -> list[Callable[[], None]]:
        kept = ik.keep_planes.bound((sums, more), place, one.out_width, bias, rules, out)
        if not isinstance(added, PixelSums):
            return [kept]
        more_of = added.pixels, added.rows, added.sums
        return [ik.add_pixels.bound(sums, place, more_of, shape), kept]

    def share(blocks: list[Block]) -> None:
        work = BlockProducts(windows, product, planes, filters, keep)
        for block in blocks:
            sums = work.sums(block)
            if given is not None:
                shape = one.filters, -1, block.row_behind - block.row, windows.width
                whole = sums.reshape(shape)[..., : one.out_width].transpose(1, 2, 3, 0)
                given[_place(block)] = wrap(whole.astype(np.int64), layer.widths[1])

    blocks = list(_blocks(one, filters.shape[2], windows.width))
    few = ceil_div(len(blocks), min(threads(), _workers(one)))
    in_threads(share, [blocks[at : at + few] for at in range(0, len(blocks), few)])
    return _by_filter(one, out)


def _pixels_by_filters(layer: IntegerLayer, product: Product, given: IntArray | None) -> Bytes:
    """Pixels × channels by channels × filters: the weight as it lies."""
    one = layer.problem
    pixels = one.out_height * one.out_width
    flat = replace(one, out_height=pixels, out_width=1)
    ifmap = np.ascontiguousarray(layer.ifmap, np.int8)
    ifmap = ifmap.reshape(one.images, one.groups, pixels, one.channels)
    weight = layer.weight[:, :, 0, 0].transpose(0, 2, 1).astype(np.int8, copy=False)
    bias, rules, more = layer.biases(), layer.rules(by_column=True), layer.whole_more()
    out = np.empty((one.images, one.groups, pixels, one.filters), np.int8)

    def multiply(block: Block) -> None:
        images, group, rows = _place(block)
        own = ifmap[images, group, rows].reshape(-1, one.channels)
        sums = product(shifted(own), weight[group])
        if more is not None:
            own = more[images, group].reshape(-1, pixels, one.filters)
            sums += own[:, rows].reshape(sums.shape)
        if given is not None:
            columns = np.divmod(np.arange(block.row, block.row_behind), one.out_width)
            whole = sums.reshape(-1, block.row_behind - block.row, one.filters)
            given[(images, group, *columns)] = wrap(whole.astype(np.int64), layer.widths[1])
        kept = out[images, group, rows].reshape(sums.shape)
        ik.keep(sums, bias[group], rules, 0, kept)

    in_threads(multiply, _blocks(flat, one.channels, 1), most=_workers(one))
    return out.reshape(one.images, one.groups, one.out_height, one.out_width, one.filters)


def _blocks(one: Problem, depth: int, wide: int) -> Iterator[Block]:
    """Rows of the ofmap, or several planes, so many that a block's data stay in the cache.

    wide: values of a row.
    """
    row_bytes = wide * max(depth, 4 * one.filters)
    rows = max(_BLOCK_BYTES // row_bytes, ceil_div(_LEAST_PIXELS, wide))
    several = rows // one.out_height if one.groups == 1 else 1
    if several > 1:
        for first in range(0, one.images, several):
            yield Block(first, min(first + several, one.images), 0, 0, one.out_height)
        return
    for image in range(one.images):
        for group in range(one.groups):
            for first in range(0, one.out_height, rows):
                last = min(first + rows, one.out_height)
                yield Block(image, image + 1, group, first, last)


def _place(block: Block) -> tuple[slice, int, slice]:
    """Of a block in an array [images, groups, rows, …]."""
    image, image_behind, group, row, row_behind = block
    return slice(image, image_behind), group, slice(row, row_behind)


def _workers(one: Problem) -> int:
    return max(1, one.macs // _THREAD_MACS)


def _by_filter(one: Problem, out: npt.NDArray[Any]) -> Bytes:
    """Planes of filters as [images, groups, P, Q, K], as they lie."""
    shape = one.images, one.groups, one.filters, one.out_height, one.out_width
    return out.reshape(shape).transpose(0, 1, 3, 4, 2)


__all__ = ["IntegerLayer", "integer_values"]
