"""What a core computes for a layer, and the words of its ports, with what its memories give back.

Where memories are exact, a whole layer is computed at once.  Where one is not
(`archsim.memory.seam.Memory.exact`), every tile's words go through `stored` and `read_back` of
their memory, as they are loaded, and each output tile is computed of what was read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from archsim.errors import InputError, require
from archsim.layer import layout
from archsim.layer.problem import Problem, Tiling
from archsim.numbers import IntArray
from archsim.tiled.commands import TileCommand, commands_of
from archsim.tiled.design import OPERANDS, CoreDesign
from archsim.tiled.file_numerics import FileOfmap
from archsim.tiled.numerics import Blocks, Outputs, TiledLayer
from archsim.tiled.tile_words import PARTS, loads, pixels_of, tile_words
from archsim.tiled.walk import walk_layer
from workloads.layers import Conv2d, MatMul

Part = dict[str, IntArray]
"""What a tile computes with, by operand (`tile_words.PARTS`)."""


def layer_ofmap(
    design: CoreDesign, layer: Conv2d | MatMul, tiling: Tiling, operands: Any, stored: Any = None
) -> Any:
    """The ofmap of what the numerics has taken: [N, K, P, Q] or [b, M, N].

    stored: what `Numerics.stored` answered, where it has been asked already.
    """
    numerics = design.numerics
    of_file = file_ofmap_of(design, layer, operands)
    if of_file is not None:
        return of_file.ofmap
    problem = numerics.problem(layer)
    split = numerics.split(layer, operands, stored)
    if design.exact:
        return numerics.joined(layer, _of_whole(design, layer, (problem, tiling), split, operands))
    tiles = commands_of(walk_layer(problem, tiling, design.machine))
    blocks = numerics.blocks(split, tiling.groups)
    found = _through_memories(design, (problem, tiling), tiles, blocks, operands)
    return numerics.joined(layer, _by_group(found, problem, tiling.groups))


def file_ofmap_of(design: CoreDesign, layer: Conv2d | MatMul, operands: Any) -> FileOfmap | None:
    """What a quantised file's operands make; None of others.

    Raises `InputError` for a file's operands in memories that are not exact: the file's rule is
    not what such a core computes.
    """
    found = design.numerics.as_file(layer, operands)
    require(
        found is None or design.exact,
        f"{layer.name}: operands of a quantised file, with its rule for the ofmap, need memories "
        f"that are read as they were written",
    )
    return found


def layer_words(
    design: CoreDesign,
    tiled: TiledLayer,
    operands: Any,
    halves: Mapping[str, int] | None = None,
) -> dict[str, IntArray]:
    """The payload of every port of data, in order: [words, lanes] each.

    operands: what the numerics has taken.  halves: into which half each operand is loaded first;
    None: the first.  Raises `InputError` where no words make the ofmap.
    """
    numerics, groups = design.numerics, tiled.tiling.groups
    operands = numerics.in_words(tiled.layer, operands)
    split, tiles = numerics.split(tiled.layer, operands), commands_of(tiled.tiles)
    blocks = numerics.blocks(split, groups)
    if design.exact:
        shape = tiled.problem, tiled.tiling
        whole = _of_whole(design, tiled.layer, shape, split, operands)
        wide = (one.astype(np.int64, copy=False) for one in whole)
        found = tuple(layout.side_by_side(one, groups, (1, 4)) for one in wide)
    else:
        shape = tiled.problem, tiled.tiling
        found = _through_memories(design, shape, tiles, blocks, operands, halves)
    words = {name: _operand_words(design, name, tiles, blocks) for name in OPERANDS}
    return words | {"ofmap": numerics.output_words(tiles, found)}


def _of_whole(
    design: CoreDesign,
    layer: Conv2d | MatMul,
    tiled: tuple[Problem, Tiling],
    split: Any,
    operands: Any,
) -> Outputs:
    """The outputs by groups, at once."""
    try:
        return design.numerics.outputs(*tiled, split, operands)
    except InputError as error:
        raise InputError(f"{layer.name}: {error}") from None


def _operand_words(
    design: CoreDesign, name: str, tiles: Sequence[TileCommand[int]], blocks: Blocks
) -> IntArray:
    """The words of an operand, tile by tile: [words, lanes]."""
    lanes, whole, part = design.numerics.word_lanes, blocks.of(name), PARTS[name]
    found = [tile_words(name, one, part(one, whole), lanes) for one in tiles if loads(name, one)]
    if found:
        return np.concatenate(found)
    return np.zeros((0, getattr(lanes, name) * whole.shape[-1]), np.int64)


def _through_memories(
    design: CoreDesign,
    tiled: tuple[Problem, Tiling],
    tiles: Sequence[TileCommand[int]],
    blocks: Blocks,
    operands: Any,
    halves: Mapping[str, int] | None = None,
) -> Outputs:
    """The outputs in blocks of groups, each output tile of what is read for it."""
    problem, tiling = tiled
    block = problem.side_by_side(tiling.groups)
    numerics, alone = design.numerics, replace(tiling, groups=1)
    found: dict[tuple[int, ...], list[tuple[TileCommand[int], Outputs]]] = {}
    for output in _output_tiles(design, tiles, blocks, halves or {}):
        last = output[-1][0]
        part, read = _of_output_tile(block, output)
        outputs = numerics.outputs(part, alone, numerics.split_of(read), operands)
        place = last.tile_group, last.tile_image, last.tile_row, last.tile_column
        found.setdefault(place, []).append((last, outputs))
    shape = (block.images, block.groups, block.out_height, block.out_width)
    whole: list[IntArray] = []
    for at in range(len(next(iter(found.values()))[0][1])):
        for some in found.values():
            in_order = sorted(some, key=lambda one: one[0].tile_filter)
            values = np.concatenate([outputs[at][:, 0] for _, outputs in in_order], axis=-1)
            if len(whole) == at:
                whole.append(np.empty((*shape, values.shape[-1]), np.int64))
            whole[at][pixels_of(some[0][0])] = values
    return tuple(whole)


def _output_tiles(
    design: CoreDesign,
    tiles: Sequence[TileCommand[int]],
    blocks: Blocks,
    first: Mapping[str, int],
) -> Iterator[list[tuple[TileCommand[int], Part]]]:
    """The tiles of each output tile, channels in order, with what is read for them."""
    output: list[tuple[TileCommand[int], Part]] = []
    halves: dict[str, int] = dict.fromkeys(OPERANDS, 0) | dict(first)
    read: dict[str, IntArray] = {}
    for tile in tiles:
        for name in OPERANDS:
            if loads(name, tile):
                read[name] = _read(design, name, tile, PARTS[name](tile, blocks.of(name)), halves)
        output.append((tile, dict(read)))
        if tile.last_k:
            if not tile.has_bias:
                output[-1][1]["bias"] = np.zeros_like(PARTS["bias"](tile, blocks.bias))
            yield output
            output = []


def _read(
    design: CoreDesign, name: str, tile: TileCommand[int], part: IntArray, halves: dict[str, int]
) -> IntArray:
    """What is read of a tile of an operand that was written into the next half of its memory."""
    use, lanes = replace(design.use(name), half=halves[name]), design.numerics.word_lanes
    halves[name] ^= 1
    memory = design.bank(name)
    if memory.exact:
        return part
    words = tile_words(name, tile, part, lanes)
    places = tile_words(name, tile, 1 + np.arange(part.size).reshape(part.shape), lanes)
    seen = memory.read_back(use, memory.stored(use, words), len(words))
    found = part.reshape(-1).copy()
    found[places[places > 0] - 1] = seen[places > 0]  # but for lanes that words are filled up with
    return found.reshape(part.shape)


def _of_output_tile(
    block: Problem, output: Sequence[tuple[TileCommand[int], Part]]
) -> tuple[Problem, Blocks]:
    """An output tile as a problem of one group, and its operands."""
    tile = output[-1][0]
    ifmap = np.concatenate([part["ifmap"] for _, part in output], axis=3)
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
    )
    weight = np.concatenate([part["weight"] for _, part in output], axis=3)
    bias = output[-1][1]["bias"]
    return problem, Blocks(ifmap=ifmap[:, None], weight=weight[None], bias=bias[None])


def _by_group(outputs: Outputs, problem: Problem, groups: int) -> Outputs:
    """Outputs in blocks as outputs by group, empty groups of the last block left out."""
    found: list[IntArray] = []
    for one in outputs:
        split = np.moveaxis(one.reshape(*one.shape[:-1], groups, -1), 4, 2)
        whole = split.reshape(one.shape[0], -1, *split.shape[3:])
        found.append(np.ascontiguousarray(whole[:, : problem.groups]))
    return tuple(found)


__all__ = ["file_ofmap_of", "layer_ofmap", "layer_words"]
