"""Which column vectors of a tile go to which PE, so that queues of needed outputs are even.

Place c of a tile is in PE c mod pes.  Columns are sorted by how many of their outputs are needed
in the tile, and dealt to the PEs in turn, there and back again.  The mask is known before the tile
begins, so that nothing in the core moves: columns come in this order, and outputs leave in it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from archsim.numbers import BoolArray, IntArray, ceil_div

AnyArray = npt.NDArray[Any]


def dealt(counts: IntArray, pes: int) -> IntArray:
    """Of places [..., places] the column that is dealt to each, of what columns have to do."""
    ranked = np.argsort(-counts, axis=-1, kind="stable")
    return ranked[..., _ranks(counts.shape[-1], pes)]


def longest(counts: IntArray, pes: int) -> IntArray:
    """Outputs of the PE that has most, [...], of columns [..., places] that are dealt."""
    placed = np.take_along_axis(counts, dealt(counts, pes), axis=-1)
    short = -placed.shape[-1] % pes
    padded = np.pad(placed, [(0, 0)] * (placed.ndim - 1) + [(0, short)])
    return padded.reshape(*placed.shape[:-1], -1, pes).sum(axis=-2).max(axis=-1)


def _ranks(places: int, pes: int) -> IntArray:
    """Which rank each place has: of every second set of PEs the other way round, if it is whole."""
    found = np.arange(places)
    whole = places // pes
    sets = found[: whole * pes].reshape(whole, pes)
    sets[1::2] = sets[1::2, ::-1].copy()
    return found


def order_of(needed: BoolArray, tile: tuple[int, int], pes: int) -> IntArray:
    """Of every tile of rows which column is dealt to each place, [groups, tiles of rows, columns].

    needed: [groups, rows, columns]; tile: its rows and columns.
    """
    groups, rows, columns = needed.shape
    first: IntArray = np.arange(0, rows, tile[0], dtype=np.int64)
    counts = np.add.reduceat(needed, first, axis=1, dtype=np.int64)
    found = np.empty((groups, ceil_div(rows, tile[0]), columns), np.int64)
    for start in range(0, columns, tile[1]):
        own = slice(start, min(start + tile[1], columns))
        found[..., own] = start + dealt(counts[..., own], pes)
    return found


def in_order(outputs: AnyArray, order: IntArray, tile_rows: int) -> AnyArray:
    """[groups, rows, columns] as columns are dealt in every row's tile (`order_of`)."""
    of_rows = np.repeat(order, tile_rows, axis=1)[:, : outputs.shape[1]]
    return np.take_along_axis(outputs, of_rows, axis=2)


__all__ = ["dealt", "in_order", "longest", "order_of"]
