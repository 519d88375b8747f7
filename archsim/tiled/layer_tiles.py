"""A layer's tiles, if there are not too many of them to be held."""

from __future__ import annotations

from archsim.errors import require_within
from archsim.layer.problem import Problem, Tiling
from archsim.numbers import IntArray
from archsim.tiled.commands import check_commands
from archsim.tiled.walk import tile_counts, walk


def layer_tiles(name: str, problem: Problem, tiling: Tiling, machine: IntArray) -> IntArray:
    """The commands of all tiles, in order (`archsim.tiled.walk.walk_layer`).

    Raises `InputError` for more tiles than the limit (`workloads.limits`), before they are made,
    and for figures that do not fit a command's fields.
    """
    block = problem.side_by_side(tiling.groups)
    vectors = block.vector(), tiling.vector()
    count = block.groups
    for along in tile_counts(*vectors):
        count *= int(along)
    require_within("tiles", **{f"{name}: tiles, each of which is timed by itself,": count})
    tiles = walk(*vectors, machine)
    check_commands(name, tiles)
    return tiles
