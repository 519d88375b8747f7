"""Integers with a scale a vector: operands, words and values of a vector MAC core."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from archsim.codecs.vector_dot import VectorMac
from archsim.codecs.vector_operands import (
    VectorOperands,
    check_vector_operands,
    storage,
    vector_operands,
)
from archsim.codecs.vector_output import VectorOutput
from archsim.errors import InputError
from archsim.layer import layout
from archsim.layer.intake import Drawing
from archsim.layer.operand_check import require_one_scale
from archsim.layer.problem import Problem, Tiling, problem_of
from archsim.machines.vsq.vector_kernels import Pair
from archsim.machines.vsq.vector_values import (
    VectorSummation,
    VectorTensors,
    sums_of,
    vector_tensors,
)
from archsim.numbers import IntArray, ceil_div, wrap
from archsim.tiled import tile_words
from archsim.tiled.commands import TileCommand
from archsim.tiled.integer_numerics import rows_in_words
from archsim.tiled.numerics import Blocks, Outputs, Spans
from workloads.layers import Conv2d, MatMul
from workloads.operands import Operands, synthetic

SOURCE_BITS = 16


@lru_cache(maxsize=1024)
def _in_vectors(layer: Conv2d | MatMul, length: int) -> Problem:
    whole = problem_of(layer)
    return replace(whole, channels=ceil_div(whole.channels, length), has_bias=1)


@dataclass(frozen=True, kw_only=True, eq=False)
class SplitVectors:
    """Operands split by groups: ifmap and weight as in `VectorTensors`, biases and multipliers
    [groups, K]."""

    ifmap: Pair
    weight: Pair
    scaled: tuple[bool, bool]
    bias: IntArray
    multiplier: IntArray

    def tensors(self, problem: Problem) -> VectorTensors:
        """Those of a problem, whose channels are vectors."""
        elements = replace(problem, channels=self.ifmap[0].shape[-1])
        return VectorTensors(
            problem=elements, ifmap=self.ifmap, weight=self.weight, scaled=self.scaled
        )


@dataclass(frozen=True, kw_only=True)
class VectorNumerics:
    """`Numerics` of a vector MAC core: an element of the core's problem is a vector.

    length: V; sum_bits: of the accumulators that add up the collectors.
    """

    mac: VectorMac
    output: VectorOutput
    length: int
    sum_bits: int

    @property
    def source_bits(self) -> int:
        """Quantised anew, a vector at a time; at 16 bits the first quantisation costs little."""
        return SOURCE_BITS

    @property
    def whole_files(self) -> bool:
        """Operands are made others anyway."""
        return False

    @property
    def weight_bits(self) -> float:
        """Of a value, and its share of its vector's scale."""
        return self.mac.weight.bits + (self.mac.weight.scale_bits or 0) / self.length

    @property
    def problem_key(self) -> tuple[str, int]:
        """Channels are counted by vectors."""
        return ("vectors", self.length)

    def problem(self, layer: Conv2d | MatMul) -> Problem:
        """Channels of a group in vectors, the last one short; every layer has a bias word, since
        its multipliers stand there."""
        return _in_vectors(layer, self.length)

    def narrowed(self, bits: int) -> None:
        """Operands are made others anyway."""

    def synthetic(self, layer: Conv2d | MatMul, drawing: Drawing) -> Operands:
        """Integers of 16 bits; not negative where the format of activations is unsigned."""
        drawn = synthetic(
            layer,
            bits=SOURCE_BITS,
            density=drawing.density,
            distribution=drawing.distribution,
            seed=drawing.seed,
        )
        if self.mac.activation.signed:
            return drawn
        return replace(drawn, ifmap=np.abs(drawn.ifmap))

    def stored(self, layer: Conv2d | MatMul, operands: VectorOperands) -> tuple[IntArray, IntArray]:
        """Raises `InputError`: a word is vectors with their scales."""
        raise InputError(f"{layer.name}: words of vectors and scales are not stored as values")

    def take(self, layer: Conv2d | MatMul, operands: Operands | VectorOperands) -> VectorOperands:
        """Operands quantised a vector at a time (`archsim.codecs.vector_operands`).

        Raises `InputError` for other shapes, and for negative values in an unsigned format.
        """
        if isinstance(operands, VectorOperands):
            check_vector_operands(layer, operands, self.mac, self.length)
            return operands
        require_one_scale(layer, operands)
        return vector_operands(
            layer, operands, self.mac, self.output.form, bits=SOURCE_BITS, sum_bits=self.sum_bits
        )

    def reals(self, operands: VectorOperands, ofmap: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        """In units of `ofmap_coarse`."""
        return ofmap.astype(np.float32) * np.float32(operands.ofmap_coarse)

    def scaling(self, operands: VectorOperands) -> tuple[int, int]:
        """Multipliers are the filters' own; the shift is the layer's."""
        return 1, operands.shift

    def may_share(self, operands: VectorOperands) -> bool:
        """Integers always."""
        return True

    def as_file(self, layer: Conv2d | MatMul, operands: VectorOperands) -> None:
        """Operands are made others."""

    def in_words(self, layer: Conv2d | MatMul, operands: VectorOperands) -> VectorOperands:
        """As they are."""
        return operands

    def split(
        self, layer: Conv2d | MatMul, operands: VectorOperands, stored: None = None
    ) -> SplitVectors:
        """Values and scales, biases and multipliers."""
        problem = self.problem(layer)
        tensors = vector_tensors(problem, layer, operands, self.length)
        return SplitVectors(
            ifmap=tensors.ifmap,
            weight=tensors.weight,
            scaled=tensors.scaled,
            bias=layout.split_bias(layer, problem, operands.bias),
            multiplier=layout.split_bias(layer, problem, operands.multiplier),
        )

    def outputs(
        self, problem: Problem, tiling: Tiling, split: SplitVectors, operands: VectorOperands
    ) -> Outputs:
        """Values [images, groups, P, Q, K] and scales [images, groups, P, Q, ⌈K / V⌉].

        Collectors begin anew with every channel tile, so that what saturates follows the tiling.
        With groups side by side a tile has all channels, and the vectors of other groups, whose
        weights are 0, leave the collectors as they are.  Filters of `split` behind the problem's
        count in their vector's scale, and make no output.
        """
        whole = replace(problem, filters=split.bias.shape[-1])
        sums = self._sums(whole, min(tiling.channels, problem.channels), split)
        return self.finished(problem, sums, split, operands)

    def _sums(self, problem: Problem, channel_tile: int, split: SplitVectors) -> IntArray:
        """Of collectors: [images, groups, P, Q, K]."""
        summation = VectorSummation(
            mac=self.mac, channel_tile=channel_tile, sum_bits=self.sum_bits, length=self.length
        )
        return sums_of(split.tensors(problem), summation)

    @property
    def outputs_with(self) -> None:
        """Products of vectors are shifted and rounded."""

    def partial_sums(self, problem: Problem, split: SplitVectors, spans: Spans) -> list[IntArray]:
        """One, of the whole tile: collectors hold sums until its end."""
        return [self._sums(problem, problem.channels, split)[:, 0]]

    def added(self, held: IntArray, sums: IntArray) -> IntArray:
        """Wrapped around."""
        return wrap(held + sums, self.sum_bits)

    def finished(
        self, problem: Problem, sums: IntArray, split: SplitVectors, operands: VectorOperands
    ) -> Outputs:
        """Values and scales, of the problem's filters alone."""
        each = [
            self.output.compute(
                sums[:, group].reshape(-1, sums.shape[-1]),
                split.bias[group],
                split.multiplier[group],
                operands.shift,
                bool(problem.relu),
            )
            for group in range(problem.groups)
        ]
        values = _by_group([found for found, _ in each], sums.shape)[..., : problem.filters]
        vectors = ceil_div(problem.filters, self.output.form.vector or problem.filters)
        if not self.output.scaled:
            return values, np.ones((*sums.shape[:4], vectors), np.int64)
        shape = (*sums.shape[:4], each[0][1].shape[-1])
        return values, _by_group([found for _, found in each], shape)[..., :vectors]

    def joined(self, layer: Conv2d | MatMul, outputs: Outputs) -> IntArray:
        """Value times scale, exact, in units of `ofmap_coarse`."""
        values, scales = outputs
        if not self.output.scaled:
            values = values.astype(np.int64, copy=False)
            return layout.join_ofmap(layer, self.problem(layer), values)
        filters = values.shape[-1]
        length = self.output.form.vector or filters
        if filters % length == 0:  # without spreading them
            parted = values.reshape(*scales.shape, length) * scales[..., None]
            return layout.join_ofmap(layer, self.problem(layer), parted.reshape(values.shape))
        spread = np.repeat(scales, length, axis=-1)[..., :filters]
        return layout.join_ofmap(layer, self.problem(layer), values * spread)

    @property
    def word_lanes(self) -> tile_words.WordLanes:
        """A vector of the ifmap a word; weights, biases and multipliers of as many filters."""
        return tile_words.WordLanes(
            ifmap=1, weight=self.output.lanes, bias=self.output.lanes, all_count=True
        )

    def blocks(self, split: SplitVectors, groups: int) -> Blocks:
        """An element is a vector, its scale behind it where it has one; a bias and a multiplier."""
        ifmap, weight = (
            _as_vectors(pair, self.length, scaled)
            for pair, scaled in zip((split.ifmap, split.weight), split.scaled, strict=True)
        )
        channels = np.stack([split.bias, split.multiplier], axis=-1)
        return Blocks(
            ifmap=layout.side_by_side(ifmap, groups, (1, 4)),
            weight=layout.block_diagonal(weight, groups),
            bias=layout.side_by_side(channels, groups, (0, 1)),
        )

    def split_of(self, blocks: Blocks) -> SplitVectors:
        """With the places behind a group's last channel, which count as any other."""
        forms = self.mac.activation, self.mac.weight
        pairs = [
            _as_pair(array, self.length, storage(1 << form.bits))
            for array, form in zip((blocks.ifmap, blocks.weight), forms, strict=True)
        ]
        return SplitVectors(
            ifmap=pairs[0],
            weight=pairs[1],
            scaled=(blocks.ifmap.shape[-1] > self.length, blocks.weight.shape[-1] > self.length),
            bias=blocks.bias[..., 0],
            multiplier=blocks.bias[..., 1],
        )

    def output_words(self, tiles: Sequence[TileCommand[int]], outputs: Outputs) -> IntArray:
        """The words of the ofmap in units, a vector's scale before its values, lowest unit first.

        A tile's vectors of a pixel leave as they are read: a vector of all its pixels before the
        next, or as many vectors as a row holds.
        """
        output, (values, scales) = self.output, outputs
        if not output.scaled:
            return rows_in_words(tiles, values, output.lanes)
        vector = output.form.vector or 1
        own = output.scale_units + vector * output.value_units
        streams: list[IntArray] = []
        for tile in tiles:
            if not tile.last_k:
                continue
            part = layout.blocks_of(tile_words.ofmap_part(tile, values), vector, 1)
            first, vectors = tile.tile_filter // vector, part.shape[1]
            of_tile = tile._replace(tile_filter=first, tile_filters=vectors)
            beside = tile_words.ofmap_part(of_tile, scales)[..., None]
            scale_units = _in_units(beside, output.unit_bits, output.scale_units)
            units = np.concatenate(
                [scale_units, _in_units(part, output.unit_bits, output.value_units)], axis=2
            ).reshape(len(part), -1)
            missing = vectors * vector - tile.tile_filters
            units = units[:, : units.shape[1] - missing * output.value_units]
            streams.append(tile_words.as_rows(units, own * output.vectors_per_row))
        return tile_words.packed(streams, output.word_units)


def _by_group(each: Sequence[IntArray], shape: tuple[int, ...]) -> IntArray:
    """What each group has, [images · P · Q, n], as [images, groups, P, Q, n]."""
    one = shape[0], 1, *shape[2:]
    if len(each) == 1:
        return each[0].reshape(one)
    return np.concatenate([found.reshape(one) for found in each], axis=1)


def _in_units(values: IntArray, unit_bits: int, units: int) -> IntArray:
    """[…, n] as […, n · units]: the bits of every number in units, the lowest first."""
    shifts = unit_bits * np.arange(units)
    cut = values[..., None] >> shifts & ((1 << unit_bits) - 1)
    return cut.reshape(*values.shape[:-1], -1)


def _as_vectors(pair: Pair, length: int, scaled: bool) -> IntArray:
    """Values […, C] and scales […, J] as vectors with their scale behind: […, J, V or V + 1]."""
    values, scales = pair
    vectors = layout.blocks_of(values.astype(np.int64), length, values.ndim - 1)
    return np.concatenate([vectors, scales[..., None]], axis=-1) if scaled else vectors


def _as_pair(vectors: IntArray, length: int, kept: type[np.signedinteger[Any]]) -> Pair:
    """The inverse, values as `kept`; scales of ones where vectors have none."""
    values, scales = vectors[..., :length], vectors[..., length:]
    flat = values.reshape(*values.shape[:-2], -1).astype(kept)
    own = scales[..., 0] if scales.shape[-1] else np.ones(values.shape[:-1], np.int32)
    return np.ascontiguousarray(flat), np.ascontiguousarray(own.astype(np.int32))
