"""What failing cells make of a layer that is computed at once.

Sums that are whole numbers and wrap are those of the values that were meant, and of what is wrong.
Nearly every element of an operand is read by all in one way, and is computed with as it is read;
what the few others add, and the few lanes of accumulators that fail, is added to the sums.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from archsim.layer import layout
from archsim.layer.pixel_sums import PixelSums
from archsim.layer.problem import Problem, Tiling, margins
from archsim.numbers import AnyIntArray, IntArray
from archsim.tiled.accumulated import spans_of
from archsim.tiled.changed_kernels import add_changes, add_weights, read_failing
from archsim.tiled.changed_operands import Exceptions, OperandReads
from archsim.tiled.commands import columns_of, commands_of
from archsim.tiled.design import OPERANDS, CoreDesign
from archsim.tiled.kept_reads import KeptReads, Read
from archsim.tiled.numerics import Blocks
from archsim.tiled.operand_loads import loads_of

Integers = npt.NDArray[np.int32]

Split = tuple[AnyIntArray, AnyIntArray, IntArray | None]
"""Ifmap, weights and biases by groups (`archsim.layer.layout`)."""


class ReadSums(NamedTuple):
    """Sums of failing lanes of accumulators, each once: where they lie in [images, groups, K, P, Q]
    as a flat array, and as they are read [n]."""

    places: IntArray
    sums: IntArray


Changed = tuple[Split, Integers | PixelSums | ReadSums | None]
"""Operands as they are read; what is added to sums [images, blocks, P, Q, K], modulo 2^32, or to
those of some pixels, or the sums that are read otherwise."""

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
    kept: KeptReads,
) -> Changed | None:
    """Operands as a layer reads them, and what is to be added to their sums, or read of them,
    beside; None where that is not to be had: of sums that are no whole numbers, or that fail
    together with operands, and of weights and biases that tiles read in several ways.

    walked: the command matrix [tiles, …].  halves: into which half each operand is loaded first.
    kept: from the same layer in the same tiling, begun in the same halves.
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
    return _of_operands(design, (block, tiled[1].groups), walked, (split, blocks), some, kept)


def _of_operands(
    design: CoreDesign,
    block: tuple[Problem, int],
    walked: IntArray,
    given: tuple[Split, Callable[[], Blocks]],
    failing: tuple[Sequence[str], Mapping[str, int]],
    kept: KeptReads,
) -> Changed | None:
    """Of operands that fail; block: of so many groups."""
    (split, blocks), (names, halves), found = given, failing, dict[str, Exceptions]()
    seen: list[AnyIntArray | None] = list(split)
    for name in names:
        at = OPERANDS.index(name)
        whole = seen[at]
        if whole is None:  # biases of a layer that has none are not loaded
            continue
        if name != "ifmap" and block[1] > 1:  # zeros off a filter's own group fail too
            return None
        read = partial(_read, (design, name, whole), block, (walked, halves), blocks)
        seen[at], found[name] = kept.read(name, whole, read)
    some = [name for name, one in found.items() if len(one.wrong)]
    split = cast("Split", tuple(seen))
    if not some:
        return split, None
    if "bias" in some or len(some) > 1 or (some == ["weight"] and "ifmap" in names):
        return None
    if some == ["weight"] and MOST_CHANGED * _products(walked, found["weight"]) > block[0].macs:
        return None
    add = _add_ifmap if some == ["ifmap"] else _add_weight
    return split, add(block[0], walked, (split, block[1]), found[some[0]])


def _read(
    operand: tuple[CoreDesign, str, AnyIntArray],
    block: tuple[Problem, int],
    walk: tuple[IntArray, Mapping[str, int]],
    blocks: Callable[[], Blocks],
) -> Read:
    """What is read of an operand that fails."""
    (design, name, split), (walked, halves) = operand, walk
    lanes = design.numerics.word_lanes
    loads = loads_of(name, block[0], walked, halves.get(name, 0), lanes)
    read = OperandReads(design=design, loads=loads, side=block[1], split=split, blocks=blocks)
    return read.changes()


def _products(walked: IntArray, some: Exceptions) -> int:
    """Of weights that tiles read in several ways, on all pixels of these."""
    counts = np.diff(some.starts)[some.load_of]
    return int(counts @ columns_of(walked).pixels)


def _add_ifmap(
    block: Problem, tiles: IntArray, given: tuple[Split, int], some: Exceptions
) -> Integers | PixelSums:
    """What elements of the ifmap add that tiles read in several ways."""
    whole = layout.block_diagonal(given[0][1], given[1])
    weight = np.ascontiguousarray(whole.transpose(0, 2, 3, 4, 1), np.int32)
    changes = some.starts, some.elements, some.wrong.astype(np.int32)
    pixels = block.images * block.groups * block.out_height * block.out_width
    row_of, pixel_of = np.full(pixels, -1, np.int64), np.empty(pixels, np.int64)
    sums = np.empty((pixels, block.filters), np.int32)
    out = row_of, pixel_of, sums
    count = add_changes(tiles, block.vector(), some.load_of, weight.reshape(-1), changes, out)
    rows = np.argsort(pixel_of[:count])
    found = PixelSums(pixel_of[rows], rows, sums)
    return found if given[1] == 1 else found.whole(block)


def _add_weight(
    block: Problem, tiles: IntArray, given: tuple[Split, int], some: Exceptions
) -> Integers:
    """What weights add that tiles read in several ways."""
    sums = _none_of(block)
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
) -> ReadSums | None:
    """What is read of failing lanes of accumulators; blocks: their problem, of so many groups;
    half: of the first output tile."""
    use, block, columns = design.use("accumulator"), blocks[0], columns_of(walked)
    each = [
        design.accumulator_memory.masks(use.in_half(half), int(columns.output_rows.max()))
        for half in range(2)
    ]
    if each[0] is None or each[1] is None:
        return None
    rows = columns.output_rows[columns.last_k == 1]
    failing = tuple(one.cells(int(rows.max())) for one in each if one is not None)
    most = int(np.max([np.searchsorted(one[:, 0], rows) for one in failing], axis=0).sum())
    array = use.lanes, 64 - use.lane_bits[0], half, design.numerics.word_lanes.moving
    padded, values = _padded(block, split, blocks[1])
    layer, out = (walked, padded.vector()), (np.empty(most, np.int64), np.empty(most, np.int64))
    spans = _spans(design, padded, walked)
    count = read_failing(layer, values, spans, (failing[0], failing[1]), array, out)
    return ReadSums(out[0][:count], out[1][:count])


def _none_of(block: Problem) -> Integers:
    """Zeros for sums [images, blocks, K, P, Q]: filters first, as blocks of products lie."""
    shape = block.images, block.groups, block.filters, block.out_height, block.out_width
    return np.zeros(shape, np.int32)


def _padded(block: Problem, split: Split, side: int) -> tuple[Problem, tuple[Any, Any, Integers]]:
    """The ifmap [images, blocks, H', W', C] with what windows reach into, and weights, both flat,
    as kernels take them; the problem of that ifmap."""
    ifmap, weight = (
        layout.side_by_side(split[0], side, (1, 4)),
        layout.block_diagonal(split[1], side),
    )
    (top, bottom), (left, right) = margins(block)
    height, width = top + block.height + bottom, left + block.width + right
    kind = next(one for one in (np.int8, np.int16, np.int32) if _hold(one, ifmap, weight))
    shape, inside = (
        (*ifmap.shape[:2], height, width, ifmap.shape[4]),
        np.s_[:, :, top : top + block.height, left : left + block.width],
    )
    own, lifted = np.ascontiguousarray(weight, kind).reshape(-1), np.empty((0, 0), np.int32)
    if kind is np.int8:  # one instruction sums products of unsigned with signed bytes
        whole: Any = np.full(shape, 128, np.uint8)
        np.bitwise_xor(ifmap.astype(np.int8, copy=False).view(np.uint8), 128, out=whole[inside])
        lifted = np.zeros((2, len(own) + 1), np.int32)
        np.cumsum(own, dtype=np.int32, out=lifted[0, 1:])
        lifted[0] <<= 7
        np.subtract(lifted[0, :-16], lifted[0, 16:], out=lifted[1, :-16])
    else:
        whole = np.zeros(shape, kind)
        whole[inside] = ifmap
    padded = replace(block, height=height, width=width, pad_top=0, pad_left=0)
    return padded, (whole.reshape(-1), own, lifted)


def _hold(kind: Any, *operands: AnyIntArray) -> bool:
    """Whether a type holds all values of operands."""
    return all(np.can_cast(one.dtype, kind) for one in operands) or kind is np.int32


def _spans(design: CoreDesign, padded: Problem, walked: IntArray) -> tuple[IntArray, IntArray]:
    """Spans of every tile, as `read_failing` takes them."""
    tiles = columns_of(walked)
    key = np.zeros(len(walked), np.int64)  # tiles of one shape have one number
    for one in (tiles.taps, tiles.runs, tiles.run_length, tiles.tile_channels):
        key = key * (int(one.max()) + 1) + one
    _, those, of = np.unique(key, return_index=True, return_inverse=True)
    plane = padded.width, padded.channels, padded.kernel_width
    plane = *plane, padded.dilation_height, padded.dilation_width
    each = [
        _spans_of(tuple(spans_of(design, tile)), tile.tile_channels, plane)
        for tile in commands_of(walked[those])
    ]
    ends = np.cumsum([0, *map(len, each)], dtype=np.int64)
    return np.stack([ends[:-1], ends[1:]], axis=1)[of.reshape(-1)], np.concatenate(each)


@lru_cache(maxsize=64)
def _spans_of(
    spans: tuple[tuple[int, int], ...], channels: int, plane: tuple[int, int, int, int, int]
) -> IntArray:
    """Of one tile: a run of channels ends where a span does, or a tap's channels; those that follow
    one another in both operands, whole spans of one length, are one row.  plane: its width,
    channels, taps of a kernel row, and dilation."""
    width, pitch, columns, down, across = plane
    found = list[list[int]]()
    for number, (begin, end) in enumerate(spans):
        ends = [*range((begin // channels + 1) * channels, end, channels), end]
        for first, behind in zip([begin, *ends], ends, strict=False):
            tap, channel = divmod(first, channels)
            row, column = divmod(tap, columns)
            seen = (row * down * width + column * across) * pitch + channel
            run = [seen, tap * pitch + channel, behind - first, 1, number, int(first != begin)]
            before = found[-1] if found and len(ends) == 1 else run
            side = before[2] * before[3]
            if (
                before[4] + before[3] == number
                and before[2] == run[2]
                and not before[5]
                and (before[0] + side == run[0] and before[1] + side == run[1])
            ):
                before[3] += 1
            else:
                found.append(run)
    return np.array(found, np.int64)


__all__ = ["ReadSums", "changed"]
