"""Round trips on one channel: outputs wait for the array, and loads behind them wait for outputs.

The outputs of a tile go in the slot three behind its own, ahead of the loads of the next slot.  So
the stream of the tile four behind an output tile waits until that one's sums have left.
"""

from __future__ import annotations

from archsim.kernels import inlined, kernel
from archsim.layer import problem as pb
from archsim.memory.ticks import TICK_BITS
from archsim.numbers import IntArray
from archsim.tiled import machine_vector as mc
from archsim.tiled import plan as pn
from archsim.tiled.bound import OFMAP_WRITES, ROWS, STREAMS, filter_steps, least_stream, sum_rows
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
) -> int:  # fmt: skip
    """Cycles from the channel's turn for a tile's loads to its stream, at least."""
    pixels, filters, channels = last_sizes(problem, tiling)
    outer, (_, n_filters, n_channels) = tiling[pb.T_FILTERS_OUTER] == 1, counts
    if n_channels == 1 and (n_filters == 1 or outer):
        return 0  # weights are not loaded tile by tile
    words = weight_words(problem, machine, filters, channels)[0]
    load = max(words, words * services[pn.WEIGHT, pn.WORD_TICKS] >> TICK_BITS)
    if machine[mc.DATAFLOW] != mc.WEIGHT_STATIONARY:
        return load
    thick = span_of_sizes(problem, machine, first_sizes(problem, tiling))[2]
    return load + min(thick, span_of_sizes(problem, machine, (pixels, filters, channels))[2])


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
    load = _least_load(problem, machine, services, tiling, counts)
    # streams on the way: not those of the tiles just behind the outputs, nor of the first chains
    aside = outputs * ((BEHIND - 1) % channels) + apart * channels
    streams = found[STREAMS] - aside * least_stream(span_of_sizes(problem, machine, first))
    return (trips * (results + load) + max(leaving, 0) + max(streams, 0)) // apart
