"""What failing cells add to the sums of a layer, where one memory alone fails.

Sums that are whole numbers and wrap are those of the values that were meant, and of what is wrong:
few elements of an ifmap tile are read wrong, and few lanes of accumulators fail.  So a layer is
computed at once, and what is wrong is added to its sums.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from archsim.layer.problem import Problem, margins
from archsim.memory.at_once import seen
from archsim.numbers import IntArray
from archsim.tiled.accumulated import spans_of
from archsim.tiled.changed_kernels import add_changes, add_failing
from archsim.tiled.commands import TileCommand
from archsim.tiled.design import CoreDesign
from archsim.tiled.numerics import Blocks
from archsim.tiled.output_tiles import slice_of
from archsim.tiled.tile_words import PARTS, tile_words

Integers = npt.NDArray[np.int32]

MOST_BITS = 32
"""Of sums."""


def changed_sums(
    design: CoreDesign,
    block: Problem,
    tiles: Sequence[TileCommand[int]],
    blocks: Blocks,
    first: Mapping[str, int],
) -> Integers | None:
    """What is wrong of sums [images, blocks, P, Q, K], modulo 2^32; None where that is not to be
    had: of memories that fail together, of others than ifmaps and sums, of sums that are no whole
    numbers.

    block: the problem, groups side by side.  first: into which half each operand is loaded first.
    """
    exact = {name: design.bank(name).exact for name in ("ifmap", "weight", "bias", "accumulator")}
    failing = [name for name, one in exact.items() if not one]
    use = design.use("accumulator")
    if design.numerics.outputs_with is None or max(use.lane_bits) > MOST_BITS:
        return None
    shape = block.images, block.groups, block.out_height, block.out_width, block.filters
    if failing == ["ifmap"]:
        sums = np.zeros(shape, np.int32)
        _add_ifmaps(design, block, tiles, blocks, (first.get("ifmap", 0), sums))
        return sums
    if failing == ["accumulator"]:
        cells = _failing_lanes(design, tiles)
        if cells is None:
            return None
        sums = np.zeros(shape, np.int32)
        array = use.lanes, 64 - use.lane_bits[0], first.get("accumulator", 0) % 2
        moving = design.numerics.word_lanes.moving
        padded, values = _padded(block, blocks)
        layer = np.array(tiles, np.int64), padded.vector()
        runs = _runs(design, padded, tiles)
        add_failing(layer, values, runs, cells, (*array, moving), sums)
        return sums
    return None


def _add_ifmaps(
    design: CoreDesign,
    block: Problem,
    tiles: Sequence[TileCommand[int]],
    blocks: Blocks,
    into: tuple[int, Integers],
) -> None:
    """Add what wrong elements of ifmap tiles add; into: the half of the first load, and sums."""
    half, sums = into
    known: dict[tuple[int, ...], tuple[IntArray, Integers]] = {}
    found: list[tuple[IntArray, Integers]] = []
    load_of = np.empty(len(tiles), np.int64)
    for number, tile in enumerate(tiles):
        if tile.load_ifmap:
            key = half, *slice_of("ifmap", tile)
            if key not in known:
                known[key] = _wrong_elements(design, tile, PARTS["ifmap"](tile, blocks.ifmap), half)
            found.append(known[key])
            half ^= 1
        load_of[number] = len(found) - 1
    starts, places = _behind_one_another([one for one, _ in found])
    changes = starts, places, np.concatenate([wrong for _, wrong in found])
    weight = np.ascontiguousarray(blocks.weight[..., 0].transpose(0, 2, 3, 4, 1), np.int32)
    add_changes(np.array(tiles, np.int64), block.vector(), load_of, weight, changes, sums)


def _wrong_elements(
    design: CoreDesign, tile: TileCommand[int], part: IntArray, half: int
) -> tuple[IntArray, Integers]:
    """The elements of an ifmap tile that are read wrong from a half, and by how much."""
    use, memory = design.use("ifmap").in_half(half), design.bank("ifmap")
    lanes, flat = design.numerics.word_lanes, part.reshape(-1)
    masks = memory.masks(use, tile.ifmap_words)
    if masks is None:
        read = seen(memory, use, tile_words("ifmap", tile, part, lanes)).reshape(-1)[: flat.size]
        wrong = read - flat
        places = np.flatnonzero(wrong)
        return places, wrong[places].astype(np.int32)
    rows, columns = masks.failing
    places = rows * use.lanes + columns
    count = int(np.searchsorted(places, flat.size))
    at, places = (rows[:count], columns[:count]), places[:count]
    meant = flat[places]
    return places, (masks.read_at(at, meant) - meant).astype(np.int32)


def _failing_lanes(
    design: CoreDesign, tiles: Sequence[TileCommand[int]]
) -> tuple[IntArray, IntArray] | None:
    """Of both halves of the accumulators, as `add_failing` takes them."""
    use, memory = design.use("accumulator"), design.accumulator_memory
    rows, each = max(tile.output_rows for tile in tiles), list[IntArray]()
    for half in range(2):
        masks = memory.masks(use.in_half(half), rows)
        if masks is None:
            return None
        at = masks.failing
        if_zero = masks.if_zero[at]
        if_one = ~if_zero if masks.kept is None else masks.kept[at]
        each.append(np.stack([*at, if_zero, if_one], axis=1))
    return _behind_one_another(each)


def _padded(block: Problem, blocks: Blocks) -> tuple[Problem, tuple[Integers, Integers]]:
    """The ifmap [images, blocks, H', W', C] with what windows reach into, and weights, both flat;
    the problem of that ifmap."""
    ifmap = np.pad(blocks.ifmap[..., 0], ((0, 0), (0, 0), *margins(block), (0, 0)))
    padded = replace(block, height=ifmap.shape[2], width=ifmap.shape[3], pad_top=0, pad_left=0)
    weight = np.ascontiguousarray(blocks.weight[..., 0], np.int32)
    return padded, (ifmap.astype(np.int32).reshape(-1), weight.reshape(-1))


def _runs(
    design: CoreDesign, padded: Problem, tiles: Sequence[TileCommand[int]]
) -> tuple[IntArray, IntArray]:
    """Runs of channels of every tile, as `add_failing` takes them."""
    known: dict[tuple[int, ...], IntArray] = {}
    each: list[IntArray] = []
    for tile in tiles:
        key = tile.taps, tile.runs, tile.run_length, tile.tile_channels
        if key not in known:
            known[key] = _runs_of(design, padded, tile)
        each.append(known[key])
    return _behind_one_another(each)


def _behind_one_another(each: Sequence[IntArray]) -> tuple[IntArray, IntArray]:
    """Arrays as one, and where each begins in it, and one place more."""
    starts = np.cumsum([0, *map(len, each)], dtype=np.int64)
    return starts, np.concatenate(each)


def _runs_of(design: CoreDesign, padded: Problem, tile: TileCommand[int]) -> IntArray:
    """Of one tile: a run ends where a span does, or a tap's channels."""
    channels, found = tile.tile_channels, list[tuple[int, int, int, int]]()
    for begin, end in spans_of(design, tile):
        ends = [*range((begin // channels + 1) * channels, end, channels), end]
        for first, behind in zip([begin, *ends], ends, strict=False):
            tap, channel = divmod(first, channels)
            row, column = divmod(tap, padded.kernel_width)
            y, x = row * padded.dilation_height, column * padded.dilation_width
            seen = (y * padded.width + x) * padded.channels + channel
            own = tap * padded.channels + channel
            found.append((seen, own, behind - first, int(behind == end)))
    return np.array(found, np.int64)


__all__ = ["changed_sums"]
