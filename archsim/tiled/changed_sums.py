"""What failing cells make of a layer that is computed at once.

Sums that are whole numbers and wrap are those of the values that were meant, and of what is wrong.
Nearly every element of an operand is read by all in one way, and is computed with as it is read;
what the few others add, and the few lanes of accumulators that fail, is added to the sums.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from archsim.layer import layout
from archsim.layer.problem import Problem, Tiling, margins
from archsim.numbers import AnyIntArray, IntArray
from archsim.tiled.accumulated import spans_of
from archsim.tiled.changed_kernels import add_changes, add_failing, add_weights
from archsim.tiled.changed_operands import Exceptions, reads_of
from archsim.tiled.commands import TileCommand, commands_of
from archsim.tiled.design import OPERANDS, CoreDesign
from archsim.tiled.numerics import Blocks

Integers = npt.NDArray[np.int32]

Split = tuple[AnyIntArray, AnyIntArray, IntArray | None]
"""Ifmap, weights and biases by groups (`archsim.layer.layout`)."""

Changed = tuple[Split, Integers | None]
"""Operands as they are read; what is added to sums [images, blocks, P, Q, K], modulo 2^32."""

Shape = tuple[int, int, int, int]
"""Images, blocks, and the ofmap's rows and columns."""

MOST_BITS = 32
"""Of sums."""

MOST_CHANGED = 16
"""Weights that are read in several ways are added one by one below this part of a layer's products:
those of more take longer than whole planes."""


def changed(
    design: CoreDesign,
    tiled: tuple[Problem, Tiling],
    walked: IntArray,
    split: Split,
    halves: Mapping[str, int],
) -> Changed | None:
    """Operands as a layer reads them, and what is to be added to their sums beside; None where that
    is not to be had: of sums that are no whole numbers, or that fail together with operands, and
    of weights and biases that tiles read in several ways.

    walked: the command matrix [tiles, …].  halves: into which half each operand is loaded first.
    """
    failing = [name for name in (*OPERANDS, "accumulator") if not design.bank(name).exact]
    use = design.use("accumulator")
    if design.numerics.outputs_with is None or max(use.lane_bits) > MOST_BITS:
        return None
    block = tiled[0].side_by_side(tiled[1].groups)

    def blocks() -> Blocks:
        return design.numerics.blocks(split, tiled[1].groups)

    if failing == ["accumulator"]:
        if tiled[0].groups % tiled[1].groups:  # sums of empty groups fail too, and leave in words
            return None
        half = halves.get("accumulator", 0) % 2
        sums = _of_failing_sums(design, (block, tiled[1].groups), walked, split, half)
        return None if sums is None else (split, sums)
    if "accumulator" in failing:
        return None
    some = failing, halves
    return _of_operands(design, (block, tiled[1].groups), walked, (split, blocks), some)


def _of_operands(
    design: CoreDesign,
    block: tuple[Problem, int],
    walked: IntArray,
    given: tuple[Split, Callable[[], Blocks]],
    failing: tuple[Sequence[str], Mapping[str, int]],
) -> Changed | None:
    """Of operands that fail; block: of so many groups."""
    (split, blocks), (names, halves), found = given, failing, dict[str, Exceptions]()
    seen: list[AnyIntArray | None] = list(split)
    tiles = commands_of(walked)
    for name in names:
        at = OPERANDS.index(name)
        whole = seen[at]
        if whole is None:  # biases of a layer that has none are not loaded
            continue
        if name != "ifmap" and block[1] > 1:  # zeros off a filter's own group fail too
            return None
        read = reads_of(design, name, tiles, (*block, whole, blocks), halves.get(name, 0))
        seen[at], found[name] = read.changes()
    some = [name for name, one in found.items() if len(one.wrong)]
    split = cast("Split", tuple(seen))
    if not some:
        return split, None
    if "bias" in some or len(some) > 1 or (some == ["weight"] and "ifmap" in names):
        return None
    if some == ["weight"] and MOST_CHANGED * _products(tiles, found["weight"]) > block[0].macs:
        return None
    shape = block[0].images, block[0].groups, block[0].out_height, block[0].out_width
    add = _add_ifmap if some == ["ifmap"] else _add_weight
    return split, add(block[0], walked, (split, block[1]), found[some[0]], shape)


def _products(tiles: Sequence[TileCommand[int]], some: Exceptions) -> int:
    """Of weights that tiles read in several ways, on all pixels of these."""
    counts = np.diff(some.starts)[some.load_of]
    return int(counts @ np.array([tile.pixels for tile in tiles]))


def _add_ifmap(
    block: Problem, tiles: IntArray, given: tuple[Split, int], some: Exceptions, shape: Shape
) -> Integers:
    """What elements of the ifmap add that tiles read in several ways."""
    sums = np.zeros((*shape, block.filters), np.int32)
    whole = layout.block_diagonal(given[0][1], given[1])
    weight = np.ascontiguousarray(whole.transpose(0, 2, 3, 4, 1), np.int32)
    changes = some.starts, some.elements, some.wrong.astype(np.int32)
    add_changes(tiles, block.vector(), some.load_of, weight, changes, sums)
    return sums


def _add_weight(
    block: Problem, tiles: IntArray, given: tuple[Split, int], some: Exceptions, shape: Shape
) -> Integers:
    """What weights add that tiles read in several ways."""
    sums = np.zeros((*shape[:2], block.filters, *shape[2:]), np.int32)
    ifmap = np.ascontiguousarray(given[0][0].transpose(0, 1, 4, 2, 3), np.int32)
    changes = some.starts, np.ascontiguousarray(some.places), some.wrong.astype(np.int32)
    add_weights(tiles, block.vector(), some.load_of, ifmap, changes, sums)
    return sums.transpose(0, 1, 3, 4, 2)


def _of_failing_sums(
    design: CoreDesign,
    blocks: tuple[Problem, int],
    walked: IntArray,
    split: Split,
    half: int,
) -> Integers | None:
    """What failing lanes of accumulators add; blocks: their problem, of so many groups; half: of
    the first output tile."""
    tiles = commands_of(walked)
    cells = _failing_lanes(design, tiles)
    if cells is None:
        return None
    use, block = design.use("accumulator"), blocks[0]
    shape = block.images, block.groups, block.out_height, block.out_width, block.filters
    sums = np.zeros(shape, np.int32)
    array = use.lanes, 64 - use.lane_bits[0], half, design.numerics.word_lanes.moving
    padded, values = _padded(block, split, blocks[1])
    layer = walked, padded.vector()
    add_failing(layer, values, _runs(design, padded, tiles), cells, array, sums)
    return sums


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
        each.append(np.stack([*at, masks.if_zero[at], masks.if_one[at]], axis=1))
    return _behind_one_another(each)


def _padded(block: Problem, split: Split, side: int) -> tuple[Problem, tuple[Any, Any]]:
    """The ifmap [images, blocks, H', W', C] with what windows reach into, and weights, both flat;
    the problem of that ifmap."""
    ifmap, weight = (
        layout.side_by_side(split[0], side, (1, 4)),
        layout.block_diagonal(split[1], side),
    )
    (top, bottom), (left, right) = margins(block)
    height, width = top + block.height + bottom, left + block.width + right
    kind = np.int16 if ifmap.itemsize <= 2 and weight.itemsize <= 2 else np.int32
    whole = np.zeros((*ifmap.shape[:2], height, width, ifmap.shape[4]), kind)
    whole[:, :, top : top + block.height, left : left + block.width] = ifmap
    padded = replace(block, height=height, width=width, pad_top=0, pad_left=0)
    return padded, (whole.reshape(-1), np.ascontiguousarray(weight, kind).reshape(-1))


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


__all__ = ["changed"]
