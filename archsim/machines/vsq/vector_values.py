"""What a vector MAC core computes for a whole layer: sums with a scale a vector, bit for bit.

For every output, channel tile by channel tile, the collector starts at 0 and takes a vector a step,
for each kernel row, each kernel column, each vector of the tile:

    collector <- limit(collector + (sum over i of w_i a_i) · round(s_w s_a))

as `archsim.codecs.vector_dot` has it.  The collectors of the tiles are added, with wrap-around.
Four ways lead to the same integers:

* factored: nothing is rounded, and a bound on the partial sums shows that no step leaves the
  collector, or wrap-around commutes with the sum: one product of the matrices value · scale.
* in blocks of pixels that stay in the cache: a floating-point matrix product a vector, exact since
  no partial sum leaves the mantissa, and a pass of scale, rounding, addition and limit over it;
  without the limit where the bound shows that it changes nothing.
* by products of bytes, where values are such and the product of scales is rounded
  (`archsim.machines.vsq.vector_products`).
* directly, by loops over integers: for dot products beyond the mantissa, and groups of one filter.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from archsim.codecs.vector_dot import WIDEST, VectorMac
from archsim.codecs.vector_operands import VectorOperands, check_vector_operands
from archsim.errors import require, require_positive, require_whole
from archsim.layer import layout
from archsim.layer.integer_products import product_for
from archsim.layer.problem import Problem
from archsim.layer.values import FloatArray, accumulate, exact_terms
from archsim.machines.vsq import vector_kernels as vk
from archsim.machines.vsq.vector_products import are_bytes, sums_by_products
from archsim.numbers import AnyIntArray, IntArray, ceil_div, wrap
from workloads.layers import Conv2d, MatMul

__all__ = ["VectorSummation", "VectorTensors", "sums_of", "vector_sums", "vector_tensors"]

_BLOCK = 1 << 17
"""Outputs of a block."""

_FEW_FILTERS = 2
"""Below so many, a matrix product a vector takes longer than plain loops."""

_SINGLE, _DOUBLE = 1 << 24, 1 << 53
"""Whole numbers up to here are exact in float32 and in float64."""

_FEW_TERMS = 64
"""A factored product in slices of fewer terms would not be worth it."""


@dataclass(frozen=True, kw_only=True)
class VectorSummation:
    """How a core sums.

    mac: formats, rounding of scales, width of the collector and what it does beyond.
    channel_tile: vectors along the channels after which the collector is added up.
    sum_bits: of the sums of collectors, which wrap: accumulator_bits to 62.
    length: V, that of the vectors of the formats; needed where they have none.
    """

    mac: VectorMac
    channel_tile: int
    sum_bits: int
    length: int | None = None

    def __post_init__(self) -> None:
        require_positive(channel_tile=self.channel_tile)
        vector = self.mac.weight.vector or self.mac.activation.vector
        if self.length is None:
            require(vector is not None, "length must be given where no format has vectors")
        else:
            require_positive(length=self.length)
            require(
                vector in (None, self.length),
                f"length must be that of the vectors, {vector}, not {self.length}",
            )
        least = self.mac.accumulator_bits
        require_whole(least, f"be {least}, as the collector, to {WIDEST}", sum_bits=self.sum_bits)
        require(self.sum_bits <= WIDEST, f"sum_bits must be at most {WIDEST}, not {self.sum_bits}")
        bits = self.mac.term_bits(self.vector)
        require(bits <= WIDEST, f"a term must have at most {WIDEST} bits, not {bits}")

    @property
    def vector(self) -> int:
        """V."""
        return self.length or self.mac.weight.vector or self.mac.activation.vector or 1

    def rules(self, *, clipped: bool) -> IntArray:
        """The summation for the kernels; `clipped`: whether a step may saturate."""
        mac, half = self.mac, 1 << (self.mac.accumulator_bits - 1)
        kept = mac.full_scale_bits - mac.dropped_bits
        rules = vk.SummationRules(
            length=self.vector,
            tile=self.channel_tile,
            dropped=mac.dropped_bits,
            largest_scale=(1 << kept) - 1 if mac.dropped_bits else 1 << 32,
            lowest=-half,
            highest=half - 1,
            clipped=int(clipped and mac.overflow == "saturate"),
            bits=mac.accumulator_bits,
            sum_bits=self.sum_bits,
        )
        return rules.vector()


@dataclass(frozen=True, kw_only=True, eq=False)
class VectorTensors:
    """Operands split by groups, channels last; channels of `problem` are elements, not vectors.

    ifmap: [images, groups, H, W, C] and scales [images, groups, H, W, J]; weight:
    [groups, K, R, S, C] and scales [groups, K, R, S, J]; in whatever order they lie.
    scaled: whether each has scales of its own; they are ones if not.
    """

    problem: Problem
    ifmap: vk.Pair
    weight: vk.Pair
    scaled: tuple[bool, bool]

    def in_order(self) -> VectorTensors:
        """As they are, in the order of their axes."""
        pairs = self.ifmap, self.weight
        ifmap, weight = (tuple(map(np.ascontiguousarray, pair)) for pair in pairs)
        return replace(self, ifmap=ifmap, weight=weight)

    def zeros(self) -> IntArray:
        """Sums that are to be added to."""
        one = self.problem
        shape = (one.images, one.groups, one.out_height, one.out_width, one.filters)
        return np.zeros(shape, np.int64)


def vector_sums(
    problem: Problem,
    layer: Conv2d | MatMul,
    operands: VectorOperands,
    summation: VectorSummation,
) -> IntArray:
    """Exact sums int64 [images, groups, P, Q, K], without bias.

    problem: that of the layer, its channels counted in vectors: ⌈C / V⌉ of a group.  Padding has
    values and scales 0.  Raises InputError for a problem that counts otherwise, and for operands
    that `check_vector_operands` refuses.
    """
    check_vector_operands(layer, operands, summation.mac, summation.vector)
    return sums_of(vector_tensors(problem, layer, operands, summation.vector), summation)


def sums_of(tensors: VectorTensors, summation: VectorSummation) -> IntArray:
    """`vector_sums` of operands that are split already."""
    mac, problem = summation.mac, tensors.problem
    if mac.dropped_bits and are_bytes(mac, summation.vector):
        product = product_for(problem.macs, summation.vector)
        if product is not None:
            pairs = tensors.ifmap, tensors.weight
            return sums_by_products(problem, pairs, summation.rules(clipped=True), product)
    tensors = tensors.in_order()
    vectors = ceil_div(problem.channels, summation.vector)
    largest = (_largest(tensors.ifmap[0]), _largest(tensors.ifmap[1]))
    tile, total = vk.bounds(tensors.weight, summation.rules(clipped=True), largest)
    stays = tile < min(1 << (mac.accumulator_bits - 1), _DOUBLE)
    whole = vectors <= summation.channel_tile
    alike = whole or summation.sum_bits == mac.accumulator_bits
    commutes = stays or (mac.overflow == "wrap" and alike)
    if mac.dropped_bits == 0 and commutes and total < _DOUBLE:
        sums = _factored(tensors, summation.vector)
        if sums is not None:
            return wrap(sums, summation.sum_bits if stays else mac.accumulator_bits)
    rules = summation.rules(clipped=not stays)
    dot = largest[0] * _largest(tensors.weight[0])
    dot *= min(problem.channels, summation.vector)
    if problem.filters < _FEW_FILTERS or dot > _DOUBLE:
        return _direct(tensors, rules)
    return _blocked(tensors, rules, dot <= _SINGLE)


def vector_tensors(
    problem: Problem, layer: Conv2d | MatMul, operands: VectorOperands, vector: int
) -> VectorTensors:
    """Operands split by groups.  Raises InputError for a problem that does not count vectors."""
    depth = layer.k if isinstance(layer, MatMul) else layer.channels // layer.groups
    vectors = ceil_div(depth, vector)
    require(
        problem.channels == vectors,
        f"{layer.name}: the problem must count {vectors} vectors of {vector} as its channels, "
        f"not {problem.channels}",
    )
    elements = replace(problem, channels=depth)
    ifmap = layout.ifmap_view(layer, elements, operands.ifmap)
    weight = layout.weight_view(layer, elements, operands.weight)
    a, w = operands.ifmap_scales, operands.weight_scales
    ones = [np.ones((*values.shape[:-1], vectors), np.int32) for values in (ifmap, weight)]
    return VectorTensors(
        problem=elements,
        ifmap=(ifmap, ones[0] if a is None else layout.ifmap_view(layer, problem, a)),
        weight=(weight, ones[1] if w is None else layout.weight_view(layer, problem, w)),
        scaled=(a is not None, w is not None),
    )


def _factored(tensors: VectorTensors, vector: int) -> IntArray | None:
    """One product of value · scale; None where floats take too few of these products at once."""
    largest = max(_largest(v) * _largest(s) for v, s in (tensors.ifmap, tensors.weight))
    bits = largest.bit_length() + 1
    if bits > 32 or exact_terms(bits, 53) < _FEW_TERMS:
        return None
    ifmap, weight = (
        _scaled(pair, vector) if scaled else pair[0]
        for pair, scaled in zip((tensors.ifmap, tensors.weight), tensors.scaled, strict=True)
    )
    return accumulate(tensors.problem, ifmap, weight, bits).astype(np.int64)


def _scaled(pair: vk.Pair, vector: int) -> AnyIntArray:
    """value · scale, at most 32 bits each."""
    values, scales = pair
    products = np.empty(values.shape, np.int32)
    depth, vectors = values.shape[4], scales.shape[4]
    flat = products.reshape(-1, depth)
    vk.scale_values(values.reshape(-1, depth), scales.reshape(-1, vectors), vector, flat)
    return products


def _direct(tensors: VectorTensors, rules: IntArray) -> IntArray:
    """Loops over integers; one type for all, so that numba compiles them once."""
    sums = tensors.zeros()
    ifmap, weight = (
        (np.ascontiguousarray(values, np.int64), np.ascontiguousarray(scales, np.int64))
        for values, scales in (tensors.ifmap, tensors.weight)
    )
    vk.add_directly(tensors.problem.vector(), rules, ifmap, weight, sums)
    return sums


def _blocked(tensors: VectorTensors, rules: IntArray, single: bool) -> IntArray:
    """A matrix product a vector, block by block."""
    problem = tensors.problem
    sums = tensors.zeros()
    pixels, filters = problem.out_height * problem.out_width, problem.filters
    size = max(1, min(pixels, _BLOCK // filters))
    weight = tensors.weight[0].astype(np.float32 if single else np.float64)
    scales = np.ascontiguousarray(tensors.weight[1].transpose(0, 2, 3, 4, 1), np.int64)
    blocks = _Blocks(problem, rules, size, single)
    for image in range(problem.images):
        for group in range(problem.groups):
            plane = (tensors.ifmap[0][image, group], tensors.ifmap[1][image, group])
            flat = sums[image, group].reshape(pixels, filters)
            for start in range(0, pixels, size):
                part = flat[start : start + size]
                blocks.add(plane, (weight[group], scales[group]), start, part)
    return sums


class _Blocks:
    """The buffers of a block of pixels, and what is done in them."""

    def __init__(self, problem: Problem, rules: IntArray, size: int, single: bool) -> None:
        dtype = np.float32 if single else np.float64
        self._problem, self._vector, self._rules = problem, problem.vector(), rules
        named = vk.SummationRules(*rules.tolist())
        self._length, self._tile = named.length, named.tile
        self._vectors = ceil_div(problem.channels, self._length)
        tile = min(self._tile, self._vectors)
        self._values = np.empty(size * min(tile * self._length, problem.channels), dtype)
        self._scales = np.empty(size * tile, np.int64)
        self._dots = np.empty(size * problem.filters, dtype)
        self._collectors = np.empty(size * problem.filters, np.int64)

    def add(
        self, plane: vk.Pair, taps: tuple[FloatArray, IntArray], start: int, sums: IntArray
    ) -> None:
        """Every tile of the pixels from `start` on, added to their sums [pixels, K].

        plane: ifmap [H, W, C] and scales [H, W, J]; taps: weight [K, R, S, C] and scales
        [R, S, J, K].
        """
        collectors = self._collectors[: sums.size].reshape(sums.shape)
        for first in range(0, self._vectors, self._tile):
            last = min(first + self._tile, self._vectors)
            collectors.fill(0)
            for row in range(self._problem.kernel_height):
                for column in range(self._problem.kernel_width):
                    place = np.array([start, row, column, first, last], np.int64)
                    self._add_tap(plane, taps, place, collectors)
            vk.add_tile(collectors, self._rules, sums)

    def _add_tap(
        self,
        plane: vk.Pair,
        taps: tuple[FloatArray, IntArray],
        place: IntArray,
        collectors: IntArray,
    ) -> None:
        """The vectors of one tap and one tile, in turn."""
        _, row, column, first, last = place.tolist()
        pixels, base = len(collectors), first * self._length
        width = min(last * self._length, self._problem.channels) - base
        values = self._values[: pixels * width].reshape(pixels, width)
        scales = self._scales[: pixels * (last - first)].reshape(pixels, last - first)
        dots = self._dots[: collectors.size].reshape(collectors.shape)
        vk.gather(self._vector, self._rules, plane, place, (values, scales))
        for vector in range(last - first):
            low = vector * self._length
            a = values[:, low : low + self._length]
            w = taps[0][:, row, column, base + low : base + low + a.shape[1]]
            with np.errstate(invalid="ignore"):  # raised by lanes that BLAS pads, never by ours
                np.matmul(a, w.T, out=dots)
            w_scales = taps[1][row, column, first + vector]
            vk.add_step(dots, scales[:, vector], w_scales, self._rules, collectors)


def _largest(values: AnyIntArray) -> int:
    return max(int(values.max()), -int(values.min()))
