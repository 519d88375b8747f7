"""Tilings for memories whose capacity hangs on values: what every tile takes, and what fits.

Such a memory (`archsim.memory.tile_store`) holds the more words the less their values take.  So the
tiling of a layer depends on its operands: tiles are made as large as the memory seems to hold, what
every tile takes is counted, and where one does not fit the words a tile may have are scaled down by
the excess, until all fit; at the latest with as many words as fit whatever their values are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from archsim.layer import layout
from archsim.layer.problem import Problem, Tiling
from archsim.memory.tile_store import StoredOperand, WalkedOperand
from archsim.numbers import IntArray
from archsim.tiled.design import CoreDesign
from archsim.tiled.machine_vector import INPUT_STATIONARY, machine_record
from archsim.tiled.mapper import FAST, Mapper
from archsim.tiled.numerics import IntegerArray
from archsim.tiled.tiling_check import check_tiling, why_nothing_fits
from archsim.tiled.walk import operand_tiles, walk
from workloads.layers import Conv2d, MatMul

OPERANDS = ("ifmap", "weight")


def stored_tiles(
    design: CoreDesign,
    problem: Problem,
    tiling: Tiling,
    arrays: tuple[IntegerArray, IntegerArray],
    halves: Mapping[str, int] | None = None,
) -> dict[str, StoredOperand]:
    """Of each such memory, what every distinct tile of its operand takes.

    arrays: ifmap and weights split as in `layout`, group by group.  halves: into which half each
    operand is loaded first; None: the first.
    """
    groups = tiling.groups
    vectors = problem.side_by_side(groups).vector(), tiling.vector()
    arrays = (
        layout.side_by_side(arrays[0], groups, (1, 4)),
        layout.block_diagonal(arrays[1], groups),
    )
    tiles = walk(*vectors, design.machine)
    moving = machine_record(design.machine).dataflow == INPUT_STATIONARY
    found: dict[str, StoredOperand] = {}
    for name, (tile_of, first), operand in zip(
        OPERANDS, operand_tiles(*vectors), arrays, strict=True
    ):
        if name in design.stores:
            walked = WalkedOperand(
                values=operand,
                tiles=tiles,
                first=first,
                tile_of=tile_of,
                together=groups,
                moving=moving,
                half=(halves or {}).get(name, 0),
            )
            found[name] = design.stores[name].take(walked)
    return found


def check_fit(
    name: str,
    design: CoreDesign,
    problem: Problem,
    tiling: Tiling,
    arrays: tuple[IntegerArray, IntegerArray],
) -> dict[str, StoredOperand]:
    """Raise `InputError` if a tile does not fit; returns what the tiles take."""
    check_tiling(name, problem, _machine(design, {}), tiling)
    found = stored_tiles(design, problem, tiling, arrays)
    for one in found.values():
        error = one.why_not(name)
        if error is not None:
            raise error
    return found


def fit_tiling(
    name: str,
    design: CoreDesign,
    problem: Problem,
    arrays: tuple[IntegerArray, IntegerArray],
    sure: Tiling | None,
    mapper: Mapper = FAST,
) -> tuple[Tiling, dict[str, StoredOperand]]:
    """The tiling for these operands, and what its tiles take.

    sure: the mapper's for any values, None if none is sure to fit.  Tiles may at first have as
    many words as would fit if all took the mean of its tiles.
    Raises `InputError` if nothing fits.
    """
    stores = design.stores
    words = {one: store.depth for one, store in stores.items()}
    counted: dict[Tiling | None, dict[str, StoredOperand]] = {}
    if sure is not None:
        counted[sure] = stored_tiles(design, problem, sure, arrays)
        for one, stored in counted[sure].items():
            words[one] = min(max(stored.mean_words, stores[one].sure_depth), stores[one].depth)
    while True:
        deeper = any(words[one] > store.sure_depth for one, store in stores.items())
        tiling = sure
        if deeper:
            tiling = mapper.find(name, problem, design, machine=_machine(design, words))
        if tiling is None:
            raise why_nothing_fits(name, problem, _machine(design, words))
        found = counted.get(tiling) or stored_tiles(design, problem, tiling, arrays)
        excess = {one: tiles for one, tiles in found.items() if not tiles.fits}
        if not excess:
            return tiling, found
        for one, tiles in excess.items():
            fewer = min(words[one] - 1, tiles.fewer_words(words[one]))
            words[one] = max(stores[one].sure_depth, fewer)


def _machine(design: CoreDesign, words: dict[str, int]) -> IntArray:
    """The machine vector of memories of so many words, else of all they can address."""
    depths = {
        f"{name}_depth": words.get(name, store.depth) for name, store in design.stores.items()
    }
    return machine_record(design.machine)._replace(**depths).vector()


def value_actions(design: CoreDesign, found: Mapping[str, StoredOperand]) -> dict[str, int]:
    """The actions of a layer that hang on values; found: what its tiles take."""
    return {
        f"{name}_{action}": number
        for name, stored in found.items()
        for action, number in stored.actions(design.machine).items()
    }


def layer_actions(
    design: CoreDesign,
    layer: Conv2d | MatMul,
    tiled: tuple[Problem, Tiling],
    operands: Any,
    halves: Mapping[str, int] | None = None,
) -> dict[str, int]:
    """`value_actions` of operands that the design's numerics has taken; none without such memories.

    tiled: the layer's problem and tiling.  halves: as of `stored_tiles`.
    """
    if not design.stores:
        return {}
    arrays = design.numerics.stored(layer, operands)
    return value_actions(design, stored_tiles(design, *tiled, arrays, halves))


def action_bounds(design: CoreDesign, reads: Mapping[str, float]) -> dict[str, float]:
    """The most that actions which hang on values can be.

    reads: words read and written, by action.
    """
    return {
        f"{name}_{action}": most
        for name, store in design.stores.items()
        for action, most in store.bounds(reads[f"{name}_read"], reads[f"{name}_write"]).items()
    }


__all__ = [
    "action_bounds",
    "check_fit",
    "fit_tiling",
    "layer_actions",
    "stored_tiles",
    "value_actions",
]
