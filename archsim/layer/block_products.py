"""Products of blocks of a layer, filters by what windows see (`archsim.layer.integer_values`)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from archsim.layer.integer_products import Bytes, Product, Sums, UnsignedBytes, bound_product
from archsim.layer.seen import Block, Windows
from archsim.numbers import IntArray

Keep = Callable[[Sums, IntArray], list[Callable[[], None]]]
"""The steps that keep sums of the block that a place is whenever they are taken."""


class BlockProducts:
    """Products of blocks one behind the other, in the same memory, which stays in the cache.

    planes: [images, groups · C, H, W]; filters: [groups, K, C · R · S], plus 128.
    """

    def __init__(
        self, windows: Windows, product: Product, planes: Bytes, filters: UnsignedBytes, keep: Keep
    ) -> None:
        self._windows, self._product = windows, product
        self._planes, self._filters, self._keep = planes, filters, keep
        self._channels = planes.shape[1] // len(filters)
        self._seen, self._sums = np.empty(0, np.int8), np.empty(0, np.int32)
        self._place = np.empty(len(Block._fields), np.int64)
        self._known: dict[tuple[int, int], tuple[Sums, list[Callable[[], None]]]] = {}

    def sums(self, block: Block) -> Sums:
        """[K, images · pixels] of a block, which are kept, until the next."""
        key = block.group, block.rows
        if key not in self._known:
            self._known[key] = self._made(*key)
        sums, steps = self._known[key]
        self._place[:] = block
        for step in steps:
            step()
        return sums

    def _made(self, group: int, rows: int) -> tuple[Sums, list[Callable[[], None]]]:
        filters, (depth, wide) = self._filters[group], self._windows.shape(self._channels, rows)
        if self._seen.size < depth * wide:
            self._seen, self._sums = (
                np.empty(depth * wide, np.int8),
                np.empty(len(filters) * wide, np.int32),
            )
        seen = self._seen[: depth * wide].reshape(depth, wide)
        sums = self._sums[: len(filters) * wide].reshape(-1, wide)
        see = self._windows.bound(self._planes, self._place, seen)
        multiply = bound_product(self._product, filters, seen, sums)
        return sums, [see, multiply, *self._keep(sums, self._place)]


__all__ = ["BlockProducts"]
