"""Round trips on one channel: outputs wait for the array, and loads behind them wait for outputs.

The outputs of a tile go in the slot three behind its own, ahead of the loads of the next slot.  So
the stream of the tile four behind an output tile waits until that one's sums have left; and these
wait for the loads of the slot three behind, for which there is room when the stream of the tile one
behind has ended (`archsim.tiled.bound_room`).
"""

from __future__ import annotations

from archsim.kernels import inlined, kernel
from archsim.layer import problem as pb
from archsim.memory.ticks import TICK_BITS
from archsim.numbers import IntArray
from archsim.tiled import machine_vector as mc
from archsim.tiled import plan as pn
from archsim.tiled.bound import (
    LOADINGS,
    OFMAP_WRITES,
    ROWS,
    STREAMS,
    WHOLE_STREAMS,
    filter_steps,
    least_loading,
    least_stream,
    sum_rows,
)
from archsim.tiled.bound_tiles import first_sizes, last_sizes, most_output_words, span_of_sizes
from archsim.tiled.tile_fit import ceil, weight_words

BEHIND = 4
"""Tiles from one whose outputs leave to the first whose loads wait for them."""


@inlined
def _late_rows(machine: IntArray, filters: int) -> int:
    """Rows of a tile's sums behind the one that completes the last of its words, at most."""
    units, columns = machine[mc.OUTPUT_VALUE_UNITS], machine[mc.COLUMNS]
    if machine[mc.DATAFLOW] != mc.INPUT_STATIONARY:
        units *= filters - (ceil(filters, columns) - 1) * columns
    return (machine[mc.OUTPUT_WORD_UNITS] - 1) // units


@kernel
def _least_load(
    problem: IntArray, machine: IntArray, services: IntArray, tiling: IntArray,
    counts: tuple[int, int, int],
) -> tuple[int, int]:  # fmt: skip
    """Cycles from the channel's turn for a tile's loads to its stream, and to the beginning of its
    stationary loads, at least."""
    pixels, filters, channels = last_sizes(problem, tiling)
    outer, (_, n_filters, n_channels) = tiling[pb.T_FILTERS_OUTER] == 1, counts
    if n_channels == 1 and (n_filters == 1 or outer):
        return 0, 0  # weights are not loaded tile by tile
    words = weight_words(problem, machine, filters, channels)[0]
    load = max(words, words * services[pn.WEIGHT, pn.WORD_TICKS] >> TICK_BITS)
    if machine[mc.DATAFLOW] != mc.WEIGHT_STATIONARY:
        return load, 0
    thick = span_of_sizes(problem, machine, first_sizes(problem, tiling))[2]
    filling = min(thick, span_of_sizes(problem, machine, (pixels, filters, channels))[2])
    return load + filling, load


@inlined
def _along(total: int, size: int, last: int) -> tuple[int, int]:
    """Tiles along an axis, and their size: of those that are alike, or the last one (last = 1)."""
    many = ceil(total, size) - 1
    return (1, total - many * size) if last == 1 else (many, size)


@kernel
def _completing(problem: IntArray, machine: IntArray, tiling: IntArray) -> int:
    """Output tiles that are large enough to complete a word, whatever is begun of it."""
    found = 0
    for kind in range(16):
        many, pixels = _along(problem[pb.IMAGES], tiling[pb.T_IMAGES], kind & 1)
        of_rows, rows = _along(problem[pb.OUT_HEIGHT], tiling[pb.T_ROWS], kind >> 1 & 1)
        of_columns, columns = _along(problem[pb.OUT_WIDTH], tiling[pb.T_COLUMNS], kind >> 2 & 1)
        of_filters, filters = _along(problem[pb.FILTERS], tiling[pb.T_FILTERS], kind >> 3)
        units = pixels * rows * columns * filters * machine[mc.OUTPUT_VALUE_UNITS]
        if units >= machine[mc.OUTPUT_WORD_UNITS]:
            found += many * of_rows * of_columns * of_filters
    return problem[pb.GROUPS] * found


@kernel
def round_trips(
    found: IntArray, problem: IntArray, machine: IntArray, services: IntArray, tiling: IntArray,
    counts: tuple[int, int, int],
) -> int:  # fmt: skip
    """Cycles from the end of the first output tile's stream to that of the last, at least.

    Of chains from output tile to output tile, `apart` output tiles apart, the longest takes no
    less than their mean.
    """
    channels, shared = counts[2], services[pn.WEIGHT, pn.CHANNEL] == pn.COMMAND
    outputs, apart = problem[pb.GROUPS] * counts[0] * counts[1], ceil(BEHIND, channels)
    first, last = first_sizes(problem, tiling), last_sizes(problem, tiling)
    ticks, word = services[pn.OFMAP, pn.WORD_TICKS], machine[mc.OUTPUT_WORD_UNITS]
    # tiles that are too small to complete a word are on the way, unless chains are beside others
    small = 0
    if last[0] * last[1] * machine[mc.OUTPUT_VALUE_UNITS] < word:
        small = outputs - _completing(problem, machine, tiling)
        if apart > 1:
            return 0
    trips, rest = outputs - small - apart, small + apart
    if ticks == 0 or not shared or trips <= 0:
        return 0
    late, steps = _late_rows(machine, first[1]), filter_steps(machine, first[1])
    late = max(late, _late_rows(machine, last[1]))
    rows = found[ROWS] - rest * sum_rows(machine, first[0], steps) - trips * late
    words = (found[OFMAP_WRITES] - rest * most_output_words(machine, first)) * ticks
    leaving = max(rows + (trips * ticks >> TICK_BITS), trips + (words >> TICK_BITS))
    results = machine[mc.RESULT_LATENCY] + machine[mc.OUTPUT_LATENCY]
    load, before = _least_load(problem, machine, services, tiling, counts)
    # streams on the way: not those of the tiles just behind the outputs, nor of the first chains
    aside = outputs * ((BEHIND - 1) % channels) + apart * channels
    thick, thin = span_of_sizes(problem, machine, first), span_of_sizes(problem, machine, last)
    beside = aside * least_stream(thick)
    if channels >= BEHIND:
        beside = (BEHIND - 1) * found[WHOLE_STREAMS] // (channels - 1)
        beside += (channels - BEHIND + 1) * least_stream(thick)
    streams = trips * load + max(0, found[STREAMS] - beside)
    if channels > 1 and thick[2] > 0:
        # or the stationary loads of as many tiles, and the last fold of the last of these
        loadings = max(0, found[LOADINGS] - aside * least_loading(thick))
        streams = max(streams, trips * (before + thin[1]) + loadings)
    return (trips * results + max(leaving, 0) + streams) // apart
