"""Products that fill a memory of a core that is walked by tiles, in one tile."""

from collections.abc import Callable, Iterator

from archsim.errors import InputError
from archsim.layer.problem import Tiling
from archsim.numbers import ceil_div
from archsim.tiled import commands as cmd
from archsim.tiled import machine_vector as mc
from archsim.tiled.design import CoreDesign
from archsim.tiled.timing import plan_tiling
from archsim.tiled.walk import walk_layer
from rtl.tile_bins import MOST_FULL_WORDS
from workloads.layers import Conv2d, MatMul

MEMORIES = {
    "ifmap": cmd.IFMAP_WORDS,
    "weight": cmd.WEIGHT_WORDS,
    "bias": cmd.BIAS_WORDS,
    "accumulator": cmd.OUTPUT_ROWS,
}
"""By name, the column of a tile's command that says how much of it the tile takes."""


def whole(design: CoreDesign, layer: Conv2d | MatMul) -> Tiling:
    """One tile for all."""
    problem = design.numerics.problem(layer)
    return Tiling(
        pixel_rows=problem.out_height,
        pixel_columns=problem.out_width,
        filters=problem.filters,
        channels=problem.channels,
        images=problem.images,
    )


def channels_of(design: CoreDesign, wanted: int) -> int:
    """Channels of a product of which the core makes so many of its own."""
    own = design.numerics.problem(MatMul(name="probe", m=1, n=1, k=wanted)).channels
    return wanted * ceil_div(wanted, own)


def full_layer(design: CoreDesign, memory: str) -> MatMul | None:
    """A product that fills a memory's half in one tile: "ifmap", "weight", "bias", "accumulator".

    None if the memory is above `MOST_FULL_WORDS`, stores by value, or no product tried fills it.
    """
    depth = design.depth(memory)
    if depth > MOST_FULL_WORDS or memory in design.stores:
        return None
    for layer in _fillers(design, memory, depth):
        try:
            tiling = plan_tiling(design, layer, whole(design, layer))
        except InputError:
            continue
        tiles = walk_layer(design.numerics.problem(layer), tiling, design.machine)
        if int(tiles[:, MEMORIES[memory]].max()) == depth:
            return layer
    return None


def _fillers(design: CoreDesign, memory: str, depth: int) -> Iterator[MatMul]:
    """Products around a memory's size, those of few words first."""
    make: Callable[..., MatMul] = lambda **sizes: MatMul(  # noqa: E731
        name="full", **{"m": 1, "n": 1, "k": 1, "bias": memory == "bias", **sizes}
    )
    pixels, filters, channels = design.mnk
    units = sorted({1, 2, pixels, filters, channels, mc.machine_record(design.machine).columns})
    if memory == "bias":
        yield from (make(n=depth * unit) for unit in units)
    elif memory == "accumulator":
        yield from (make(m=depth * unit) for unit in units)
        yield from (make(m=depth * unit // filters, n=filters) for unit in units)
    else:
        for parts in _parts(depth):
            for unit in units:
                size = depth * unit // parts
                deep = {"k": channels_of(design, unit * parts)}
                if size and memory == "ifmap":
                    yield make(m=size, **deep)
                elif size:
                    yield make(n=size, **deep)
        if memory == "ifmap":  # whose rows begin with a word of their own
            for parts in _parts(depth):
                yield make(m=depth // parts, k=channels_of(design, channels * parts))


def _parts(depth: int) -> list[int]:
    """Numbers of words that an axis may take of a memory: powers of two, and divisors."""
    powers = {1 << steps for steps in range(depth.bit_length())}
    return sorted(powers | {part for part in range(1, depth + 1) if depth % part == 0})


__all__ = ["MEMORIES", "channels_of", "full_layer", "whole"]
