"""Cores with a gather unit: layers of rows of which units are kept, and bins of them."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from archsim.numbers import IntArray
from archsim.tiled.commands import commands_of
from archsim.tiled.design import CoreDesign
from archsim.tiled.trace import Answer
from rtl.coverage.bins import Bin, Seen
from rtl.coverage.row_bins import InARow
from rtl.draw import Draw
from rtl.tile_conformance import TileCase
from workloads.kept_units import KeptUnits
from workloads.layers import Conv2d, MatMul

GATHERED = "gathered rows"
IN_A_LOAD = "reset in a gathered load"
"""Aims."""

SHARES = 0.5
"""Of random products that may be, those whose rows are gathered."""


def with_kept_units(draw: Draw, design: CoreDesign, layer: Conv2d | MatMul) -> Conv2d | MatMul:
    """The layer, or often with rows of more units of which its channels are kept.

    Of a core without a gather unit nothing is drawn.
    """
    unit = design.gather
    if unit is None or not isinstance(layer, MatMul) or not layer.shared_weight:
        return layer
    if layer.k > unit.units or not draw.chance(SHARES):
        return layer
    most = min(unit.units, layer.k + 3 * unit.lanes)
    units = unit.units if draw.chance(0.1) else draw.whole(layer.k, most)
    return replace(layer, kept=_drawn(draw, unit.lanes, layer.k, units))


def _drawn(draw: Draw, lanes: int, count: int, units: int) -> KeptUnits:
    """So many units, each by itself, or whole words of them before all others."""
    order = draw.rng.permutation(units)
    if draw.chance(0.4):
        words = draw.rng.permutation(-(-units // lanes))
        order = np.argsort(words[np.arange(units) // lanes], kind="stable")
    return KeptUnits.of(units, order[:count].tolist())


def gathered_layers(draw: Draw, design: CoreDesign) -> list[MatMul]:
    """Products of the longest row and of others: one unit kept, all, whole words, half of them, one
    and a last word; and one whose rows lie as they are.  Empty without a gather unit."""
    unit = design.gather
    if unit is None:
        return []
    lanes = unit.lanes
    short = min(unit.units, draw.whole(lanes + 1, 3 * lanes))
    shapes = [(1, unit.units), (short, short), (max(short // 2, 1), short), (1, short)]
    shapes.append((min(draw.whole(2, 2 * lanes), unit.units), unit.units))
    layers = [
        MatMul(
            name=f"gathered {at}",
            m=draw.whole(1, 9),
            n=draw.whole(1, 3),
            k=count,
            bias=draw.chance(0.5),
            kept=_drawn(draw, lanes, count, units),
        )
        for at, (count, units) in enumerate(shapes)
    ]
    if unit.units >= 2 * lanes:
        over = KeptUnits.of(2 * lanes, [0, *range(lanes, 2 * lanes)])
        layers.append(MatMul(name="left over", m=1, n=draw.whole(1, 3), k=over.count, kept=over))
    plain = MatMul(name="plain", m=draw.whole(1, 9), n=draw.whole(1, 3), k=draw.whole(1, lanes))
    layers.insert(draw.whole(1, len(layers) - 1), plain)
    return layers


def _loads(case: TileCase, tiles: IntArray) -> Iterator[tuple[IntArray, int]]:
    """Of each load that is gathered, kept lanes of each word of a row, and how many rows."""
    kept = case.layer.kept if isinstance(case.layer, MatMul) else None
    unit = case.design.gather
    if kept is None or unit is None:
        return
    positions = kept.positions()
    for tile in commands_of(tiles):
        if tile.load_ifmap:
            here = positions[tile.tile_channel : tile.tile_channel + tile.tile_channels]
            yield np.bincount(here // unit.lanes, minlength=tile.row_words), tile.pixels


def _leaves_over(counts: IntArray, rows: int, lanes: int) -> bool:
    """Whether the last word of a load brings more than fills up the word that is begun."""
    before = int(counts.sum()) * rows - int(counts[-1])
    return before % lanes + int(counts[-1]) > lanes


def _reset_in_a_load(seen: Seen) -> bool:
    """Whether the run before ended between words of a layer whose rows are gathered."""
    if seen.case.before is None:
        return False
    interrupted, cycles = seen.case.before
    if getattr(getattr(interrupted, "layer", None), "kept", None) is None:
        return False
    crossed = interrupted.answer().transfers["ifmap"].cycle
    return bool(crossed[0] < cycles <= crossed[-1])


def gather_bins(
    design: CoreDesign, parts: Callable[[Seen], tuple[tuple[TileCase, Answer], ...]]
) -> Iterator[Bin]:
    """Of a core with a gather unit: masks, ends of rows and of loads; else nothing.

    parts: the layers of a case, each with its answer.
    """
    unit = design.gather
    if unit is None:
        return
    lanes = unit.lanes

    def loads(name: str, why: str, says: Callable[[IntArray, int], bool]) -> Bin:
        def hit(seen: Seen) -> bool:
            return any(
                says(*one) for case, answer in parts(seen) for one in _loads(case, answer.tiles)
            )

        return Bin(name=name, why=why, hit=hit, aim=GATHERED)

    def layers(name: str, why: str, says: Callable[[KeptUnits], bool]) -> Bin:
        def hit(seen: Seen) -> bool:
            found = (getattr(case.layer, "kept", None) for case, _ in parts(seen))
            return any(kept is not None and says(kept) for kept in found)

        return Bin(name=name, why=why, hit=hit, aim=GATHERED)

    yield Bin(
        name="reset in a gathered load",
        why="lanes of a word that is begun are or'ed into the first word of the next load",
        hit=_reset_in_a_load,
        aim=IN_A_LOAD,
    )
    moved = "lanes move by what is not kept before them"
    yield loads("a word of which nothing is kept", moved, lambda c, _: bool((c == 0).any()))
    yield loads("a word of which all is kept", moved, lambda c, _: bool((c == lanes).any()))
    yield loads("a word of which one is kept", moved, lambda c, _: bool((c == 1).any()))
    yield layers("all of a row kept", "as if it lay so", lambda k: k.count == k.units)
    yield layers("one of a row kept", "words fill over many rows", lambda k: k.count == 1)
    yield layers("the longest row", "a place in the list", lambda k: k.units == unit.units)
    row = InARow[TileCase](lambda seen: [case for case, _ in parts(seen)])
    yield from row.either_way(
        "kept units", lambda case: isinstance(case.layer, MatMul) and case.layer.kept is not None
    )
    if lanes > 1:
        yield layers(
            "a row that is not whole words", "lanes behind its end", lambda k: k.units % lanes > 0
        )
        yield loads(
            "a load that leaves a word over",
            "it is written behind the last",
            lambda c, rows: _leaves_over(c, rows, lanes),
        )
    if unit.list_words > 1:
        yield layers(
            "flags of several words",
            "the list is read word by word",
            lambda k: unit.flag_words(k.units) > 1,
        )


__all__ = ["GATHERED", "IN_A_LOAD", "gather_bins", "gathered_layers", "with_kept_units"]
