"""Bins of layers in a row, without a reset between them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Generic, TypeVar

from rtl.coverage.bins import Bin, Seen

TEN = "ten layers"
"""The aim of these bins; kinds draw its cases."""

STATE = "what a layer leaves in a register or a memory, the next one must not see"

Layer = TypeVar("Layer")


@dataclass(frozen=True)
class InARow(Generic[Layer]):
    """layers: those of a case, in order."""

    layers: Callable[[Seen], Sequence[Layer]]

    def pair(self, says: Callable[[Layer, Layer], bool]) -> Callable[[Seen], bool]:
        """Whether of two layers, one behind the other, the pair is as `says`."""
        return lambda seen: any(says(*pair) for pair in pairwise(self.layers(seen)))

    def either_way(self, name: str, of: Callable[[Layer], bool]) -> Iterator[Bin]:
        """A layer that has something, behind one that has not, and the other way round."""
        yield Bin(
            name=f"a layer without {name} behind one with",
            why=STATE,
            hit=self.pair(lambda one, two: of(one) and not of(two)),
            aim=TEN,
        )
        yield Bin(
            name=f"a layer with {name} behind one without",
            why=STATE,
            hit=self.pair(lambda one, two: of(two) and not of(one)),
            aim=TEN,
        )

    @staticmethod
    def ten(why: str) -> Bin:
        """Ten layers without a reset."""
        return Bin(
            name="ten layers without a reset",
            why=why,
            hit=lambda seen: seen.case.layers_in_row >= 10,
            aim=TEN,
        )


__all__ = ["STATE", "TEN", "InARow"]
