"""Zero-run lists: the non-zero values of a row, each with the number of zeros before it.

A list is a sequence of elements (value, index): `index` zeros lie between the element before and
this one.  A run longer than an index can say holds placeholders: the value 0 with the largest
index stands for 2^index_bits positions.  Zeros behind the last element are not stored.  Lists are
cut into vectors of `lanes` elements; lanes that are left over are (0, 0), and a list without
elements is one vector of them.  A flag marks the last vector of each list.

The coding, with indices of 4 bits and placeholders, is that of SCNN (Parashar et al., ISCA 2017);
vectors that belong to one list only, and their flag, are chosen here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from archsim.errors import require, require_positive
from archsim.numbers import AnyIntArray, IntArray

BoolArray = npt.NDArray[np.bool_]

NOWHERE = -1
"""The position of a lane that no element has."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Lists:
    """Lists one behind the other.

    values, indices, positions [vectors, lanes]: of the elements; a position is counted from 0 in
    its list, NOWHERE in lanes without an element.  starts [lists + 1]: the first vector of each
    list, and the number of vectors.
    """

    values: IntArray
    indices: IntArray
    positions: IntArray
    starts: IntArray
    index_bits: int

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def vectors(self) -> int:
        """Of all lists."""
        return len(self.values)

    @property
    def lanes(self) -> int:
        return self.values.shape[1]

    @property
    def lengths(self) -> IntArray:
        """Vectors of each list, at least 1."""
        return np.diff(self.starts)

    @property
    def last(self) -> BoolArray:
        """[vectors]: whether a vector is the last of its list."""
        flags = np.zeros(self.vectors, np.bool_)
        flags[self.starts[1:] - 1] = True
        return flags

    @property
    def empty(self) -> BoolArray:
        """[lists]: whether a list has no element."""
        return self.positions[self.starts[:-1], 0] == NOWHERE

    def writes(self, places: AnyIntArray) -> int:
        """Vectors that are written by what makes all lists value by value, of so many places
        [lists]: each as soon as it is full, and the last with its flag, though it were full.

        Until a value comes behind them, placeholders are written that the list does not keep.
        """
        first = self.starts[:-1]
        stored = np.add.reduceat((self.positions != NOWHERE).sum(axis=1), first)
        last = np.maximum.reduceat(self.positions.max(axis=1), first)
        behind = (places - 1 - last) >> self.index_bits
        return int(((stored + behind) // self.lanes + 1).sum())

    def bits(self, value_bits: int) -> int:
        """Stored: vectors · (lanes · (value_bits + index_bits) + 1)."""
        return self.vectors * (self.lanes * (value_bits + self.index_bits) + 1)


def encode(
    rows: AnyIntArray, *, lanes: int, index_bits: int, kept: BoolArray | None = None
) -> Lists:
    """A list for each of rows [lists, positions].

    kept, of a shape that broadcasts to that of rows: positions that are elements even if their
    value is 0 (an operand that is stored dense has all of them).  Raises InputError for sizes that
    are not positive.
    """
    require_positive(lanes=lanes, index_bits=index_bits)
    require(rows.ndim == 2, f"rows must be of two axes, not of shape {rows.shape}")
    elements = rows != 0
    if kept is not None:
        elements |= kept
    row, position = np.nonzero(elements)
    before = np.full(len(row), NOWHERE)
    follows = row[1:] == row[:-1]
    before[1:][follows] = position[:-1][follows]
    run = position - before - 1
    span = 1 << index_bits
    holders, index = run >> index_bits, run & (span - 1)

    count = np.bincount(row, minlength=len(rows)) + _sums(holders, row, len(rows))
    starts = _running(np.maximum(-(-count // lanes), 1))
    place = np.cumsum(holders + 1) - 1
    place += (starts[:-1] * lanes - _running(count)[:-1])[row]

    slots = int(starts[-1]) * lanes
    values, indices = np.zeros(slots, np.int64), np.zeros(slots, np.int64)
    positions = np.full(slots, NOWHERE, np.int64)
    values[place], indices[place], positions[place] = rows[row, position], index, position
    many, back = _placeholders(holders)
    held = place[many] - 1 - back
    indices[held], positions[held] = span - 1, position[many] - index[many] - 1 - span * back
    return Lists(
        values=values.reshape(-1, lanes),
        indices=indices.reshape(-1, lanes),
        positions=positions.reshape(-1, lanes),
        starts=starts,
        index_bits=index_bits,
    )


def _placeholders(holders: IntArray) -> tuple[IntArray, IntArray]:
    """Of all placeholders: the element behind, and how many lie between."""
    many = np.repeat(np.arange(len(holders)), holders)
    return many, np.arange(len(many)) - np.repeat(np.cumsum(holders) - holders, holders)


def join(parts: Sequence[Lists]) -> Lists:
    """The lists of at least one part after another."""
    before = _running(np.array([part.vectors for part in parts]))
    starts = [part.starts[:-1] + offset for part, offset in zip(parts, before[:-1], strict=True)]
    return Lists(
        values=np.concatenate([part.values for part in parts]),
        indices=np.concatenate([part.indices for part in parts]),
        positions=np.concatenate([part.positions for part in parts]),
        starts=np.concatenate([*starts, before[-1:]]),
        index_bits=parts[0].index_bits,
    )


def decode(lists: Lists, positions: int) -> IntArray:
    """The rows [lists, positions] of lists, from values and indices alone.

    Raises InputError for a value beyond the last position.
    """
    rows = np.zeros((len(lists), positions), np.int64)
    steps = np.cumsum(lists.indices.reshape(-1) + 1)
    first = np.concatenate([[0], steps])[lists.starts[:-1] * lists.lanes]
    row = np.repeat(np.arange(len(lists)), lists.lengths * lists.lanes)
    at = steps - first[row] - 1
    flat = lists.values.reshape(-1)
    found = np.flatnonzero(flat)
    require(
        not len(found) or int(at[found].max()) < positions,
        f"values must lie within {positions} positions",
    )
    rows[row[found], at[found]] = flat[found]
    return rows


def _running(counts: IntArray) -> IntArray:
    """Sums of the first 0, 1, … counts."""
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def _sums(values: IntArray, row: IntArray, rows: int) -> IntArray:
    """Of the values of each row."""
    return np.bincount(row, weights=values, minlength=rows).astype(np.int64)
