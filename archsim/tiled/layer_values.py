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
from archsim.layer.pixel_sums import PixelSums
from archsim.layer.problem import Problem, Tiling
from archsim.numbers import AnyIntArray, IntArray
from archsim.tiled.accumulated import accumulated
from archsim.tiled.changed_sums import ReadSums, changed
from archsim.tiled.commands import TileCommand, commands_of
from archsim.tiled.design import OPERANDS, CoreDesign
from archsim.tiled.file_numerics import FileOfmap
from archsim.tiled.gathered_rows import gathered_words
from archsim.tiled.kept_reads import KeptReads
from archsim.tiled.numerics import Blocks, More, Outputs, TiledLayer
from archsim.tiled.output_tiles import OutputTile, as_problem, filters_of, output_tiles
from archsim.tiled.tile_words import PARTS, loads, pixels_of, tile_words
from archsim.tiled.walk import walk_layer
from workloads.layers import Conv2d, MatMul

MOST_WEIGHTS = 1 << 24
"""That wait for others of the same pixels."""


def layer_ofmap(
    design: CoreDesign,
    layer: Conv2d | MatMul,
    tiling: Tiling,
    operands: Any,
    stored: Any = None,
    kept: KeptReads | None = None,
) -> Any:
    """The ofmap of what the numerics has taken: [N, K, P, Q] or [b, M, N].

    stored: what `Numerics.stored` answered, where it has been asked already.  kept: from the same
    layer in the same tiling, with other operands.
    """
    numerics = design.numerics
    of_file = file_ofmap_of(design, layer, operands)
    if of_file is not None:
        return of_file.ofmap
    problem = numerics.problem(layer)
    split = numerics.split(layer, operands, stored)
    more = None
    if not design.exact:
        walked = walk_layer(problem, tiling, design.machine)
        seen = _changed(design, (problem, tiling), walked, split, {}, kept or KeptReads())
        if seen is None:
            tiles, blocks = commands_of(walked), numerics.blocks(split, tiling.groups)
            found = _through_memories(design, (problem, tiling), tiles, blocks, operands)
            return numerics.joined(layer, _by_group(found, problem, tiling.groups))
        split, more = seen
    found = _of_whole(design, layer, (problem, tiling), split, operands, more)
    return numerics.joined(layer, found)


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
    shape, seen = (tiled.problem, tiled.tiling), (split, None)
    if not design.exact:
        seen = _changed(design, shape, tiled.tiles, split, halves or {}, KeptReads())
    if seen is not None:
        whole = _of_whole(design, tiled.layer, shape, seen[0], operands, seen[1])
        wide = (one.astype(np.int64, copy=False) for one in whole)
        found = tuple(layout.side_by_side(one, groups, (1, 4)) for one in wide)
    else:
        found = _through_memories(design, shape, tiles, blocks, operands, halves)
    words = {name: _operand_words(design, name, tiles, blocks) for name in OPERANDS}
    if design.gather and isinstance(tiled.layer, MatMul) and tiled.layer.kept:
        words["ifmap"] = gathered_words(design, tiled.layer.kept, tiles, blocks.ifmap)
    return words | {"ofmap": numerics.output_words(tiles, found)}


def _of_whole(
    design: CoreDesign,
    layer: Conv2d | MatMul,
    tiled: tuple[Problem, Tiling],
    split: Any,
    operands: Any,
    more: More | ReadSums | None = None,
) -> Outputs:
    """The outputs by groups, at once; more: what is added to their sums, or read of them."""
    with_more = design.numerics.outputs_with
    if isinstance(more, (np.ndarray, PixelSums)) and with_more is not None:
        return with_more(tiled[0], split, operands, more)
    try:
        found = design.numerics.outputs(*tiled, split, operands)
    except InputError as error:
        raise InputError(f"{layer.name}: {error}") from None
    if isinstance(more, ReadSums):
        _read_otherwise(design, tiled[0], split, operands, (found[0], more))
    return found


def _read_otherwise(
    design: CoreDesign, problem: Problem, split: Any, operands: Any, given: tuple[Any, ReadSums]
) -> None:
    """Outputs [images, groups, P, Q, K], some of which are made of other sums: as of one pixel with
    so many filters."""
    (outputs, (places, sums)), (ifmap, weight, bias) = given, split
    if bias is not None:
        filters = places // (problem.out_height * problem.out_width) % bias.size
        bias = bias.reshape(1, -1)[:, filters]
    (made,) = design.numerics.finished(
        problem, sums.reshape(1, 1, 1, 1, -1), (ifmap, weight, bias), operands
    )
    planes = outputs.transpose(0, 1, 4, 2, 3)
    if planes.flags.c_contiguous:
        planes.reshape(-1)[places] = made.reshape(-1)
    else:
        planes[np.unravel_index(places, planes.shape)] = made.reshape(-1)


def _changed(
    design: CoreDesign,
    tiled: tuple[Problem, Tiling],
    walked: IntArray,
    split: Any,
    halves: Mapping[str, int],
    kept: KeptReads,
) -> tuple[Any, More | ReadSums | None] | None:
    """Split operands as they are read, and what failing cells add to the sums beside
    [images, groups, P, Q, K], or the sums that are read otherwise; None where output tiles are to
    be computed one by one."""
    found = changed(design, tiled, walked, split, halves, kept)
    if found is None or not isinstance(found[1], np.ndarray):
        return found
    return found[0], _by_group((found[1],), tiled[0], tiled[1].groups)[0]


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
    found: dict[tuple[int, ...], list[tuple[TileCommand[int], Outputs]]] = {}
    if _filters_alone(design) and 2 * blocks.weight.size <= MOST_WEIGHTS:
        every = tuple(output_tiles(design, tiles, blocks, halves or {}, {}))
        each = _as_wholes(design, block, tiling, every, blocks, operands)
    else:
        one_by_one = output_tiles(design, tiles, blocks, halves or {})
        each = (
            (some, _computed(design, block, tiling, some, operands))
            for some in _together(design, block.filters, one_by_one)
        )
    for some, outputs in each:
        found.setdefault(some[0].place, []).append((some[0].last, outputs))
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


def _computed(
    design: CoreDesign, block: Problem, tiling: Tiling, some: Sequence[OutputTile], operands: Any
) -> Outputs:
    """Of output tiles of the same pixels, filters in order."""
    numerics, (part, read) = design.numerics, as_problem(block, some[0].parts)
    if len(some) > 1:
        each = [filters_of(one.parts) for one in some]
        weight, bias = (np.concatenate([one[at] for one in each]) for at in (0, 1))
        part = replace(part, filters=len(weight))
        read = Blocks(ifmap=read.ifmap, weight=weight[None], bias=bias[None])
    split = numerics.split_of(read)
    if design.accumulator_memory.exact:
        return numerics.outputs(part, replace(tiling, groups=1), split, operands)
    parts = [(one[0], *as_problem(block, [one])) for one in some[0].parts]
    sums = accumulated(design, some[0].half, parts)
    return numerics.finished(part, sums, split, operands)


def _filters_alone(design: CoreDesign) -> bool:
    """Whether output tiles of the same pixels differ in weights and biases alone."""
    exact = design.ifmap_memory.exact and design.accumulator_memory.exact
    return exact and not design.numerics.word_lanes.all_count


def _as_wholes(
    design: CoreDesign, block: Problem, tiling: Tiling, every: Sequence[OutputTile],
    blocks: Blocks, operands: Any,
) -> Iterator[tuple[list[OutputTile], Outputs]]:  # fmt: skip
    """Output tiles of the same pixels, with their outputs: those with the same weights, of whatever
    pixels, cut out of a whole plane, where they are half of it at least."""
    places: dict[tuple[int, ...], list[OutputTile]] = {}
    for one in every:
        places.setdefault(one.place, []).append(one)
    alike: dict[tuple[int, ...], list[list[OutputTile]]] = {}
    for place, some in places.items():
        weights = (id(part["weight"]) for one in some for _, part in one.parts)
        biases = (id(one.parts[-1][1]["bias"]) for one in some)
        alike.setdefault((place[0], *weights, *biases), []).append(some)
    pixels = block.images * block.out_height * block.out_width
    for those in alike.values():
        if 2 * sum(some[0].last.pixels for some in those) < pixels or len(those) == 1:
            yield from ((some, _computed(design, block, tiling, some, operands)) for some in those)
            continue
        group = those[0][0].last.tile_group
        each = [filters_of(one.parts) for one in those[0]]
        weight, bias = (np.concatenate([one[at] for one in each]) for at in (0, 1))
        read = Blocks(
            ifmap=blocks.ifmap[:, group : group + 1], weight=weight[None], bias=bias[None]
        )
        split = design.numerics.split_of(read)
        alone = replace(block, groups=1)
        outputs = design.numerics.outputs(alone, replace(tiling, groups=1), split, operands)
        for some in those:
            images, _, rows, columns = pixels_of(some[0].last)
            yield some, tuple(one[images, :, rows, columns] for one in outputs)


def _together(
    design: CoreDesign, filters: int, tiles: Iterator[OutputTile]
) -> Iterator[list[OutputTile]]:
    """Output tiles that are computed at once: those of the same pixels, of which all is alike but
    weights and biases, as many as MOST_WEIGHTS allows."""
    if not _filters_alone(design):
        yield from ([one] for one in tiles)
        return
    waiting: dict[tuple[int, ...], list[OutputTile]] = {}
    held = 0
    for one in tiles:
        own = waiting.setdefault(one.place, [])
        own.append(one)
        held += sum(part["weight"].size for _, part in one.parts)
        if sum(each.last.tile_filters for each in own) == filters:
            held -= sum(part["weight"].size for each in own for _, part in each.parts)
            yield waiting.pop(one.place)
        elif held > MOST_WEIGHTS:
            yield from waiting.values()
            waiting, held = {}, 0
    yield from waiting.values()


def _by_group(
    outputs: tuple[AnyIntArray, ...], problem: Problem, groups: int
) -> tuple[AnyIntArray, ...]:
    """Outputs in blocks as outputs by group, empty groups of the last block left out."""
    found: list[AnyIntArray] = []
    if groups == 1:
        return outputs
    for one in outputs:
        split = np.moveaxis(one.reshape(*one.shape[:-1], groups, -1), 4, 2)
        whole = split.reshape(one.shape[0], -1, *split.shape[3:])
        found.append(np.ascontiguousarray(whole[:, : problem.groups]))
    return tuple(found)


__all__ = ["file_ofmap_of", "layer_ofmap", "layer_words"]
