"""Round trips on one channel: outputs wait for the array, and loads behind them wait for outputs.

The outputs of a tile go in the slot three behind its own, ahead of the loads of the next slot.  So
the stream of the tile four behind an output tile waits until that one's sums have left; and these
wait for the loads of the slot three behind, for which there is room when the stream of the tile one
behind has ended.
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
    LOADINGS,
    OFMAP_WRITES,
    ROWS,
    STREAMS,
    filter_steps,
    last_size,
    least_loading,
    least_stream,
    sum_rows,
)
from archsim.tiled.bound_tiles import first_sizes, last_sizes, most_output_words, span_of_sizes
from archsim.tiled.tile_fit import ceil, pixel_words, weight_words

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
    own = last[0] * last[1] * machine[mc.OUTPUT_VALUE_UNITS]
    trips, ticks = outputs - apart, services[pn.OFMAP, pn.WORD_TICKS]
    if ticks == 0 or not shared or trips <= 0 or own < machine[mc.OUTPUT_WORD_UNITS]:
        return 0
    steps = filter_steps(machine, first[1])
    rows = found[ROWS] - apart * sum_rows(machine, first[0], steps)
    rows -= trips * max(_late_rows(machine, first[1]), _late_rows(machine, last[1]))
    words = (found[OFMAP_WRITES] - apart * most_output_words(machine, first)) * ticks
    leaving = max(rows + (trips * ticks >> TICK_BITS), trips + (words >> TICK_BITS))
    results = machine[mc.RESULT_LATENCY] + machine[mc.OUTPUT_LATENCY]
    load, before = _least_load(problem, machine, services, tiling, counts)
    # streams on the way: not those of the tiles just behind the outputs, nor of the first chains
    aside = outputs * ((BEHIND - 1) % channels) + apart * channels
    thick, thin = span_of_sizes(problem, machine, first), span_of_sizes(problem, machine, last)
    streams = trips * load + max(0, found[STREAMS] - aside * least_stream(thick))
    if channels > 1 and thick[2] > 0:
        # or the stationary loads of as many tiles, and the last fold of the last of these
        loadings = max(0, found[LOADINGS] - aside * least_loading(thick))
        streams = max(streams, trips * (before + thin[1]) + loadings)
    return (trips * results + max(leaving, 0) + streams) // apart


@inlined
def _of_channels(counts: tuple[int, int, int], sizes: tuple[int, int], at: int) -> int:
    """The channels of a tile, by its place among those of an output tile, from 0 on, and behind.

    sizes: of each, and of the last."""
    return sizes[1] if at == counts[2] - 1 else sizes[0]


@kernel
def waits_for_room(
    found: IntArray, problem: IntArray, machine: IntArray, services: IntArray, tiling: IntArray,
    counts: tuple[int, int, int],
) -> int:  # fmt: skip
    """Cycles that the array stands still at least, beside one before each stream, for loads that
    wait until outputs have left, which wait for loads that wait for room.

    Of every output tile but the last: from the end of the stream one behind it to the begin of that
    four behind, in place of the two streams between.
    """
    n_pixels, n_filters, channels = counts
    outputs = problem[pb.GROUPS] * n_pixels * n_filters
    trips = outputs - 1 if channels > 3 else outputs - 2
    gathers = machine[mc.GATHER_BITS] > 0 and problem[pb.ROW_UNITS] > 0
    shared = services[pn.WEIGHT, pn.CHANNEL] == pn.COMMAND
    shared = shared and services[pn.IFMAP, pn.CHANNEL] == pn.COMMAND
    if channels < 3 or trips < 1 or gathers or not shared:
        return 0
    if services[pn.IFMAP, pn.WORD_TICKS] == 0 or services[pn.OFMAP, pn.WORD_TICKS] == 0:
        return 0
    size, rest = tiling[pb.T_CHANNELS], outputs - trips
    thin = last_size(problem[pb.CHANNELS], size)
    first, last = first_sizes(problem, tiling), last_sizes(problem, tiling)
    moving_weights = machine[mc.DATAFLOW] == mc.INPUT_STATIONARY
    most_ifmap = pixel_words(problem, machine, tiling)[0]
    some_filters = last_size(problem[pb.FILTERS], tiling[pb.T_FILTERS])
    ifmap = weight = 0
    for at in range(2, BEHIND):
        part = _of_channels(counts, (size, thin), at)
        behind = at == BEHIND - 1
        if behind or not moving_weights:
            # as if packed across tiles, of which each sweep has a word at most that is not full
            sweeps = problem[pb.GROUPS] * n_filters
            ifmap += (found[IFMAP_WRITES] - sweeps) * part // problem[pb.CHANNELS]
            ifmap -= rest * most_ifmap
        if behind or moving_weights:
            each = weight_words(problem, machine, first[1], part)[0]
            few = weight_words(problem, machine, some_filters, part)[0]
            weight += problem[pb.GROUPS] * n_pixels * ((n_filters - 1) * each + few) - rest * each
    ofmap = found[OFMAP_WRITES] - rest * most_output_words(machine, first)
    taken = max(ifmap, 0) * services[pn.IFMAP, pn.WORD_TICKS]
    taken += max(weight, 0) * services[pn.WEIGHT, pn.WORD_TICKS]
    taken += max(ofmap, 0) * services[pn.OFMAP, pn.WORD_TICKS]
    ends = outputs * least_stream(span_of_sizes(problem, machine, last))
    between = 2 * ceil(found[STREAMS] - ends, channels - 1)
    return max(0, (taken >> TICK_BITS) - between - 2 * trips)
