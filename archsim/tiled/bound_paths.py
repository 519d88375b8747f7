"""Paths through the schedule of a tiling's tiles, of which the longest bounds its cycles.

Every path is a chain of waits that `archsim.tiled.schedule` makes, tile after tile; the letters are
those of `docs/mapping.md`, *Lower bounds*, which proves them.
"""

from __future__ import annotations

import numpy as np

from archsim.kernels import inlined, kernel
from archsim.layer import problem as pb
from archsim.memory.ticks import TICK_BITS, whole_cycles
from archsim.numbers import IntArray
from archsim.tiled import machine_vector as mc
from archsim.tiled import plan as pn
from archsim.tiled.bound import (
    BEHIND_FOLDS,
    BEHIND_LOADING,
    BEHIND_STREAM,
    BIAS_WRITES,
    BOUND_COLUMNS,
    BY_CHANNEL,
    CYCLES,
    FOLDS,
    IFMAP_READS,
    IFMAP_WRITES,
    LOADINGS,
    OFMAP_WRITES,
    ROWS,
    STREAMS,
    WEIGHT_WRITES,
    WHOLE_STREAMS,
    add_array,
    add_bytes,
    filter_steps,
    last_size,
    least_stream,
)
from archsim.tiled.bound_room import waits_for_room
from archsim.tiled.bound_round import round_trips
from archsim.tiled.bound_tiles import (
    beginning,
    ending,
    first_outputs,
    first_sizes,
    last_sizes,
    most_output_words,
    span_of_sizes,
)
from archsim.tiled.packing import layer_words
from archsim.tiled.tile_fit import ceil, weight_words
from archsim.tiled.tiling_estimate import swept
from archsim.tiled.traffic import services_of

ANY = 1 << 62
"""Above all cycles."""

Counts = tuple[int, int, int]
"""Tiles along pixels (images, rows and columns), filters and channels."""


@inlined
def count_tiles(problem: IntArray, tiling: IntArray) -> Counts:
    """Tiles of a group."""
    pixels = ceil(problem[pb.IMAGES], tiling[pb.T_IMAGES])
    pixels *= ceil(problem[pb.OUT_HEIGHT], tiling[pb.T_ROWS])
    pixels *= ceil(problem[pb.OUT_WIDTH], tiling[pb.T_COLUMNS])
    filters = ceil(problem[pb.FILTERS], tiling[pb.T_FILTERS])
    return pixels, filters, ceil(problem[pb.CHANNELS], tiling[pb.T_CHANNELS])


@kernel
def sweeps(tiling: IntArray, counts: Counts) -> tuple[int, int]:
    """How often all of the ifmap, and all weights, are loaded."""
    pixels, filters, channels = counts
    outer, ifmap, weight = tiling[pb.T_FILTERS_OUTER] == 1, filters, pixels
    if channels == 1 and (pixels == 1 or not outer):
        ifmap = 1
    if channels == 1 and (filters == 1 or outer):
        weight = 1
    return ifmap, weight


@kernel
def _weights(
    problem: IntArray, machine: IntArray, tiling: IntArray, counts: Counts
) -> tuple[int, int]:
    """Words of a group's weights, each tile's by itself, and filter steps of all filter tiles."""
    _, n_filters, n_channels = counts
    filters, channels = tiling[pb.T_FILTERS], tiling[pb.T_CHANNELS]
    thin, weights, steps = last_size(problem[pb.CHANNELS], channels), 0, 0
    for kind in range(2):
        count, size = n_filters - 1, filters
        if kind == 1:
            count, size = 1, last_size(problem[pb.FILTERS], filters)
        if count > 0:
            steps += count * filter_steps(machine, size)
            weights += count * weight_words(problem, machine, size, thin)[0]
        if count > 0 and n_channels > 1:
            words = weight_words(problem, machine, size, channels)[0]
            weights += count * (n_channels - 1) * words
    return weights, steps


@kernel
def _add_words(
    found: IntArray, problem: IntArray, machine: IntArray, tiling: IntArray, counts: Counts
) -> None:
    """Words that cross the ports; those of the ifmap as if they were packed across tiles."""
    groups = problem[pb.GROUPS]
    ifmap_sweeps, weight_sweeps = sweeps(tiling, counts)
    elements = problem[pb.IMAGES] * problem[pb.CHANNELS] * swept(problem, tiling[pb.T_ROWS], 0)[1]
    elements *= swept(problem, tiling[pb.T_COLUMNS], 1)[1]
    weights, steps = _weights(problem, machine, tiling, counts)
    found[IFMAP_WRITES] = groups * ifmap_sweeps * ceil(elements, machine[mc.IFMAP_LANES])
    found[WEIGHT_WRITES] = groups * weight_sweeps * weights
    found[BIAS_WRITES] = groups * counts[0] * steps * problem[pb.HAS_BIAS]
    found[OFMAP_WRITES] = layer_words(problem, machine)
    add_bytes(found, machine)


@kernel
def _behind_ports(
    found: IntArray, machine: IntArray, services: IntArray, loads: tuple[int, int], filling: int
) -> int:
    """When the last tile's stream begins at least, for each operand's own words.

    loads: of ifmap and weights; filling: stationary words of the tile's first fold.
    """
    start, kept = 0, pn.WEIGHT
    if machine[mc.DATAFLOW] == mc.INPUT_STATIONARY:
        kept = pn.IFMAP
    elif machine[mc.DATAFLOW] == mc.OUTPUT_STATIONARY:
        kept = pn.COMMAND
    for port in range(pn.IFMAP, pn.WEIGHT + 1):
        number = loads[0] if port == pn.IFMAP else loads[1]
        words, ticks = found[IFMAP_WRITES + port - pn.IFMAP], services[port, pn.WORD_TICKS]
        after = machine[mc.TILE_INTERVAL] + 2 + words + number - 1
        if ticks > 0:
            sent = (services[port, pn.LATENCY] << TICK_BITS) + words * ticks
            after = max(after, whole_cycles(sent) + 1)
        after += machine[mc.IFMAP_WRITE_LATENCY + port - pn.IFMAP]
        start = max(start, after + filling if port == kept else after)
    return start


@kernel
def _behind_channel(
    found: IntArray, machine: IntArray, services: IntArray, output: tuple[int, int, int]
) -> tuple[int, int]:
    """When the last tile's stream begins, and when the layer ends, at least, for one channel.

    output: channel tiles of an output tile, and at most its words and those of its biases.  Behind
    the last load go the biases of the last two tiles and the outputs of the last four at most.
    """
    if services[pn.IFMAP, pn.WORD_TICKS] == 0 or services[pn.IFMAP, pn.CHANNEL] != pn.COMMAND:
        return 0, 0
    taken = services[pn.IFMAP, pn.LATENCY] << TICK_BITS
    taken += found[IFMAP_WRITES] * services[pn.IFMAP, pn.WORD_TICKS]
    if services[pn.WEIGHT, pn.CHANNEL] == pn.COMMAND:
        taken += found[WEIGHT_WRITES] * services[pn.WEIGHT, pn.WORD_TICKS]
    channels, words, biases = output
    bias, ofmap = services[pn.BIAS, pn.WORD_TICKS], services[pn.OFMAP, pn.WORD_TICKS]
    early = 0
    if services[pn.WEIGHT, pn.CHANNEL] == pn.COMMAND:
        early = max(0, found[OFMAP_WRITES] - (1 + 3 // channels) * words) * ofmap
        early += max(0, found[BIAS_WRITES] - (1 + 1 // channels) * biases) * bias
    write = min(machine[mc.IFMAP_WRITE_LATENCY], machine[mc.WEIGHT_WRITE_LATENCY])
    all_words = taken + found[BIAS_WRITES] * bias + found[OFMAP_WRITES] * ofmap
    return whole_cycles(taken + early) + 1 + write, whole_cycles(all_words)


@inlined
def _rises(problem: IntArray, machine: IntArray, tiling: IntArray, counts: Counts) -> int:
    """By how much the moving words of a fold grow from tile to tile at most, in all: behind every
    tile that is smaller than the first by what it lacks."""
    pixels, filters, _ = first_sizes(problem, tiling)
    n_pixels, n_filters, _ = counts
    outer, groups = tiling[pb.T_FILTERS_OUTER] == 1, problem[pb.GROUPS]
    if machine[mc.DATAFLOW] == mc.INPUT_STATIONARY:
        sweeps = 1 if outer else n_pixels
        return groups * sweeps * (n_filters * filters - problem[pb.FILTERS])
    of_all = problem[pb.IMAGES] * problem[pb.OUT_HEIGHT] * problem[pb.OUT_WIDTH]
    return groups * (n_filters if outer else 1) * (n_pixels * pixels - of_all)


@kernel
def _longest(  # noqa: PLR0913
    found: IntArray, problem: IntArray, machine: IntArray, services: IntArray, tiling: IntArray,
    counts: Counts, most: int,
) -> int:  # fmt: skip
    """The longest path, of the sums in `found`; of more than `most` cycles another one may do."""
    groups, channels = problem[pb.GROUPS], counts[2]
    outputs = groups * counts[0] * counts[1]
    tiles, kept = outputs * channels, machine[mc.DATAFLOW] != mc.OUTPUT_STATIONARY
    stream, loading = beginning(problem, machine, services, tiling)
    first, last = first_sizes(problem, tiling), last_sizes(problem, tiling)
    span = span_of_sizes(problem, machine, last)
    left, end = least_stream(span), ending(machine, services, last)
    found[BEHIND_STREAM] = found[STREAMS] + tiles + end
    cycles = stream + found[BEHIND_STREAM] - 1
    if kept:
        found[BEHIND_LOADING] = found[LOADINGS] + tiles + span[1] + end
        cycles = max(cycles, loading + found[BEHIND_LOADING] - 1)
        _, moving, filling, second, _, _ = span_of_sizes(problem, machine, first)
        found[BEHIND_FOLDS] = found[FOLDS] + span[1] + end
        found[BEHIND_FOLDS] -= _rises(problem, machine, tiling, counts)
        # of the first fold the load is behind; the second load may be behind where it streams
        begun = max(loading + filling, stream - max(0, second - moving))
        cycles = max(cycles, begun + found[BEHIND_FOLDS] - max(moving, filling))
    of_ifmap, of_weight = sweeps(tiling, counts)
    loads = groups * counts[0] * channels * of_ifmap, groups * counts[1] * channels * of_weight
    start = max(tiles * machine[mc.TILE_INTERVAL] + 2,
        _behind_ports(found, machine, services, loads, span[2]))  # fmt: skip
    steps = filter_steps(machine, first[1]) * problem[pb.HAS_BIAS]
    output = channels, most_output_words(machine, first), steps
    loaded, whole = _behind_channel(found, machine, services, output)
    if whole > 0:
        found[BY_CHANNEL] = max(loaded + left + end, whole)
    cycles = max(max(cycles, whole), max(start, loaded) + left + end)
    if cycles > most:
        return cycles
    waits = waits_for_room(found, problem, machine, services, tiling, counts)
    cycles = max(cycles, stream + found[BEHIND_STREAM] - 1 + waits)
    results = machine[mc.RESULT_LATENCY]
    summed = stream + first_outputs(problem, machine, tiling)
    around = round_trips(found, problem, machine, services, tiling, counts)
    cycles = max(cycles, summed + around + end)
    read = summed + results + found[ROWS] + outputs - 1
    held = found[STREAMS] + outputs * (channels - 1 + results) + found[ROWS]
    return max(cycles, max(read + machine[mc.OUTPUT_LATENCY], stream + held // 2))


@kernel
def bound_within(
    found: IntArray, problem: IntArray, machine: IntArray, services: IntArray, tiling: IntArray,
    most: int,
) -> None:  # fmt: skip
    """Write what a tiling takes at least into `found` [BOUND_COLUMNS]; of one that takes more than
    `most` cycles any number of cycles above that."""
    counts = count_tiles(problem, tiling)
    found[:] = 0
    add_array(found, problem, machine, tiling)
    for column in range(IFMAP_READS, ROWS + 1):
        found[column] *= problem[pb.GROUPS]
    for column in range(WHOLE_STREAMS, FOLDS + 1):
        found[column] *= problem[pb.GROUPS]
    _add_words(found, problem, machine, tiling, counts)
    found[CYCLES] = _longest(found, problem, machine, services, tiling, counts, most)


@kernel
def bound(
    found: IntArray, problem: IntArray, machine: IntArray, services: IntArray, tiling: IntArray
) -> None:
    """Write what a tiling takes at least into `found` [BOUND_COLUMNS]."""
    bound_within(found, problem, machine, services, tiling, ANY)


@kernel("i8.1, i8.1, i8.1")
def bound_of(problem: IntArray, machine: IntArray, tiling: IntArray) -> IntArray:
    """`bound` of a problem of blocks of groups: [BOUND_COLUMNS]."""
    found = np.zeros(BOUND_COLUMNS, np.int64)
    bound(found, problem, machine, services_of(machine), tiling)
    return found
