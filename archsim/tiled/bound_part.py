"""What all tilings of some filters and channels take at least, whatever their pixels are.

The same lines as in `archsim.tiled.bound_paths`, each with the least that any pixel tiles can make
of it.  A part of the search whose bound is above the best mapping so far is left out as a whole.
"""

from __future__ import annotations

from archsim.kernels import inlined, kernel
from archsim.layer import problem as pb
from archsim.memory.ticks import TICK_BITS, whole_cycles
from archsim.numbers import IntArray
from archsim.tiled import machine_vector as mc
from archsim.tiled import plan as pn
from archsim.tiled.bound import (
    BIAS_WRITES,
    CYCLES,
    IFMAP_READS,
    IFMAP_WRITES,
    MOVING,
    OFMAP_WRITES,
    ROWS,
    STATIC,
    SUMS,
    WEIGHT_READS,
    WEIGHT_WRITES,
    add_bytes,
    filter_steps,
    last_size,
)
from archsim.tiled.packing import layer_words
from archsim.tiled.tile_fit import ceil, weight_words
from archsim.tiled.walk import chunks_of, run_shape

(
    FILTER_TILES,
    CHANNEL_TILES,
    STEPS,  # filter steps of all filter tiles
    CHUNKS,  # chunks of all channel tiles
    WEIGHTS,  # words of all weights of a group
    FIRST_WEIGHTS,  # of the first tile
    PART_COLUMNS,
) = range(7)


@kernel
def describe_part(
    part: IntArray, problem: IntArray, machine: IntArray, filters: int, channels: int
) -> None:
    """Write what filters and channels of a tile decide into `part` [PART_COLUMNS]."""
    n_filters, n_channels = ceil(problem[pb.FILTERS], filters), ceil(problem[pb.CHANNELS], channels)
    few = last_size(problem[pb.FILTERS], filters)
    thin = last_size(problem[pb.CHANNELS], channels)
    runs, length = run_shape(problem, channels)
    chunks = (n_channels - 1) * chunks_of(length, machine)
    chunks += chunks_of(run_shape(problem, thin)[1], machine)
    part[FILTER_TILES], part[CHANNEL_TILES] = n_filters, n_channels
    part[STEPS] = (n_filters - 1) * filter_steps(machine, filters) + filter_steps(machine, few)
    part[CHUNKS] = runs * problem[pb.KERNEL_HEIGHT] * chunks
    weights = 0
    for kind in range(2):
        size, many = (filters, n_filters - 1) if kind == 0 else (few, 1)
        weights += many * (n_channels - 1) * weight_words(problem, machine, size, channels)[0]
        weights += many * weight_words(problem, machine, size, thin)[0]
    part[WEIGHTS] = weights
    part[FIRST_WEIGHTS] = weight_words(problem, machine, filters, channels)[0]


@inlined
def _work(
    found: IntArray, part: IntArray, problem: IntArray, machine: IntArray, pixel_tiles: int
) -> None:
    """The array's actions, of one group."""
    pixels = problem[pb.IMAGES] * problem[pb.OUT_HEIGHT] * problem[pb.OUT_WIDTH]
    steps, chunks, flow = part[STEPS], part[CHUNKS], machine[mc.DATAFLOW]
    if flow == mc.OUTPUT_STATIONARY:
        blocks, slots = max(ceil(pixels, machine[mc.ROWS]), pixel_tiles), machine[mc.SLOTS]
        found[MOVING] = steps * chunks * (blocks * slots if slots > 0 else pixels)
        found[STATIC] = 0
        found[IFMAP_READS] = steps * chunks * pixels
        found[WEIGHT_READS] = part[WEIGHTS] * blocks
        found[SUMS] = steps * pixels * part[CHANNEL_TILES]
        found[ROWS] = steps * pixels
    elif flow == mc.INPUT_STATIONARY:
        blocks = max(ceil(pixels, machine[mc.COLUMNS]), pixel_tiles)
        found[MOVING] = found[SUMS] = found[WEIGHT_READS] = blocks * chunks * steps
        found[STATIC] = blocks * chunks * part[FILTER_TILES] * machine[mc.COLUMNS]
        found[IFMAP_READS] = pixels * chunks * part[FILTER_TILES]
        found[ROWS] = blocks * steps
    else:
        found[MOVING] = found[SUMS] = found[IFMAP_READS] = pixels * chunks * steps
        found[STATIC] = found[WEIGHT_READS] = pixel_tiles * part[WEIGHTS]
        found[ROWS] = pixels * steps


@inlined
def _words(
    found: IntArray, part: IntArray, problem: IntArray, machine: IntArray,
    pixels: tuple[int, int, int],
) -> None:  # fmt: skip
    """Words that cross the ports, of all groups; pixels: as of `bound_part`."""
    outer, pixel_tiles, elements = pixels
    ifmap_sweeps, weight_sweeps = part[FILTER_TILES], pixel_tiles
    if part[CHANNEL_TILES] == 1 and (pixel_tiles == 1 or outer == 0):
        ifmap_sweeps = 1
    if part[CHANNEL_TILES] == 1 and (part[FILTER_TILES] == 1 or outer == 1):
        weight_sweeps = 1
    groups = problem[pb.GROUPS]
    found[IFMAP_WRITES] = groups * ifmap_sweeps * ceil(elements, machine[mc.IFMAP_LANES])
    found[WEIGHT_WRITES] = groups * weight_sweeps * part[WEIGHTS]
    found[BIAS_WRITES] = groups * pixel_tiles * part[STEPS] * problem[pb.HAS_BIAS]
    found[OFMAP_WRITES] = layer_words(problem, machine)


@inlined
def _channel(found: IntArray, services: IntArray) -> int:
    """Cycles of the busiest channel, the latency before its first word among them."""
    begin, most = services[pn.IFMAP, pn.LATENCY] << TICK_BITS, 0
    together = begin
    for port in range(pn.IFMAP, pn.OFMAP + 1):
        # words of ifmap, weight and bias are columns in a row
        column = IFMAP_WRITES + port - pn.IFMAP if port != pn.OFMAP else OFMAP_WRITES
        taken = found[column] * services[port, pn.WORD_TICKS]
        if services[port, pn.CHANNEL] == pn.COMMAND:
            together += taken
        else:
            most = max(most, taken)
    return whole_cycles(max(together, most))


@kernel
def bound_part(
    found: IntArray, part: IntArray, problem: IntArray, machine: IntArray, services: IntArray,
    pixels: tuple[int, int, int],
) -> None:  # fmt: skip
    """Write the least that a part takes into the first columns of `found` [BOUND_COLUMNS].

    pixels: whether filters are outside; at least so many pixel tiles; and at least so many
    elements of the ifmap, of all pixel tiles of a group.
    """
    groups, interval = problem[pb.GROUPS], machine[mc.TILE_INTERVAL]
    _work(found, part, problem, machine, pixels[1])
    for column in range(IFMAP_READS, ROWS + 1):
        found[column] *= groups
    _words(found, part, problem, machine, pixels)
    add_bytes(found, machine)
    outputs = groups * pixels[1] * part[FILTER_TILES]
    tiles = outputs * part[CHANNEL_TILES]
    end = machine[mc.RESULT_LATENCY] + machine[mc.OUTPUT_LATENCY]
    loaded = services[pn.WEIGHT, pn.LATENCY] << TICK_BITS
    loaded += part[FIRST_WEIGHTS] * services[pn.WEIGHT, pn.WORD_TICKS]
    begin = max(whole_cycles(loaded), interval + 2 + part[FIRST_WEIGHTS])
    loading = interval + 2 if machine[mc.DATAFLOW] == mc.INPUT_STATIONARY else begin
    cycles = max(begin + found[MOVING], loading + found[STATIC]) + tiles + end
    held = found[MOVING] + found[ROWS]
    held += outputs * (part[CHANNEL_TILES] - 1 + machine[mc.RESULT_LATENCY])
    cycles = max(cycles, begin + held // 2)
    cycles = max(cycles, begin + found[ROWS] + outputs + end)
    cycles = max(cycles, max(found[IFMAP_WRITES], found[WEIGHT_WRITES]) + end)
    cycles = max(cycles, tiles * interval + end)
    found[CYCLES] = max(cycles, _channel(found, services))
