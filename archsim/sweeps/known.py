"""Which points a study keeps, asked for many at a time."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from archsim.numbers import IntArray
from archsim.sweeps.store import Store


class Known:
    """The points that were kept when this was made.

    Numbers that lie close together are looked up in the file; others among all, which are then
    held, 8 bytes each.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        count, batch = store.rows("SELECT count(*), max(batch) FROM points")[0]
        self.any = bool(count)
        self.next_batch = 0 if batch is None else int(batch) + 1
        self._last_batch = self.next_batch - 1
        self._all: IntArray | None = None

    def are(self, numbers: IntArray) -> npt.NDArray[np.bool_]:
        """Which of [numbers] are kept."""
        if not self.any or not len(numbers):
            return np.zeros(len(numbers), np.bool_)
        if self._all is None and numbers.max() - numbers.min() <= 64 * len(numbers):
            return np.isin(numbers, self._between(int(numbers.min()), int(numbers.max())))
        return np.isin(numbers, self._held())

    def _between(self, first: int, last: int) -> IntArray:
        query = "SELECT number FROM points WHERE number BETWEEN ? AND ? AND batch <= ?"
        found = self._store.connection.execute(query, [first, last, self._last_batch])
        return np.asarray(found.fetchnumpy()["number"], np.int64)

    def _held(self) -> IntArray:
        if self._all is None:
            query = "SELECT number FROM points WHERE batch <= ?"
            found = self._store.connection.execute(query, [self._last_batch])
            self._all = np.sort(np.asarray(found.fetchnumpy()["number"], np.int64))
        return self._all


__all__ = ["Known"]
