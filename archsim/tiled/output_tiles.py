"""Output tiles of a core whose memories are not exact: what is read for each, tile by tile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from archsim.layer.layout import blocks_of
from archsim.layer.problem import Problem
from archsim.memory.at_once import seen
from archsim.numbers import IntArray
from archsim.tiled.commands import TileCommand
from archsim.tiled.design import OPERANDS, CoreDesign
from archsim.tiled.numerics import Blocks
from archsim.tiled.tile_words import PARTS, loads, tile_words

Part = dict[str, IntArray]
"""What a tile computes with, by operand (`tile_words.PARTS`)."""


@dataclass(frozen=True, kw_only=True, eq=False)
class OutputTile:
    """The channel tiles of an output tile, in order, with what is read for them; half: of the
    accumulators."""

    parts: Sequence[tuple[TileCommand[int], Part]]
    half: int

    @property
    def last(self) -> TileCommand[int]:
        """The one of the last channels."""
        return self.parts[-1][0]

    @property
    def place(self) -> tuple[int, ...]:
        """Where its pixels are."""
        last = self.last
        return last.tile_group, last.tile_image, last.tile_row, last.tile_column


def output_tiles(
    design: CoreDesign,
    tiles: Sequence[TileCommand[int]],
    blocks: Blocks,
    first: Mapping[str, int],
    kept: dict[tuple[Any, ...], IntArray] | None = None,
) -> Iterator[OutputTile]:
    """The tiles of each output tile, channels in order, with what is read for them.

    kept: where what is read is to be kept, so that what is read again is the same array.
    """
    output: list[tuple[TileCommand[int], Part]] = []
    halves: dict[str, int] = dict.fromkeys(OPERANDS, 0) | dict(first)
    read: dict[str, IntArray] = {}
    number = 0
    for tile in tiles:
        for name in OPERANDS:
            if not loads(name, tile):
                continue
            key = (name, halves[name], *slice_of(name, tile))
            if kept is not None and key in kept:
                read[name] = kept[key]
                halves[name] ^= 1
                continue
            read[name] = _read(design, name, tile, PARTS[name](tile, blocks.of(name)), halves)
            if kept is not None:
                kept[key] = read[name]
        output.append((tile, dict(read)))
        if "bias" not in read:  # a channel tile that is not the last has none
            output[-1][1]["bias"] = np.zeros_like(PARTS["bias"](tile, blocks.bias))
        if tile.last_k:
            if not tile.has_bias:
                nothing = np.zeros_like(PARTS["bias"](tile, blocks.bias))
                key = ("none", *slice_of("bias", tile))
                output[-1][1]["bias"] = nothing if kept is None else kept.setdefault(key, nothing)
            yield OutputTile(parts=output, half=(number + first.get("accumulator", 0)) % 2)
            output, number = [], number + 1


def slice_of(name: str, tile: TileCommand[int]) -> tuple[int, ...]:
    """What of an operand a tile loads."""
    filters = tile.tile_group, tile.tile_filter, tile.tile_filters
    channels = tile.tile_channel, tile.tile_channels
    if name == "bias":
        return filters
    if name == "weight":
        return (*filters, *channels)
    place = tile.tile_image, tile.tile_images, tile.ifmap_row, tile.ifmap_column
    return (tile.tile_group, *place, tile.height, tile.pitch, *channels)


def _read(
    design: CoreDesign, name: str, tile: TileCommand[int], part: IntArray, halves: dict[str, int]
) -> IntArray:
    """What is read of a tile of an operand that was written into the next half of its memory.

    With lanes behind its last filter where they count (`WordLanes.all_count`).
    """
    use, lanes = replace(design.use(name), half=halves[name]), design.numerics.word_lanes
    halves[name] ^= 1
    memory = design.bank(name)
    if lanes.all_count and name != "ifmap":
        part = blocks_of(part, getattr(lanes, name), 0).reshape(-1, *part.shape[1:])
    if memory.exact:
        return part
    words = tile_words(name, tile, part, lanes)
    places = tile_words(name, tile, 1 + np.arange(part.size).reshape(part.shape), lanes)
    back = seen(memory, use, words)
    found = part.reshape(-1).copy()
    found[places[places > 0] - 1] = back[places > 0]  # but for lanes that words are filled up with
    return found.reshape(part.shape)


def as_problem(
    block: Problem, output: Sequence[tuple[TileCommand[int], Part]]
) -> tuple[Problem, Blocks]:
    """An output tile as a problem of one group, and its operands."""
    tile = output[-1][0]
    ifmap = _joined([part["ifmap"] for _, part in output])
    column_start = tile.element_start // tile.tile_channels
    for axis, start in ((1, tile.row_start), (2, column_start)):
        if start > 0:  # all windows begin behind the ifmap: nothing of it is seen
            ifmap = np.zeros_like(ifmap.take([0], axis=axis))
    problem = replace(
        block,
        images=tile.tile_images,
        groups=1,
        height=ifmap.shape[1],
        width=ifmap.shape[2],
        pad_top=max(0, -tile.row_start),
        pad_left=max(0, -column_start),
        out_height=tile.pixel_rows,
        out_width=tile.pixel_columns,
        filters=tile.tile_filters,
        channels=ifmap.shape[3],
    )
    weight, bias = filters_of(output)
    return problem, Blocks(ifmap=ifmap[:, None], weight=weight[None], bias=bias[None])


def filters_of(output: Sequence[tuple[TileCommand[int], Part]]) -> tuple[IntArray, IntArray]:
    """Weights [K, R, S, C, E] and biases [K, E] of an output tile, or of some of its channels."""
    return _joined([part["weight"] for _, part in output]), output[-1][1]["bias"]


def _joined(parts: Sequence[IntArray]) -> IntArray:
    """Along the channels."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=3)


__all__ = ["OutputTile", "Part", "as_problem", "filters_of", "output_tiles", "slice_of"]
