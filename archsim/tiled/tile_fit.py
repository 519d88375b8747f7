"""What a tile takes of the scratchpads, and whether it fits."""

from __future__ import annotations

from archsim.kernels import kernel
from archsim.layer import problem as pb
from archsim.numbers import IntArray
from archsim.tiled import machine_vector as mc
from archsim.tiled.walk import chunks_of, run_shape


@kernel
def ceil(numerator: int, denominator: int) -> int:
    """`archsim.numbers.ceil_div` for the kernels."""
    return -(-numerator // denominator)


@kernel
def _within(machine: IntArray, memory: int, words: int) -> bool:
    """Whether a half of a memory, by its column of the machine, holds so many words.

    A watched machine (`archsim.tiled.families`) keeps note of it.
    """
    fits, note = words <= machine[memory], mc.MACHINE_COLUMNS + memory - mc.IFMAP_DEPTH
    if len(machine) > mc.MACHINE_COLUMNS:
        if fits:
            machine[note] = max(machine[note], words)
        else:
            machine[note + mc.MEMORIES] = min(machine[note + mc.MEMORIES], words)
    return fits


@kernel
def reach(pixels: int, problem: IntArray, axis: int) -> int:
    """Ifmap rows or columns under `pixels` output pixels, at most all."""
    window = (problem[pb.KERNEL_HEIGHT + axis] - 1) * problem[pb.DILATION_HEIGHT + axis] + 1
    span = (pixels - 1) * problem[pb.STRIDE_HEIGHT + axis] + window
    return min(span, problem[pb.HEIGHT + axis])


@kernel
def weight_words(
    problem: IntArray, machine: IntArray, filters: int, channels: int
) -> tuple[int, int]:
    """Words that a tile's weights, and its biases, take of their scratchpads."""
    runs, length = run_shape(problem, channels)
    runs *= problem[pb.KERNEL_HEIGHT]
    if machine[mc.DATAFLOW] == mc.INPUT_STATIONARY:
        return runs * chunks_of(length, machine) * filters, problem[pb.HAS_BIAS] * filters
    steps = ceil(filters, machine[mc.COLUMNS])
    return runs * length * steps, problem[pb.HAS_BIAS] * steps


@kernel
def weights_fit(problem: IntArray, machine: IntArray, filters: int, channels: int) -> bool:
    """Whether the weights and biases of a tile fit a half of their scratchpads."""
    weights, biases = weight_words(problem, machine, filters, channels)
    return _within(machine, mc.WEIGHT_DEPTH, weights) and _within(machine, mc.BIAS_DEPTH, biases)


@kernel
def pixel_words(problem: IntArray, machine: IntArray, tiling: IntArray) -> tuple[int, int]:
    """Words that a tile's ifmap regions, and its sums, take of their scratchpads."""
    height = reach(tiling[pb.T_ROWS], problem, 0)
    width = reach(tiling[pb.T_COLUMNS], problem, 1)
    images = min(tiling[pb.T_IMAGES], problem[pb.IMAGES])
    region_words = ceil(images * height * width * tiling[pb.T_CHANNELS], machine[mc.IFMAP_LANES])
    pixels = images * tiling[pb.T_ROWS] * tiling[pb.T_COLUMNS]
    if machine[mc.DATAFLOW] == mc.INPUT_STATIONARY:
        return region_words, ceil(pixels, machine[mc.COLUMNS]) * tiling[pb.T_FILTERS]
    return region_words, pixels * ceil(tiling[pb.T_FILTERS], machine[mc.COLUMNS])


@kernel
def pixels_fit(problem: IntArray, machine: IntArray, tiling: IntArray) -> bool:
    """Whether the ifmap regions and the sums of a tile fit a half of their scratchpads."""
    region_words, sums = pixel_words(problem, machine, tiling)
    if not _within(machine, mc.IFMAP_DEPTH, region_words):
        return False
    return _within(machine, mc.ACCUMULATOR_DEPTH, sums)
