"""Products of blocks of a layer, filters by what windows see (`archsim.layer.integer_values`)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from archsim.layer.integer_products import Bytes, Product, Sums, UnsignedBytes, bound_product
from archsim.layer.seen import Windows


class BlockProducts:
    """Products of blocks one behind the other, in the same memory, which stays in the cache.

    filters: [groups, K, C · R · S], plus 128.
    """

    def __init__(self, windows: Windows, product: Product, filters: UnsignedBytes) -> None:
        self._windows, self._product, self._filters = windows, product, filters
        self._seen, self._sums = np.empty(0, np.int8), np.empty(0, np.int32)
        self._known: dict[tuple[int, int], tuple[Bytes, Sums, Callable[[], None]]] = {}

    def sums(self, planes: Bytes, group: int, rows: tuple[int, int]) -> Sums:
        """[K, images · pixels] of some rows of planes [images, C, H, W], until the next."""
        depth, wide = self._windows.shape(planes, rows)
        if (group, wide) not in self._known:
            self._known[group, wide] = self._made(group, depth, wide)
        seen, sums, multiply = self._known[group, wide]
        self._windows.see(planes, rows, seen)
        multiply()
        return sums

    def _made(self, group: int, depth: int, wide: int) -> tuple[Bytes, Sums, Callable[[], None]]:
        filters = self._filters[group]
        if self._seen.size < depth * wide:
            self._seen, self._sums = (
                np.empty(depth * wide, np.int8),
                np.empty(len(filters) * wide, np.int32),
            )
        seen = self._seen[: depth * wide].reshape(depth, wide)
        sums = self._sums[: len(filters) * wide].reshape(-1, wide)
        return seen, sums, bound_product(self._product, filters, seen, sums)


__all__ = ["BlockProducts"]
