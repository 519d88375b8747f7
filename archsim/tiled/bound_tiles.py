"""The first and the last tile of a tiling: what begins before and ends behind all others."""

from __future__ import annotations

from archsim.kernels import inlined, kernel
from archsim.layer import problem as pb
from archsim.memory.ticks import TICK, TICK_BITS, whole_cycles
from archsim.numbers import IntArray
from archsim.tiled import machine_vector as mc
from archsim.tiled import plan as pn
from archsim.tiled.bound import filter_steps, last_size, least_stream, sum_rows
from archsim.tiled.folds import span_of
from archsim.tiled.tile_fit import ceil, weight_words
from archsim.tiled.walk import region, run_shape

Sizes = tuple[int, int, int]
"""Pixels, filters and channels of a tile."""


@inlined
def first_sizes(problem: IntArray, tiling: IntArray) -> Sizes:
    """Of the first tile, and of every other that is not the last along an axis."""
    pixels = min(tiling[pb.T_IMAGES], problem[pb.IMAGES])
    pixels *= min(tiling[pb.T_ROWS], problem[pb.OUT_HEIGHT])
    pixels *= min(tiling[pb.T_COLUMNS], problem[pb.OUT_WIDTH])
    filters = min(tiling[pb.T_FILTERS], problem[pb.FILTERS])
    return pixels, filters, min(tiling[pb.T_CHANNELS], problem[pb.CHANNELS])


@inlined
def last_sizes(problem: IntArray, tiling: IntArray) -> Sizes:
    """Of the last tile."""
    pixels = last_size(problem[pb.IMAGES], tiling[pb.T_IMAGES])
    pixels *= last_size(problem[pb.OUT_HEIGHT], tiling[pb.T_ROWS])
    pixels *= last_size(problem[pb.OUT_WIDTH], tiling[pb.T_COLUMNS])
    filters = last_size(problem[pb.FILTERS], tiling[pb.T_FILTERS])
    return pixels, filters, last_size(problem[pb.CHANNELS], tiling[pb.T_CHANNELS])


@kernel
def span_of_sizes(
    problem: IntArray, machine: IntArray, sizes: Sizes
) -> tuple[int, int, int, int, int, int]:
    """`folds.fold_span` of a tile of such sizes."""
    runs, length = run_shape(problem, sizes[2])
    steps = filter_steps(machine, sizes[1])
    return span_of(machine, sizes[0], steps, runs * problem[pb.KERNEL_HEIGHT], length)


@inlined
def _arrival(start: int, words: int, ticks: int, burst: int) -> int:
    """Of a load whose first burst the channel begins at `start` ticks: how late its words come
    (`channel.send`)."""
    late = whole_cycles(start + min(words, burst) * ticks)
    if ticks > TICK:
        late = max(late, whole_cycles(start + words * ticks) - (words - 1) // burst * burst)
    return late


@kernel
def first_loads(
    machine: IntArray, services: IntArray, ifmap: int, weight: int, filling: int
) -> tuple[int, int]:
    """When the first tile's stream, and its stationary loads, begin at least.

    ifmap, weight: its words; filling: stationary words of its first fold.
    """
    ready = machine[mc.TILE_INTERVAL] + 2
    moving = machine[mc.DATAFLOW] == mc.INPUT_STATIONARY
    ahead = ifmap + filling >= weight if moving else ifmap > weight + filling
    loaded_ifmap = loaded_weight = 0
    free = services[pn.IFMAP, pn.LATENCY] << TICK_BITS
    for turn in range(2):
        port = pn.IFMAP if (turn == 0) == ahead else pn.WEIGHT
        words = ifmap if port == pn.IFMAP else weight
        ticks, start = services[port, pn.WORD_TICKS], services[port, pn.LATENCY] << TICK_BITS
        if services[pn.IFMAP, pn.CHANNEL] == services[pn.WEIGHT, pn.CHANNEL] and ticks > 0:
            start = max(start, free)
            free = start + words * ticks
        burst = services[port, pn.BURST_WORDS] if ticks > 0 else words
        after = max(ready, _arrival(start, words, ticks, burst)) + words
        if port == pn.IFMAP:
            loaded_ifmap = after + machine[mc.IFMAP_WRITE_LATENCY]
        else:
            loaded_weight = after + machine[mc.WEIGHT_WRITE_LATENCY]
    begin = ready
    if machine[mc.DATAFLOW] != mc.OUTPUT_STATIONARY:
        begin = max(ready, loaded_ifmap if moving else loaded_weight)
    stream = max(max(loaded_ifmap, loaded_weight), begin + filling)
    return max(stream, ready), begin


@kernel
def beginning(
    problem: IntArray, machine: IntArray, services: IntArray, tiling: IntArray
) -> tuple[int, int]:
    """`first_loads` of a tiling."""
    sizes = first_sizes(problem, tiling)
    rows = region(0, min(tiling[pb.T_ROWS], problem[pb.OUT_HEIGHT]), problem, 0)[1]
    columns = region(0, min(tiling[pb.T_COLUMNS], problem[pb.OUT_WIDTH]), problem, 1)[1]
    images = min(tiling[pb.T_IMAGES], problem[pb.IMAGES])
    ifmap = ceil(images * rows * columns * sizes[2], machine[mc.IFMAP_LANES])
    weight = weight_words(problem, machine, sizes[1], sizes[2])[0]
    filling = span_of_sizes(problem, machine, sizes)[2]
    return first_loads(machine, services, ifmap, weight, filling)


@kernel
def first_outputs(problem: IntArray, machine: IntArray, tiling: IntArray) -> int:
    """Cycles from the start of the first stream to the end of that behind which the first outputs
    are complete, at least: those of all channels of a tile."""
    pixels, filters, channels = first_sizes(problem, tiling)
    count = ceil(problem[pb.CHANNELS], channels)
    thin = pixels, filters, last_size(problem[pb.CHANNELS], channels)
    total = count - 1 + least_stream(span_of_sizes(problem, machine, thin))
    if count > 1:
        whole = pixels, filters, channels
        total += (count - 1) * least_stream(span_of_sizes(problem, machine, whole))
    return total


@kernel
def ending(machine: IntArray, services: IntArray, sizes: Sizes) -> int:
    """Cycles from the end of the last stream to the cycle after the last word is off the chip."""
    pixels, filters, _ = sizes
    rows = sum_rows(machine, pixels, filter_steps(machine, filters))
    read, ticks = machine[mc.OUTPUT_LATENCY] + rows, services[pn.OFMAP, pn.WORD_TICKS]
    if ticks > 0:
        # of its words those that its own values fill, whatever is begun of a word before them
        values = pixels * filters * machine[mc.OUTPUT_VALUE_UNITS]
        words = max(1, values // machine[mc.OUTPUT_WORD_UNITS])
        first = machine[mc.OUTPUT_LATENCY] + 1 + whole_cycles(words * ticks)
        read = max(read + whole_cycles(ticks), first)
    tail = machine[mc.RESULT_LATENCY]
    if machine[mc.DATAFLOW] == mc.OUTPUT_STATIONARY and machine[mc.SLOTS] > 0:
        tail += (pixels - 1) % machine[mc.ROWS]
    return tail + read


@kernel
def most_output_words(machine: IntArray, sizes: Sizes) -> int:
    """Words that leave with a tile's outputs at most."""
    units = machine[mc.OUTPUT_VALUE_UNITS] + machine[mc.OUTPUT_SCALE_UNITS]
    return ceil(sizes[0] * sizes[1] * units, machine[mc.OUTPUT_WORD_UNITS]) + 1
