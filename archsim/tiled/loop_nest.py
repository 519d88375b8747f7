"""A layer's mapping as a nest of loops, with what every scratchpad holds of a tile."""

from __future__ import annotations

from dataclasses import asdict

from archsim.layer.problem import Problem, Tiling
from archsim.machine.mapped import Held, Loop, MappedLayer
from archsim.numbers import ceil_div
from archsim.result import LayerResult
from archsim.tiled.design import CoreDesign
from archsim.tiled.machine_vector import machine_record
from archsim.tiled.tile_fit import pixel_words, weight_words


def _loop(over: str, total: int, size: int) -> Loop:
    size = min(size, total)
    tiles = ceil_div(total, size)
    return Loop(over=over, tiles=tiles, size=size, last=total - (tiles - 1) * size)


def loops_of(problem: Problem, tiling: Tiling) -> tuple[Loop, ...]:
    """The outermost first; problem: of blocks of groups."""
    pixels = (
        _loop("images", problem.images, tiling.images),
        _loop("rows of pixels", problem.out_height, tiling.pixel_rows),
        _loop("columns of pixels", problem.out_width, tiling.pixel_columns),
    )
    filters = (_loop("filters", problem.filters, tiling.filters),)
    nest = (*filters, *pixels) if tiling.order == "filters_outer" else (*pixels, *filters)
    channels = _loop("channels", problem.channels, tiling.channels)
    return (_loop("blocks of groups", problem.groups, 1), *nest, channels)


def held_of(design: CoreDesign, problem: Problem, tiling: Tiling) -> tuple[Held, ...]:
    """What the first tile, a largest one, takes of each memory's half."""
    record, vector = machine_record(design.machine), problem.vector()
    weights, biases = weight_words(vector, design.machine, tiling.filters, tiling.channels)
    region, sums = pixel_words(vector, design.machine, tiling.vector())
    row = ceil_div(design.accumulator_word_bits, 8)
    pixels = f"{min(tiling.images, problem.images)} × {tiling.pixel_rows} × {tiling.pixel_columns}"
    filters = f"{min(tiling.filters, problem.filters)} filters"
    channels = f"{min(tiling.channels, problem.channels)} channels"
    each = (
        ("ifmap scratchpad", f"the ifmap under {pixels} pixels, {channels}", region,
         record.ifmap_word_bytes, record.ifmap_depth),
        ("weight scratchpad", f"weights of {filters}, {channels}", weights,
         record.weight_word_bytes, record.weight_depth),
        ("bias memory", f"biases of {filters}", biases, record.bias_word_bytes, record.bias_depth),
        ("accumulators", f"sums of {pixels} pixels, {filters}", sums, row,
         record.accumulator_depth),
    )  # fmt: skip
    return tuple(
        Held(memory=memory, what=what, taken_bytes=int(words) * size, tile_bytes=depth * size)
        for memory, what, words, size, depth in each
    )


def mapped_layer(design: CoreDesign, problem: Problem, result: LayerResult) -> MappedLayer:
    """Of a layer that was timed; problem: as the design sees it."""
    tiling = result.tiling
    assert tiling is not None
    block = problem.side_by_side(tiling.groups)
    return MappedLayer(
        layer=result.name,
        table=asdict(tiling),
        loops=loops_of(block, tiling),
        held=held_of(design, block, tiling),
        cycles=result.cycles,
        bytes_moved=result.bytes_moved,
    )


__all__ = ["held_of", "loops_of", "mapped_layer"]
