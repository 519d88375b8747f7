"""A tiling by hand, or the smallest there is: what of it does not fit, and what would help."""

from __future__ import annotations

from archsim.errors import InputError
from archsim.layer.problem import Problem, Tiling
from archsim.numbers import IntArray
from archsim.tiled import machine_vector as mc
from archsim.tiled.block_check import MappingError, checked_block
from archsim.tiled.tile_fit import pixel_words, weight_words
from archsim.tiled.tiling import filter_unit


def check_tiling(name: str, problem: Problem, machine: IntArray, tiling: Tiling) -> None:
    """Raise `MappingError` if a tiling does not fit, naming the scratchpad that is too small."""
    together = mc.machine_record(machine).output_vector
    problem = checked_block(name, problem, together, tiling)
    vector = problem.vector()
    if tiling.filters < problem.filters and tiling.filters % together:
        raise MappingError(
            f"{name}: filters must be a multiple of {together}, which share a scale, or all "
            f"{problem.filters}, not {tiling.filters}"
        )
    weights, biases = weight_words(vector, machine, tiling.filters, tiling.channels)
    region_words, sums = pixel_words(vector, machine, tiling.vector())
    pixels = f"{tiling.pixel_rows} × {tiling.pixel_columns} pixels"
    if tiling.images > 1:
        pixels += f" of {tiling.images} images"
    kernels = f"{tiling.filters} filters of {tiling.channels} channels"
    needs = (
        ("weight scratchpad", weights, mc.WEIGHT_DEPTH, kernels, "filters or channels"),
        ("bias memory", biases, mc.BIAS_DEPTH, kernels, "filters"),
        ("ifmap scratchpad", region_words, mc.IFMAP_DEPTH, pixels, "pixels or channels"),
        ("accumulators", sums, mc.ACCUMULATOR_DEPTH, pixels, "pixels or filters"),
    )
    for memory, words, depth, what, fewer in needs:
        if words > machine[depth]:
            raise MappingError(
                f"{name}: {what} do not fit half of the {memory}: they need {words} words, it has "
                f"{machine[depth]}; take fewer {fewer} a tile, or a larger memory"
            )


def why_nothing_fits(name: str, problem: Problem, machine: IntArray) -> InputError:
    """The error for a layer that no tiling fits: its smallest tile, and what is too small."""
    unit = int(filter_unit(machine))
    smallest = Tiling(pixel_rows=1, pixel_columns=1, filters=min(unit, problem.filters), channels=1)
    try:
        check_tiling(name, problem, machine, smallest)
    except InputError as error:
        reason = str(error).partition(";")[0]
        return InputError(f"no tiling fits; even the smallest does not: {reason}; enlarge it")
    return InputError(f"{name}: no tiling fits the scratchpads; give one by hand")
