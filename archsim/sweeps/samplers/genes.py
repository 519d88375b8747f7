"""Designs of several machines as rows of whole numbers that can be crossed, and back."""

from __future__ import annotations

import numpy as np

from archsim.numbers import IntArray
from archsim.sweeps.points import Grid


class Genes:
    """A gene for the variant, if there are some, and one for each field of any of them.

    Fields of the same name share a gene: of a variant that has fewer values of it, neighbours
    stand for the same.
    """

    def __init__(self, grid: Grid) -> None:
        self.grid = grid
        sizes: dict[str, int] = {}
        for part in grid.parts:
            for name, values in part.variant.fields.items():
                sizes[name] = max(sizes.get(name, 1), len(values))
        self.sizes = {"": len(grid.parts), **sizes}
        self._place = {name: at for at, name in enumerate(self.sizes)}

    @property
    def highest(self) -> IntArray:
        """[genes]; the lowest are 0."""
        return np.array([size - 1 for size in self.sizes.values()], np.int64)

    def numbers(self, genes: IntArray) -> IntArray:
        """Designs [rows] of [rows, genes]."""
        found = np.empty(len(genes), np.int64)
        for at, part in enumerate(self.grid.parts):
            rows = np.flatnonzero(genes[:, 0] == at)
            number = np.zeros(len(rows), np.int64)
            for name, values in part.variant.fields.items():
                gene = genes[rows, self._place[name]]
                number = number * len(values) + gene * len(values) // self.sizes[name]
            found[rows] = part.first + number
        return found

    def genes(self, numbers: IntArray) -> IntArray:
        """[rows, genes] that stand for designs."""
        found = np.zeros((len(numbers), len(self.sizes)), np.int64)
        for part, places, digits in self.grid.split(numbers):
            found[places, 0] = self.grid.parts.index(part)
            for at, (name, values) in enumerate(part.variant.fields.items()):
                least = -(-digits[:, at] * self.sizes[name] // len(values))
                found[places, self._place[name]] = least
        return found


__all__ = ["Genes"]
