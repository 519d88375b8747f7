"""Integers with a scale a vector: operands, words and values of a vector MAC core."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from archsim.codecs.vector_dot import VectorMac
from archsim.codecs.vector_operands import (
    VectorOperands,
    check_vector_operands,
    vector_operands,
)
from archsim.codecs.vector_output import VectorOutput
from archsim.errors import InputError
from archsim.layer import layout
from archsim.layer.intake import Drawing
from archsim.layer.operand_check import require_one_scale
from archsim.layer.problem import Problem, Tiling, problem_of
from archsim.machines.vsq.vector_values import VectorSummation, vector_sums
from archsim.numbers import AnyIntArray, IntArray, ceil_div
from archsim.tiled import commands as cmd
from archsim.tiled import tile_words
from archsim.tiled.integer_numerics import output_words, stack
from archsim.tiled.numerics import TiledLayer
from workloads.layers import Conv2d, MatMul
from workloads.operands import Operands, synthetic

SOURCE_BITS = 16


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
    def problem_key(self) -> tuple[str, int]:
        """Channels are counted by vectors."""
        return ("vectors", self.length)

    def problem(self, layer: Conv2d | MatMul) -> Problem:
        """Channels of a group in vectors, the last one short; every layer has a bias word, since
        its multipliers stand there."""
        whole = problem_of(layer)
        return replace(whole, channels=ceil_div(whole.channels, self.length), has_bias=1)

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

    def scaling(self, operands: VectorOperands) -> tuple[int, int]:
        """Multipliers are the filters' own; the shift is the layer's."""
        return 1, operands.shift

    def may_share(self, operands: VectorOperands) -> bool:
        """Integers always."""
        return True

    def _outputs(
        self, layer: Conv2d | MatMul, problem: Problem, tiling: Tiling, operands: VectorOperands
    ) -> tuple[IntArray, IntArray]:
        """Values [images, groups, P, Q, K] and scales [images, groups, P, Q, ⌈K / V⌉].

        With groups side by side a tile has all channels, and the vectors of other groups, whose
        weights are 0, leave the collectors as they are.
        """
        summation = VectorSummation(
            mac=self.mac,
            channel_tile=min(tiling.channels, problem.channels),
            sum_bits=self.sum_bits,
            length=self.length,
        )
        sums = vector_sums(problem, layer, operands, summation)
        bias, multiplier = self._channels(layer, problem, operands)
        vectors = ceil_div(problem.filters, self.output.form.vector or problem.filters)
        values = np.empty_like(sums)
        scales = np.ones((*sums.shape[:4], vectors), np.int64)
        for group in range(problem.groups):
            found, found_scales = self.output.compute(
                sums[:, group].reshape(-1, problem.filters),
                bias[group],
                multiplier[group],
                operands.shift,
                bool(problem.relu),
            )
            values[:, group] = found.reshape(values[:, group].shape)
            if self.output.scaled:
                scales[:, group] = found_scales.reshape(scales[:, group].shape)
        return values, scales

    def _channels(
        self, layer: Conv2d | MatMul, problem: Problem, operands: VectorOperands
    ) -> tuple[IntArray, IntArray]:
        """Biases and multipliers [groups, K]."""
        bias = layout.split_bias(layer, problem, operands.bias)
        return bias, layout.split_bias(layer, problem, operands.multiplier)

    def ofmap(
        self,
        layer: Conv2d | MatMul,
        tiling: Tiling,
        operands: VectorOperands,
        stored: None = None,
    ) -> IntArray:
        """Value times scale, exact, in the layer's shape, units of `ofmap_coarse`.

        Collectors begin anew with every channel tile, so that what saturates follows the tiling.
        """
        problem = self.problem(layer)
        values, scales = self._outputs(layer, problem, tiling, operands)
        return layout.join_ofmap(layer, problem, values * self._spread(scales, problem.filters))

    def _spread(self, scales: IntArray, filters: int) -> IntArray:
        """The scale of every filter."""
        return np.repeat(scales, self.output.form.vector or filters, axis=-1)[..., :filters]

    def words(self, tiled: TiledLayer, operands: VectorOperands) -> dict[str, IntArray]:
        """The words of the four ports of data."""
        layer, problem, tiles = tiled.layer, tiled.problem, tiled.tiles
        groups = tiled.tiling.groups
        values, scales = (
            layout.side_by_side(one, groups, (1, 4))
            for one in self._outputs(layer, problem, tiled.tiling, operands)
        )
        channels = [
            layout.side_by_side(one, groups, (0, 1))
            for one in self._channels(layer, problem, operands)
        ]
        lanes = self.output.lanes
        biased, loads = tiles[:, cmd.HAS_BIAS] == 1, tiles[:, cmd.LOAD_WEIGHT] == 1
        vectors = self._vectors(tiled, operands)
        width = {name: array.shape[-1] for name, array in vectors.items()}
        return {
            "ifmap": stack(
                tiles[tiles[:, cmd.LOAD_IFMAP] == 1],
                lambda row: tile_words.ifmap_part(row, vectors["ifmap"]).reshape(
                    -1, width["ifmap"]
                ),
                width["ifmap"],
            ),
            "weight": stack(
                tiles[loads],
                lambda row: _weight_vectors(row, vectors["weight"], lanes),
                lanes * width["weight"],
            ),
            "bias": stack(
                tiles[biased],
                lambda row: np.concatenate(
                    [tile_words.bias_words(row, part, lanes) for part in channels], axis=1
                ),
                2 * lanes,
            ),
            "ofmap": self._ofmap_words(tiles, values, scales),
        }

    def _vectors(self, tiled: TiledLayer, operands: VectorOperands) -> dict[str, IntArray]:
        """Operands as vectors with their scale behind: [.., J, V + 1], V without a scale.

        ifmap [images, blocks of groups, H, W, J, …], weight [blocks, K, R, S, J, …].
        """
        layer, problem = tiled.layer, tiled.problem
        depth = operands.weight.shape[1]
        whole = replace(problem, channels=depth)
        ifmap = _blocked(layout.split_ifmap(layer, whole, operands.ifmap), self.length)
        weight = _blocked(layout.split_weight(layer, whole, operands.weight), self.length)
        if operands.ifmap_scales is not None:
            split = layout.split_ifmap(layer, problem, operands.ifmap_scales)
            ifmap = np.concatenate([ifmap, split[..., None]], axis=-1)
        if operands.weight_scales is not None:
            split = layout.split_weight(layer, problem, operands.weight_scales)
            weight = np.concatenate([weight, split[..., None]], axis=-1)
        groups = tiled.tiling.groups
        return {
            "ifmap": layout.side_by_side(ifmap, groups, (1, 4)),
            "weight": layout.block_diagonal(weight, groups),
        }

    def _ofmap_words(self, tiles: IntArray, values: IntArray, scales: IntArray) -> IntArray:
        """The words of the ofmap in units, a vector's scale before its values, lowest unit first.

        A tile's vectors of a pixel leave as they are read: a vector of all its pixels before the
        next, or as many vectors as a row holds.
        """
        output = self.output
        if not output.scaled:
            return output_words(tiles, values, output.lanes)
        vector = output.form.vector or 1
        own = output.scale_units + vector * output.value_units
        streams: list[IntArray] = []
        for row in tiles[tiles[:, cmd.LAST_K] == 1]:
            part = layout.blocks_of(tile_words.ofmap_part(row, values), vector, 1)
            first = row[cmd.TILE_FILTER] // vector
            of_tile = row.copy()
            of_tile[cmd.TILE_FILTER], of_tile[cmd.TILE_FILTERS] = first, part.shape[1]
            beside = tile_words.ofmap_part(of_tile, scales)[..., None]
            scale_units = _in_units(beside, output.unit_bits, output.scale_units)
            units = np.concatenate(
                [scale_units, _in_units(part, output.unit_bits, output.value_units)], axis=2
            ).reshape(len(part), -1)
            missing = part.shape[1] * vector - row[cmd.TILE_FILTERS]
            units = units[:, : units.shape[1] - missing * output.value_units]
            streams.append(tile_words.as_rows(units, own * output.vectors_per_row))
        return tile_words.packed(streams, output.word_units)


def _in_units(values: IntArray, unit_bits: int, units: int) -> IntArray:
    """[…, n] as […, n · units]: the bits of every number in units, the lowest first."""
    shifts = unit_bits * np.arange(units)
    cut = values[..., None] >> shifts & ((1 << unit_bits) - 1)
    return cut.reshape(*values.shape[:-1], -1)


def _blocked(values: AnyIntArray, length: int) -> IntArray:
    """[…, C] as […, ⌈C / V⌉, V]."""
    return layout.blocks_of(values.astype(np.int64), length, values.ndim - 1)


def _weight_vectors(row: IntArray, weight: IntArray, lanes: int) -> IntArray:
    """The words of a tile's weights: blocks of `lanes` filters, each kernel row, column, vector."""
    part = tile_words.weight_part(row, weight)
    filters, width = len(part), weight.shape[-1]
    blocks = layout.blocks_of(part.reshape(filters, -1, width), lanes, 0)
    return blocks.transpose(0, 2, 1, 3).reshape(-1, lanes * width)
