"""The PEs of an array, and which of them does which product of a block of sums.

A product is named by where it stands in its block: the pixel's place in a block of pixels, the
filter's in a block of filters, the element's in a chunk (`docs/contracts/`).  An array lays two of
these out as its rows and columns and takes the third one after the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from archsim.numbers import IntArray

Index = Literal["pixel", "filter", "element", "sum"]
"""What a row or a column of PEs is for; "sum": a unit, for pixels and filters both."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Products:
    """Products of a part of a tile, by their place: every pixel with every filter and element of
    its group.

    pixels [places]: how many pixels stand at each place of a block.  filters [groups, places] and
    elements [groups, places]: how many filters, and how many elements of one window.
    """

    pixels: IntArray
    filters: IntArray
    elements: IntArray


@dataclass(frozen=True, kw_only=True, eq=False)
class PeArray:
    """rows × columns PEs, each of which does at most one multiply-accumulate a cycle.

    row, column: what the two are called.  row_is, column_is: what of a product they follow.
    vector: products of an element.  units [pixels, filters]: the column of each sum of a block, and
    passes [pixels, filters]: in which slot of a set it is made, where columns are units; then rows
    are elements.
    """

    rows: int
    columns: int
    row: str = "row"
    column: str = "column"
    row_is: Index
    column_is: Index
    vector: int = 1
    units: IntArray | None = None
    passes: IntArray | None = None

    def products(self, part: Products, slots: int | None = None) -> IntArray:
        """How many of the products each PE does: [rows, columns].

        slots: only those of the first slots of a set, where columns are units.
        """
        if self.units is not None:
            return self._by_unit(part, self.units, slots)
        pixels, filters, elements = part.pixels, part.filters, part.elements
        if self.row_is == "pixel":
            return _outer(pixels, elements.sum(axis=1) @ filters)
        if self.column_is == "pixel":
            return _outer(filters.sum(axis=1) @ elements, pixels)
        return pixels.sum() * (elements.T @ filters)

    def _by_unit(self, part: Products, units: IntArray, slots: int | None) -> IntArray:
        sums = part.pixels[:, None, None] * part.filters.T  # [pixels, filters, groups]
        if slots is not None and self.passes is not None:
            sums = sums * (self.passes < slots)[:, :, None]
        by_unit = np.zeros((self.columns, part.filters.shape[0]), np.int64)
        np.add.at(by_unit, units.ravel(), sums.reshape(units.size, -1))
        return part.elements.T @ by_unit.T


def _outer(first: IntArray, second: IntArray) -> IntArray:
    return first[:, None] * second
