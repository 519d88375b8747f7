"""Loads wait for room, and the array for them: around the last channels of an output tile.

A load of the moving operand may begin when the stream two tiles before has ended.  So from the end
of a stream to the begin of that two behind goes a load at least, in place of the stream between,
which is short where it is of the last channels.  And from the end of the stream one behind an
output tile to the begin of that four behind go a load, the outputs, and another load.
"""

from __future__ import annotations

from archsim.kernels import inlined, kernel
from archsim.layer import problem as pb
from archsim.memory.ticks import TICK_BITS
from archsim.numbers import IntArray
from archsim.tiled import machine_vector as mc
from archsim.tiled import plan as pn
from archsim.tiled.bound import (
    IFMAP_WRITES,
    OFMAP_WRITES,
    STREAMS,
    WHOLE_STREAMS,
    kinds_along,
    last_size,
)
from archsim.tiled.bound_tiles import first_sizes, most_output_words, span_of_sizes
from archsim.tiled.tile_fit import pixel_words, weight_words

Counts = tuple[int, int, int]


@kernel
def _words(
    found: IntArray, problem: IntArray, machine: IntArray, tiling: IntArray, counts: Counts,
    few: tuple[int, int],
) -> tuple[int, int]:  # fmt: skip
    """Words of ifmap and weights of a tile of each output tile, in all, at least.

    few: its channels, and how many output tiles, whichever, are left out.
    """
    n_pixels, n_filters, _ = counts
    part, rest = few
    # as if packed across tiles, of which each sweep has a word at most that is not full
    ifmap = found[IFMAP_WRITES] - problem[pb.GROUPS] * n_filters
    ifmap = ifmap * part // problem[pb.CHANNELS] - rest * pixel_words(problem, machine, tiling)[0]
    return max(0, ifmap), _weights(problem, machine, tiling, (n_pixels, n_filters), few)


@kernel
def _weights(
    problem: IntArray, machine: IntArray, tiling: IntArray, many: tuple[int, int],
    few: tuple[int, int],
) -> int:  # fmt: skip
    """The same of weights alone, of so many pixel and filter tiles."""
    filters = tiling[pb.T_FILTERS]
    each = weight_words(problem, machine, min(filters, problem[pb.FILTERS]), few[0])[0]
    last = weight_words(problem, machine, last_size(problem[pb.FILTERS], filters), few[0])[0]
    return max(0, problem[pb.GROUPS] * many[0] * ((many[1] - 1) * each + last) - few[1] * each)


@inlined
def _least_reach(pixels: int, problem: IntArray, axis: int) -> int:
    """Ifmap rows (axis 0) or columns (1) that a tile of so many loads at least."""
    window = (problem[pb.KERNEL_HEIGHT + axis] - 1) * problem[pb.DILATION_HEIGHT + axis] + 1
    stride, pad = problem[pb.STRIDE_HEIGHT + axis], problem[pb.PAD_TOP + axis]
    beyond = (problem[pb.OUT_HEIGHT + axis] - 1) * stride + window - pad
    beyond = max(0, beyond - problem[pb.HEIGHT + axis])
    return max(1, (pixels - 1) * stride + window - pad - beyond)


@kernel
def _ifmap_first(problem: IntArray, machine: IntArray, tiling: IntArray) -> int:
    """Pixel tiles of which the ifmap goes before the weights, for sure."""
    pixels, filters, channels = first_sizes(problem, tiling)
    behind = weight_words(problem, machine, filters, channels)[0]
    behind += span_of_sizes(problem, machine, (pixels, filters, channels))[2]
    n_images, other_images, rest = kinds_along(problem[pb.IMAGES], tiling[pb.T_IMAGES])
    sure = n_images * _longer(problem, machine, tiling, channels * tiling[pb.T_IMAGES], behind)
    if other_images > 0:
        sure += _longer(problem, machine, tiling, channels * rest, behind)
    return sure


@kernel
def _longer(problem: IntArray, machine: IntArray, tiling: IntArray, lanes: int, behind: int) -> int:
    """Tiles along rows and columns that load more words than `behind` for sure, where they load so
    many elements of each pixel."""
    n_rows, other_rows, high = kinds_along(problem[pb.OUT_HEIGHT], tiling[pb.T_ROWS])
    n_columns, other_columns, wide = kinds_along(problem[pb.OUT_WIDTH], tiling[pb.T_COLUMNS])
    # more words than so many: as many elements, and one
    least, sure = behind * machine[mc.IFMAP_LANES], 0
    across = lanes * _least_reach(tiling[pb.T_COLUMNS], problem, 1)
    narrow = lanes * _least_reach(wide, problem, 1)
    for kind in range(2):
        count, pixels = (other_rows, high) if kind == 1 else (n_rows, tiling[pb.T_ROWS])
        reached = _least_reach(pixels, problem, 0)
        if across * reached > least:
            sure += count * n_columns
        if narrow * reached > least:
            sure += count * other_columns
    return sure


@inlined
def _ticks(services: IntArray, words: tuple[int, int]) -> int:
    """Of the channel for words of ifmap and weights."""
    return (
        words[0] * services[pn.IFMAP, pn.WORD_TICKS] + words[1] * services[pn.WEIGHT, pn.WORD_TICKS]
    )


@kernel
def _moving(
    found: IntArray, problem: IntArray, machine: IntArray, tiling: IntArray, counts: Counts,
    few: tuple[int, int],
) -> tuple[int, int]:  # fmt: skip
    """`_words`, of those that go for sure when the stream two tiles before has ended: of the moving
    operand, and of the stationary one where it goes behind."""
    ifmap, weight = _words(found, problem, machine, tiling, counts, few)
    if machine[mc.DATAFLOW] == mc.INPUT_STATIONARY:
        return 0, weight
    if machine[mc.DATAFLOW] == mc.WEIGHT_STATIONARY:
        behind = 0
        if few[0] == tiling[pb.T_CHANNELS]:
            behind = _ifmap_first(problem, machine, tiling)
        weight = _weights(problem, machine, tiling, (behind, counts[1]), few)
    return ifmap, weight


@kernel
def waits_for_room(
    found: IntArray, problem: IntArray, machine: IntArray, services: IntArray, tiling: IntArray,
    counts: Counts,
) -> int:  # fmt: skip
    """Cycles that the array stands still at least, beside one before each stream, while there is no
    room for loads."""
    channels = counts[2]
    gathers = machine[mc.GATHER_BITS] > 0 and problem[pb.ROW_UNITS] > 0
    if channels < 2 or gathers:
        return 0
    thin = _behind_last(found, problem, machine, services, tiling, counts)
    outputs = _behind_outputs(found, problem, machine, services, tiling, counts)
    return thin + outputs if channels > 4 else max(thin, outputs)


@inlined
def _shared(services: IntArray) -> bool:
    """Whether ifmap and weights go over the channel that the ofmap takes."""
    alike = services[pn.WEIGHT, pn.CHANNEL] == pn.COMMAND
    return alike and services[pn.IFMAP, pn.CHANNEL] == pn.COMMAND


@kernel
def _behind_last(
    found: IntArray, problem: IntArray, machine: IntArray, services: IntArray, tiling: IntArray,
    counts: Counts,
) -> int:  # fmt: skip
    """Of every output tile but the last: from the end of its last stream but one to the begin of
    the next one's first, in place of its last stream."""
    trips = problem[pb.GROUPS] * counts[0] * counts[1] - 1
    moving = _moving(found, problem, machine, tiling, counts, (tiling[pb.T_CHANNELS], 1))
    load = moving[1] if machine[mc.DATAFLOW] == mc.INPUT_STATIONARY else moving[0]
    if _shared(services):
        load = max(load, _ticks(services, moving) >> TICK_BITS)
    return max(0, load - (found[STREAMS] - found[WHOLE_STREAMS]) - 2 * trips)


@kernel
def _behind_outputs(
    found: IntArray, problem: IntArray, machine: IntArray, services: IntArray, tiling: IntArray,
    counts: Counts,
) -> int:  # fmt: skip
    """Of every output tile but the last: from the end of the stream one behind it to the begin of
    that four behind, in place of the two streams between."""
    n_pixels, n_filters, channels = counts
    outputs = problem[pb.GROUPS] * n_pixels * n_filters
    trips = outputs - 1 if channels > 3 else outputs - 2
    if channels < 3 or trips < 1 or not _shared(services) or services[pn.OFMAP, pn.WORD_TICKS] == 0:
        return 0
    size, rest = tiling[pb.T_CHANNELS], outputs - trips
    thin = last_size(problem[pb.CHANNELS], size)
    before = thin if channels == 3 else size
    last = thin if channels == 4 else size, rest
    taken = _ticks(services, _words(found, problem, machine, tiling, counts, last))
    taken += _ticks(services, _moving(found, problem, machine, tiling, counts, (before, rest)))
    most = most_output_words(machine, first_sizes(problem, tiling))
    taken += max(0, found[OFMAP_WRITES] - rest * most) * services[pn.OFMAP, pn.WORD_TICKS]
    between = 2 * found[WHOLE_STREAMS] // (channels - 1)
    if channels == 3:
        between = found[STREAMS] - found[WHOLE_STREAMS] // 2
    return max(0, (taken >> TICK_BITS) - between - 2 * trips)
