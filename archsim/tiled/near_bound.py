"""What tilings take at least, in some twenty sums: the fast mapper asks it of every tiling.

Some of the lines of `archsim.tiled.bound_paths`, in a form in which what hangs on filters, channels
and pixels alone is found once (`docs/mapping.md`).
"""

from __future__ import annotations

from typing import NamedTuple

from archsim.kernels import inlined, kernel
from archsim.layer import problem as pb
from archsim.memory.ticks import TICK_BITS, whole_cycles
from archsim.numbers import IntArray
from archsim.tiled import machine_vector as mc
from archsim.tiled import plan as pn
from archsim.tiled.bound import filter_steps, last_size
from archsim.tiled.packing import layer_words
from archsim.tiled.tile_fit import ceil
from archsim.tiled.walk import chunks_of, run_shape


class Ground(NamedTuple):
    """What all tilings of a layer on a design have alike.

    ticks: of a word on the channel; together: whether ifmap and weights share one.
    """

    dataflow: int
    rows: int
    columns: int
    slots: int
    interval: int
    results: int
    outputs: int
    groups: int
    pixels: int
    filters: int
    products: int
    latency: int
    ifmap_ticks: int
    weight_ticks: int
    bias_ticks: int
    ofmap_ticks: int
    together: int
    has_bias: int
    ofmap_bytes: int


@kernel
def ground_of(problem: IntArray, machine: IntArray, services: IntArray) -> Ground:
    """Of a problem of blocks of groups; products: of a filter; ofmap_ticks: of all words."""
    bias = services[pn.BIAS, pn.WORD_TICKS] * problem[pb.HAS_BIAS]
    together = services[pn.IFMAP, pn.CHANNEL] == services[pn.WEIGHT, pn.CHANNEL]
    leaving = layer_words(problem, machine)
    return Ground(
        machine[mc.DATAFLOW], machine[mc.ROWS], machine[mc.COLUMNS], machine[mc.SLOTS],
        machine[mc.TILE_INTERVAL], machine[mc.RESULT_LATENCY], machine[mc.OUTPUT_LATENCY],
        problem[pb.GROUPS],
        problem[pb.IMAGES] * problem[pb.OUT_HEIGHT] * problem[pb.OUT_WIDTH], problem[pb.FILTERS],
        problem[pb.KERNEL_HEIGHT] * problem[pb.KERNEL_WIDTH] * problem[pb.CHANNELS],
        services[pn.IFMAP, pn.LATENCY] << TICK_BITS, services[pn.IFMAP, pn.WORD_TICKS],
        services[pn.WEIGHT, pn.WORD_TICKS], bias,
        leaving * services[pn.OFMAP, pn.WORD_TICKS], int(together), problem[pb.HAS_BIAS],
        leaving * machine[mc.OFMAP_WORD_BYTES],
    )  # fmt: skip


class Filters(NamedTuple):
    """Of a number of filters: tiles, filter steps of all and of one of them."""

    tiles: int
    steps: int
    each: int


@inlined
def filters_of(problem: IntArray, machine: IntArray, size: int) -> Filters:
    """Of tiles of so many filters."""
    tiles, each = ceil(problem[pb.FILTERS], size), filter_steps(machine, size)
    last = filter_steps(machine, last_size(problem[pb.FILTERS], size))
    return Filters(tiles, (tiles - 1) * each + last, each)


class Channels(NamedTuple):
    """Of a number of channels: tiles, chunks of all and of one of them, elements of one filter."""

    tiles: int
    chunks: int
    each: int
    elements: int


@inlined
def channels_of(problem: IntArray, machine: IntArray, size: int) -> Channels:
    """Of tiles of so many channels."""
    tiles, (runs, length) = ceil(problem[pb.CHANNELS], size), run_shape(problem, size)
    runs *= problem[pb.KERNEL_HEIGHT]
    each = runs * chunks_of(length, machine)
    thin = run_shape(problem, last_size(problem[pb.CHANNELS], size))[1]
    chunks = (tiles - 1) * each + runs * chunks_of(thin, machine)
    return Channels(tiles, chunks, each, runs * length)


@inlined
def weights_of(ground: Ground, filters: Filters, channels: Channels) -> tuple[int, int]:
    """Words of all weights of a group, and of those of a tile."""
    if ground.dataflow == mc.INPUT_STATIONARY:
        return channels.chunks * ground.filters, channels.each * filters.each
    return ground.products * filters.steps, channels.elements * filters.each


@inlined
def _array(ground: Ground, part: tuple[Filters, Channels], tiles: int) -> tuple[int, int, int]:
    """Of a group: moving words, words of stationary loads, and rows of sums; at least."""
    filters, channels = part
    if ground.dataflow == mc.OUTPUT_STATIONARY:
        moving = ground.pixels
        if ground.slots > 0:
            moving = max(ceil(ground.pixels, ground.rows), tiles) * ground.slots
        return filters.steps * channels.chunks * moving, 0, filters.steps * ground.pixels
    if ground.dataflow == mc.INPUT_STATIONARY:
        blocks = max(ceil(ground.pixels, ground.columns), tiles)
        folds = blocks * channels.chunks
        return folds * filters.steps, folds * filters.tiles * ground.columns, blocks * filters.steps
    moving = ground.pixels * filters.steps
    return moving * channels.chunks, tiles * ground.products * filters.steps, moving


@inlined
def array_words(ground: Ground, part: tuple[Filters, Channels], tiles: int) -> int:
    """Words that move through the array, and that are loaded into it, at least."""
    moving, loading, _ = _array(ground, part, tiles)
    return ground.groups * (moving + loading)


@inlined
def _begin(ground: Ground, weights: int, ifmap: int) -> tuple[int, int]:
    """When the first stream, and the first stationary load, begin: of so many words."""
    taken = ifmap * ground.ifmap_ticks, weights * ground.weight_ticks
    ready = ground.interval + 2
    behind_ifmap = max(ready + ifmap, whole_cycles(ground.latency + taken[0]))
    behind_weights = max(ready + weights, whole_cycles(ground.latency + taken[1]))
    stream = max(behind_ifmap, behind_weights)
    if ground.together == 1:
        stream = max(stream, whole_cycles(ground.latency + taken[0] + taken[1]))
    return stream, behind_ifmap if ground.dataflow == mc.INPUT_STATIONARY else behind_weights


@inlined
def least_cycles(
    ground: Ground, part: tuple[Filters, Channels], outer: int, pixels: tuple[int, int, int, int]
) -> int:
    """Cycles that a tiling takes at least.

    outer: whether filters are outside; pixels: tiles along them, words of one sweep of the ifmap,
    words of the first tile's ifmap and rows of the last one's sums; none of them more than it has.
    """
    filters, channels = part
    tiles, words, first, rows = pixels
    weights, first_weights = weights_of(ground, filters, channels)
    moving, loading, out = _array(ground, part, tiles)
    if channels.tiles > 1 or (tiles > 1 and outer == 1):
        words *= filters.tiles
    if channels.tiles > 1 or (filters.tiles > 1 and outer == 0):
        weights *= tiles
    words, weights = ground.groups * words, ground.groups * weights
    outputs = ground.groups * tiles * filters.tiles
    commands, end = outputs * channels.tiles, ground.results + ground.outputs + rows
    stream, load = _begin(ground, first_weights, first)
    sent = words * ground.ifmap_ticks, weights * ground.weight_ticks
    cycles = whole_cycles(ground.latency + max(sent[0], sent[1])) + end
    if ground.together == 1:
        loads = ground.latency + sent[0] + sent[1]
        biases = ground.groups * tiles * filters.steps * ground.bias_ticks
        whole = whole_cycles(loads + biases + ground.ofmap_ticks)
        cycles = max(whole_cycles(loads) + end, whole)
    array = max(stream + ground.groups * moving, load + ground.groups * loading)
    cycles = max(cycles, array + commands - 1 + end)
    waits = outputs * (channels.tiles - 1 + ground.results)
    cycles = max(cycles, stream + (ground.groups * (moving + out) + waits) // 2)
    last = stream + ground.groups * out + outputs - 1 + ground.results + ground.outputs
    return max(max(cycles, last), max(max(words, weights), commands * ground.interval) + end)


@inlined
def least_bytes(
    machine: IntArray,
    ground: Ground,
    part: tuple[Filters, Channels],
    outer: int,
    pixels: tuple[int, int],
) -> int:
    """Bytes that cross the ports in a tiling, at least.

    pixels: tiles along them and words of one sweep of the ifmap.  Where these are exact, so is it,
    but for words of the ifmap that are packed tile by tile.
    """
    (filters, channels), (tiles, words) = part, pixels
    weights = weights_of(ground, filters, channels)[0]
    if channels.tiles > 1 or (tiles > 1 and outer == 1):
        words *= filters.tiles
    if channels.tiles > 1 or (filters.tiles > 1 and outer == 0):
        weights *= tiles
    total = words * machine[mc.IFMAP_WORD_BYTES] + weights * machine[mc.WEIGHT_WORD_BYTES]
    total += tiles * filters.steps * ground.has_bias * machine[mc.BIAS_WORD_BYTES]
    return ground.groups * total + ground.ofmap_bytes
