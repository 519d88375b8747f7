"""What memories answer whose capacity hangs on values: of an operand, tile by tile."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from archsim.errors import InputError
from archsim.numbers import IntArray

if TYPE_CHECKING:
    from archsim.memory.seam import Use


@dataclass(frozen=True, kw_only=True, eq=False)
class WalkedOperand:
    """An operand as the walk of a core cuts it into tiles.

    values: split as in `archsim.layer.layout`.  tiles [tiles, WALK_COLUMNS]: the walk
    (`archsim.tiled.commands`).  first: of each distinct tile of the operand, the first tile of the
    walk that reads it; tile_of: of every tile of the walk, which it reads.  together: groups of the
    layer that lie side by side.  moving: weights enter the rows of the array.  half: into which
    half the walk's first tile is loaded.
    """

    values: npt.NDArray[Any]
    tiles: IntArray
    first: IntArray
    tile_of: IntArray
    together: int = 1
    moving: bool = False
    half: int = 0


class FailingCells(Protocol):
    """Cells that do not always give back what was stored."""

    def failing_bits(
        self, use: Use, sram: str, bits: npt.NDArray[np.uint8]
    ) -> npt.NDArray[np.uint8]:
        """What is read of an SRAM's cells (`archsim.memory.seam.Cells`) from its first row on."""
        ...


class StoredOperand(Protocol):
    """What the distinct tiles of an operand take of a memory."""

    @property
    def fits(self) -> bool:
        """Whether every tile does."""
        ...

    @property
    def mean_words(self) -> int:
        """Words that would fit if all took what these take in the mean."""
        ...

    def fewer_words(self, words: int) -> int:
        """Words that would fit of `words` if all took what those of the fullest tile take."""
        ...

    @property
    def plain_bits(self) -> int:
        """What a plain memory would take for all tiles."""
        ...

    @property
    def stored_bits(self) -> int:
        """What all tiles take."""
        ...

    def why_not(self, layer: str) -> InputError | None:
        """The error if a tile does not fit."""
        ...

    def actions(self, machine: IntArray) -> dict[str, int]:
        """What is counted of these values, on a core of that machine vector."""
        ...

    def happened(self) -> Collection[str]:
        """What the proof of hardware must have seen (`TileStore.happenings`), and is here."""
        ...


class TileStore(Protocol):
    """A memory together with the words that a core keeps in it."""

    @property
    def depth(self) -> int:
        """Words that can be addressed in each half."""
        ...

    @property
    def sure_depth(self) -> int:
        """Words that each half holds, whatever their values."""
        ...

    @property
    def counted(self) -> tuple[str, ...]:
        """What it counts beside words read and written; the RTL's ports are these with an "s"."""
        ...

    @property
    def happenings(self) -> Mapping[str, str]:
        """What tiles of it may show that the proof of hardware must have seen, and why faults hide
        there."""
        ...

    def take(self, walked: WalkedOperand) -> StoredOperand:
        """What the tiles of an operand take."""
        ...

    def count_writes(self, words: IntArray) -> dict[str, int]:
        """Of `counted`, what hangs on the words of loaded tiles alone: [tiles]."""
        ...

    def through(self, cells: FailingCells, use: Use) -> TileStore:
        """The same with failing cells around it: what is counted of reads follows what they give.
        How many words fit, and what a tile takes, hangs on the values that were meant."""
        ...

    def bounds(self, reads: float, writes: float) -> dict[str, float]:
        """The most that `counted` can be for so many words read and written."""
        ...


__all__ = ["FailingCells", "StoredOperand", "TileStore", "WalkedOperand"]
