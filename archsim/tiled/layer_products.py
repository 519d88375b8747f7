"""The products of a layer by PE: of all of it, and until any cycle."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from archsim.numbers import IntArray
from archsim.tiled.commands import TileCommand, columns_of
from archsim.tiled.machine_vector import machine_record
from archsim.tiled.pe_array import PeArray
from archsim.tiled.plan import plan_columns, plan_row
from archsim.tiled.tile_products import TileProducts


@dataclass(frozen=True, kw_only=True, eq=False)
class LayerProducts:
    """machine, pes: of the design; tiles, plan: of the layer, [tiles, …].

    groups: of the layer; together: how many lie side by side; channels: of a group.
    """

    machine: IntArray
    pes: PeArray
    tiles: IntArray
    plan: IntArray
    groups: int
    together: int
    channels: int

    @cached_property
    def total(self) -> IntArray:
        """Multiply-accumulates of each PE: [rows, columns]."""
        return self._whole(len(self.tiles))

    def until(self, cycle: int) -> IntArray:
        """Of each PE before a cycle, counted from the layer's start: [rows, columns].

        A product is done, by this count, in the cycle in which its moving word enters the array:
        the PE does it a fixed number of cycles later, in row r and column c of a systolic array
        r + c cycles more.
        """
        ended = int(np.searchsorted(plan_columns(self.plan).stream_end, cycle, side="right"))
        found = self._whole(ended)
        if ended == len(self.tiles):
            return found
        times = plan_row(self.plan, ended)
        start, end = times.stream_start, times.stream_end
        if cycle <= start:
            return found
        shapes, of_tile = self._shapes
        return found + shapes[int(of_tile[ended])].until(cycle - start, end - start)

    def _whole(self, count: int) -> IntArray:
        """Of the first tiles, so many."""
        shapes, of_tile = self._shapes
        times = np.bincount(of_tile[:count], minlength=len(shapes))
        found = np.zeros((self.pes.rows, self.pes.columns), np.int64)
        for shape, repeated in zip(shapes, times.tolist(), strict=True):
            if repeated:
                found += repeated * shape.whole
        return found

    @cached_property
    def _shapes(self) -> tuple[list[TileProducts], IntArray]:
        """The tiles' different shapes, and which of them every tile has."""
        tiles = columns_of(self.tiles)
        present = np.minimum(self.groups - tiles.tile_group * self.together, self.together)
        left = np.zeros_like(present)
        if self.pes.vector > 1:
            before = tiles.tile_channel * self.pes.vector
            left = self.channels - before * (self.together == 1)
        # what of a tile's command its products depend on
        sizes = tiles.pixels, tiles.taps, tiles.runs, tiles.run_length
        parts = tiles.tile_filters, tiles.tile_channels
        keys = np.column_stack([*sizes, *parts, present, left])
        _, first, of_tile = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        shapes = [
            TileProducts(
                machine=machine_record(self.machine),
                pes=self.pes,
                row=TileCommand(*self.tiles[at].tolist()),
                groups=int(present[at]),
                together=self.together,
                left=int(left[at]),
            )
            for at in first
        ]
        return shapes, of_tile.ravel()
