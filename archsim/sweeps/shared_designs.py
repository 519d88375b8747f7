"""Designs that several machines of a space have in common, told by arithmetic on their numbers.

Such a design is one point, that of the first machine whose constraints allow it; so no point is
ever looked up by its content, and a study needs no index of contents.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from archsim.numbers import IntArray

if TYPE_CHECKING:
    from archsim.sweeps.points import Grid, Part


@dataclass(frozen=True, kw_only=True)
class _Overlap:
    """A part whose designs may be of an earlier one too.

    places: for each field of the earlier one that varies: the field of the later one that says
    which value it has, or −1 where that does not vary; digits: for each value of it, the earlier
    one's, or −1 where that has no such value.  needed: for each other field of the later one, the
    value that the earlier one's is (−1: none), by place.
    """

    earlier: Part
    places: tuple[int, ...]
    digits: tuple[IntArray, ...]
    needed: Mapping[int, int]

    def numbers(self, digits: IntArray) -> IntArray:
        """Numbers in the earlier part of designs [rows, fields] of the later, −1: not there."""
        rows = len(digits)
        there = np.ones(rows, np.bool_)
        for place, wanted in self.needed.items():
            there &= digits[:, place] == wanted
        number = np.zeros(rows, np.int64)
        for place, of, size in zip(
            self.places, self.digits, self.earlier.variant.shape, strict=True
        ):
            digit = of[digits[:, place]] if place >= 0 else np.full(rows, of[0])
            there &= digit >= 0
            number = number * size + digit
        return np.where(there, self.earlier.first + number, -1)


class SharedDesigns:
    """Of a grid."""

    def __init__(self, grid: Grid) -> None:
        self._grid = grid

    @cached_property
    def _overlaps(self) -> dict[int, list[_Overlap]]:
        """By the number of a part's first design, those with earlier parts, the first first."""
        found: dict[int, list[_Overlap]] = {}
        for at, part in enumerate(self._grid.parts):
            others = [_overlap(one, part) for one in self._grid.parts[:at]]
            if kept := [one for one in others if one is not None]:
                found[part.first] = kept
        return found

    @property
    def any(self) -> bool:
        """Whether machines may have designs in common."""
        return bool(self._overlaps)

    def first_of(self, designs: IntArray) -> IntArray:
        """The numbers by which [designs] are computed: their own, or an earlier machine's."""
        if not self.any:
            return designs
        found = designs.copy()
        for part, places, digits in self._grid.split(designs):
            own = found[places]
            for one in reversed(self._overlaps.get(part.first, [])):
                numbers = one.numbers(digits)
                there = np.flatnonzero(numbers >= 0)
                there = there[self._grid.allowed(numbers[there])]
                own[there] = numbers[there]
            found[places] = own
        return found


def _overlap(earlier: Part, later: Part) -> _Overlap | None:
    """What two parts have in common; None where they have no design in common."""
    if earlier.machine is later.machine or earlier.keys.keys() != later.keys.keys():
        return None
    for name, keys in earlier.keys.items():
        if keys.isdisjoint(later.keys[name]):
            return None
    ours, theirs = earlier.values, later.values
    varied, fields = list(earlier.variant.fields), list(later.variant.fields)
    digits: list[IntArray] = []
    for name in varied:
        places = {_key(value): at for at, value in enumerate(ours[name])}
        digits.append(np.array([places.get(_key(one), -1) for one in theirs[name]], np.int64))
    needed = {
        place: [_key(one) for one in theirs[name]].index(_key(ours[name][0]))
        for place, name in enumerate(fields)
        if name not in varied
    }
    return _Overlap(
        earlier=earlier,
        places=tuple(fields.index(name) if name in fields else -1 for name in varied),
        digits=tuple(digits),
        needed=needed,
    )


def _key(value: Any) -> tuple[bool, Any]:
    """Values that are equal; true is not 1."""
    return isinstance(value, bool), value


__all__ = ["SharedDesigns"]
