"""Rows of which some units are kept: whether a gather unit takes them, and the words that cross.

A tile loads its rows whole, and with them flags of the units that it keeps: of the layer's, those
among its channels.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from archsim.errors import require
from archsim.numbers import IntArray, wrap
from archsim.tiled.commands import TileCommand
from archsim.tiled.design import CoreDesign
from archsim.tiled.tile_words import ifmap_part, loads
from workloads.kept_units import KeptUnits
from workloads.layers import Conv2d, MatMul


def check_rows(design: CoreDesign, layer: Conv2d | MatMul) -> None:
    """Raise `InputError` for rows that are longer than the core's gather unit takes."""
    kept = layer.kept if isinstance(layer, MatMul) else None
    require(
        kept is None or not design.gather_units or kept.units <= design.gather_units,
        f"{layer.name}: rows of {kept.units if kept else 0} units need gather_units of as many, "
        f"not {design.gather_units}",
    )


def gathered_words(
    design: CoreDesign, kept: KeptUnits, tiles: Sequence[TileCommand[int]], ifmap: IntArray
) -> IntArray:
    """The words [words, lanes] of the ifmap's port: of each load flags, then rows of all units.

    ifmap: of kept units, [images, group, rows, columns, channels, 1].  Units that are dropped may
    hold anything in memory; here all their bits are set, so that none of them can go unseen.
    """
    unit = design.gather
    assert unit is not None
    port = next(one for one in design.data_ports if one.name == "ifmap")
    signed, positions = port.lane_signed[0], kept.positions()
    found: list[IntArray] = []
    for tile in tiles:
        if loads("ifmap", tile):
            here = positions[tile.tile_channel : tile.tile_channel + tile.tile_channels]
            part = ifmap_part(tile, ifmap).reshape(-1, tile.tile_channels)
            rows = np.full((len(part), kept.units), (1 << unit.lane_bits) - 1, np.int64)
            rows[:, here] = part
            mask = np.zeros(kept.units, np.bool_)
            mask[here] = True
            found.append(unit.load(mask, rows))
    words = np.concatenate(found)
    return wrap(words, unit.lane_bits) if signed else words


__all__ = ["check_rows", "gathered_words"]
